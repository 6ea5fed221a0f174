"""Reloads gone wrong: half a set, slow handlers in the way, a folder that nobody may read."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nonsuch import App, BootError, Registry, can, expose, reload_policies
from nonsuch.adapters.edge import reload
from nonsuch.adapters.edge.policies import fingerprint
from nonsuch.adapters.edge.reload import Reloaded, When, reloading

from ..kernel.trial import boot, folder

PATIENCE = 10.0
ACTION = 'action in Action::"post:publish"'
PERMIT = f'@id("open") permit (principal, {ACTION}, resource);\n'
FORBID = f'@id("frozen") forbid (principal, {ACTION}, resource);\n'


def publish() -> str:
    return "done"


def press(policies_dir: Path) -> App:
    registry = Registry()
    registry.action(policy=can("post:publish"), mcp=expose("Publish"))(publish)
    return boot(registry, roles=["editor"], policies_dir=policies_dir)


def ids(app: App) -> set[str]:
    return set(app.kernel.judge.annotations)


async def until(done: Callable[[], bool]) -> bool:
    """Wait until something holds, while the event loop goes on."""
    end = asyncio.get_running_loop().time() + PATIENCE
    while not done() and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110  (a judge offers no event)
        await asyncio.sleep(0.005)
    return done()


def test_a_set_that_is_half_written_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The permit is there at one look, the forbid that belongs to it at the next."""
    app = press(folder(tmp_path, own=FORBID))
    steps = iter([PERMIT, PERMIT + FORBID])
    taken: list[set[str]] = []

    def look(directory: Path | None) -> Any:
        text = next(steps, None)
        if text is not None:
            folder(tmp_path, own=text)
        return fingerprint(directory)

    def reloaded(each: App) -> Reloaded:
        told = reload_policies(each)
        taken.append(ids(each))
        return told

    monkeypatch.setattr(reload, "WATCH_SECONDS", 0.02)
    monkeypatch.setattr(reload, "fingerprint", look)
    monkeypatch.setattr(reload, "reload_policies", reloaded)

    async def main() -> None:
        async with reloading(app, "watch"):
            assert await until(lambda: {"open", "frozen"} in taken)

    asyncio.run(main())
    assert taken == [{"open", "frozen"}]


@pytest.mark.parametrize("when", ["watch", "signal"])
def test_a_reload_does_not_wait_for_slow_handlers(
    when: When, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every thread that runs handlers is busy, as after calls of slow ones."""
    app = press(folder(tmp_path, own=PERMIT))
    monkeypatch.setattr(reload, "WATCH_SECONDS", 0.02)
    free = threading.Event()

    async def main() -> bool:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        slow = asyncio.create_task(asyncio.to_thread(free.wait, 2))
        await asyncio.sleep(0)
        async with reloading(app, when):
            folder(tmp_path, own=PERMIT + FORBID)
            if when == "signal":
                os.kill(os.getpid(), signal.SIGHUP)
            taken = await until(lambda: "frozen" in ids(app) or slow.done())
            taken = taken and not slow.done()
            free.set()
            await slow
            return taken

    assert asyncio.run(main())


def unreadable(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody list a directory: tests run as root, whom the system refuses nothing."""
    listed: Any = os.scandir

    def scandir(path: Any = ".") -> Any:
        if Path(path) == at:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)


def sets_below(tmp_path: Path) -> Path:
    """A permit above, and below it the folder with the forbid."""
    below = tmp_path / "below"
    below.mkdir()
    folder(tmp_path, own=PERMIT)
    folder(below, frozen=FORBID)
    return below


def test_a_folder_that_cannot_be_read_keeps_an_app_from_booting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = sets_below(tmp_path)
    assert ids(press(tmp_path)) == {"open", "frozen"}
    unreadable(below, monkeypatch)
    with pytest.raises(BootError) as caught:
        press(tmp_path)
    (told,) = caught.value.faults
    assert (told.code, told.cause) == ("X_POLICY_UNREADABLE", f"`{below}` may not be read by this process")


def test_a_folder_that_cannot_be_read_any_more_keeps_the_old_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = sets_below(tmp_path)
    app = press(tmp_path)
    unreadable(below, monkeypatch)
    assert [each.code for each in reload_policies(app).faults] == ["X_POLICY_UNREADABLE"]
    assert ids(app) == {"open", "frozen"}
