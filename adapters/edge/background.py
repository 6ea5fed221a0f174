"""The event loop of apps in a thread of its own: begun when first needed, in the process that needs it.

Knows neither what is run there nor who asks.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final
from weakref import WeakSet

from .app import App
from .endpoints import hush, opened
from .reload import When
from .run import Clock, Running

Work = Callable[[Running], Coroutine[Any, Any, None]]

log: Final = logging.getLogger("nonsuch.run")
GRACE_SECONDS: Final = 2.0
MAX_THREADS: Final = 4_096  # as many plain handlers as their callers have threads; made when needed


class Background:
    """Apps that run behind callers without an event loop. Its methods may be called from any thread."""

    def __init__(self, apps: tuple[App, ...], clock: Clock, reload: When | None) -> None:
        self._apps, self._clock = apps, clock
        self._reload: When | None = reload
        self._lock = threading.Lock()
        self._life: _Life | None = None
        _all.add(self)

    def begin(self, app: App, work: Work) -> None:
        """Run a piece of work with one of the apps on the loop; the first one enters all lifespans.

        Raises: whatever entering the lifespan raises; the next piece of work tries again.
        """
        with self._lock:
            if self._life is None:
                self._life = _entered(_Life(self._apps, self._clock, self._reload))
                _close_with_process()
            self._life.begin(app, work)

    def close(self) -> None:
        """Give what runs a moment to end, cancel the rest, and leave the lifespan; work begins it anew."""
        with self._lock:
            life, self._life = self._life, None
            if life is not None:
                life.end()

    def forget(self) -> None:
        """Be as new in a forked process, which has none of its parent's threads."""
        if self._life is not None:
            _inherited.append(self._life)
        self._lock, self._life = threading.Lock(), None


class _Life:
    """One pass through the lifespan of the apps."""

    def __init__(self, apps: tuple[App, ...], clock: Clock, reload: When | None) -> None:
        self.entered = Future[None]()
        self._apps, self._clock = apps, clock
        self._reload: When | None = reload
        self._tasks: set[asyncio.Task[None]] = set()
        self.thread = threading.Thread(target=self._run, name="nonsuch-loop", daemon=True)

    def begin(self, app: App, work: Work) -> None:
        """Start a task from another thread."""
        self._loop.call_soon_threadsafe(self._start, app, work)

    def end(self) -> None:
        """End all of it, and wait. What was begun before is started before."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self.thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as fault:
            if self.entered.done():
                log.exception("the lifespan of `%s` failed", self._apps[0].name)
            else:
                self.entered.set_exception(fault)

    async def _main(self) -> None:
        """Enter and leave in one task: some context managers insist on it."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_default_executor(ThreadPoolExecutor(MAX_THREADS, "nonsuch-handler"))
        async with opened(self._apps, self._clock, self._reload) as self._running:
            self.entered.set_result(None)
            await self._stop.wait()
            hush(self._apps)
            await self._settle()

    def _start(self, app: App, work: Work) -> None:
        task = self._loop.create_task(work(self._running[app]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self) -> None:
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=GRACE_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


def _entered(life: _Life) -> _Life:
    life.thread.start()
    life.entered.result()
    return life


_all: Final[WeakSet[Background]] = WeakSet()
_inherited: Final[list[_Life]] = []  # never let go: closing a copied loop reaches into its parent's selector


def _forget() -> None:
    for each in _all:
        each.forget()


@atexit.register
def _close() -> None:
    for each in list(_all):
        each.close()


def _close_with_process() -> None:
    """What multiprocessing starts ends without what is registered at exit, and runs a list of its own."""
    if "multiprocessing" not in sys.modules:
        return
    from multiprocessing import parent_process
    from multiprocessing.util import Finalize

    if parent_process() is not None:
        Finalize(None, _close, exitpriority=0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
