"""An audit chain: events to records under a key, and records to what was done to them since.

Knows no file, no table, no clock and no event's members: an event is its line of JSON.

A record's MAC is over its number, the id of its key, its event and the MAC before it (HMAC-SHA-256), as in
the chains of Schneier and Kelsey and of RFC 5848. Whoever changes, moves, adds or removes a record needs the
key; whoever only removes the last ones does not, for what is left is a chain. That shows by a `Head` that
was kept elsewhere, as a tree head is in RFC 6962: the number and the MAC of a record, which stand for all
before it, also against somebody who has the key.

A key is followed by the next one in a record of its own (``chain-key``), made with the key before: so a
stolen key rewrites nothing that was written before its turn, if the earlier keys were taken away. Keys that
change with every record (journald's sealing) would narrow that to the moment of the theft, and are not done:
the state of such a key must be erased wherever it was, and a database keeps it in its own log, a file system
in its journal. A head that was kept elsewhere narrows it too, and costs a line.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from types import MappingProxyType
from typing import Final, Literal

KEY_BYTES: Final = 32
MAX_LINE_BYTES: Final = 1_048_576
Note = Literal["chain-opened", "chain-closed", "chain-gap", "chain-torn", "chain-key", "chain-cut"]

_DOMAIN: Final = b"nonsuch audit chain 1\0"
_KEY_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HEAD: Final = re.compile(r"(0|[1-9][0-9]{0,18}):([0-9a-f]{64})")
# One spelling for each record, so that all of a line is bound: what is not in the MAC is fixed.
_LINE: Final = re.compile(
    rb'\{"seq":([1-9][0-9]{0,18}),"key":"([A-Za-z0-9_.-]{1,64})",'
    rb'"event":(\{[\x20-\x7e]*\}),"mac":"([0-9a-f]{64})"\}'
)


@dataclass(frozen=True, slots=True)
class Head:
    """The last record of a chain by its number and its MAC; without arguments, of a chain without records."""

    seq: int = 0
    mac: bytes = bytes(32)

    def __str__(self) -> str:
        return f"{self.seq}:{self.mac.hex()}"


def head_of(text: str) -> Head | None:
    """Return a head as it was printed, or nothing if that is none."""
    found = _HEAD.fullmatch(text)
    return None if found is None else Head(int(found[1]), bytes.fromhex(found[2]))


@dataclass(frozen=True, slots=True)
class ChainKeys:
    """The keys of a chain by id, in the order of their use: the last one makes records, all verify them.

    Raises: ValueError, without a key, for one of fewer than 32 bytes, or for an id that is none.
    """

    held: Mapping[str, bytes] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "held", MappingProxyType(dict(self.held)))
        if not self.held:
            raise ValueError("a chain needs a key")
        for name, key in self.held.items():
            if not _KEY_ID.fullmatch(name):
                raise ValueError(f"`{name}` is no id of a key: use 1 to 64 of A-Z a-z 0-9 _ . -")
            if len(key) < KEY_BYTES:
                raise ValueError(f"the key `{name}` has fewer than {KEY_BYTES} bytes")

    @property
    def newest(self) -> str:
        """The id of the key that makes records."""
        return list(self.held)[-1]


@dataclass(frozen=True, slots=True)
class Record:
    """One event in its place."""

    seq: int
    key: str
    event: str
    mac: bytes

    @property
    def head(self) -> Head:
        """The head of a chain that ends here."""
        return Head(self.seq, self.mac)


def sealed(keys: ChainKeys, key: str, head: Head, event: str) -> Record:
    """Return the record of an event behind a head. Raises: KeyError, for a key that is not held."""
    seq = head.seq + 1
    return Record(seq, key, event, _mac(keys.held[key], head.mac, seq, key, event))


def extended(keys: ChainKeys, head: Head, events: Iterable[tuple[str, str]]) -> list[Record]:
    """Return the records of events, each given behind the id of its key."""
    records: list[Record] = []
    before = head.mac
    for seq, (key, event) in enumerate(events, head.seq + 1):
        before = _mac(keys.held[key], before, seq, key, event)
        records.append(Record(seq, key, event, before))
    return records


def _mac(secret: bytes, before: bytes, seq: int, key: str, event: str) -> bytes:
    """No two records have the same bytes here: two lengths are fixed, and no id of a key holds a zero."""
    bound = b"%b%b%b%b\0" % (_DOMAIN, before, seq.to_bytes(8), key.encode())
    return hmac.digest(secret, bound + event.encode("utf-8", "surrogatepass"), "sha256")


def line_of(record: Record) -> bytes:
    """Return a record as a line of a file."""
    head = f'{{"seq":{record.seq},"key":"{record.key}","event":'
    return f'{head}{record.event},"mac":"{record.mac.hex()}"}}\n'.encode()


def record_of(line: bytes) -> Record | None:
    """Return the record in a line (without its end), or nothing if it is not written as one."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    seq, key, event, mac = (each.decode() for each in found.groups())
    return Record(int(seq), key, event, bytes.fromhex(mac))


# what a chain says of itself


def note(kind: Note, at: datetime, **members: str | int) -> str:
    """Return the event of something that befell the chain itself."""
    return json.dumps({"at": at.isoformat(), **members, "kind": kind}, separators=(",", ":"))


def note_in(event: str) -> dict[str, object] | None:
    """Return the members of such an event; no text that a caller sent holds an unescaped quote."""
    if '"kind":"chain-' not in event:
        return None
    members: dict[str, object] = json.loads(event)
    return members


@dataclass(frozen=True, slots=True)
class Tail:
    """What a writer finds at the end of a chain.

    ``key`` is that of the last record. ``rest`` is what stands behind it and is no record, without a line
    end: the part that was written of a line. ``had`` is the last record that this writer wrote, if it is no
    longer there.
    """

    head: Head = Head()
    key: str | None = None
    rest: bytes | None = None
    had: Head | None = None


class KeyMissing(Exception):
    """The chain goes on under a key that this writer does not hold, and its own was never let in."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"the chain goes on under the key `{self.key}`, which this process was not given"


def joining(keys: ChainKeys, tail: Tail, at: datetime, *, known: bool) -> list[tuple[str, str]]:
    """Return what a writer says of a tail before it goes on, each with the key to say it with.

    ``known``: this writer's key was let into this chain before. Raises: KeyMissing.
    """
    newest = keys.newest
    before = newest if known or tail.key is None else tail.key
    if before not in keys.held:
        raise KeyMissing(before)
    said: list[tuple[str, str]] = []
    if tail.rest is not None:
        digest = sha256(tail.rest).hexdigest()
        said.append((before, note("chain-torn", at, bytes=len(tail.rest), sha256=digest)))
    if before != newest:
        said.append((before, note("chain-key", at, next=newest)))
    if tail.had is not None:
        said.append((newest, note("chain-cut", at, had=str(tail.had))))
    return said
