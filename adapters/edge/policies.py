"""Reads policy files: the ones every app has, and an operator's directory of them. Judges none."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from ...kernel.compile import Base, PolicySource
from ...kernel.declare import Grant
from ...kernel.errors import Fault, fault
from ...kernel.loader import Sources

_PACKAGE: Final = __name__.partition(".")[0]
ATTEMPTS: Final = 3
ENDINGS: Final = (".cedar", ".cedarschema", ".links.json")
_SHIPPED: Final = ("visibility.cedar", "scope.cedar")
_CONFIRMATION: Final = "confirmation.cedar"
_TOOLS: Final = (
    ("db.migrate", "migrate.cedar"),
    ("db.query", "never.cedar"),
    ("db.query", "sql.cedar"),
)


@cache
def base() -> Base:
    """Return the texts of ``policies/`` that every app has."""
    shipped = files(_PACKAGE) / "policies"
    texts = {name: (shipped / name).read_text("utf-8") for name in _SHIPPED}
    return Base(
        entities=(shipped / "nonsuch.cedarschema").read_text("utf-8"),
        gates=(shipped / "gates.cedarschema").read_text("utf-8"),
        policies=tuple(PolicySource(f"nonsuch/{name}", text) for name, text in texts.items()),
        confirmation=(
            PolicySource(f"nonsuch/{_CONFIRMATION}", (shipped / _CONFIRMATION).read_text("utf-8")),
        ),
        tools=tuple(
            (tool, PolicySource(f"nonsuch/{name}", (shipped / name).read_text("utf-8")))
            for tool, name in _TOOLS
        ),
    )


def gather(directory: Path | None, grants: Iterable[Callable[[], Iterable[Grant]]]) -> Sources:
    """Return what a directory holds and what the sources of grants say now."""
    sources = read(directory)
    held: list[Grant] = []
    faults = list(sources.faults)
    for source in grants:
        try:
            held.extend(_checked(source()))
        except Exception as refusal:  # noqa: BLE001  (application code or a driver: whatever it raises is a fault)
            name = getattr(source, "__qualname__", type(source).__name__)
            faults.append(fault("X_POLICY_SOURCE_FAILED", f"`{name}` raised {type(refusal).__name__}"))
    return Sources(sources.policies, sources.schemas, sources.links, tuple(held), tuple(faults))


def _is_text(name: object) -> bool:
    return isinstance(name, str)


def _checked(grants: Iterable[object]) -> Iterable[Grant]:
    for each in grants:
        if not (isinstance(each, Grant) and _is_text(each.role) and _is_text(each.permission)):
            raise TypeError("a source of grants returns `grant(role, permission)` values")
        yield each


def read(directory: Path | None) -> Sources:
    """Return what a directory and those below it hold, and what of it cannot be read.

    ``*.cedar`` are policies, ``*.cedarschema`` the app's own entity types, ``*.links.json`` template links.
    Names that begin with a dot are skipped. A directory that changes while it is read is read again.
    """
    if directory is None:
        return Sources()
    if not directory.is_dir():
        return Sources(faults=(fault("X_POLICY_UNREADABLE", f"`{directory}` is no directory"),))
    for _ in range(ATTEMPTS):
        before, whole = fingerprint(directory), directory.resolve()
        sources = _read(whole)
        if fingerprint(directory) == before:
            return sources
    cause = f"`{directory}` changed each of the {ATTEMPTS} times it was read"
    return Sources(faults=(fault("X_POLICY_UNREADABLE", cause, "move a whole directory into place"),))


def _read(directory: Path) -> Sources:
    faults: list[Fault] = []
    paths = _walk(directory, faults)
    policies, schemas, links = (
        tuple(_texts(directory, (each for each in paths if each.name.endswith(ending)), faults))
        for ending in ENDINGS
    )
    return Sources(policies, schemas, links, (), tuple(faults))


def _walk(directory: Path, faults: list[Fault]) -> list[Path]:
    """Return every file below a directory. One that cannot be entered is a fault, not an absence."""

    def refuse(refusal: OSError) -> None:
        faults.append(_unreadable(str(refusal.filename), refusal, where=""))

    found: list[Path] = []
    for at, folders, names in os.walk(directory, onerror=refuse):
        folders[:] = [each for each in folders if not each.startswith(".")]
        misnamed = [each for each in folders if each.endswith(ENDINGS)]  # a fault when it is read
        found.extend(Path(at, name) for name in (*names, *misnamed) if not name.startswith("."))
    return sorted(found)


def _texts(directory: Path, paths: Iterable[Path], faults: list[Fault]) -> Iterable[PolicySource]:
    for path in paths:
        name = path.relative_to(directory).as_posix()
        try:
            yield PolicySource(name, path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as refusal:
            faults.append(_unreadable(name, refusal, where=name))


def _unreadable(name: str, refusal: OSError | UnicodeDecodeError, where: str) -> Fault:
    fix: str | None
    match refusal:
        case UnicodeDecodeError():
            why, fix = f"is no UTF-8 from byte {refusal.start} on", "save it in UTF-8"
        case PermissionError():
            why, fix = "may not be read by this process", "let the user that this process runs as read it"
        case IsADirectoryError():
            why, fix = "is a directory by the name of a policy file", "rename the directory"
        case FileNotFoundError():
            why, fix = "is gone, or a link to nothing", "put the file there, or remove the link"
        case _:
            why, fix = f"cannot be read: {refusal.strerror or type(refusal).__name__}", None
    return fault("X_POLICY_UNREADABLE", f"`{name}` {why}", fix, where=where)


def fingerprint(directory: Path | None) -> Hashable:
    """Return a value that changes when a file below a directory comes, goes, moves or is written."""
    if directory is None:
        return None
    found: list[Hashable] = [str(directory.resolve())]
    for path in _walk(directory, []):
        try:
            facts = path.stat()
        except OSError as refusal:
            found.append((str(path), type(refusal).__name__))
        else:
            found.append((str(path), facts.st_ino, facts.st_mtime_ns, facts.st_size))
    return tuple(found)
