"""What a policy reads of ``context.input`` -> the same of ``context.args``. Refuses what is not the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from .counterparts import INPUT, VALUE, Argument, Counterparts, Tool
from .policy_json import Document
from .rewrite_terms import ARGUMENTS, NoCounterpart, along, literal, of, path
from .schema_types import Entity

_BY_HAND: Final = "write the condition by hand for the argument as it is here"


class Arguments:
    """The arguments of the tools that one policy is about."""

    def __init__(self, known: Counterparts, tools: Sequence[Tool]) -> None:
        self._theirs, self._tools = known.theirs, tools

    def argument(self, name: str) -> Argument:
        """Return the counterpart of an argument, one for every tool. Raises: NoCounterpart."""
        found = [(tool, tool.arguments[name]) for tool in self._tools if name in tool.arguments]
        for tool, each in found:
            if each.how is None:
                cause = f"the argument `{name}` of `{tool.name}` is not the same here: {each.cause}"
                raise NoCounterpart(cause, _BY_HAND, name)
        kinds = {(each.how, each.nullable, each.required, self._enumeration(each)) for _, each in found}
        if len(kinds) != 1:
            cause = f"`{name}` is not one argument in all tools that the policy is about"
            raise NoCounterpart(cause, "write a policy for each tool", name)
        return found[0][1]

    def moved(self, names: Sequence[str]) -> Document:
        """Return the expression here for ``context.input.x...``, read as a value. Raises: NoCounterpart."""
        argument, rest = self._found(names)
        choice = argument.how == "choice"
        if choice or (argument.how == "record" and self._is_entity(argument, rest)):
            what = "an enumeration there and a string here" if choice else "an entity there and a record here"
            fix = "compare it with its members" if choice else "read its attributes"
            raise NoCounterpart(f"`{names[1]}` is {what}, and it is used as a whole", fix, names[1])
        return along(ARGUMENTS, (names[1], *rest))

    def has(self, names: Sequence[str], attribute: str) -> Document:
        """Return the expression here for ``context.input... has attribute``. Raises: NoCounterpart."""
        if tuple(names) == (INPUT,):
            if self.argument(attribute).nullable:
                cause = f"`context.input has {attribute}` is true of a null there; here a null is absent"
                raise NoCounterpart(cause, f"write `context.input has {attribute}.{VALUE}`", attribute)
            return of("has", ARGUMENTS, attribute)
        argument, rest = self._found(names, tested=attribute)
        if argument.nullable and len(names) == 2:  # a valid policy asks this only of what is there
            return of("has", ARGUMENTS, names[1])
        return of("has", along(ARGUMENTS, (names[1], *rest)), attribute)

    def given(self, name: str) -> Document | None:
        """Return the expression here for ``context.input has x.typeChoice0``, if a null can stand there."""
        argument = self.argument(name)
        return of("has", ARGUMENTS, name) if argument.nullable and not argument.required else None

    def _found(self, names: Sequence[str], tested: str = "") -> tuple[Argument, tuple[str, ...]]:
        """Return the argument of a path and what is read of its value."""
        if tuple(names[:1]) != (INPUT,) or len(names) < 2:
            read = (*names, tested) if tested and not names else tuple(names)
            cause = f"`{'.'.join(('context', *read))}` is not here: the context holds the arguments of a call"
            fix = "read arguments, `context.input.NAME`, and nothing else"
            raise NoCounterpart(cause, fix, read[0] if read else "context")
        argument, rest = self.argument(names[1]), tuple(names[2:])
        if not argument.nullable or (not rest and tested == VALUE):
            return argument, rest
        if rest[:1] != (VALUE,):
            fix = f"read `context.input.{names[1]}.{VALUE}`"
            raise NoCounterpart(f"`{names[1]}` can be null there", fix, names[1])
        return argument, rest[1:]

    def _is_entity(self, argument: Argument, rest: Iterable[str]) -> bool:
        at = argument.theirs
        for name in (VALUE, *rest) if argument.nullable else rest:
            held = self._theirs.attributes(at) if at is not None else None
            at = held.attributes[name].type if held is not None and name in held.attributes else None
        return isinstance(at, Entity)

    # an enumeration there is a string here

    def compared(self, name: str, left: Any, right: Any) -> Document | None:
        """Return ``==`` or ``!=`` of an argument and a member of its enumeration."""
        for each, other in ((left, right), (right, left)):
            chosen = self._choice(each)
            if chosen is not None:
                return {name: {"left": self._string(each), "right": self._member(other, chosen)}}
        return None

    def listed(self, several: Any, one: Any) -> Document | None:
        """Return ``[E::"a"].contains(x)``, also for ``x in [E::"a"]``: no member is in another."""
        chosen = self._choice(one)
        if chosen is None:
            return None
        if "Set" not in several:
            return {"==": {"left": self._string(one), "right": self._member(several, chosen)}}
        members = [self._member(each, chosen) for each in several["Set"]]
        return {"contains": {"left": {"Set": list(members)}, "right": self._string(one)}}

    def _choice(self, node: Any) -> Argument | None:
        found = path(node)
        if found is None or found[0] != "context" or found[1][:1] != (INPUT,) or len(found[1]) < 2:
            return None
        argument = self.argument(found[1][1])
        return argument if argument.how == "choice" else None

    def _string(self, node: Any) -> Document:
        _, names = path(node) or ("", ())
        argument, rest = self._found(names)
        return along(ARGUMENTS, (argument.name, *rest))

    def _member(self, node: Any, argument: Argument) -> Document:
        found = literal(node)
        if found is None or found[0] != self._enumeration(argument):
            cause = f"`{argument.name}` is compared with what is no member of its enumeration"
            raise NoCounterpart(cause, "compare it with its own members", argument.name)
        return {"Value": found[1]}

    def _enumeration(self, argument: Argument) -> str:
        if argument.how != "choice" or argument.theirs is None:
            return ""
        held = self._theirs.attributes(argument.theirs) if argument.nullable else None
        told = held.attributes[VALUE].type if held is not None else argument.theirs
        return str(told)
