"""Application code that raises what no handler should, and words that no surface could send."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from nonsuch import ActionError, App, Open, OpenSync, Principal, Registry, asgi, can, expose, grant
from nonsuch.kernel.audit import Event, ToolCall
from nonsuch.kernel.model import Failed, Hidden, Ok, Surface

from ..adapters.mcp.wire import Answer, Request, in_process
from ..kernel.trial import EDITOR, NOBODY, boot, faults

SECRET: Final = "s3ntinel"
HALF: Final = "\ud800"
HEADERS: Final = (
    ("Host", "localhost"),
    ("Authorization", "Bearer ed"),
    ("Content-Type", "application/json"),
    ("MCP-Protocol-Version", "2025-11-25"),
)
TOOL: Final[dict[str, Any]] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "act"}}
DOORS: Final[dict[Surface, tuple[str, bytes]]] = {
    "http": ("/api/act", b"{}"),
    "mcp": ("/mcp", json.dumps(TOOL).encode()),
}


class Odd(BaseException):
    """Neither an Exception nor one of Python's own."""


def grouped() -> BaseException:
    return BaseExceptionGroup(SECRET, [Odd(SECRET), ValueError(SECRET)])


RAISED: Final[dict[str, Callable[[], BaseException]]] = {
    "SystemExit": lambda: SystemExit(SECRET),
    "a BaseException": lambda: Odd(SECRET),
    "a BaseExceptionGroup": grouped,
    "its own CancelledError": lambda: asyncio.CancelledError(SECRET),
    "an Exception": lambda: ValueError(SECRET),
}


def editor(_token: str) -> Principal:
    return EDITOR


@dataclass
class Stage:
    """One action, plain or async, that does what it is given."""

    does: Callable[[], Any]
    is_async: bool = False
    path: str | None = None
    on_audit: Callable[[Event], object] = lambda _: None
    events: list[Event] = field(default_factory=list[Event])

    def app(self, **given: Any) -> App:
        return boot(
            self.registry(),
            grants=[grant("editor", "any")],
            resolve_token=editor,
            on_audit=self._note,
            **given,
        )

    def _note(self, event: Event) -> object:
        self.events.append(event)
        return self.on_audit(event)

    def registry(self) -> Registry:
        registry = Registry()
        does = self.does

        async def later() -> None:
            does()

        def act() -> None:
            does()

        later.__name__ = "act"
        handler: Callable[..., Any] = later if self.is_async else act
        declared = expose("Act", visible_to=["editor"])
        registry.action(policy=can("stage:act"), mcp=declared, path=self.path)(handler)
        return registry


def raising(fault: Callable[[], BaseException]) -> Callable[[], None]:
    def does() -> None:
        raise fault()

    return does


def failed(surface: Surface, code: str = "X_INTERNAL") -> ToolCall:
    return ToolCall("act", "failed", surface, "ed", "agent", code=code)


def asked(app: App, surface: Surface) -> Answer:
    path, body = DOORS[surface]
    return in_process(app, Request("POST", path, HEADERS, body))


# what handlers raise


@pytest.mark.parametrize("surface", DOORS)
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", RAISED)
def test_whatever_a_handler_raises_is_answered_and_audited(
    name: str, is_async: bool, surface: Surface, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(raising(RAISED[name]), is_async)
    with caplog.at_level(logging.DEBUG):
        answer = asked(stage.app(), surface)
    assert answer.status == (500 if surface == "http" else 200)
    assert b"X_INTERNAL" in answer.body
    assert stage.events == [failed(surface)]
    assert SECRET not in answer.body.decode() + caplog.text


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", RAISED)
def test_whatever_a_handler_raises_ends_no_synchronous_caller(
    name: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(raising(RAISED[name]), is_async)
    with caplog.at_level(logging.DEBUG), OpenSync(stage.app()) as running:
        told = [running.invoke(EDITOR, "act", {}) for _ in range(2)]
    assert [each.code for each in told if isinstance(each, Failed)] == ["X_INTERNAL"] * 2
    assert stage.events == [failed("agent")] * 2
    assert SECRET not in repr(told) + caplog.text


@pytest.mark.parametrize("is_async", [False, True])
def test_an_interrupt_from_the_keyboard_passes(is_async: bool) -> None:
    stage = Stage(raising(KeyboardInterrupt), is_async)
    with pytest.raises(KeyboardInterrupt):
        asked(stage.app(), "http")


# cancellation


@pytest.mark.parametrize("door", ["agent", "http"])
def test_a_cancelled_call_of_a_plain_handler_is_audited_as_interrupted(door: Surface) -> None:
    """The thread goes on: what it began may still take effect, and the audit says so."""
    began, free = threading.Event(), threading.Event()

    def does() -> None:
        began.set()
        free.wait(5)

    stage = Stage(does)

    async def main(app: App) -> None:
        async with Open(app) as running:
            work = running.invoke(EDITOR, "act", {}) if door == "agent" else served(app)
            task = asyncio.ensure_future(work)
            await asyncio.to_thread(began.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            free.set()

    asyncio.run(main(stage.app()))
    assert stage.events == [failed(door, "X_INTERRUPTED")]


async def served(app: App) -> None:
    """Send one request over ASGI, whose answer nobody waits for."""
    headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS]
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/api/act", "headers": headers}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(_message: Any) -> None:
        raise AssertionError("it was cancelled before it answered")

    await asgi(app)(scope, receive, send)


# what application errors say


ODD_WORDS: Final[dict[str, tuple[Any, Any, Any, Any]]] = {
    "numbers": (418, 1.5, 0, 7),
    "nothing": (None, None, None, None),
    "bytes and lists": (b"X_RAW", [1, 2], {"a": object()}, ()),
    "half a surrogate pair": (f"X_{HALF}", f"cause {HALF}", f"fix {HALF}", f"fix {HALF}"),
    "lines": ("X_A\r\nb", "a\r\nb", "a\x00b", "a\u2028b"),
}


@pytest.mark.parametrize("name", ODD_WORDS)
def test_an_application_error_of_odd_words_breaks_no_surface(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(raising(lambda: ActionError(*ODD_WORDS[name])))
    app = stage.app()
    with caplog.at_level(logging.DEBUG):
        over_http, over_mcp = asked(app, "http"), asked(app, "mcp")
        with OpenSync(app) as running:
            told = running.invoke(EDITOR, "act", {})
    assert isinstance(told, Failed)
    members = (told.code, told.cause, told.fix, told.caller_fix)
    assert [type(each) for each in members] == [str] * 4
    assert over_http.status == 409
    assert json.loads(over_http.body)["code"] == told.code
    assert json.loads(over_mcp.body)["result"]["isError"] is True
    assert stage.events == [failed(surface, told.code) for surface in ("http", "mcp", "agent")]
    lines = [each.getMessage() for each in caplog.records if each.name == "nonsuch.audit"]
    assert len(lines) == 3
    assert all(each.isascii() and each.isprintable() for each in lines)


class Bare(ActionError):
    """An application's own kind, which forgets the words."""

    def __init__(self) -> None:
        pass


def changed() -> ActionError:
    fault = ActionError("X_OWN", "cause", "fix")
    fault.cause = fault.caller_fix = HALF
    return fault


MADE_ODDLY: Final[dict[str, Callable[[], ActionError]]] = {"without words": Bare, "changed after": changed}


@pytest.mark.parametrize("surface", DOORS)
@pytest.mark.parametrize("name", MADE_ODDLY)
def test_an_application_error_that_skips_its_constructor_breaks_no_surface(
    name: str, surface: Surface
) -> None:
    stage = Stage(raising(MADE_ODDLY[name]))
    answer = asked(stage.app(), surface)
    assert answer.status == 200 if surface == "mcp" else answer.status in (409, 500)
    assert [each.outcome for each in stage.events if isinstance(each, ToolCall)] == ["failed"]


# audit


@pytest.mark.parametrize("name", [HALF, f"act{HALF}", f"\udc00{HALF}\n"])
def test_a_name_with_half_a_surrogate_pair_is_audited(name: str, caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(lambda: None)
    with caplog.at_level(logging.DEBUG), OpenSync(stage.app()) as running:
        assert running.invoke(EDITOR, name, {}) == Hidden(name)
    (line,) = [each.getMessage() for each in caplog.records if each.name == "nonsuch.audit"]
    assert line.isascii()
    assert line.isprintable()
    told = json.loads(line)
    assert (told["tool"], told["outcome"], told["declared"]) == (name, "hidden", False)
    assert len(stage.events) == 1


@pytest.mark.parametrize(("more", "declared"), [("", True), ("x", False), ("x" * 10_000, False)])
def test_a_declared_path_and_more_is_not_declared(more: str, declared: bool) -> None:
    """The name is cut for the line after it was looked up whole."""
    path = "p" * 128
    stage = Stage(lambda: None, path=path)
    with OpenSync(stage.app()) as running:
        running.invoke(NOBODY, path + more, {}, "http")
    event = ToolCall(path, "hidden", "http", "nobody", "agent", code="X_MCP_TOOL_UNKNOWN", declared=declared)
    assert stage.events == [event]


@pytest.mark.parametrize("fault", [asyncio.CancelledError, Odd])
def test_an_audit_hook_that_raises_anything_changes_nothing(
    fault: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_event: Event) -> None:
        raise fault(SECRET)

    stage = Stage(lambda: None, on_audit=refuse)
    app = stage.app()
    assert [asked(app, surface).status for surface in DOORS] == [200, 200]
    with OpenSync(app) as running:
        assert running.invoke(EDITOR, "act", {}) == Ok(b"null")
    assert len(stage.events) == 3
    assert SECRET not in caplog.text


# paths


@pytest.mark.parametrize("path", ["/api/mcp", "/api/", "/api", "api", "api/mcp/", "//api/mcp"])
def test_an_mcp_path_among_the_paths_of_actions_is_refused(path: str) -> None:
    assert [each.code for each in faults(Stage(lambda: None).registry(), path=path)] == [
        "X_DECLARATION_INVALID"
    ]


@pytest.mark.parametrize("path", ["/mcp", "/apis", "/mcp/api/"])
def test_an_mcp_path_elsewhere_boots(path: str) -> None:
    assert Stage(lambda: None).app(path=path).path == path.rstrip("/")
