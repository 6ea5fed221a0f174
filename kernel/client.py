"""The client of a request, as its handler sees it: somebody to tell and to ask, or nobody."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Final, Protocol, TypeVar

from .asks import Ask, Capability, Given, Level
from .codes import CODES
from .errors import ActionError
from .strict_json import Json

T = TypeVar("T")


class Client(Protocol):
    """The client of one request, as its handler sees it (``ctx.client``)."""

    @property
    def state(self) -> Json:
        """What an earlier round of this request gave as ``state``; ``None`` in the first."""
        ...

    def can(self, capability: Capability) -> bool:
        """Whether the client can be asked for this."""
        ...

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Say how far the work is. Nothing is sent to a client that did not ask, or for a step back."""
        ...

    async def log(self, level: Level, data: Json, logger: str | None = None) -> None:
        """Send a log message to a client that wants messages of this level."""
        ...

    async def ask(self, asks: Mapping[str, Ask], state: Any = None) -> Mapping[str, Given]:
        """Ask the client, and return its answers by key.

        In revision 2026-07-28 this ends the round, and the handler runs again from its start with the
        answers. Do what has effects after the last ask. Without ``state`` the handler must come to the
        same questions again: each is given the answer that it was given before, and the first one without
        an answer ends the next round. With ``state`` it finds that in ``ctx.client.state``, and the answers
        so far are forgotten but those to this question: what is still needed of them belongs into it.
        ``state`` is what JSON can hold. It and the answers are sealed against change, and the client can
        read them; 48 kB of them come back.

        Raises: ActionError, when nobody can be asked, nobody answers in time, or the client has left.
        """
        ...

    async def background(self) -> bool:
        """Let the call be answered with a task now, and go on behind that answer; say whether it does.

        Only a tool that declares ``asks_first`` need call this: what is asked before it is asked in
        rounds of the call, what is asked after it in the task. In a task ``progress`` tells how it is
        doing, and log messages go nowhere. A client that keeps no tasks waits on for the result.

        Raises: ActionError, when no more tasks are kept.
        """
        ...

    def wait(self, work: Awaitable[T]) -> T:
        """Wait for one of these in a plain function, which runs in a thread of its own."""
        ...


class Nobody:
    """The client of a call that has none: nothing is sent, and whoever asks is refused."""

    @property
    def state(self) -> Json:
        """Nothing."""
        return None

    def can(self, capability: Capability) -> bool:
        """Nobody can be asked."""
        return False

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Send nothing."""

    async def log(self, level: Level, data: Json, logger: str | None = None) -> None:
        """Send nothing."""

    async def ask(self, asks: Mapping[str, Ask], state: Any = None) -> Mapping[str, Given]:
        """Refuse.

        Raises: ActionError.
        """
        raise unasked()

    async def background(self) -> bool:
        """Nobody keeps tasks."""
        return False

    def wait(self, work: Awaitable[T]) -> T:
        """Finish what waits for nothing."""
        try:
            work.__await__().__next__()
        except StopIteration as done:
            value: T = done.value
            return value
        raise RuntimeError("without a client there is nothing to wait for")


def unasked() -> ActionError:
    """Return the refusal of a handler whose client cannot be asked."""
    told = CODES["X_MCP_CLIENT_SILENT"]
    return ActionError(told.code, told.cause, told.fix, told.caller_fix)


NOBODY: Final = Nobody()
