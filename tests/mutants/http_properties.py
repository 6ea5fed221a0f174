"""What is asked of a mutant of HTTP, of keys or of guards: bounded runs of their tests and properties."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from nonsuch import MemoryIdempotencyStore
from nonsuch.kernel.steps import Recall, Reserve

from ..adapters.edge import test_atomic as atomic
from ..adapters.edge import test_guards as guards
from ..adapters.edge import test_idempotency_stores as stores
from ..adapters.http import test_flat as flat
from ..adapters.http import test_methods as methods
from ..adapters.http import test_session as sessions
from ..adapters.http.counter import ask, counter
from ..kernel import test_idempotency as inputs
from ..kernel import test_replay as replay
from ..properties import test_a_keyed_call_runs_once as keyed
from ..properties import test_all_doors_give_one_outcome as doors
from ..properties import test_http_tells_nothing as silent


def _tells_nothing() -> Iterator[None]:
    silent.walk(("edit", "view"), silent.HIDDEN_PATHS[:2])
    yield


def _hidden_keys() -> Iterator[None]:
    silent.keys_of_hidden_actions()
    yield


def _keyed() -> Iterator[None]:
    keyed.walk()
    yield


def _doors() -> Iterator[None]:
    doors.walk()
    yield


def _steps() -> Iterator[None]:
    """The tests of keyed calls that need nothing but a desk."""
    for test in (
        replay.test_an_interrupted_call_is_never_run_again,
        replay.test_two_that_pass_policy_at_once_run_once,
        replay.test_nobody_is_answered_whose_permission_is_gone,
        replay.test_what_the_call_changed_does_not_refuse_its_retry,
        replay.test_an_answer_that_could_not_be_kept_is_given_once,
    ):
        with _desk() as desk:
            test(desk)
            yield
    for step in (Recall, Reserve):
        with _desk() as desk:
            replay.test_nothing_runs_unrecorded(desk, step)
            yield
    with _desk() as desk:
        replay.test_an_action_that_requires_a_key_does_not_run_without_one(desk, "http")
        yield


class _desk:
    def __enter__(self) -> replay.Desk:
        self._held = TemporaryDirectory()
        return replay.Desk(replay.press(Path(self._held.name)))

    def __exit__(self, *_: object) -> None:
        self._held.cleanup()


def _inputs() -> Iterator[None]:
    for one, two in inputs.ONE:
        assert inputs.same(one, two)
        yield
    for one, two in inputs.TWO:
        assert not inputs.same(one, two)
        yield
    inputs.test_what_hides_its_value_is_told_apart_all_the_same()
    inputs.test_the_digest_needs_the_secret_and_the_slot_does_not()
    yield


def _store() -> Iterator[None]:
    for test in (
        stores.test_a_record_lives_as_long_as_it_says,
        stores.test_who_ends_late_ends_nobody_elses_record,
        stores.test_an_outcome_is_never_forgotten_or_replaced,
    ):
        test("memory", "")
        yield
    stores.test_of_fifty_that_begin_at_once_one_does("memory", "", expired=False)
    try:
        stores.test_a_full_memory_refuses_rather_than_forgets()
    except pytest.fail.Exception as fault:  # no Exception, and so nothing that shows a mutant
        raise AssertionError from fault
    stores.use(MemoryIdempotencyStore(), _nothing)
    yield


async def _nothing(_: object) -> None:
    return None


def _atomic() -> Iterator[None]:
    atomic.test_a_handler_that_is_stopped_is_undone(asyncio.CancelledError)
    yield
    atomic.test_a_handler_that_ends_is_not_undone_yet()
    for each in (True, False):
        atomic.test_only_what_is_atomic_is_undone_by_a_record_that_fails(each)
        yield


def _flat() -> Iterator[None]:
    for query, told in flat.READ:
        flat.test_a_query_string_reads_as_one_value(query, told)
        yield
    for query in flat.REFUSED:
        flat.test_no_other_spelling_is_taken(query)
        yield


def _methods() -> Iterator[None]:
    for path in methods.ALLOWED:
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "FOO"):
            methods.test_another_method_is_told_which_there_are(path, method)
            yield
    methods.test_what_a_get_answers_is_nobodys_to_keep()
    methods.test_the_arguments_of_a_body_are_in_the_body("POST", "items")
    yield


def _sessions() -> Iterator[None]:
    basic = {"cookie": "session=ann", "authorization": "Basic YW5uOg=="}
    assert sessions.who(basic) == 401
    assert sessions.who({"cookie": "session=ann; session=bob"}) == 401
    assert sessions.who({"cookie": "session=ann"}, "unknown") == 401
    yield
    for sent, key in (("a, a", ""), ("a b", ""), ("k", "k"), ('"k"', "k")):
        sessions.test_a_key_is_a_string_or_bare_and_once(sent, key)
        yield


def _documents() -> Iterator[None]:
    fresh = counter()
    assert ask("GET", "openapi.json", None, None, fresh).status == 401
    yield
    told = json.loads(ask("GET", "openapi.json", None, "guest", fresh).body)
    assert told["security"] == [{"bearer": []}]
    assert "sell" not in json.dumps(told)
    yield


def _guards() -> Iterator[None]:
    with TemporaryDirectory() as directory:
        desk = guards.Desk(Path(directory))
        for who in guards.CALLERS:
            for post in ("mine", "theirs", "missing"):
                desk.events.clear()
                guards.test_a_guard_refuses_as_the_apps_own_path_does(desk, "publish", who, post)
                yield
        desk.events.clear()
        guards.test_a_policy_that_reads_arguments_denies_without_any(desk)
        for facts in (guards.Other(id="mine"), "mine"):
            guards.test_what_is_no_such_resource_is_never_judged_as_one(desk, facts)
            yield
        try:
            guards.test_nothing_is_loaded_for_who_may_not_act_at_all(desk)
            yield
            guards.test_a_view_does_not_run_for_anybody_else(desk)
        except pytest.fail.Exception as fault:  # no Exception, and so nothing that shows a mutant
            raise AssertionError from fault
        yield


HTTP_PROPERTIES: Final[tuple[tuple[str, Callable[[], Iterator[None]]], ...]] = (
    ("http tells nothing", _tells_nothing),
    ("keys of hidden actions", _hidden_keys),
    ("keyed calls, walked", _keyed),
    ("all doors, walked", _doors),
    ("steps of keyed calls", _steps),
    ("one input, two inputs", _inputs),
    ("a store in memory", _store),
    ("atomic calls", _atomic),
    ("query strings", _flat),
    ("methods", _methods),
    ("sessions", _sessions),
    ("documents", _documents),
    ("guards", _guards),
)
