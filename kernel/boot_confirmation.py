"""``confirmations=`` -> which entries wait for a person, and every reason why they cannot. Values only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from pydantic_core import to_json

from .catalog import Entry
from .confirmation import Confirming, Gated
from .declare import Action
from .errors import Fault, fault

_GIVE: Final = "give `define_app_mcp` that action as `confirmations=`, or take it out of this registry"
_RESULT: Final = "give it the action that `mcp_confirmations(...)` returns"


@dataclass(frozen=True, slots=True, eq=False)
class Gating:
    """The action that decides, and what it was told."""

    action: Action
    confirming: Confirming

    def gated(self, entry: Entry) -> Entry:
        """Return an entry, marked if its calls wait for a person."""
        told = self.confirming
        if told.keys is None or not entry.exposed or entry.name not in told.tools:
            return entry
        schema = sha256(to_json(entry.input.document)).hexdigest()
        gate = Gated(told.keys, told.ttl, told.where, told.limit, schema)
        return replace(entry, confirms=True, confirming=gate)


def gating(given: object) -> Gating | None:
    """Return what ``confirmations=`` was given, if it can gate anything."""
    if not isinstance(given, Action) or given.confirming is None:
        return None
    return Gating(given, given.confirming)


def faults(
    given: object, registered: Collection[Action], tools: Collection[str], served: Collection[str]
) -> Iterator[Fault]:
    """Yield what is wrong with ``confirmations=`` in an app of these tools and these names in all."""
    yield from _left_out(given, registered, served)
    if given is None:
        return
    found = gating(given)
    if found is None:
        cause = "`confirmations` is given something that decides no confirmations"
        yield fault("X_DECLARATION_INVALID", cause, _RESULT)
        return
    if all(each is not found.action for each in registered):
        yield fault("X_ACTION_UNREGISTERED", f"`{found.action.name}` belongs to no registry of this app")
    yield from found.confirming.faults
    yield from _unknown(found, tools)


def _left_out(given: object, registered: Iterable[Action], served: Collection[str]) -> Iterator[Fault]:
    """An app that serves a tool without the gate that its registry declares would be a way around it."""
    for each in registered:
        if each.confirming is not None and each is not given:
            for name in sorted(set(each.confirming.tools) & set(served)):
                cause = f"`{each.name}` has `{name}` wait for a person, and this app does not"
                yield fault("X_DECLARATION_INVALID", cause, _GIVE)


def _unknown(found: Gating, tools: Collection[str]) -> Iterator[Fault]:
    code, named = "X_MCP_CONFIRMATION_TOOL_UNKNOWN", found.confirming.tools
    if not named:
        yield fault(code, f"`{found.action.name}` names no tool")
    for name in sorted(set(named) - set(tools)):
        shown = name.encode("ascii", "backslashreplace").decode()[:80]
        yield fault(code, f"`{found.action.name}` names `{shown}`, which is not served")
