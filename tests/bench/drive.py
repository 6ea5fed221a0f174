"""An ASGI application driven in memory: one request in, one checked body out; it knows no subject."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

from . import wire
from .load import BadAnswer


class Drive:
    """An ASGI application in memory: one request in, one checked body out."""

    def __init__(self, app: wire.Asgi) -> None:
        self._app = app

    async def ask(self, request: wire.Request) -> bytes:
        """The body of the answer. Raises `BadAnswer` for any answer but the expected one."""
        status, body = await self._answer(request)
        if status != 200 or request.marker not in body:
            raise BadAnswer(f"not a good answer: {status} `{body[:600]!r}`")
        return body

    async def passes(self, request: wire.Request) -> bool:
        """Whether the handler ran."""
        return request.marker in (await self._answer(request))[1]

    async def _answer(self, request: wire.Request) -> tuple[int, bytes]:
        sent: list[wire.Message] = []
        waiting = [{"type": "http.request", "body": request.body, "more_body": False}]

        async def receive() -> wire.Message:
            if waiting:
                return waiting.pop()
            await asyncio.Event().wait()
            raise AssertionError("an event nobody sets was set")

        async def send(message: wire.Message) -> None:
            sent.append(message)

        await self._app(request.scope(), receive, send)
        body = b"".join(cast(bytes, message.get("body", b"")) for message in sent[1:])
        return cast(int, sent[0]["status"]), body

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """The application started, and ended on leaving."""
        to_app: asyncio.Queue[wire.Message] = asyncio.Queue()
        from_app: asyncio.Queue[wire.Message] = asyncio.Queue()
        scope: wire.Message = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": {},
        }
        task = asyncio.ensure_future(self._app(scope, to_app.get, from_app.put))
        await to_app.put({"type": "lifespan.startup"})
        started = await from_app.get()
        if started["type"] != "lifespan.startup.complete":
            raise RuntimeError(f"did not start: {started}")
        yield
        await to_app.put({"type": "lifespan.shutdown"})
        await task
