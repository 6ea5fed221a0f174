"""A policy written for a generated schema of MCP tools -> the same policy in the entity model of an app.

Works on Cedar's JSON format. Rewrites what has an exact counterpart; anything else refuses the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from .counterparts import INPUT, VALUE, Counterparts, Tool
from .policy_json import Document
from .rewrite_context import Arguments
from .rewrite_entities import UNKNOWN, Entities
from .rewrite_terms import Inexact, NoCounterpart, conjunction, conjuncts, read, tested, uid

_KEPT: Final = frozenset({"pattern", "entity_type"})


def rewritten(policy: Document, known: Counterparts) -> Document | Inexact:
    """Return a policy, valid against its own schema, in Cedar's JSON format with every name as it is here."""
    told: Any = policy
    try:
        action, tools = _actions(told["action"], known)
        writer = _Writer(known, tools, permit=told["effect"] == "permit")
        return {
            **policy,
            "principal": writer.head("principal", told["principal"]),
            "action": action,
            "resource": writer.head("resource", told["resource"]),
            "conditions": [{**each, "body": writer.expression(each["body"])} for each in told["conditions"]],
        }
    except NoCounterpart as refusal:
        return refusal.told


def _actions(head: Any, known: Counterparts) -> tuple[Document, tuple[Tool, ...]]:
    """Return the action head, and the tools that it is about: a group is the tools that it has here."""
    named = [uid(each) for each in head.get("entities", [head["entity"]] if "entity" in head else [])]
    for each in named:
        if each in known.tools and known.tools[each].entry is None:
            cause, fix = (
                f"`{each[1]}` is no tool of this app",
                "declare the tool, or leave it out of the policy",
            )
            raise NoCounterpart(cause, fix, each[1], UNKNOWN)
    meant = [
        tool for tool in known.tools.values() if tool.entry is not None and _meant(head["op"], named, tool)
    ]
    if not meant:
        cause = "no action that the policy is about is a tool of this app"
        raise NoCounterpart(cause, "name a tool of this app", "action", UNKNOWN)
    names = {each.name for each in meant}
    for tool in known.tools.values():
        if tool.name in names and tool not in meant:
            cause = f"two actions of the schema are named `{tool.name}`, and the policy is about one of them"
            raise NoCounterpart(cause, "leave the other one out of the schema", tool.name, UNKNOWN)
    uids: Any = [{"type": "Action", "id": name} for name in sorted(names)]
    if head["op"] == "==":
        return {"op": "==", "entity": uids[0]}, tuple(meant)
    return {"op": "in", "entities": uids}, tuple(meant)


def _meant(op: str, named: Sequence[tuple[str, str]], tool: Tool) -> bool:
    within = op == "in" and not tool.action.within.isdisjoint(named)
    return op == "All" or tool.action.uid in named or within


class _Writer:
    """Rewrites the parts of a policy that is about some tools."""

    def __init__(self, known: Counterparts, tools: Sequence[Tool], *, permit: bool) -> None:
        self._arguments, self._entities = Arguments(known, tools), Entities(known, tools)
        self._permit = permit

    def head(self, variable: str, told: Any) -> Document:
        """Rewrite what a head says of principal or resource. Raises: NoCounterpart."""
        found = dict(told)
        if told["op"] != "All":
            self._entities.comparable(variable)
        if "entity_type" in told:
            if not self._permit:  # a permit for fewer principals permits no more
                self._entities.typed(variable)
            found["entity_type"] = self._entities.kind(told["entity_type"])
        if "entity" in told:
            found["entity"] = self._entities.entity(told["entity"])
        if "in" in told:
            found["in"] = {"entity": self._entities.entity(told["in"]["entity"])}
        if told["op"] == "in" or "in" in told:
            self._entities.within(told.get("in", told)["entity"])
        return found

    def expression(self, node: Any) -> Document:
        """Rewrite an expression. Raises: NoCounterpart."""
        name = next(iter(node))
        special = self._special(name, node[name], node)
        return {name: self._parts(node[name])} if special is None else special

    def _parts(self, body: list[Any] | dict[str, Any]) -> Any:
        if isinstance(body, list):
            return [self.expression(each) for each in body]
        return {key: each if key in _KEPT else self.expression(each) for key, each in body.items()}

    def _special(self, name: str, body: Any, node: Any) -> Document | None:
        """Rewrite what names something; nothing for an expression that only has parts."""
        handlers: dict[str, Callable[[Any], Document | None]] = {
            "Var": self._variable,
            "Value": self._value,
            "Record": lambda fields: {"Record": {key: self.expression(each) for key, each in fields.items()}},
            "is": self._is,
            ".": lambda _: self._attribute(node),
            "has": self._has,
            "&&": lambda _: self._joined(node),
            "==": lambda sides: self._arguments.compared("==", sides["left"], sides["right"]),
            "!=": lambda sides: self._arguments.compared("!=", sides["left"], sides["right"]),
            "contains": lambda sides: self._arguments.listed(sides["left"], sides["right"]),
            "in": self._in,
            "getTag": _no_tags,
            "hasTag": _no_tags,
        }
        return handlers[name](body) if name in handlers else None

    def _variable(self, name: str) -> Document:
        if name == "context":
            raise NoCounterpart("it uses the context as a whole", "read the arguments one by one", name)
        if name != "action":
            self._entities.comparable(name)
        return {"Var": name}

    def _value(self, held: Any) -> Document:
        if isinstance(held, dict):
            return {"Value": {"__entity": self._entities.entity(cast("Any", held)["__entity"])}}
        return {"Value": held}

    def _is(self, body: Any) -> Document:
        kind = self._entities.kind(body["entity_type"])
        self._entities.typed(body["left"].get("Var", ""))
        within = {"in": self._over(body["in"])} if "in" in body else {}
        return {"is": {"left": self.expression(body["left"]), "entity_type": kind, **within}}

    def _in(self, sides: Any) -> Document:
        chosen = self._arguments.listed(sides["right"], sides["left"])
        if chosen is not None:
            return chosen
        return {"in": {"left": self.expression(sides["left"]), "right": self._over(sides["right"])}}

    def _over(self, node: Any) -> Document:
        """Rewrite what something is asked to be in: entities that are named."""
        whole = self.expression(node)
        for each in node.get("Set", [node]):
            held = each.get("Value")
            if not isinstance(held, dict):
                raise NoCounterpart("it asks what is in an entity that it does not name", "name it", "in")
            self._entities.within(cast("Any", held)["__entity"])
        return whole

    def _attribute(self, node: Any) -> Document:
        variable, names = read(node)
        if variable == "context":
            return self._arguments.moved(names)
        self._entities.shared(variable, names)
        return cast("Document", node)

    def _has(self, body: Any) -> Document:
        variable, names = read(body["left"])
        if variable == "context":
            return self._arguments.has(names, body["attr"])
        self._entities.shared(variable, names, has=body["attr"])
        return {"has": body}

    def _joined(self, node: Any) -> Document:
        """Rewrite a conjunction; ``has x && x has typeChoice0`` of an argument is one question here."""
        parts, found = list(conjuncts(node)), list[Document]()
        while parts:
            part = parts.pop(0)
            name = tested(part, (INPUT,))
            pair = bool(name and parts and tested(parts[0], (INPUT, name)) == VALUE)
            given = self._arguments.given(name) if pair else None
            if given is not None:
                parts.pop(0)
            found.append(self.expression(part) if given is None else given)
        return conjunction(found)


def _no_tags(_: object) -> Document:
    raise NoCounterpart("tags of an entity are not here", "write the condition without tags")
