"""Lets a terminated process leave its `with` blocks, and hear of its end early. Knows not what they hold."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn


def _unwind(number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # a second one must not interrupt the shutdown
    raise SystemExit(128 + number)


@contextmanager
def signals_unwind() -> Generator[None]:
    """Turn signals that would kill us without cleanup into `SystemExit`; handlers of others stay."""
    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    for number in numbers:
        signal.signal(number, _unwind)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def foretold(tell: Callable[[], object]) -> Generator[None]:
    """Call ``tell`` in the running loop once SIGINT or SIGTERM arrives; whoever handles it still does.

    A server that stops waits for open connections first, and tells an application afterwards. A signal
    that nobody handles kills, and is left alone; so is a loop outside the main thread, which gets none.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    found = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    before = {each: handler for each, handler in found.items() if callable(handler)}

    def told(number: int, frame: FrameType | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell)
        before[signal.Signals(number)](number, frame)

    for each in before:
        signal.signal(each, told)
    try:
        yield
    finally:
        for each, handler in before.items():
            if signal.getsignal(each) is told:
                signal.signal(each, handler)
