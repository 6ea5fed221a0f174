"""Counting in one process: exact under any number at once, bounded, and what was used most is kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch import MemoryRateStore, Rate, RateStore, Verdict
from nonsuch.kernel.meter import NS, take

RATE = Rate(10)


def now(work: Awaitable[Verdict]) -> Verdict:
    """The answer of a store that does not wait."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as done:
        return cast("Verdict", done.value)
    raise AssertionError("the store waits for something")


def test_of_a_thousand_callers_at_once_ten_pass() -> None:
    store = MemoryRateStore()

    async def scene() -> list[Verdict]:
        return list(await asyncio.gather(*(store.take("k", RATE, 1) for _ in range(1_000))))

    assert sum(verdict.passes for verdict in asyncio.run(scene())) == 10


def test_of_a_thousand_callers_in_threads_ten_pass() -> None:
    store, passed = MemoryRateStore(), list[bool]()
    ready = threading.Barrier(20)

    def caller() -> None:
        ready.wait()
        passed.extend([now(store.take("k", RATE, 1)).passes for _ in range(50)])

    threads = [threading.Thread(target=caller) for _ in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (len(passed), passed.count(True)) == (1_000, 10)


moves = st.lists(
    st.tuples(st.integers(0, 9 * NS), st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=80
)


@given(moves)
def test_a_store_is_a_bucket_for_each_key(trace: list[tuple[int, str, int]]) -> None:
    at, rate, held = [0], Rate(3, 9), dict[str, int]()
    store: RateStore = MemoryRateStore(lambda: at[0], max_keys=3)
    for move, key, count in trace:
        at[0] += move
        held[key], verdict = take(held.get(key), at[0], rate, count=count)
        assert now(store.take(key, rate, count)) == verdict


def test_looking_takes_no_room_and_neither_does_what_is_full_again() -> None:
    at = [0]
    store = MemoryRateStore(lambda: at[0], max_keys=5)
    for number in range(50):
        now(store.take(f"looked {number}", RATE, 0))
    assert len(store) == 0
    for number in range(50):
        at[0] += RATE.interval * 2
        now(store.take(f"took {number}", RATE, 1))
        assert len(store) <= 5


def test_what_is_full_again_is_forgotten_long_before_the_room_is_used_up() -> None:
    """Callers from ever new addresses: what they leave behind is no more than twice what is in use."""
    at, most = [0], 0
    store = MemoryRateStore(lambda: at[0])
    for number in range(20_000):
        at[0] += RATE.interval // 1_000
        now(store.take(f"k{number}", RATE, 1))
        most = max(most, len(store))
    assert most <= 2_048


def test_a_walk_of_keys_stays_in_its_room_and_frees_nobody_who_spent_everything() -> None:
    """Or whoever is over the rate would call from many addresses, and be forgotten."""
    store = MemoryRateStore(lambda: 10**9, max_keys=100)
    assert now(store.take("spender", RATE, 10)).passes
    for number in range(10_000):
        assert now(store.take(f"walker {number}", RATE, 1)).passes
        assert len(store) <= 100
    assert not now(store.take("spender", RATE, 1)).passes


@pytest.mark.parametrize("keys", [1, 2, 3])
def test_a_small_store_holds_what_it_says(keys: int) -> None:
    store = MemoryRateStore(lambda: 0, max_keys=keys)
    for number in range(20):
        now(store.take(f"k{number}", RATE, 1))
        assert 1 <= len(store) <= keys


def test_a_store_for_nothing_is_none() -> None:
    with pytest.raises(ValueError, match="one bucket or more"):
        MemoryRateStore(max_keys=0)
