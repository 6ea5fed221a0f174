"""Policies anew while the app runs: all of them or none, and the reasons when none.

A request under way keeps the judge it began with; the next one has the new judge and none of the
old one's memos.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal, assert_never

from ...kernel.errors import BootError, Fault, fault
from .app import App, judge_from
from .memory import give_back
from .policies import fingerprint

log: Final = logging.getLogger("nonsuch.policies")
WATCH_SECONDS: Final = 0.5
When = Literal["signal", "watch"]


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What came of a reload: with faults the old policies stay in force."""

    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...]

    @property
    def taken(self) -> bool:
        """Whether the new policies are in force."""
        return not self.faults


_one_at_a_time: Final = threading.Lock()
_aside: Final = ThreadPoolExecutor(1, "nonsuch-reload")  # never behind the handlers of slow callers


def reload_policies(app: App) -> Reloaded:
    """Read every policy source of an app again and swap the whole set, or keep the old one and say why.

    May be called from any thread; blocks while it reads.
    """
    with _one_at_a_time:
        try:
            judge, warnings = judge_from(app.kernel.catalog, app.sources())
        except BootError as refusal:
            return _kept(refusal.faults)
        except Exception as bug:  # noqa: BLE001  (whatever is wrong, the policies in force stay in force)
            return _kept((fault("X_POLICY_SOURCE_FAILED", f"the reload raised {type(bug).__name__}"),))
        app.kernel.swap(judge, warnings)
        give_back()
    app.notify.lists_changed()
    for warning in warnings:
        log.warning("%s", warning)
    log.info("policies reloaded")
    return Reloaded((), warnings)


def _kept(faults: tuple[Fault, ...]) -> Reloaded:
    for each in faults:
        log.error("policies kept as they were: %s", each)
    return Reloaded(faults, ())


@contextlib.asynccontextmanager
async def reloading(served: App | Sequence[App], when: When | None) -> AsyncGenerator[None]:
    """Reload on SIGHUP (``signal``), or when a file of ``policies_dir`` changes (``watch``)."""
    apps = (served,) if isinstance(served, App) else tuple(served)
    if when is None:
        yield
    elif when == "signal":
        with _on_hangup(apps):
            yield
    elif when == "watch":
        tasks = [asyncio.create_task(_watch(app)) for app in apps]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
    else:
        assert_never(when)


@contextlib.contextmanager
def _on_hangup(apps: tuple[App, ...]) -> Generator[None]:
    """Take SIGHUP over while the apps are served; a reload runs off the event loop."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Future[Reloaded]] = set()

    def reload() -> None:
        for app in apps:
            task = loop.run_in_executor(_aside, reload_policies, app)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    before = signal.getsignal(signal.SIGHUP)
    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        signal.signal(signal.SIGHUP, before)


async def _watch(app: App) -> None:
    """Reload when the files have changed and then stayed the same: an editor may write in several steps."""
    loop, taken, seen = asyncio.get_running_loop(), app.fingerprint, app.fingerprint
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        before, seen = seen, await loop.run_in_executor(_aside, fingerprint, app.policies_dir)
        if seen != taken and seen == before:
            taken = seen
            await loop.run_in_executor(_aside, reload_policies, app)
