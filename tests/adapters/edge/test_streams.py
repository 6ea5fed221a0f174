"""How many streams wait at once: exactly as many as the limits say, whoever asks and however they end."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch import StreamLimits
from nonsuch.adapters.edge.streams import Streams


@pytest.mark.parametrize("wrong", [{"per_principal": 0}, {"in_all": -1}, {"resources": 0}])
def test_a_limit_that_lets_nothing_through_is_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        StreamLimits(**wrong)


MOVES = st.lists(st.tuples(st.sampled_from(["take", "give"]), st.sampled_from("abc")), max_size=60)


@given(MOVES, st.integers(1, 3), st.integers(1, 5))
def test_what_is_taken_is_what_is_given_back_and_never_more_than_there_may_be(
    moves: list[tuple[str, str]], each: int, in_all: int
) -> None:
    streams, held = Streams(StreamLimits(per_principal=each, in_all=in_all)), Counter[str]()
    for move, owner in moves:
        if move == "give":
            if held[owner]:
                held[owner] -= 1
                streams.give(owner)
        else:
            may = held[owner] < each and held.total() < in_all
            assert streams.take(owner) is may
            held[owner] += may


def test_many_threads_at_once_take_exactly_as_many_as_there_are() -> None:
    streams, gate = Streams(StreamLimits(per_principal=7, in_all=10)), threading.Barrier(8)

    def take(owner: str) -> int:
        gate.wait()
        return sum(streams.take(owner) for _ in range(500))

    with ThreadPoolExecutor(8) as threads:
        first = sum(threads.map(take, ["a"] * 8))
        others = sum(threads.map(take, ["b"] * 8))
    assert (first, others) == (7, 3)
    for owner, count in (("a", 7), ("b", 3)):
        for _ in range(count):
            streams.give(owner)
    assert vars(streams)["_open"] == {}, "nobody is remembered who has none open"
    assert streams.take("c")
