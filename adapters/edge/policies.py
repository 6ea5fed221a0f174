"""Reads policy files: the ones every app has, and an operator's directory of them. Judges none."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from ...kernel.compile import Base, PolicySource
from ...kernel.errors import Fault, fault

_PACKAGE: Final = __name__.partition(".")[0]
_SHIPPED: Final = ("visibility.cedar", "scope.cedar")


@cache
def base() -> Base:
    """Return the texts of ``policies/`` that every app has."""
    shipped = files(_PACKAGE) / "policies"
    texts = {name: (shipped / name).read_text("utf-8") for name in _SHIPPED}
    return Base(
        entities=(shipped / "nonsuch.cedarschema").read_text("utf-8"),
        gates=(shipped / "gates.cedarschema").read_text("utf-8"),
        policies=tuple(PolicySource(f"nonsuch/{name}", text) for name, text in texts.items()),
    )


def read(directory: Path | None) -> tuple[list[PolicySource], list[Fault]]:
    """Return every ``.cedar`` file of a directory and of those below it, and what cannot be read."""
    if directory is None:
        return [], []
    if not directory.is_dir():
        return [], [fault("X_POLICY_UNREADABLE", f"`{directory}` is no directory")]
    sources: list[PolicySource] = []
    faults: list[Fault] = []
    for path in sorted(directory.rglob("*.cedar")):
        try:
            sources.append(PolicySource(path.relative_to(directory).as_posix(), path.read_text("utf-8")))
        except (OSError, UnicodeDecodeError) as refusal:
            faults.append(fault("X_POLICY_UNREADABLE", f"`{path}`: {type(refusal).__name__}"))
    return sources, faults
