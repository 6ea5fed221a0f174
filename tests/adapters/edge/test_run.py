"""The enforcement point: handlers of every kind run for a Permit; every call ends in an event."""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from nonsuch import Agent, App, Open, OpenSync, Principal, RequestFacts
from nonsuch.adapters.edge.opening import Portal
from nonsuch.adapters.edge.run import Edge, Running, run, utc_now
from nonsuch.kernel.audit import AuthRefused, ToolCall
from nonsuch.kernel.model import Failed, Hidden, Ok, Outcome, PolicyDenied
from nonsuch.kernel.steps import (
    Audit,
    Raised,
    ReadBody,
    ResolveToken,
    Returned,
    Step,
    Steps,
    UnknownStep,
)

from .post_office import CLERK, NOW, PERSON, SENTINEL, VISITOR, World

FACTS = RequestFacts("127.0.0.1", None, None, "/mcp")
INTERNAL = Failed(
    "X_INTERNAL",
    "the action did not succeed",
    "read the server's log at the time of the call",
    "try again later, or tell the app's developer",
)


def invoked(world: World, who: Principal, name: str, to: str = "x", **given: Any) -> Outcome:
    async def main() -> Outcome:
        async with Open(world.app(**given), lambda: NOW) as running:
            return await asyncio.wait_for(running.invoke(who, name, {"to": to}), 2)

    return asyncio.run(main())


def sent(to: str, where: str, by: str = "clerk") -> Ok:
    return Ok(f'{{"to":"{to}","by":"{by}","at":"2026-01-02T03:04:05+00:00","where":"{where}"}}'.encode())


# handlers


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("send", sent("x/x/open", "loop")),
        ("send_sync", sent("x/x/open", "thread")),
        ("send_later", sent("x/None/open", "loop")),
    ],
)
def test_a_handler_of_each_kind_gets_its_input_and_the_whole_context(name: str, expected: Ok) -> None:
    world = World()
    assert invoked(world, CLERK, name) == expected
    assert world.events == [ToolCall(name, "ok", "agent", "clerk", "agent")]
    assert world.office.opened == ["open", "closed"]


def test_a_handler_without_parameters() -> None:
    async def main() -> Outcome:
        async with Open(World().app()) as running:
            return await running.invoke(CLERK, "nothing", {})

    assert asyncio.run(main()) == Ok(b"null")


@pytest.mark.parametrize("name", ["fail", "fail_sync"])
def test_a_handler_that_raises_is_an_outcome_and_its_message_is_logged_nowhere(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    with caplog.at_level(logging.DEBUG):
        assert invoked(world, CLERK, name) == INTERNAL
    assert world.events == [ToolCall(name, "failed", "agent", "clerk", "agent", code="X_INTERNAL")]
    (told,) = [record.getMessage() for record in caplog.records if record.name == "nonsuch.run"]
    assert told.startswith(f"{name} raised ValueError at ")
    assert "post_office.py:" in told
    assert SENTINEL not in caplog.text


def test_a_handler_that_stops_iterating_does_not_hang_its_caller() -> None:
    """`next(...)` of nothing, in a thread: asyncio cannot put a StopIteration into a future."""
    assert invoked(World(), CLERK, "stop") == INTERNAL


def test_an_application_error_is_no_accident(caplog: pytest.LogCaptureFixture) -> None:
    assert invoked(World(), CLERK, "late") == Failed("X_LATE", "too late", "raise the limit", "come earlier")
    assert [record for record in caplog.records if record.name == "nonsuch.run"] == []


def test_a_loader_that_raises_is_an_outcome() -> None:
    world = World()
    assert invoked(world, CLERK, "send", "raise") == INTERNAL
    assert world.events == [ToolCall("send", "failed", "agent", "clerk", "agent", code="X_INTERNAL")]


def test_a_loader_that_finds_nothing() -> None:
    outcome = invoked(World(), CLERK, "send", "nobody")
    assert isinstance(outcome, Failed)
    assert outcome.code == "X_NOT_FOUND"


def test_who_may_not_runs_nothing() -> None:
    world = World()
    outcome = invoked(world, VISITOR, "wait")
    assert isinstance(outcome, PolicyDenied)
    assert not world.started.is_set()
    assert [event.outcome for event in world.events if isinstance(event, ToolCall)] == ["policy-denied"]


@pytest.mark.parametrize(("surface", "name"), [("http", "letters/send"), ("mcp", "send"), ("agent", "send")])
def test_every_surface_is_one_entry(surface: Any, name: str) -> None:
    async def main(world: World) -> Outcome:
        async with Open(world.app(), lambda: NOW) as running:
            return await running.invoke(PERSON, name, {"to": "x"}, surface)

    world = World()
    assert asyncio.run(main(world)) == sent("x/x/open", "loop", "person")
    assert world.events == [ToolCall("send", "ok", surface, "person", "human")]


def test_an_unknown_name_is_hidden_and_audited() -> None:
    world = World()
    assert invoked(world, CLERK, "gone") == Hidden("gone")
    code = "X_MCP_TOOL_UNKNOWN"
    assert world.events == [ToolCall("gone", "hidden", "agent", "clerk", "agent", code=code, declared=False)]


def test_a_cancelled_call_is_audited_once_and_stays_cancelled() -> None:
    world = World()

    async def main() -> None:
        async with Open(world.app()) as running:
            task = asyncio.create_task(running.invoke(CLERK, "wait", {"to": "x"}))
            await world.started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelled()

    asyncio.run(main())
    assert world.events == [ToolCall("wait", "failed", "agent", "clerk", "agent", code="X_INTERRUPTED")]


def test_a_call_that_runs_out_of_time_is_audited() -> None:
    world = World()

    async def main() -> None:
        async with Open(world.app()) as running:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(running.invoke(CLERK, "wait", {"to": "x"}), 0.05)

    asyncio.run(main())
    assert [type(event) for event in world.events] == [ToolCall]


def test_events_are_recorded_by_the_app_clock(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "nonsuch.audit"):
        invoked(World(), CLERK, "send")
    (line,) = [record.getMessage() for record in caplog.records if record.name == "nonsuch.audit"]
    assert line.startswith('{"at":"2026-01-02T03:04:05+00:00",')


def test_the_wall_clock_is_aware() -> None:
    before = datetime.now(UTC)
    assert before <= utc_now() <= datetime.now(UTC)
    assert utc_now().utcoffset() is not None


# the driver


def answered(app: App, step: Step, read: Any = None) -> Any:
    return asyncio.run(Edge(Running(app), read).answer(step))


def test_a_step_that_nobody_knows_is_refused() -> None:
    class Odd:
        pass

    told = answered(World().app(), cast("Step", Odd()))
    assert isinstance(told, Raised)
    assert isinstance(told.error, UnknownStep)
    assert told.error.args == ("Odd",)


def test_a_body_is_read_only_where_there_is_one() -> None:
    async def read(limit: int) -> bytes:
        return b"x" * limit

    assert answered(World().app(), ReadBody(3), read) == Returned(b"xxx")
    told = answered(World().app(), ReadBody(3))
    assert isinstance(told, Raised)
    assert isinstance(told.error, UnknownStep)


def test_audit_events_wait_for_the_flush() -> None:
    world = World()
    event = AuthRefused("no-token", 401, None, "/mcp")

    async def main() -> None:
        edge = Edge(Running(world.app()))
        assert await edge.answer(Audit(event)) == Returned(None)
        assert (world.events, edge.events) == ([], [event])
        edge.flush()
        edge.flush()
        assert edge.events == []

    asyncio.run(main())
    assert world.events == [event]


class Boom(BaseException):
    """Neither an error of the application nor a cancellation."""


def test_a_generator_that_is_stopped_may_still_audit_and_nothing_else() -> None:
    world = World()
    event = AuthRefused("no-token", 401, None, "/mcp")
    seen: list[object] = []

    async def read(_limit: int) -> bytes:
        raise Boom

    def steps() -> Steps[None]:
        seen.append((yield ReadBody(1)))
        seen.append((yield Audit(event)))
        seen.append((yield Audit(event)))
        seen.append((yield ReadBody(1)))
        raise AssertionError("closed before this")

    async def main() -> None:
        edge = Edge(Running(world.app()), read)
        with pytest.raises(Boom):
            await run(steps(), edge)
        edge.flush()

    asyncio.run(main())
    assert isinstance(seen[0], Raised)
    assert isinstance(seen[0].error, Boom)
    assert seen[1:] == [Returned(None), Returned(None)]
    assert world.events == [event, event]


def test_a_generator_that_returns_at_once() -> None:
    def steps() -> Steps[int]:
        return 5
        yield ReadBody(1)

    assert asyncio.run(run(steps(), Edge(Running(World().app())))) == 5


# token resolvers


def resolved(resolver: Any, token: str = "t") -> Any:  # noqa: S107  (made up)
    return answered(World().app(resolve_token=resolver), ResolveToken(token, FACTS))


async def _async_two(token: str, facts: RequestFacts) -> Agent:
    await asyncio.sleep(0)
    return Agent(f"{token} {facts.path}")


async def _async_one(token: str) -> Agent:
    await asyncio.sleep(0)
    return Agent(token)


def _sync_two(token: str, facts: RequestFacts) -> Agent:
    return Agent(f"{token} {facts.path}")


def _sync_one(token: str) -> Agent:
    return Agent(token)


def _variadic(*arguments: Any) -> Agent:
    return Agent(f"{arguments[0]} {arguments[1].path}")


def _defaulted(token: str, facts: RequestFacts | None = None) -> Agent:
    return Agent(f"{token} {facts.path if facts is not None else None}")


def _keyword(token: str, *, cache: bool = True) -> Agent:
    return Agent(f"{token} {cache}")


class _Resolver:
    def __call__(self, token: str) -> Agent:
        return Agent(token)

    def method(self, token: str, facts: RequestFacts) -> Agent:
        return Agent(f"{token} {facts.path}")


RESOLVERS: dict[str, tuple[Any, str]] = {
    "async, two arguments": (_async_two, "t /mcp"),
    "async, one argument": (_async_one, "t"),
    "two arguments": (_sync_two, "t /mcp"),
    "one argument": (_sync_one, "t"),
    "any arguments": (_variadic, "t /mcp"),
    "a default": (_defaulted, "t /mcp"),
    "a keyword": (_keyword, "t True"),
    "an object": (_Resolver(), "t"),
    "a method": (_Resolver().method, "t /mcp"),
}


@pytest.mark.parametrize("name", RESOLVERS)
def test_a_resolver_of_each_kind(name: str) -> None:
    resolver, expected = RESOLVERS[name]
    assert resolved(resolver) == Returned(Agent(expected))


def test_no_resolver_lets_nobody_in() -> None:
    assert resolved(None) == Returned(None)


def test_a_resolver_that_raises_is_logged_without_its_message(caplog: pytest.LogCaptureFixture) -> None:
    def raising(token: str) -> Agent:
        raise KeyError(token)

    told = resolved(raising, SENTINEL)
    assert isinstance(told, Raised)
    assert isinstance(told.error, KeyError)
    assert caplog.messages[0].split(" at ")[0].endswith("raised KeyError")
    assert SENTINEL not in caplog.text


def test_a_resolver_that_builds_no_principal_is_a_resolver_that_raises() -> None:
    def resolver(_token: str) -> Agent:
        return Agent("a", roles="admin")

    told = resolved(resolver)
    assert isinstance(told, Raised)


# lifespan


def test_without_a_lifespan_there_are_no_resources() -> None:
    async def main() -> tuple[object, bool | None]:
        opened = Open(World().app(lifespan=None))
        async with opened as running:
            held = running.resources
        return held, await opened.__aexit__(None, None, None)

    assert asyncio.run(main()) == (None, None)


def test_a_lifespan_is_left_when_the_app_is_left_in_anger() -> None:
    world = World()

    async def main() -> None:
        async with Open(world.app()):
            raise Boom

    with pytest.raises(Boom):
        asyncio.run(main())
    assert world.office.opened == ["open", "closed"]


def test_a_lifespan_that_fails_is_raised() -> None:
    before = portals()

    @asynccontextmanager
    async def failing() -> AsyncGenerator[None]:
        raise OSError("no database")
        yield

    with pytest.raises(OSError, match="no database"), OpenSync(World().app(lifespan=failing)):
        raise AssertionError("not reached")
    assert portals() == before


# without an event loop


def portals() -> set[int | None]:
    """The threads that run an event loop of ours."""
    return {thread.ident for thread in threading.enumerate() if thread.name == "nonsuch-portal"}


def test_callers_without_a_loop_call_from_several_threads() -> None:
    world = World()
    with OpenSync(world.app(), lambda: NOW) as running, ThreadPoolExecutor(8) as threads:
        names = ["send", "send_sync", "send_later"] * 8
        calls = [threads.submit(running.invoke, CLERK, name, {"to": "x"}) for name in names]
        told = [call.result() for call in calls]
    resources = {"send": "x", "send_sync": "x", "send_later": "None"}
    assert told == [sent(f"x/{resources[name]}/open", "thread") for name in names]
    assert len(world.events) == 24
    assert world.office.opened == ["open", "closed"]


def test_a_synchronous_app_leaves_its_lifespan_and_its_thread_in_anger() -> None:
    world, before = World(), portals()
    with pytest.raises(Boom), OpenSync(world.app()):
        raise Boom
    assert world.office.opened == ["open", "closed"]
    assert portals() == before


def test_a_lifespan_whose_end_fails_still_ends_the_thread() -> None:
    before = portals()

    @asynccontextmanager
    async def failing() -> AsyncGenerator[None]:
        yield None
        raise OSError("already gone")

    with pytest.raises(OSError, match="already gone"), OpenSync(World().app(lifespan=failing)):
        pass
    assert portals() == before


def test_a_portal_runs_coroutines_elsewhere() -> None:
    async def where() -> str:
        return threading.current_thread().name

    with Portal() as portal:
        assert portal.call(where()) == "nonsuch-portal"
