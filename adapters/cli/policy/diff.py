"""`nonsuch policy diff`: what changes between two sets of policies, by the matrix and by made-up requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Any, Final

from cyclopts import Parameter, validators
from rich.console import Console

from ....kernel.catalog import Catalog, Entry
from ....kernel.gates import Kernel
from ....kernel.judge import Judge
from ....kernel.model import Agent
from ...analysis.attempts import attempt
from ...analysis.matrix import Cell, changed, who
from ..locate import only
from ..options import ASKED, Asked
from ..render import FINDINGS, FINE, Result, counted
from ..rules import Rules, rules_of
from .requests import Maker, Request, pool
from .show import text
from .who import described, named

_STEPS: Final = 200
Answer = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class _Change:
    """One kind of changed decision of a tool, and the smallest request found that shows it."""

    tool: str
    before: Answer
    after: Answer
    count: int
    request: Request


def diff(
    old: Path,
    new: Path,
    /,
    *,
    requests: Annotated[
        int, Parameter(help="requests made up for each tool", validator=validators.Number(gte=0, lte=100_000))
    ] = 300,
    seed: Annotated[int, Parameter(help="the same seed makes up the same requests")] = 0,
    asked: Asked = ASKED,
) -> Result:
    """Show what two sets of policies decide differently for this app. Exits with 1 if anything does.

    Parameters
    ----------
    old
        Directory of the policies as they were.
    new
        Directory of the policies as they shall be.
    """
    about = only(asked.drafts())
    before, after = rules_of(about, old), rules_of(about, new)
    catalog = about.catalog
    texts = _texts(before, after)
    cells = changed(
        who(catalog, before.base, before.policies),
        who(catalog, after.base, after.policies),
    )
    trial = _Trial(catalog, before, after, seed)
    found = [
        change for entry in catalog.entries if entry.exposed for change in trial.changes(entry, requests)
    ]
    made = {"seed": seed, "asked_for": trial.asked, "made": trial.made}
    return Result(
        _document(texts, cells, found, made),
        lambda console: _show(console, texts, cells, found, made),
        FINDINGS if cells or found else FINE,
    )


class _Trial:
    """Two kernels of one app that are asked the same."""

    def __init__(self, catalog: Catalog, before: Rules, after: Rules, seed: int) -> None:
        self._catalog, self._seed = catalog, seed
        self._kernels = [
            Kernel(catalog, Judge(catalog, each.base, each.policies)) for each in (before, after)
        ]
        self._literals = pool((*before.policies.policy, *after.policies.policy))
        self.asked = self.made = 0

    def changes(self, entry: Entry, count: int) -> list[_Change]:
        chance = Random(f"{self._seed} {entry.name}")  # noqa: S311  (requests to compare, no secret)
        maker = Maker(self._catalog, entry, self._literals, chance)
        found: dict[tuple[Answer, Answer], list[Request]] = {}
        self.asked += count
        for request in maker.requests(count):
            self.made += 1
            answers = self._answers(request)
            if answers[0] != answers[1]:
                found.setdefault(answers, []).append(request)
        return [
            _Change(entry.name, *answers, len(all_of_them), self._smallest(maker, all_of_them, answers))
            for answers, all_of_them in found.items()
        ]

    def _answers(self, request: Request) -> tuple[Answer, Answer]:
        first, second = (
            attempt(each, request.principal, request.call, request.facts) for each in self._kernels
        )
        return (
            (first.outcome, first.event.code if first.event else None),
            (second.outcome, second.event.code if second.event else None),
        )

    def _smallest(self, maker: Maker, found: Iterable[Request], answers: tuple[Answer, Answer]) -> Request:
        """Return a request from which nothing can be taken away without losing the change."""
        held = min(found, key=lambda each: each.size)
        for _ in range(_STEPS):
            less = next((each for each in maker.smaller(held) if self._answers(each) == answers), None)
            if less is None:
                break
            held = less
        return held


@dataclass(frozen=True, slots=True)
class _Texts:
    added: tuple[str, ...]
    removed: tuple[str, ...]
    rewritten: tuple[str, ...]


def _texts(before: Rules, after: Rules) -> _Texts:
    old, new = ({each.id: text(each) for each in rules.all} for rules in (before, after))
    return _Texts(
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(old.keys() - new.keys())),
        tuple(sorted(ident for ident in old.keys() & new.keys() if old[ident] != new[ident])),
    )


def _show(
    console: Console,
    texts: _Texts,
    cells: list[tuple[Cell, Cell]],
    found: list[_Change],
    made: dict[str, int],
) -> None:
    for word, idents in (("added", texts.added), ("removed", texts.removed), ("rewritten", texts.rewritten)):
        for ident in idents:
            console.print(f"{word} {ident}", soft_wrap=True)
    console.print(f"\nMatrix: {counted(len(cells), 'cell differs', 'cells differ')}", style="bold")
    for old, new in cells:
        console.print(f"  {old.tool} for {named(old.role)}: {old.word} -> {new.word}", soft_wrap=True)
        for sign, cell, other in (("-", old, new), ("+", new, old)):
            for rule in cell.calls.rules:
                if rule not in other.calls.rules:
                    console.print(f"    {sign} {rule.policy}: {rule}", soft_wrap=True)
    told = (
        f"{made['made']} of {made['asked_for']} made-up requests fit the declared types (seed {made['seed']})"
    )
    console.print(f"\nDecisions: {counted(len(found), 'kind', 'kinds')} of change; {told}", style="bold")
    for each in found:
        console.print(
            f"  {each.tool}: {_word(each.before)} -> {_word(each.after)} in {counted(each.count, 'request')}",
            soft_wrap=True,
        )
        console.print(f"    smallest: {_request(each.request)}", soft_wrap=True)


def _word(answer: Answer) -> str:
    return answer[0] if answer[1] is None else f"{answer[0]} {answer[1]}"


def _request(request: Request) -> str:
    import json

    who = request.principal
    kind = "agent" if isinstance(who, Agent) else "human"
    roles = ",".join(sorted(who.roles)) or "''"
    org = f" --org {who.org}" if who.org is not None else ""
    given = json.dumps(dict(request.call.arguments), ensure_ascii=False)
    facts = f" --facts '{json.dumps(request.held, ensure_ascii=False)}'" if request.acts else ""
    return f"--as {roles}{org} --{kind} --tool {request.call.name} --input '{given}'{facts}"


def _document(
    texts: _Texts, cells: list[tuple[Cell, Cell]], found: list[_Change], made: dict[str, int]
) -> dict[str, Any]:
    return {
        "policies": {
            "added": list(texts.added),
            "removed": list(texts.removed),
            "rewritten": list(texts.rewritten),
        },
        "matrix": [{"before": described(old), "after": described(new)} for old, new in cells],
        "requests": made,
        "decisions": [_described(each) for each in found],
    }


def _described(each: _Change) -> dict[str, Any]:
    who = each.request.principal
    return {
        "tool": each.tool,
        "before": {"outcome": each.before[0], "code": each.before[1]},
        "after": {"outcome": each.after[0], "code": each.after[1]},
        "count": each.count,
        "smallest": {
            "kind": "agent" if isinstance(who, Agent) else "human",
            "roles": sorted(who.roles),
            "org": who.org,
            "input": dict(each.request.call.arguments),
            "facts": each.request.held,
        },
    }
