"""`nonsuch policy test`: decision tables against the policies, and which policies no row ever reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from ....kernel.cedar_text import Policy
from ...analysis.attempts import attempt
from ...analysis.explain import Explainer
from ..options import ASKED, Asked
from ..render import FINDINGS, FINE, Refused, Result, table
from ..rules import rules_of
from .tables import CODE, Broken, Case, read

_FOLDER: Final = "tests"


@dataclass(frozen=True, slots=True)
class _Outcome:
    case: Case
    outcome: str
    code: str | None
    policies: tuple[str, ...]
    problems: tuple[str, ...]


def run_tables(
    directory: Path | None = None,
    /,
    *,
    asked: Asked = ASKED,
) -> Result:
    """Run decision tables against the policies of an app. Exits with 1 if a row fails or cannot be read.

    Parameters
    ----------
    directory
        Tables, or one table, instead of `tests` in the directory of the app's policies.
    """
    chosen = asked.one()
    rules = rules_of(chosen)
    place = directory or _beside(chosen.policies_dir)
    if not place.exists():
        raise Refused(CODE, f"there is no `{place}`", "write a table there, or name another directory")
    cases, broken = read(place, rules.catalog)
    if not cases and not broken:
        raise Refused(CODE, f"`{place}` holds no row", "write a `.yaml` or `.json` table there")
    explainer = Explainer(rules.catalog, rules.base, rules.policies)
    outcomes = [_run(explainer, each) for each in cases]
    reached = {policy for each in outcomes for policy in each.policies}
    unreached = [each for each in rules.own if each.id not in reached]
    failed = any(each.problems for each in outcomes) or bool(broken)
    return Result(
        _document(outcomes, broken, unreached, rules.own),
        lambda console: _show(console, outcomes, broken, unreached, rules.own),
        FINDINGS if failed else FINE,
    )


def _beside(policies: Path | None) -> Path:
    if policies is None:
        raise Refused(CODE, "the app has no directory of policies", "name the directory of the tables")
    return policies / _FOLDER


def _run(explainer: Explainer, case: Case) -> _Outcome:
    tried = attempt(explainer.kernel, case.principal, case.call, case.facts)
    code = tried.event.code if tried.event else None
    policies = explainer.determining(case.principal, case.call, case.facts)
    return _Outcome(
        case, tried.outcome, code, policies, tuple(_problems(case, tried.outcome, code, policies))
    )


def _problems(case: Case, outcome: str, code: str | None, policies: tuple[str, ...]) -> Iterator[str]:
    row = case.row
    if outcome == "undecided":
        yield "the policies need `facts`, or `missing: true`"
        return
    if outcome != row.expect:
        yield f"expected {row.expect}, got {outcome}"
    if row.code is not None and code != row.code:
        yield f"expected the code {row.code}, got {code or 'none'}"
    if row.policy is not None and row.policy not in policies:
        yield f"expected the policy {row.policy}, got {', '.join(policies) or 'none'}"


def _show(
    console: Console,
    outcomes: list[_Outcome],
    broken: list[Broken],
    unreached: list[Policy],
    own: Sequence[Policy],
) -> None:
    for wrong in broken:
        console.print(f"{wrong.where}: {CODE}: {wrong.cause}", soft_wrap=True)
    rows: list[list[str | Text]] = [
        [
            Text("FAIL", style="red") if each.problems else Text("ok", style="green"),
            each.case.name,
            each.case.call.name,
            each.outcome,
            ", ".join(_told(each, own)),
        ]
        for each in outcomes
    ]
    if rows:
        console.print(table(("", "row", "tool", "outcome", "policies"), rows))
    for each in outcomes:
        for problem in each.problems:
            console.print(f"{each.case.where}: {each.case.name}: {problem}", soft_wrap=True)
    failed = sum(bool(each.problems) for each in outcomes)
    console.print(f"\n{len(outcomes) - failed} passed, {failed} failed, {len(broken)} unreadable")
    console.print(f"policies reached: {len(own) - len(unreached)} of {len(own)}")
    for policy in unreached:
        console.print(f"  never decided: {policy.id} ({policy.where})", soft_wrap=True)


def _told(each: _Outcome, own: Sequence[Policy]) -> list[str]:
    """Return the policies of the app that decided, without those that only made the tool visible."""
    named = {policy.id for policy in own if "see" not in (policy.actions or ())}
    return [ident for ident in each.policies if ident in named]


def _document(
    outcomes: list[_Outcome], broken: list[Broken], unreached: list[Policy], own: Sequence[Policy]
) -> dict[str, Any]:
    return {
        "rows": [
            {
                "where": each.case.where,
                "name": each.case.name,
                "tool": each.case.call.name,
                "expected": each.case.row.expect,
                "outcome": each.outcome,
                "code": each.code,
                "policies": list(each.policies),
                "problems": list(each.problems),
            }
            for each in outcomes
        ],
        "unreadable": [{"where": each.where, "code": CODE, "cause": each.cause} for each in broken],
        "passed": sum(not each.problems for each in outcomes),
        "failed": sum(bool(each.problems) for each in outcomes),
        "coverage": {
            "policies": len(own),
            "reached": len(own) - len(unreached),
            "never": [{"id": each.id, "where": each.where} for each in unreached],
        },
    }
