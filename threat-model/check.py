"""Holds the threats to the tree: what a row names exists, and TABLE.md says what the rows say. Runs no test.

``python threat-model/check.py`` prints every fault; with ``--write`` it writes TABLE.md first.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

ROOT: Final = Path(__file__).resolve().parents[1]
THREATS: Final = "threat-model/threats"
TABLE: Final = "threat-model/TABLE.md"
MUTANTS: Final = "tests/mutants"
TABLES: Final = "*table.py"

ID: Final = re.compile(r"NS-[A-Z]+-[0-9]{3}")
NODE: Final = re.compile(r"tests/[\w/]+\.py(::\w+){1,2}")
PROSE: Final = re.compile(r"`((?:kernel|adapters|policies|tests|threat-model)/[\w./-]*)`")

BOUNDARIES: Final = ("wire", "view", "engine", "permit", "handler", "installation")
STATUSES: Final = ("mitigated", "accepted", "open", "out-of-scope")
TEXTS: Final = ("id", "title", "boundary", "attacker", "asset", "threat", "claim", "status")
LISTS: Final = ("code", "tests", "mutants", "sources")
NOT_RUN: Final = frozenset({"skip", "skipif", "xfail", "importorskip", "skipTest", "expectedFailure"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Threat:
    """One row. ``why`` and ``until`` belong to what is not mitigated."""

    file: str
    id: str
    title: str
    boundary: str
    status: str
    code: tuple[str, ...]
    tests: tuple[str, ...]
    mutants: tuple[str, ...]
    sources: tuple[str, ...]
    why: str
    until: date | None


def faults(root: Path, today: date) -> list[str]:
    """Return everything that is wrong with the threat model of a tree, a line each."""
    threats, malformed = read(root)
    if malformed:
        return malformed
    return [
        *_ids(threats),
        *(f"{threat.id}: {told}" for threat in threats for told in _row(root, threat, today)),
        *_prose(root),
        *_stale(root, threats),
    ]


# reading


def read(root: Path) -> tuple[list[Threat], list[str]]:
    """Return the rows of every file, and what keeps a row from being read."""
    threats: list[Threat] = []
    malformed: list[str] = []
    for path in sorted((root / THREATS).glob("*.toml")):
        try:
            rows = tomllib.loads(path.read_text()).get("threat", [])
        except tomllib.TOMLDecodeError as refusal:
            malformed.append(f"{path.name}: {refusal}")
            continue
        for place, row in enumerate(rows):
            told = list(_malformed(row))
            malformed += [f"{path.name} row {place + 1}: {each}" for each in told]
            if not told:
                threats.append(_threat(path.name, row))
    return threats, malformed or ([] if threats else [f"{THREATS} holds no threat"])


def _malformed(row: dict[str, Any]) -> Iterator[str]:
    for key in TEXTS:
        if not isinstance(row.get(key), str) or not row[key].strip():
            yield f"`{key}` is missing"
    for key in LISTS:
        listed = row.get(key)
        if not isinstance(listed, list) or not _texts(cast("list[object]", listed)):
            yield f"`{key}` is no list of texts"
    for key in sorted(set(row) - {*TEXTS, *LISTS, "why", "until"}):
        yield f"`{key}` is no key of a threat"
    if not isinstance(row.get("until"), date | None) or not isinstance(row.get("why", ""), str):
        yield "`why` is a text and `until` a date"


def _texts(listed: list[object]) -> bool:
    return all(isinstance(each, str) for each in listed)


def _threat(file: str, row: dict[str, Any]) -> Threat:
    kept: dict[str, Any] = {key: row[key] for key in ("id", "title", "boundary", "status")}
    kept |= {key: tuple(row[key]) for key in LISTS}
    return Threat(file, **kept, why=row.get("why", ""), until=row.get("until"))


# what a row says


def _ids(threats: Iterable[Threat]) -> Iterator[str]:
    seen: set[str] = set()
    areas: dict[str, str] = {}
    for threat in threats:
        if threat.id in seen:
            yield f"{threat.id}: the id is used twice"
        seen.add(threat.id)
        area = threat.id.split("-")[1] if ID.fullmatch(threat.id) else None
        if area is None:
            yield f"{threat.id}: an id is NS-AREA-NNN"
        elif areas.setdefault(threat.file, area) != area:
            yield f"{threat.id}: {threat.file} holds the area {areas[threat.file]}"


def _row(root: Path, threat: Threat, today: date) -> Iterator[str]:
    yield from _status(threat, today)
    for code in threat.code:
        yield from _code(root, code)
    for node in threat.tests:
        yield from _test(root, node)
    yield from _mutants(root, threat)
    if not threat.sources:
        yield "no source"


def _status(threat: Threat, today: date) -> Iterator[str]:
    if threat.boundary not in BOUNDARIES:
        yield f"`{threat.boundary}` is none of {', '.join(BOUNDARIES)}"
    match threat.status:
        case "mitigated":
            yield from _mitigated(threat)
        case "accepted" | "open":
            yield from _postponed(threat, today)
        case "out-of-scope":
            yield from () if threat.why else ("out-of-scope without `why`",)
        case _:
            yield f"`{threat.status}` is none of {', '.join(STATUSES)}"


def _mitigated(threat: Threat) -> Iterator[str]:
    if not threat.tests:
        yield "mitigated without a test"
    if not threat.code:
        yield "mitigated without code"
    if threat.why or threat.until:
        yield "mitigated: `why` and `until` are for what is not"


def _postponed(threat: Threat, today: date) -> Iterator[str]:
    if not threat.why or threat.until is None:
        yield f"{threat.status} without `why` and `until`"
    elif threat.until < today:
        yield f"{threat.status} until {threat.until}, which has passed"


def _code(root: Path, reference: str) -> Iterator[str]:
    path, _, name = reference.partition("::")
    if not (root / path).is_file():
        yield f"code `{path}` is gone"
    elif name and not _defines(_parse(root / path).body, name.split(".")):
        yield f"code `{reference}` is gone"


def _defines(body: Iterable[ast.stmt], names: list[str]) -> bool:
    """Whether a module or class body defines the first name, and that one the rest."""
    for node in body:
        match node:
            case ast.ClassDef(name=name) if name == names[0]:
                return len(names) == 1 or _defines(node.body, names[1:])
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if names == [name]:
                return True
            case ast.AnnAssign(target=ast.Name(id=name)) if names == [name]:
                return True
            case ast.Assign(targets=targets) if names in [[ast.unparse(each)] for each in targets]:
                return True
            case _:
                continue
    return False


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _parse(path: Path) -> ast.Module:
    return _parsed(path.read_text())


# what a test is


def _test(root: Path, node: str) -> Iterator[str]:
    if not NODE.fullmatch(node):
        yield f"test `{node}` is no node `tests/file.py::test_name`"
        return
    path, *names = node.split("::")
    if not (root / path).is_file():
        yield f"test `{node}` does not exist"
        return
    module = _parse(root / path)
    found = _find(module, names)
    if found is None or not Path(path).name.startswith("test_"):
        yield f"test `{node}` does not exist"
    elif _not_run(module, found):
        yield f"test `{node}` is skipped or expected to fail"


def _find(module: ast.Module, names: list[str]) -> list[ast.stmt] | None:
    """Return the statements that make up a test: its function, and its class or state machine."""
    match names:
        case [name]:
            return _function(module.body, name)
        case [group, "runTest"]:
            return [each for each in module.body if _is_state_machine(each, group)] or None
        case [group, name]:
            holder = next((each for each in module.body if _is_class(each, group)), None)
            found = _function(holder.body, name) if isinstance(holder, ast.ClassDef) else None
            return [holder, *found] if holder is not None and found else None
        case _:
            return None


def _function(body: Iterable[ast.stmt], name: str) -> list[ast.stmt] | None:
    found: list[ast.stmt] = [each for each in body if isinstance(each, Function) and each.name == name]
    return found if found and name.startswith("test_") else None


def _is_class(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.ClassDef) and node.name == name and name.startswith("Test")


def _is_state_machine(node: ast.stmt, name: str) -> bool:
    """``TestName = Machine.TestCase``, or the same with an annotation: how Hypothesis makes one."""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    targets = ast.unparse(node).partition("=")[0].partition(":")[0].split()
    return targets == [name] and name.startswith("Test") and getattr(value, "attr", "") == "TestCase"


def _not_run(module: ast.Module, found: Iterable[ast.stmt]) -> bool:
    """Whether a mark on the module, a decorator or a call inside keeps the test from being run in earnest."""
    decorated = [each for each in found if not isinstance(each, ast.ClassDef)]
    classes = (each for each in found if isinstance(each, ast.ClassDef))
    marks = [decorator for each in classes for decorator in each.decorator_list]
    whole = [each for each in module.body if not isinstance(each, Function | ast.ClassDef)]
    return any(_names_a_skip(node) for node in (*decorated, *marks, *whole))


def _names_a_skip(node: ast.AST) -> bool:
    named = (getattr(each, "attr", getattr(each, "id", None)) for each in ast.walk(node))
    return not NOT_RUN.isdisjoint(named)


# mutants, prose, the table


def _mutants(root: Path, threat: Threat) -> Iterator[str]:
    known = mutants(root)
    for mutant in threat.mutants:
        if known is not None and mutant not in known:
            yield f"mutant `{mutant}` is in no table of {MUTANTS}"


def mutants(root: Path) -> frozenset[str] | None:
    """Return the names in the tables of mutants: the first text given to each; ``None`` without a table."""
    tables = sorted((root / MUTANTS).glob(TABLES))
    return frozenset(name for table in tables for name in _mutant_names(_parse(table))) if tables else None


def _mutant_names(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.Call(
                func=ast.Name(id="Mutant" | "_mutant" | "mutant"), args=[ast.Constant(value=str(name)), *_]
            ):
                yield name
            case _:
                continue


def _prose(root: Path) -> Iterator[str]:
    """The pages of the model name files that exist."""
    folder = root / "threat-model"
    for page in sorted([*folder.glob("README.md"), *folder.glob("decisions/*.md")]):
        for path in dict.fromkeys(PROSE.findall(page.read_text())):
            if not (root / path).exists():
                yield f"{page.relative_to(root)}: `{path}` is gone"


def _stale(root: Path, threats: Iterable[Threat]) -> Iterator[str]:
    path = root / TABLE
    if not path.is_file() or path.read_text() != table(threats):
        yield f"{TABLE} is stale: run `python threat-model/check.py --write`"


def table(threats: Iterable[Threat]) -> str:
    """Return TABLE.md."""
    rows = sorted(threats, key=lambda threat: threat.id)
    counted = ", ".join(f"{sum(row.status == each for row in rows)} {each}" for each in STATUSES)
    head = (
        "# Threats",
        "",
        "Written by `threat-model/check.py` from [`threats/`](threats/): change the rows there.",
        "",
        f"{len(rows)} threats: {counted}.",
        "",
        "| id | threat | boundary | status | held by | mutants |",
        "|---|---|---|---|---|---|",
    )
    return "\n".join((*head, *(_line(row) for row in rows))) + "\n"


def _line(row: Threat) -> str:
    status = row.status if row.until is None else f"{row.status} until {row.until}"
    held = "<br>".join(f"[{node.rpartition('.py::')[2]}](../{node.partition('::')[0]})" for node in row.tests)
    cells = (row.id, f"[{row.title}](threats/{row.file})", row.boundary, status, held, " ".join(row.mutants))
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str]) -> int:
    """Print every fault; 1 if there is one."""
    if "--write" in arguments:
        (ROOT / TABLE).write_text(table(read(ROOT)[0]))
    found = faults(ROOT, datetime.now(UTC).date())
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
