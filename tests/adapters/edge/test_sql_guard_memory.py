"""What a guard remembers of texts is what it would tell anew, and there is not much of it."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import tracemalloc
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.adapters.edge import sql_guard, sql_parse
from nonsuch.adapters.edge.sql_guard import LONGEST, PIECES, TEXTS, Guard, facts_of_async, guard
from nonsuch.kernel import cedar, sql_verdict
from nonsuch.kernel.cedar_text import Uid
from nonsuch.kernel.compile import PolicySource
from nonsuch.kernel.sql_catalog import Own

READ: Final = "SELECT id FROM orders"
ONCE: Final = guard()
SPEAKS: Final = (
    *(READ, "SELECT pg_sleep(1)", "DELETE FROM orders", "SELECT 1; SELECT 2", "x", "", "\0", "SELECT 'é'"),
    *("SELECT * FROM secrets", "SELECT a.b FROM lower('x') a", "EXPLAIN ANALYZE SELECT 1", "\ud800"),
    *("SELECT id FROM orders -- again", "select id from orders", None, 7, b"SELECT 1", "SELECT 1 " * 500),
)


def fresh(of: Guard = ONCE) -> Guard:
    """The same guard, without a memory."""
    return Guard(of.catalogue, of.policies, of.own)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The texts that are read from now on."""
    seen: list[object] = []
    real, later = sql_parse.facts_of, sql_parse.facts_of_async

    def read(text: object, *given: Any) -> Any:
        seen.append(text)
        return real(text, *given)

    async def read_async(text: object, *given: Any) -> Any:
        seen.append(text)
        return await later(text, *given)

    monkeypatch.setattr(sql_parse, "facts_of", read)
    monkeypatch.setattr(sql_parse, "facts_of_async", read_async)
    return seen


@given(st.lists(st.sampled_from(SPEAKS), max_size=12))
def test_what_is_remembered_is_what_would_be_told_anew(texts: list[object]) -> None:
    asked = fresh()
    for text in texts:
        assert asked.judge(text) == fresh().judge(text) == asyncio.run(asked.judge_async(text))


def test_a_text_is_read_once_through_every_door(readings: list[object]) -> None:
    asked = fresh()
    told = asked.judge(READ)
    assert asyncio.run(asked.judge_async(READ)) == asked.judge(READ) == told
    assert asyncio.run(facts_of_async(READ, asked)) is told.facts
    assert readings == [READ]


def test_another_guard_remembers_nothing_of_it(readings: list[object]) -> None:
    asked = fresh()
    asked.judge("SELECT f(1)")
    lenient = dataclasses.replace(asked, own=Own(functions=frozenset({"public.f"})))
    policies = sql_guard.guard(
        more=(
            PolicySource("app.cedar", '@id("n") forbid (principal, action == Action::"db.query", resource);'),
        )
    ).policies
    strict = dataclasses.replace(asked, policies=policies)
    assert [each.judge("SELECT f(1)").verdict.allow for each in (asked, lenient, strict)] == [
        False,
        True,
        False,
    ]
    assert [each.judge("SELECT 1").verdict.allow for each in (asked, lenient, strict)] == [True, True, False]
    assert readings == ["SELECT f(1)"] * 3 + ["SELECT 1"] * 3


def test_only_the_texts_that_came_last_are_remembered(readings: list[object]) -> None:
    asked = fresh()
    texts = [f"SELECT {each}" for each in range(TEXTS + 1)]
    for text in (*texts, *texts[1:]):
        asked.judge(text)
    assert readings == texts
    asked.judge(texts[0])
    assert readings == [*texts, texts[0]]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT '" + "x" * LONGEST + "'",
        "SELECT " + ", ".join(["1 + 1"] * (PIECES + 1)),
        "SELECT id FROM " + ", ".join(["t"] * (PIECES + 1)),  # noqa: S608  (for a test)
    ],
    ids=["long", "operators", "relations"],
)
def test_what_is_large_is_not_remembered(readings: list[object], text: str) -> None:
    asked = fresh()
    assert asked.judge(text).verdict == asked.judge(text).verdict
    assert readings == [text, text]


def test_what_cannot_be_read_now_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fresh()

    def broken(*given: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(sql_parse, "facts_of", broken)
        with pytest.raises(RuntimeError, match="can't start"):
            asked.judge(READ)
    assert asked.judge(READ).verdict.allow


DENSE: Final = (
    "SELECT a=a" + ",a=a" * (PIECES - 1),
    "SELECT id FROM t" + ",t" * (PIECES - 1),
    "SELECT " + ",".join(f"c{each}" for each in range(340)) + " FROM t,u,v",  # noqa: S608  (for a test)
    "SELECT " + ",".join(f"f{each}(1)" for each in range(60)),
)


def test_the_memory_is_bounded_in_bytes() -> None:
    """Of texts that have the most in them: what all of them together hold is what so many of the worst do."""
    for dense in DENSE:
        asked, few = fresh(), 8
        gc.collect()
        tracemalloc.start()
        for number in range(few):
            text = f"{dense} -- {number}"
            assert len(text) <= LONGEST
            asked.judge(text)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held / few < 128 * 1024, (dense[:20], held / few)


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The contexts that a decision is made on from now on."""
    seen: list[str] = []
    real = cedar.decide

    def decide(who: Uid, action: str, on: Uid, context: str, *given: Any) -> cedar.Decision:
        seen.append(context)
        return real(who, action, on, context, *given)

    monkeypatch.setattr(cedar, "decide", decide)
    return seen


def test_a_decision_is_made_once_for_statements_that_differ_in_literals(decided: list[str]) -> None:
    asked = guard()
    for number in range(5):
        text = f"SELECT id FROM orders WHERE id = {number}"  # noqa: S608  (for a test)
        assert asked.judge(text).verdict.allow
        assert not asked.judge(f"SELECT pg_sleep({number})").verdict.allow
    assert len(decided) == 2


def test_a_long_context_is_decided_each_time(decided: list[str]) -> None:
    asked = guard()
    names = ", ".join(f"a_rather_long_name_of_a_column_{each}" for each in range(120))
    for number in range(2):
        text = f"SELECT {names} FROM orders LIMIT {number}"  # noqa: S608  (for a test)
        assert asked.judge(text).verdict.allow
    assert len(decided) == 2
    assert all(len(each) > sql_verdict.LONGEST for each in decided)
