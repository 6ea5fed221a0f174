"""`nonsuch policy check`: every fault of an app's policies, each with its place, and the warnings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from ....kernel.errors import Fault
from ..locate import only
from ..options import ASKED, Asked
from ..render import FINDINGS, FINE, Result, counted
from ..rules import checked


def check(
    directory: Path | None = None,
    /,
    *,
    asked: Asked = ASKED,
) -> Result:
    """Find every fault of the policies of an app.

    Parameters
    ----------
    directory
        Policies to check instead of the app's own.
    """
    chosen = asked.drafts()
    if directory is not None:
        only(chosen)
    found = [checked(each, directory) for each in chosen]
    faults = [fault for each in found for fault in each.faults]
    warnings = [fault for each in found for fault in each.warnings]
    return result(faults, warnings, sum(len(each.all) for each in found))


def result(faults: Iterable[Fault], warnings: Iterable[Fault], count: int) -> Result:
    """Return faults and warnings as an answer."""
    wrong, odd = list(faults), list(warnings)

    def show(console: Console) -> None:
        for each in wrong:
            console.print(line(each), soft_wrap=True)
        for each in odd:
            console.print(f"warning: {line(each)}", soft_wrap=True)
        console.print(_summary(len(wrong), len(odd), count), soft_wrap=True)

    document = {
        "faults": [described(each) for each in wrong],
        "warnings": [described(each) for each in odd],
        "policies": count,
    }
    return Result(document, show, FINDINGS if wrong else FINE)


def line(each: Fault) -> str:
    """Return a fault on one line: place, code, cause, fix."""
    return ": ".join(part for part in (each.where, each.code, each.cause, each.fix) if part)


def described(each: Fault) -> dict[str, Any]:
    """Return a fault as JSON."""
    return {"where": each.where or None, "code": each.code, "cause": each.cause, "fix": each.fix}


def _summary(faults: int, warnings: int, count: int) -> str:
    found = f"{counted(faults, 'fault')}, {counted(warnings, 'warning')}"
    return found if faults else f"{counted(count, 'policy', 'policies')}, {found}"
