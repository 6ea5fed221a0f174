"""A lifespan that fails says in which phase, with and without a lifespan of the app's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from nonsuch import App, Registry, asgi, define_app_mcp
from nonsuch.adapters.edge import endpoints as edge

Lifespan = Callable[[], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def breaks_at_its_end() -> AsyncGenerator[None]:
    yield
    raise OSError("late")


@asynccontextmanager
async def breaks_at_once(_app: object, _when: object) -> AsyncGenerator[None]:
    raise OSError("early")
    yield


def app(lifespan: Lifespan | None = None) -> App:
    return define_app_mcp(Registry(), name="trial", resolve_token=lambda _token: None, lifespan=lifespan)


def phases(served: App) -> list[object]:
    sent: list[object] = []

    async def main() -> None:
        async def receive() -> dict[str, object]:
            return {"type": "lifespan.any"}

        async def send(message: object) -> None:
            sent.append(message)

        with pytest.raises(OSError, match=r"early|late"):
            await asgi(served)({"type": "lifespan"}, receive, send)

    asyncio.run(main())
    return sent


def test_what_fails_at_the_start_is_a_failed_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "reloading", breaks_at_once)
    assert phases(app()) == [{"type": "lifespan.startup.failed", "message": "OSError"}]


def test_what_fails_at_the_end_is_a_failed_shutdown() -> None:
    complete = {"type": "lifespan.startup.complete"}
    failed = {"type": "lifespan.shutdown.failed", "message": "OSError"}
    assert phases(app(breaks_at_its_end)) == [complete, failed]
