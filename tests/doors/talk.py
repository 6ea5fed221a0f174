"""A client that sends bytes and takes apart what comes back. Judges nothing."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from .raw import FOLLOW, Case

QUIET_SECONDS: Final = 0.4  # a busy machine answers later than an idle one
SILENT_SECONDS: Final = 4.0
CONNECT_SECONDS: Final = 20
_HEAD: Final = re.compile(rb"HTTP/1\.[01] (\d{3})[^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n")
_LENGTH: Final = re.compile(rb"^content-length: *(\d+)\r?$", re.IGNORECASE | re.MULTILINE)
After = Literal["answered", "closed", "silent"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer on the wire."""

    status: int
    head: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class Heard:
    """What came back: the answers to an attempt, what became of the connection, what could not be read."""

    answers: tuple[Answer, ...]
    after: After
    rest: bytes = b""

    @property
    def outcome(self) -> list[int | str]:
        """The statuses, and what became of the request that followed on the connection."""
        return [*(each.status for each in self.answers), self.after]


def answers_of(data: bytes, *, bodiless: bool = False) -> tuple[list[Answer], bytes]:
    """Take whole answers off the front; what is said before them (1xx) is none.

    One without a length lasts until the end. ``bodiless``: the first is an answer to HEAD.
    """
    found = list[Answer]()
    while match := _HEAD.match(data):
        status, head = int(match[1]), match[2]
        length = _LENGTH.search(head)
        bare = status < 200 or status == 204 or (bodiless and not found)
        size = 0 if bare else len(data) if length is None else int(length[1])
        end = min(match.end() + size, len(data)) if length is None else match.end() + size
        if status >= 200:
            if len(data) < end:
                break
            found.append(Answer(status, head, data[match.end() : end]))
        data = data[end:]
    return found, data


class Line:
    """One connection."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, CONNECT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data, self.closed = b"", False

    def send(self, pieces: Iterable[bytes]) -> None:
        """Send, unless the server has had enough."""
        self._socket.settimeout(CONNECT_SECONDS)
        try:
            for piece in pieces:
                self._socket.sendall(piece)
        except OSError:
            return

    def hear(self, seconds: float, until: bytes | None = None) -> None:
        """Read until nothing comes, the server closes, or something was said."""
        self._socket.settimeout(seconds)
        try:
            while until is None or until not in self.data:
                part = self._socket.recv(65_536)
                if not part:
                    self.closed = True
                    return
                self.data += part
        except TimeoutError:
            return
        except OSError:  # reset: it closed while we still sent
            self.closed = True

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


_FOLLOWED: Final = b'"id":777,"result"'


def heard(address: tuple[str, int], case: Case, pieces: Iterable[bytes] | None = None) -> Heard:
    """Send an attempt, and a plain request after it if the connection is still there."""
    line = Line(address)
    try:
        line.send([case.raw] if pieces is None else pieces)
        line.hear(QUIET_SECONDS)
        if case.late and not line.closed:
            line.send([case.late])
            line.hear(QUIET_SECONDS)
        if not line.closed:
            line.send([FOLLOW])
            line.hear(SILENT_SECONDS, _FOLLOWED)
        return _told(case, line)
    finally:
        line.close()


def _told(case: Case, line: Line) -> Heard:
    found, rest = answers_of(line.data, bodiless=case.raw.startswith(b"HEAD"))
    if found and _FOLLOWED in found[-1].body:
        return Heard(tuple(found[:-1]), "answered", rest)
    return Heard(tuple(found), "closed" if line.closed else "silent", rest)


def pieces_of(raw: bytes, seed: int) -> list[bytes]:
    """Cut an attempt into single bytes, or a large one at a hundred places."""
    if len(raw) <= 2_000:
        return [raw[at : at + 1] for at in range(len(raw))]
    places = sorted(random.Random(seed).sample(range(1, len(raw)), 100))  # noqa: S311  (places to cut at)
    return [raw[start:end] for start, end in zip([0, *places], [*places, len(raw)], strict=True)]
