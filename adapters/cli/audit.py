"""`nonsuch audit verify` and `head`: whether an audit chain is as it was written, and what to keep elsewhere.

Keys come from the environment or a file, never from the command line, which others on a machine can read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter
from rich.console import Console

from ...kernel.chain import ChainKeys, Head, Record, head_of
from ...kernel.chain_walk import Flaw, Walk
from ...kernel.errors import BootError, fault
from ..edge.audit_file import lines_of
from ..edge.audit_keys import audit_keys
from ..edge.extras import ExtraMissing
from ..edge.postgres.audit import TABLE, records_of
from .options import AsJson
from .render import FINDINGS, FINE, Refused, Result, counted

TORN: Final = 3  # nothing was changed, and the last line is not whole
UNREADABLE: Final = "X_AUDIT_UNREADABLE"
USAGE: Final = "X_CLI_USAGE"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Chain:
    """Where a chain is, and the file of its keys; without one the environment has them."""

    database: Annotated[
        str | None, Parameter(help="DSN of the database that holds it; give the password in PGPASSWORD")
    ] = None
    table: Annotated[str, Parameter(help="its table there")] = TABLE
    keys: Annotated[
        Path | None, Parameter(help="file of keys, else NONSUCH_AUDIT_KEYS_FILE, else NONSUCH_AUDIT_KEYS")
    ] = None


CHAIN: Final = Chain()


@dataclass(frozen=True, slots=True)
class _Read:
    """A chain that was read as far as it is sound."""

    name: str
    walk: Walk
    flaw: Flaw | None


def verify(
    file: Path | None = None,
    /,
    *,
    chain: Chain = CHAIN,
    head: Annotated[
        tuple[str, ...], Parameter(negative="", help="a head that was kept elsewhere, as SEQ:MAC")
    ] = (),
    heads: Annotated[Path | None, Parameter(help="file of heads that were kept elsewhere")] = None,
    closed: Annotated[bool, Parameter(negative="", help="every writer must have said that it ended")] = False,
    json: AsJson = False,
) -> Result:
    """Say whether an audit chain is as it was written: 0 it is, 1 it is not, 3 its last line is torn.

    Parameters
    ----------
    file
        The file that holds the chain, unless a database does.
    """
    del json
    read = _read(file, chain, (*_given(head), *_kept(heads)), closed=closed)
    torn = read.flaw is None and read.walk.unfinished
    status = FINDINGS if read.flaw is not None else TORN if torn else FINE

    def show(console: Console) -> None:
        for line in _told(read):
            console.print(line, soft_wrap=True)

    return Result(_document(read), show, status)


def head(file: Path | None = None, /, *, chain: Chain = CHAIN, json: AsJson = False) -> Result:
    """Print the head of a chain that is as it was written, to keep where nobody who writes the chain writes.

    Parameters
    ----------
    file
        The file that holds the chain, unless a database does.
    """
    del json
    read = _read(file, chain, (), closed=False)
    if read.flaw is not None:
        where, flaw = _where(read.name, read.flaw), read.flaw.fault
        raise Refused(flaw.code, f"{where}: {flaw.cause}", flaw.fix)

    def show(console: Console) -> None:
        console.print(str(read.walk.head), soft_wrap=True)

    return Result({"head": str(read.walk.head), "records": read.walk.head.seq}, show)


# reading


def _read(file: Path | None, chain: Chain, heads: Iterable[Head], *, closed: bool) -> _Read:
    if (file is None) is (chain.database is None):
        raise Refused(USAGE, "name one chain: a file, or `--database`", "read `nonsuch audit verify --help`")
    try:
        walk = Walk(ChainKeys(audit_keys(chain.keys)), heads)
    except BootError as refusal:
        (told,) = refusal.faults
        raise Refused(told.code, told.cause, told.fix) from None
    if file is not None:
        return _Read(str(file), walk, _walked(walk, walk.line, _lines(file), closed=closed))
    records = _records(chain.database or "", chain.table)
    return _Read(chain.table, walk, _walked(walk, walk.take, records, closed=closed))


def _walked(
    walk: Walk, take: Callable[[Any], Flaw | None], items: Iterable[object], *, closed: bool
) -> Flaw | None:
    for each in items:
        flaw = take(each)
        if flaw is not None:
            return flaw
    return walk.end(closed=closed)


def _lines(file: Path) -> Iterator[bytes]:
    try:
        yield from lines_of(file)
    except OSError as refusal:
        raise Refused(UNREADABLE, f"`{file}`: {refusal.strerror}") from None


def _records(dsn: str, table: str) -> Iterator[Record]:
    try:
        yield from records_of(dsn, table)
    except ExtraMissing as missing:
        raise Refused(missing.code, missing.cause, missing.fix) from None
    except Exception as refusal:  # noqa: BLE001  (a driver's, of any kind)
        raise Refused(UNREADABLE, f"`{table}`: {_first_line(refusal)}") from None


def _first_line(refusal: Exception) -> str:
    return next(iter(str(refusal).splitlines()), type(refusal).__name__)


def _given(texts: Iterable[str]) -> Iterator[Head]:
    for each in texts:
        found = head_of(each)
        if found is None:
            raise Refused(USAGE, "`--head` is no head", "give it as `nonsuch audit head` printed it: SEQ:MAC")
        yield found


def _kept(file: Path | None) -> Iterator[Head]:
    if file is None:
        return
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, ValueError) as refusal:
        cause = getattr(refusal, "strerror", None) or "it is no text"
        raise Refused(UNREADABLE, f"`{file}`: {cause}", "give a file of heads, one a line") from None
    for number, line in enumerate(lines, 1):
        found = head_of(line.strip())
        if found is None:
            raise Refused(USAGE, f"line {number} of `{file}` is no head", "give one a line, as SEQ:MAC")
        yield found


# telling


def _where(name: str, flaw: Flaw) -> str:
    if flaw.place is None:
        return f"{name}: record {flaw.record}"
    return f"{name}:{flaw.place.line}: record {flaw.record}, byte {flaw.place.offset}"


def _told(read: _Read) -> Iterator[str]:
    walk, flaw = read.walk, read.flaw
    if flaw is not None:
        yield f"{_where(read.name, flaw)}: {flaw.fault.code}: {flaw.fault.cause}: {flaw.fault.fix}"
        before = counted(
            walk.head.seq, "record before that is as it was", "records before that are as they were"
        )
        yield f"{before} written"
        return
    if walk.unfinished:
        torn = fault("X_AUDIT_TORN", "the last line was not written to its end")
        yield f"{read.name}: {torn.code}: {torn.cause}: {torn.fix}"
    whole = counted(walk.head.seq, "record is as it was written", "records are as they were written")
    yield f"{whole}, the head is {walk.head}"
    if walk.keys:
        yield "keys: " + ", ".join(f"{key} from record {seq}" for key, seq in walk.keys.items())
    if walk.gaps:
        yield f"gaps: {walk.gaps}, {walk.lost} events are told to be lost"
    if walk.torn:
        yield f"torn lines: {walk.torn}, each told by the record behind it"
    if walk.unended:
        yield f"writers that did not end: {len(walk.unended)}; they run, were killed, or the end was cut off"


def _document(read: _Read) -> dict[str, Any]:
    walk, flaw = read.walk, read.flaw
    return {
        "ok": flaw is None,
        "records": walk.head.seq,
        "head": str(walk.head),
        "keys": [{"key": key, "from": seq} for key, seq in walk.keys.items()],
        "gaps": walk.gaps,
        "lost": walk.lost,
        "torn": walk.torn,
        "unfinished": walk.unfinished,
        "open": sorted(walk.unended),
        "fault": None if flaw is None else _fault(flaw),
    }


def _fault(flaw: Flaw) -> dict[str, Any]:
    told, place = flaw.fault, flaw.place
    return {
        "code": told.code,
        "cause": told.cause,
        "fix": told.fix,
        "record": flaw.record,
        "line": None if place is None else place.line,
        "offset": None if place is None else place.offset,
    }
