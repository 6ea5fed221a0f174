"""Audit lines: one line of ASCII JSON each, at a level that shows probing; a hook changes no answer."""

import asyncio
import json
import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from nonsuch import App, BootError, Open
from nonsuch.adapters.edge.audit import level, line, record
from nonsuch.kernel.audit import (
    AuthRefused,
    Event,
    OutcomeName,
    PromptGet,
    RateLimited,
    ResourceRead,
    ToolCall,
)
from nonsuch.kernel.errors import fault
from nonsuch.kernel.model import Outcome

from .post_office import CLERK, NOW, SENTINEL, VISITOR, World

LEVELS: dict[OutcomeName, int] = {
    "ok": logging.INFO,
    "invalid-args": logging.INFO,
    "hidden": logging.WARNING,
    "scope-denied": logging.WARNING,
    "policy-denied": logging.WARNING,
    "policy-error": logging.ERROR,
    "failed": logging.INFO,
}


def call(outcome: OutcomeName = "ok", **members: Any) -> ToolCall:
    given: dict[str, Any] = {"tool": "t", "surface": "mcp", "caller": "a", "caller_kind": "agent", **members}
    return ToolCall(outcome=outcome, **given)


@pytest.mark.parametrize("outcome", LEVELS)
def test_the_level_of_an_outcome(outcome: OutcomeName) -> None:
    assert level(call(outcome)) == LEVELS[outcome]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("X_INTERNAL", logging.ERROR),
        ("X_OUTPUT_INVALID", logging.ERROR),
        ("X_NOT_FOUND", logging.INFO),
        ("X_OWN", logging.INFO),
    ],
)
def test_an_accident_is_louder_than_an_application_error(code: str, expected: int) -> None:
    assert level(call("failed", code=code)) == expected


def test_a_request_that_never_became_a_caller_is_a_warning() -> None:
    assert level(AuthRefused("no-token", 401, None, "/mcp")) == logging.WARNING


def test_a_line_holds_every_member_that_has_a_value() -> None:
    event = call(
        "policy-denied", acts_for="h", scope="s", code="X_FORBIDDEN", policies=("p", "q"), declared=True
    )
    assert line(event, NOW) == (
        '{"at":"2026-01-02T03:04:05+00:00","tool":"t","outcome":"policy-denied","surface":"mcp",'
        '"caller":"a","caller_kind":"agent","acts_for":"h","scope":"s","code":"X_FORBIDDEN",'
        '"policies":["p","q"],"declared":true,"kind":"tool-call"}'
    )


def test_a_line_leaves_out_what_has_none_and_keeps_false() -> None:
    assert json.loads(line(call(), NOW)) == {
        "at": "2026-01-02T03:04:05+00:00",
        "tool": "t",
        "outcome": "ok",
        "surface": "mcp",
        "caller": "a",
        "caller_kind": "agent",
        "kind": "tool-call",
    }
    assert json.loads(line(call("hidden", declared=False), NOW))["declared"] is False
    assert line(AuthRefused("unknown-token", 401, None, "/mcp"), NOW) == (
        '{"at":"2026-01-02T03:04:05+00:00","reason":"unknown-token","status":401,"path":"/mcp",'
        '"kind":"auth-refused"}'
    )


@pytest.mark.parametrize(
    "name", ["a\nb", "a\r\nb", "\u2028", "é", "\ud800", "\x00", '"}', "\x1b[31m", "\x7f"]
)
def test_a_line_is_one_line_of_ascii_whatever_a_caller_sent(name: str) -> None:
    for event in (call(tool=name), call(caller=name), AuthRefused("no-token", 401, name, name)):
        told = line(event, NOW)
        assert told.isascii()
        assert told.isprintable()
        assert len(told.splitlines()) == 1
        assert name in json.loads(told).values()


def lines(caplog: pytest.LogCaptureFixture, name: str = "nonsuch.audit") -> list[tuple[int, str]]:
    return [(each.levelno, each.getMessage()) for each in caplog.records if each.name == name]


def test_events_go_to_the_log_and_to_the_hook(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    events: list[Event] = [call(), call("policy-error"), AuthRefused("no-token", 401, None, "/mcp")]
    with caplog.at_level(logging.INFO, "nonsuch.audit"):
        record(world.app(), events, NOW)
    assert lines(caplog) == [
        (logging.INFO, line(events[0], NOW)),
        (logging.ERROR, line(events[1], NOW)),
        (logging.WARNING, line(events[2], NOW)),
    ]
    assert world.events == events


def test_a_level_that_is_off_is_not_written_and_the_hook_is_told_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    with caplog.at_level(logging.ERROR, "nonsuch.audit"):
        record(world.app(), [call(), call("policy-error")], NOW)
    assert lines(caplog) == [(logging.ERROR, line(call("policy-error"), NOW))]
    assert world.events == [call(), call("policy-error")]


def test_a_record_is_made_as_the_application_has_its_records_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a format that needs what its factory adds would lose every line of the audit."""
    told, plain = list[str](), logging.getLogRecordFactory()

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(logging.Formatter("%(request)s %(message)s", "", "%").format(record)[:6])

    def made(*given: Any, **named: Any) -> logging.LogRecord:
        record = plain(*given, **named)
        record.request = "r7"
        return record

    handler, audited = Kept(), logging.getLogger("nonsuch.audit")
    monkeypatch.setattr(audited, "level", logging.INFO)
    logging.setLogRecordFactory(made)
    audited.addHandler(handler)
    try:
        record(World().app(), [call()], NOW)
    finally:
        audited.removeHandler(handler)
        logging.setLogRecordFactory(plain)
    assert told == ['r7 {"a']


def test_without_a_hook_there_is_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "nonsuch.audit"):
        record(World().app(on_audit=None), [call()], NOW)
    assert len(lines(caplog)) == 1


@pytest.mark.parametrize(
    ("name", "surface", "declared"),
    [
        ("send", "mcp", True),
        ("send", "agent", True),
        ("letters/send", "http", True),
        ("send", "http", False),
        ("letters/send", "mcp", False),
        ("gone", "mcp", False),
    ],
)
def test_only_the_operator_is_told_hidden_from_absent(name: str, surface: Any, declared: bool) -> None:
    world = World()
    record(
        world.app(), [call("hidden", tool=name, surface=surface), call("ok", tool=name, surface=surface)], NOW
    )
    assert world.events == [
        call("hidden", tool=name, surface=surface, declared=declared),
        call("ok", tool=name, surface=surface),
    ]


def test_each_event_of_a_hook_has_its_time() -> None:
    world = World()
    record(world.app(), [call(), call("hidden"), AuthRefused("no-token", 401, None, "/mcp")], NOW)
    assert [each.at for each in world.events] == [NOW] * 3


def test_what_a_caller_sent_is_cut_after_it_was_looked_up() -> None:
    world, long = World(), "x" * 5_000
    who: dict[str, Any] = {"caller": "a", "caller_kind": "agent"}
    events: list[Event] = [
        call("hidden", tool=long),
        call("rate-limited", tool=long),
        call("invalid-args", tool=long),
        ResourceRead(long, "hidden", **who),
        PromptGet(long, "hidden", completes=long, **who),
        RateLimited(long, "X_MCP_RATE_LIMITED", **who),
        AuthRefused("no-token", 401, None, long, long, long),
    ]
    record(world.app(), events, NOW)
    assert world.events == [
        call("hidden", tool=long[:128], declared=False),
        call("rate-limited", tool=long[:128], declared=False),
        call("invalid-args", tool=long[:128]),
        ResourceRead(long[:512], "hidden", **who),
        PromptGet(long[:512], "hidden", completes=long[:128], **who),
        RateLimited(long[:128], "X_MCP_RATE_LIMITED", **who),
        AuthRefused("no-token", 401, None, long[:512], long[:512], long[:512]),
    ]


def _raise(_event: Event) -> None:
    raise KeyError(SENTINEL)


def _raise_boot(_event: Event) -> None:
    raise BootError([fault("X_INTERNAL", SENTINEL)])


class _Coded(Exception):
    code = "E42"


def _raise_coded(_event: Event) -> None:
    raise _Coded(SENTINEL)


async def _raise_later(_event: Event) -> None:
    await asyncio.sleep(0)
    raise KeyError(SENTINEL)


async def _cancel(_event: Event) -> None:
    raise asyncio.CancelledError


def _future(_event: Event) -> Awaitable[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_exception(KeyError(SENTINEL))
    return future


def _answer(_event: Event) -> str:
    return SENTINEL


HOOKS: dict[str, tuple[Any, list[str]]] = {
    "raises": (_raise, ["audit hook failed: KeyError"]),
    "raises with faults": (_raise_boot, ["audit hook failed: BootError"]),
    "raises with a code": (_raise_coded, ["audit hook failed: E42"]),
    "raises later": (_raise_later, ["audit hook failed: KeyError"]),
    "answers a failed future": (_future, ["audit hook failed: KeyError"]),
    "is cancelled": (_cancel, []),
    "answers something": (_answer, []),
}


async def _twice(app: App) -> list[Outcome]:
    async with Open(app) as running:
        told = [await running.invoke(who, "send", {"to": SENTINEL}) for who in (CLERK, VISITOR)]
        await asyncio.sleep(0.01)
        return told


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_changes_no_answer_and_its_fault_is_logged_once(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    hook, complaints = HOOKS[name]
    clock_free = [type(each) for each in asyncio.run(_twice(World().app(on_audit=None)))]
    told = asyncio.run(_twice(World().app(on_audit=hook)))
    assert [type(each) for each in told] == clock_free
    assert lines(caplog, "nonsuch.audit-hook") == [
        (logging.ERROR, each) for each in complaints for _ in range(2)
    ]
    assert SENTINEL not in caplog.text


def test_a_hook_that_is_slow_is_kept_until_it_is_done() -> None:
    done: list[Event] = []

    async def slow(event: Event) -> None:
        await asyncio.sleep(0.001)
        done.append(event)

    asyncio.run(_twice(World().app(on_audit=slow)))
    assert len(done) == 2
