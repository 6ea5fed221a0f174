"""What an app says while it runs: counted, remembered for who was away, and heard by everyone who waits."""

from __future__ import annotations

import asyncio

import pytest

from nonsuch.adapters.edge.changes import REMEMBERED, Changes
from nonsuch.kernel.steps import Change


def test_what_was_said_is_told_to_who_was_away() -> None:
    changes = Changes()
    assert changes.since(0) == Change(1, frozenset())
    assert changes.since(1) is None
    changes.lists_changed()
    assert changes.since(1) == Change(2, frozenset())
    changes.resource_updated("a:b")
    changes.resource_updated("a:c")
    changes.resource_updated("a:b")
    assert changes.since(2) == Change(5, frozenset({"a:b", "a:c"}))
    assert changes.since(3) == Change(5, frozenset({"a:b", "a:c"}))
    assert changes.since(4) == Change(5, frozenset({"a:b"}))
    assert changes.since(5) is None


def test_only_so_many_updates_are_remembered() -> None:
    changes = Changes()
    for at in range(REMEMBERED + 1):
        changes.resource_updated(f"a:{at}")
    told = changes.since(0)
    assert told is not None
    assert len(told.uris) == REMEMBERED
    assert "a:0" not in told.uris


def test_who_waits_is_woken_and_who_waits_too_long_is_told_nothing() -> None:
    async def scene() -> None:
        changes = Changes()
        waiting = [asyncio.create_task(changes.wait(1, 5)) for _ in range(3)]
        await asyncio.sleep(0.01)
        await asyncio.to_thread(changes.resource_updated, "a:b")
        assert await asyncio.gather(*waiting) == [Change(2, frozenset({"a:b"}))] * 3
        assert await changes.wait(2, 0.01) is None
        assert await changes.wait(1, 5) == Change(2, frozenset({"a:b"}))
        assert vars(changes)["_waiting"] == {}

    asyncio.run(scene())


def test_a_server_that_stops_wakes_everyone_with_nothing() -> None:
    async def scene() -> None:
        changes = Changes()
        waiting = asyncio.create_task(changes.wait(1, 5))
        await asyncio.sleep(0.01)
        changes.close()
        assert (await waiting, changes.closed) == (None, True)
        assert await changes.wait(1, 5) is None
        changes.reopen()
        assert not changes.closed
        assert await changes.wait(1, 0.01) is None

    asyncio.run(scene())


def test_who_gives_up_waits_no_longer() -> None:
    async def scene() -> None:
        changes = Changes()
        waiting = asyncio.create_task(changes.wait(1, 5))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert vars(changes)["_waiting"] == {}
        changes.lists_changed()

    asyncio.run(scene())
