"""The thread that reads a query: its stack, the event loop beside it, what it raises, what it leaves."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from functools import cache
from typing import Final

import pytest

from nonsuch.adapters.edge import extras, sql_parse
from nonsuch.adapters.edge.extras import ExtraMissing
from nonsuch.adapters.edge.sql_guard import catalogue, guard
from nonsuch.adapters.edge.sql_parse import STACK, facts_of, facts_of_async
from nonsuch.kernel.sql_catalog import NOTHING, Catalogue, Own
from nonsuch.kernel.sql_facts import SqlFacts

SLOW: Final = "SELECT 1 " + ("+" * 256 + " ") * 60 + "1"


@pytest.fixture(autouse=True)
def fresh_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test start its own readers."""
    monkeypatch.setattr(sql_parse, "readers", cache(sql_parse.readers.__wrapped__))


def test_a_text_is_read_in_another_thread_with_a_large_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []
    start = threading.Thread.start

    def starting(self: threading.Thread) -> None:
        seen.append((self.name, threading.stack_size()))
        start(self)

    monkeypatch.setattr(threading.Thread, "start", starting)
    before = threading.stack_size()
    assert facts_of("SELECT 1", catalogue(), NOTHING).kinds == ("select",)
    assert seen == [("nonsuch-sql_0", STACK)]
    assert threading.stack_size() == before


def test_a_text_that_no_parser_may_see_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: threading.Thread) -> None:
        raise AssertionError(self)

    monkeypatch.setattr(threading.Thread, "start", never)
    assert facts_of("x" * 20_000, catalogue(), NOTHING).families == {"oversize"}
    assert asyncio.run(facts_of_async(None, catalogue(), NOTHING)).families == {"malformed"}


def test_the_event_loop_goes_on_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    leave = threading.Event()

    def slow(text: str, names: Catalogue, own: Own) -> SqlFacts:
        del text, names, own
        assert leave.wait(10)
        return SqlFacts(("select",))

    monkeypatch.setattr(sql_parse, "analyse", slow)

    async def both() -> SqlFacts:
        reading = asyncio.ensure_future(facts_of_async("SELECT 1", catalogue(), NOTHING))
        await asyncio.sleep(0.01)
        leave.set()  # a loop that waited for the thread would not come here
        return await reading

    assert asyncio.run(both()) == SqlFacts(("select",))


def test_what_goes_wrong_belongs_to_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str, names: Catalogue, own: Own) -> SqlFacts:
        raise LookupError(text)

    monkeypatch.setattr(sql_parse, "analyse", broken)
    with pytest.raises(LookupError, match="SELECT 1"):
        facts_of("SELECT 1", catalogue(), NOTHING)
    with pytest.raises(LookupError, match="SELECT 1"):
        asyncio.run(facts_of_async("SELECT 1", catalogue(), NOTHING))


def test_the_stack_is_put_back_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refusing)
    before = threading.stack_size()
    with pytest.raises(RuntimeError, match="can't start"):
        facts_of("SELECT 1", catalogue(), NOTHING)
    assert threading.stack_size() == before


def test_many_texts_leave_openssl_its_key() -> None:
    """The parser takes a thread-local key for each thread that used it, and a process has 1,024."""
    code = (
        "import ssl\n"
        "from nonsuch.adapters.edge.sql_guard import guard\n"
        "asked = guard()\n"
        "assert all(asked.judge(f'SELECT {each}').verdict.allow for each in range(1500))\n"
        "ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_both_doors_of_the_guard_say_the_same() -> None:
    asked = guard()
    for text in ("SELECT 1", "SELECT pg_sleep(1)", "DELETE FROM t", "x", None, SLOW):
        assert asyncio.run(asked.judge_async(text)) == asked.judge(text)


def test_many_texts_are_read_at_once() -> None:
    asked = guard()

    async def all_of_them() -> list[bool]:
        told = await asyncio.gather(*(asked.judge_async(f"SELECT {each}") for each in range(50)))
        return [each.verdict.allow for each in told]

    began = time.perf_counter()
    assert asyncio.run(all_of_them()) == [True] * 50
    assert time.perf_counter() - began < 10
    assert [each.name for each in threading.enumerate() if each.name == "nonsuch-sql"] == []


def test_a_missing_parser_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        del name

    monkeypatch.setattr(extras, "find_spec", nothing)
    with pytest.raises(ExtraMissing, match=r"pip install \"nonsuch\[sql\]\""):
        guard()


def test_the_guard_can_be_imported_without_its_parser() -> None:
    code = "import sys; sys.modules['pglast'] = None; import nonsuch.adapters.edge.sql_guard"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
