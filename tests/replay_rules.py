"""The rule of idempotency keys again, naive: what comes of a call with one, over values of `rules.py`.

Written from the documents. Imports nothing of nonsuch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from . import rules
from .rules import Caller, Row, Surface, Tool, Verdict, World

Json = object


@dataclass(frozen=True, slots=True)
class Record:
    """A call that ran under a key: its input, the row it was permitted on, and how it ended."""

    given: Mapping[str, Json]
    sent: frozenset[str]
    row: Row | None
    verdict: Verdict
    run: int


@dataclass(frozen=True, slots=True)
class Told:
    """What comes of a call: its verdict, and the run (of all runs, counted from 1) that its answer is of."""

    verdict: Verdict
    run: int | None = None
    replayed: bool = False


@dataclass(slots=True)
class Ledger:
    """Every call that ran under a key, by action, caller and key."""

    kept: dict[tuple[str, Json, str], Record] = field(default_factory=dict[tuple[str, Json, str], Record])
    runs: int = 0

    def call(
        self,
        world: World,
        caller: Caller,
        surface: Surface,
        name: str,
        arguments: Mapping[str, Json],
        key: Json = None,
    ) -> Told:
        """What must come of a call; ``key=None`` is a call without one."""
        plain = rules.outcome(world, caller, surface, name, arguments)
        if key is None or plain.outcome in ("unauthenticated", "hidden", "scope-denied"):
            return self._ran(plain)
        tool = named(world, caller, surface, name)
        if not tool.keyed or not isinstance(key, str) or not 1 <= len(key) <= 255:
            return Told(Verdict("invalid-args", "X_INPUT_INVALID"))
        given = rules.typed(world, tool, arguments)
        if given is None:
            return Told(plain)
        place = (tool.name, owner(caller), key)
        record = self.kept.get(place)
        if record is not None:
            return replayed(world, caller, tool, record, given, frozenset(arguments))
        told = self._ran(plain)
        if plain.ran:
            row = world.rows.get(tool.acts_on, {}).get(str(given["id"])) if tool.acts_on else None
            self.kept[place] = Record(given, frozenset(arguments), row, plain, self.runs)
        return told

    def _ran(self, verdict: Verdict) -> Told:
        self.runs += verdict.ran
        return Told(verdict, self.runs if verdict.ran else None)


def named(world: World, caller: Caller, surface: Surface, name: str) -> Tool:
    """The tool of a name that the caller is known to see."""
    found = [tool for tool in world.tools if name == (tool.path if surface == "http" else tool.name)]
    return next(tool for tool in found if rules.sees(tool, caller, surface))


def owner(caller: Caller) -> Json:
    """Whose a record is: not what the caller may do, which changes."""
    return [(each.kind, each.id, each.org) for each in rules.parties(caller)].__repr__()


def replayed(
    world: World,
    caller: Caller,
    tool: Tool,
    record: Record,
    given: Mapping[str, Json],
    sent: frozenset[str],
) -> Told:
    """A second call under a key: only the same input, and only for whom the first could be made today."""
    if record.given != given or record.sent != sent:
        return Told(Verdict("failed", "X_IDEMPOTENCY_CONFLICT"))
    then = world
    if tool.acts_on is not None and record.row is not None:
        rows = {**world.rows.get(tool.acts_on, {}), str(given["id"]): record.row}
        then = replace(world, rows={**world.rows, tool.acts_on: rows})
    for party in rules.parties(caller):
        refused = rules.judged(then, party, tool, record.row, given, missing=False)
        if refused is not None:
            return Told(refused)
    return Told(replace(record.verdict, ran=False), record.run, replayed=True)
