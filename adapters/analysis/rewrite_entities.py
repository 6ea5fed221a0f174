"""Entities, types and attributes of principals and resources -> the same here, or a refusal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from .counterparts import Counterparts, Tool
from .rewrite_terms import NoCounterpart, uid
from .schema_types import Entity, Type

_ACTION: Final = "Action"
_PRINCIPALS: Final = frozenset({"Agent", "Human"})
UNKNOWN: Final = "X_POLICY_ACTION_UNKNOWN"


class Entities:
    """Who and what the tools of one policy are about."""

    def __init__(self, known: Counterparts, tools: Sequence[Tool]) -> None:
        self._known, self._tools = known, tools

    def entity(self, told: Any) -> dict[str, Any]:
        """Return a uid as it is here. Raises: NoCounterpart."""
        kind, ident = uid(told)
        if kind.rpartition("::")[2] == _ACTION:
            return self._action(kind, ident)
        here = self.kind(kind)
        if here == "Server" and ident != self._known.server:
            fix = f"write the name of this server: `{self._known.server}`"
            raise NoCounterpart(f"no server here is named `{ident}`", fix, ident)
        return {"type": here, "id": ident}

    def _action(self, kind: str, ident: str) -> dict[str, Any]:
        tool = self._known.tools.get((kind, ident))
        if tool is None or tool.entry is None:
            cause = f"a condition names `{ident}`, which is no tool of this app"
            raise NoCounterpart(cause, "name tools of this app", ident, UNKNOWN)
        return {"type": _ACTION, "id": ident}

    def kind(self, name: str) -> str:
        """Return an entity type as it is here. Raises: NoCounterpart."""
        if name not in self._known.kinds:
            fix = f"say which type here is meant: `--types {name}=...`"
            raise NoCounterpart(f"`{name}` is no type of this app", fix, name.rpartition("::")[2])
        return self._known.kinds[name]

    def within(self, told: Any) -> None:
        """Refuse an entity that others can be in there and not here. Raises: NoCounterpart."""
        there, ident = uid(told)
        if any(uid(told) in tool.action.within for tool in self._tools):
            cause = f"the action `{ident}` is a group there, and here it is one tool"
            raise NoCounterpart(cause, "name the tools of the group", ident)
        for each in sorted(self._ways(there)):
            here = self.kind(each), self.kind(there)
            if here[1] not in self._known.ours.ancestors(here[0]):
                cause = f"a `{each}` can be in a `{there}` there, and here no `{here[0]}` is in a `{here[1]}`"
                raise NoCounterpart(cause, "name roles that callers have here", there.rpartition("::")[2])

    def _ways(self, kind: str) -> set[str]:
        """Return the types through which principals and resources of the tools can be in one."""
        above = self._known.theirs.ancestors
        acting = {each for tool in self._tools for each in (*tool.action.principals, *tool.action.resources)}
        passed = {each for start in acting for each in (start, *above(start))}
        return {each for each in passed if kind in above(each)}

    def typed(self, variable: str) -> None:
        """Refuse to test the type of principals where there are more types here. Raises: NoCounterpart."""
        for tool in self._tools:
            here = {self.kind(each) for each in self._there(tool, variable)}
            if variable == "principal" and set(_PRINCIPALS) != here:
                cause = f"every principal of `{tool.name}` is {_named(here)} there, and here it need not be"
                raise NoCounterpart(cause, "write it without `is`", "is")

    def comparable(self, variable: str) -> None:
        """Refuse unless what principal or resource is there is what it is here. Raises: NoCounterpart."""
        for tool in self._tools:
            here = {self.kind(each) for each in self._there(tool, variable)}
            ours = _PRINCIPALS if variable == "principal" else {tool.resource}
            if not here <= ours:
                cause = f"the {variable} of `{tool.name}` is {_named(here)} there and {_named(ours)} here"
                raise NoCounterpart(cause, f"write the policy without the {variable}", variable)

    def shared(self, variable: str, names: Sequence[str], has: str | None = None) -> None:
        """Refuse an attribute that principals or resources have otherwise there. Raises: NoCounterpart."""
        if variable == _ACTION.lower():
            raise NoCounterpart("an action has no attributes here", "leave the attribute out", variable)
        self.comparable(variable)
        for kind in {each for tool in self._tools for each in self._there(tool, variable)}:
            self._alike(Entity(kind), Entity(self.kind(kind)), names, has)

    def _there(self, tool: Tool, variable: str) -> tuple[str, ...]:
        return tool.action.principals if variable == "principal" else tool.action.resources

    def _alike(self, theirs: Type, ours: Type, names: Sequence[str], has: str | None) -> None:
        for name in names:
            theirs, ours = self._both(theirs, ours, name)
        if has is not None:
            self._both(theirs, ours, has)
        elif not self._known.same(theirs, ours):
            cause = f"`{'.'.join(names)}` is `{theirs}` there and `{ours}` here"
            raise NoCounterpart(cause, "write the condition for what it is here", names[-1])

    def _both(self, theirs: Type, ours: Type, name: str) -> tuple[Type, Type]:
        """Return the types of an attribute that both have alike."""
        records = self._known.theirs.attributes(theirs), self._known.ours.attributes(ours)
        there, here = (each.attributes.get(name) if each is not None else None for each in records)
        if there is None or here is None:
            raise NoCounterpart(f"`{ours}` has no attribute `{name}`", "read what there is here", name)
        if there.required != here.required:
            kept, lost = ("there", "here") if there.required else ("here", "there")
            cause = f"`{name}` of `{theirs}` is required {kept} and optional {lost}"
            raise NoCounterpart(cause, "write the condition for what it is here", name)
        return there.type, here.type


def _named(names: Iterable[str]) -> str:
    return " or ".join(f"`{each}`" for each in sorted(names))
