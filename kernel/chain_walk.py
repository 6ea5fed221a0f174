"""From the first record of an audit chain to its last: the first thing that is wrong, or what was found.

Pure arithmetic over lines or rows as they come; knows no file, no table and no clock.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from .chain import ChainKeys, Head, Record, note_in, record_of, sealed
from .errors import Fault, fault

MAX_NAMED: Final = 96  # characters of what stands in a chain that are repeated


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file: the line from 1, and the byte at which it begins from 0."""

    line: int
    offset: int


@dataclass(frozen=True, slots=True)
class Flaw:
    """The first thing that is wrong, the number that the record there should have, and where that is."""

    fault: Fault
    record: int
    place: Place | None = None


class _Rest:
    """Lines that are no record, one behind the other: where they begin, and what a writer says of them."""

    def __init__(self, place: Place) -> None:
        self.place, self.ended, self.lines = place, False, 0
        self._length, self._digest = 0, sha256()

    def add(self, raw: bytes) -> None:
        """Add a line; the last line end belongs to none of them."""
        part = (b"\n" if self.ended else b"") + raw.removesuffix(b"\n")
        self._length += len(part)
        self._digest.update(part)
        self.ended = raw.endswith(b"\n")
        self.lines += self.ended

    def is_told_by(self, said: dict[str, object] | None) -> bool:
        """Whether a note of the chain is about exactly these bytes."""
        told = {} if said is None or said["kind"] != "chain-torn" else said
        return (told.get("bytes"), told.get("sha256")) == (self._length, self._digest.hexdigest())


class Walk:
    """Takes the lines of a file, or the records of a table, in their order.

    ``line``, ``take`` and ``end`` return the first flaw; a walk that returned one is over. ``heads`` are
    those that were kept elsewhere. What it found so far is in its attributes.
    """

    def __init__(self, keys: ChainKeys, heads: Iterable[Head] = ()) -> None:
        self.head, self.torn, self.gaps, self.lost = Head(), 0, 0, 0
        self.keys: dict[str, int] = {}  # each that made a record, and the first one it made
        self.unended: set[str] = set()  # writers that began and did not say that they ended
        self._held, self._let_in = keys, set[str]()
        self._kept: dict[int, set[Head]] = {}
        for head in heads:
            self._kept.setdefault(head.seq, set()).add(head)
        self._lines = self._bytes = 0
        self._within = False  # a line that came in pieces
        self._place: Place | None = None
        self._rest: _Rest | None = None

    @property
    def unfinished(self) -> bool:
        """Whether its last line is no record and has no end, as a crash leaves one."""
        return self._rest is not None and self._rest.lines == 0

    def line(self, raw: bytes) -> Flaw | None:
        """Take the next line with its end; one that is too long to be a record may come in pieces."""
        if not self._within:
            self._lines += 1
            self._place = Place(self._lines, self._bytes)
        self._bytes += len(raw)
        record = None if self._within else record_of(raw.removesuffix(b"\n"))
        self._within = not raw.endswith(b"\n")
        if record is not None:
            return self.take(record)
        if self._rest is None:
            self._rest = _Rest(self._place or Place(0, 0))
        self._rest.add(raw)
        return None

    def take(self, record: Record) -> Flaw | None:
        """Take the next record."""
        flaw = self._out_of_place(record) or self._forged(record)
        said = None if flaw is not None else note_in(record.event)
        rest, self._rest = self._rest, None
        if rest is not None and not rest.is_told_by(said):
            return self._flaw("X_AUDIT_LINE", "this line is no record", rest.place)
        if flaw is None and rest is None and said is not None and said["kind"] == "chain-torn":
            flaw = self._flaw("X_AUDIT_LINE", "the torn line that this record tells of is gone")
        return flaw or self._accepted(record) or (None if said is None else self._noted(said))

    def end(self, *, closed: bool = False) -> Flaw | None:
        """Take the end; ``closed``: every writer must have said that it ended."""
        at = self.head.seq
        self._place = None
        if self._rest is not None and not self.unfinished:
            return self._flaw("X_AUDIT_LINE", "this line is no record", self._rest.place)
        kept = max(self._kept, default=0)
        if kept > at:
            return self._flaw("X_AUDIT_CUT", f"the chain ends at record {at}, and record {kept} was kept")
        if closed and (self.unended or not at):
            return self._flaw("X_AUDIT_UNCLOSED", f"a writer did not end the chain at record {at}")
        return None

    def _flaw(self, code: str, cause: str, place: Place | None = None) -> Flaw:
        return Flaw(fault(code, cause), self.head.seq + 1, place or self._place)

    def _out_of_place(self, record: Record) -> Flaw | None:
        due = self.head.seq + 1
        if record.seq == due:
            return None
        return self._flaw("X_AUDIT_ORDER", f"record {record.seq} stands where record {due} belongs")

    def _forged(self, record: Record) -> Flaw | None:
        if record.key not in self._held.held:
            return self._flaw("X_AUDIT_KEY", f"the key `{_shown(record.key)}` is not given")
        genuine = sealed(self._held, record.key, self.head, record.event)
        if not hmac.compare_digest(genuine.mac, record.mac):
            cause = f"the record is not the one that was written here, or `{record.key}` is another key"
            return self._flaw("X_AUDIT_CHANGED", cause)
        if self.keys and record.key not in self._let_in:
            return self._flaw("X_AUDIT_KEY", f"no record lets the key `{record.key}` into the chain")
        return None

    def _accepted(self, record: Record) -> Flaw | None:
        if self._kept.get(record.seq, {record.head}) != {record.head}:
            return self._flaw("X_AUDIT_REWRITTEN", f"record {record.seq} is not the one whose head was kept")
        self.head = record.head
        self._let_in.add(record.key)
        self.keys.setdefault(record.key, record.seq)
        return None

    def _noted(self, said: dict[str, object]) -> Flaw | None:
        match said:
            case {"kind": "chain-opened", "writer": str(writer)}:
                self.unended.add(writer)
            case {"kind": "chain-closed", "writer": str(writer)}:
                self.unended.discard(writer)
            case {"kind": "chain-gap", "lost": int(lost)}:
                self.gaps, self.lost = self.gaps + 1, self.lost + lost
            case {"kind": "chain-torn"}:
                self.torn += 1
            case {"kind": "chain-key", "next": str(key)}:
                self._let_in.add(key)
            case {"kind": "chain-cut", "had": str(had)}:
                cause = f"records are missing before this one: its writer had written {_shown(had)}"
                return Flaw(fault("X_AUDIT_CUT", cause), self.head.seq, self._place)
            case _:
                pass
        return None


def _shown(text: str) -> str:
    """Return what stands in a chain as it can be told in a line."""
    return ascii(text[:MAX_NAMED])[1:-1]
