"""Raw requests on real sockets: one answer to each, whole or in pieces, and none to what is smuggled."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from nonsuch.adapters.cli import parser as bounded

from .bulk import BULK, IN_LINE, counter
from .measure import PARSERS, costs, measured, worst
from .raw import CASES, CHUNKED, PING, chunked, head, length, rpc
from .raw_app import Address, Marked, over_asgi, over_wsgi
from .talk import Heard, answers_of, heard, pieces_of

EXPECTED: Final[Mapping[str, Mapping[str, list[Any]]]] = json.loads(
    Path(__file__).with_name("raw.json").read_text()
)
SERVERS: Final = (*PARSERS, "wsgi")
AT_ONCE: Final = 64
TOLD: Final = frozenset({200, 204, 400, 401, 403, 404, 405, 411, 413, 414, 415, 431})
FACTOR: Final = 100

# h11 bounds what is unfinished: a head that arrives at once may be larger than one that does not.
BY_ARRIVAL: Final = frozenset(
    {
        ("h11", "a target of ninety thousand bytes"),
        ("h11", "a header of sixty thousand bytes"),
        ("h11", "ten thousand headers"),
    }
)
# What a request of HTTP 0.9 or an unknown version is told has no head (the standard library's server).
HEADLESS: Final = frozenset({"HTTP 0.9", "HTTP 2.0", "the preface of HTTP 2"})


@dataclass(frozen=True)
class Told:
    """What a server answered to the corpus, whole and in pieces, and how often the tool ran."""

    whole: Mapping[str, Heard]
    pieces: Mapping[str, Heard]
    marks: int


@pytest.fixture(scope="module")
def told() -> Iterator[Mapping[str, Told]]:
    """The corpus, sent to every server at once."""
    logging.disable(logging.WARNING)
    apps = {name: Marked() for name in SERVERS}
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        found = {name: stack.enter_context(_served(name, marked)) for name, marked in apps.items()}
        sent = {
            (name, way): [
                pool.submit(heard, address, case, pieces_of(case.raw, 1) if way == "pieces" else None)
                for case in CASES
            ]
            for name, address in found.items()
            for way in ("whole", "pieces")
        }
        made = {
            key: {case.name: each.result() for case, each in zip(CASES, futures, strict=True)}
            for key, futures in sent.items()
        }
        yield {name: Told(made[name, "whole"], made[name, "pieces"], apps[name].marks) for name in SERVERS}
    logging.disable(logging.NOTSET)


def _served(name: str, marked: Marked) -> Any:
    return over_wsgi(marked.app) if name == "wsgi" else over_asgi(marked.app, name)


def test_the_corpus_is_large_and_every_attempt_has_one_expectation() -> None:
    assert len(CASES) >= 60
    assert [case.name for case in CASES] == list(EXPECTED)
    assert all(list(each) == list(SERVERS) for each in EXPECTED.values())


@pytest.mark.parametrize("server", SERVERS)
def test_every_attempt_is_answered_as_expected(told: Mapping[str, Told], server: str) -> None:
    found = {name: each.outcome for name, each in told[server].whole.items()}
    assert found == {name: each[server] for name, each in EXPECTED.items()}


@pytest.mark.parametrize("server", SERVERS)
def test_pieces_are_answered_as_the_whole(told: Mapping[str, Told], server: str) -> None:
    whole, pieces = told[server].whole, told[server].pieces
    differing = {name for name in whole if whole[name].outcome != pieces[name].outcome}
    assert differing <= {name for where, name in BY_ARRIVAL if where == server}


@pytest.mark.parametrize("server", SERVERS)
def test_nothing_that_was_smuggled_ran(told: Mapping[str, Told], server: str) -> None:
    heard = [*told[server].whole.values(), *told[server].pieces.values()]
    assert told[server].marks == 0
    assert not any(b"marked" in answer.body for each in heard for answer in each.answers)


@pytest.mark.parametrize("server", SERVERS)
def test_no_answer_is_an_error_of_ours_or_torn(told: Mapping[str, Told], server: str) -> None:
    for way in (told[server].whole, told[server].pieces):
        assert {answer.status for each in way.values() for answer in each.answers} <= TOLD
        assert {name for name, each in way.items() if each.rest} <= HEADLESS


@pytest.mark.parametrize("server", SERVERS)
def test_a_connection_whose_request_could_not_be_read_is_closed(
    told: Mapping[str, Told], server: str
) -> None:
    """What the parser refused left it nowhere: no later byte on that connection is a request."""
    for name, each in told[server].whole.items():
        unread = [answer for answer in each.answers if b"json" not in answer.head and answer.status == 400]
        assert not unread or each.after == "closed", name


# what `nonsuch serve` adds to uvicorn's parser


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Marked, Address]]:
    monkeypatch.setattr(bounded, "HEAD_SECONDS", 0.3)
    marked = Marked()
    with over_asgi(marked.app, "serve") as address:
        yield marked, address


def _until_closed(address: Address, *parts: bytes) -> tuple[bytes, float]:
    """Send, and return what was said until the server closed, and after how long that was."""
    started, said = time.monotonic(), b""
    with socket.create_connection(address, 10) as client:
        try:
            for part in parts:
                client.sendall(part)
            while part := client.recv(65_536):
                said += part
        except ConnectionError:
            pass
    return said, time.monotonic() - started


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: loc", b"\r\n"])
def test_who_does_not_end_a_head_is_hung_up_on(bound: tuple[Marked, Address], sent: bytes) -> None:
    said, seconds = _until_closed(bound[1], sent)
    assert said == b""
    assert 0.25 < seconds < 4


def test_a_later_head_has_as_little_time(bound: tuple[Marked, Address]) -> None:
    said, seconds = _until_closed(bound[1], length(PING), b"POST /mcp")
    assert [each.status for each in answers_of(said)[0]] == [200]
    assert seconds < 4


def test_a_slow_body_is_no_slow_head(bound: tuple[Marked, Address]) -> None:
    whole = length(PING)
    with socket.create_connection(bound[1], 10) as client:
        client.sendall(whole[:-5])
        time.sleep(0.6)
        client.sendall(whole[-5:])
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_a_trailer_without_an_end_is_ended(bound: tuple[Marked, Address]) -> None:
    body = chunked(PING)[:-2] + b"X: "
    said, _ = _until_closed(bound[1], head(CHUNKED) + body, *[b"a" * 10_000] * 20)
    assert [each.status for each in answers_of(said)[0]] in ([], [431])


def test_a_slow_body_has_its_time_and_no_more(
    bound: tuple[Marked, Address], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused or not: who is told 401 may go on sending a body that nobody reads."""
    monkeypatch.setattr(bounded, "GRACE_SECONDS", 0.4)
    for without in ([], [b"authorization"]):
        whole = length(PING + b" " * 1_000, without=without)
        said, seconds = _until_closed(bound[1], whole[:-1_000])
        assert [each.status for each in answers_of(said)[0]] == ([401] if without else [])
        assert 0.3 < seconds < 4


def test_a_body_that_comes_on_is_taken_however_long_it_takes(
    bound: tuple[Marked, Address], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(bounded, "BYTES_PER_SECOND", 1_000)
    whole = length(b" " * 1_000 + PING)
    with socket.create_connection(bound[1], 10) as client:
        for part in (whole[:600], *(whole[at : at + 100] for at in range(600, len(whole), 100))):
            client.sendall(part)
            time.sleep(0.08)
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("more", [b"", length(PING, (b"Connection", b"close"))])
def test_who_reads_no_answer_is_let_go(
    bound: tuple[Marked, Address], monkeypatch: pytest.MonkeyPatch, more: bytes
) -> None:
    """It asks for lists until nothing more fits between the two, and then keeps the connection."""
    monkeypatch.setattr(bounded, "READ_SECONDS", 0.3)
    asked = length(rpc("tools/list"))
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        client.connect(bound[1])
        client.settimeout(3)
        with pytest.raises(ConnectionError):
            _send_for_ever(client, asked + more)


def _send_for_ever(client: socket.socket, asked: bytes) -> None:
    """Send, and read nothing. Raises: ConnectionError, once it is over; TimeoutError, if it never is."""
    while True:
        client.sendall(asked)


def test_requests_in_line_are_few_and_more_of_them_end_the_connection(
    bound: tuple[Marked, Address],
) -> None:
    few, many = length(PING) * 12, length(PING) * 200
    with socket.create_connection(bound[1], 10) as client:
        client.sendall(few)
        said = b""
        while said.count(b"HTTP/1.1 200 ") < 12:
            said += client.recv(65_536)
    said, _ = _until_closed(bound[1], many)
    assert len(answers_of(said)[0]) < 30
    with socket.create_connection(bound[1], 10) as client:  # and the next one is answered
        client.sendall(length(PING))
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")


# what an input costs


def test_requests_in_line_are_what_another_parser_keeps_all_of() -> None:
    """Why `nonsuch serve` bounds them: each is held at a hundred times its bytes while one is answered."""
    plain, ours = (
        max(each.memory_factor for each in costs(counter(), parser, IN_LINE)) for parser in PARSERS[1:]
    )
    assert (plain > FACTOR / 2, ours < 2) == (True, True)


@pytest.mark.parametrize("parser", PARSERS)
def test_no_input_costs_a_hundred_times_its_size(parser: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Memory in bytes, CPU in what a JSON parser takes for as many bytes; less than a packet is a packet."""
    found, unit = measured(parser)
    assert len(found) >= len(CASES) + len(BULK)
    with capsys.disabled():
        print(f"\nwhat costs most, {parser}:\n{worst(found, unit)}")  # noqa: T201 - a reader wants to see it
    dear = [each for each in found if max(each.memory_factor, each.cpu_factor(unit)) >= FACTOR]
    assert dear == [], worst(found, unit)
