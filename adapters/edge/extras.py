"""Says which optional part is missing, before anything imports it; imports none of them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


class ExtraMissing(Exception):
    """A package of an optional extra is not installed."""

    code = "X_EXTRA_MISSING"

    def __init__(self, package: str, install: str) -> None:
        super().__init__(package, install)
        self.cause = f"`{package}` is not installed"
        self.fix = f'pip install "{install}"'

    def __str__(self) -> str:
        return f"{self.code}: {self.cause}\nfix: {self.fix}"


def require(module: str, install: str, package: str | None = None) -> Path:
    """Return the directory of an installed package without importing it, or raise `ExtraMissing`."""
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise ExtraMissing(package or module, install)
    return Path(spec.submodule_search_locations[0])
