"""Audit chains made by hand, from the description and not with the package: the tests' own opinion."""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nonsuch.kernel.chain import ChainKeys, Head
from nonsuch.kernel.chain_walk import Flaw, Walk

KEYS: Final[Mapping[str, bytes]] = {"k1": b"1" * 32, "k2": b"2" * 32}
OTHER: Final[Mapping[str, bytes]] = {"k1": b"x" * 32, "k2": b"y" * 32}  # the same names, other keys
EVENT: Final = '{"tool":"t%d","kind":"tool-call"}'


def mac(secret: bytes, before: bytes, seq: int, key: str, event: str) -> bytes:
    """The MAC of a record."""
    bound = (
        b"nonsuch audit chain 1\0" + before + struct.pack(">Q", seq) + key.encode() + b"\0" + event.encode()
    )
    return hmac.new(secret, bound, hashlib.sha256).digest()


def chain(
    events: Iterable[str | tuple[str, str]],
    keys: Mapping[str, bytes] = KEYS,
    *,
    before: bytes = bytes(32),
    first: int = 1,
) -> list[bytes]:
    """The lines of a chain; an event may come with the id of its key."""
    lines: list[bytes] = []
    for seq, each in enumerate(events, first):
        key, event = ("k1", each) if isinstance(each, str) else each
        before = mac(keys[key], before, seq, key, event)
        lines.append(f'{{"seq":{seq},"key":"{key}","event":{event},"mac":"{before.hex()}"}}\n'.encode())
    return lines


def events(count: int) -> list[str]:
    """So many events, no two alike."""
    return [EVENT % number for number in range(count)]


def mac_of(line: bytes) -> bytes:
    """The MAC that stands in a line."""
    return bytes.fromhex(json.loads(line)["mac"])


def heads(lines: Sequence[bytes]) -> list[Head]:
    """The head at each record."""
    return [Head(json.loads(line)["seq"], mac_of(line)) for line in lines]


def pieces(data: bytes) -> list[bytes]:
    """The lines of a file with their ends."""
    return [each + b"\n" for each in data.split(b"\n")[:-1]] + (
        [last] if (last := data.split(b"\n")[-1]) else []
    )


def walked(
    data: bytes | Iterable[bytes],
    keys: Mapping[str, bytes] = KEYS,
    kept: Iterable[Head] = (),
    *,
    closed: bool = False,
) -> tuple[Walk, Flaw | None]:
    """Walk a file; the walk, and the first flaw."""
    walk = Walk(ChainKeys(keys), kept)
    for line in pieces(data) if isinstance(data, bytes) else data:
        flaw = walk.line(line)
        if flaw is not None:
            return walk, flaw
    return walk, walk.end(closed=closed)


def code(data: bytes | Iterable[bytes], kept: Iterable[Head] = (), keys: Mapping[str, bytes] = KEYS) -> str:
    """The code of the first flaw, or nothing."""
    flaw = walked(data, keys, kept)[1]
    return "" if flaw is None else flaw.fault.code
