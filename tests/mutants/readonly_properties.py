"""What is asked of a mutant of the layers of `db.query`: tests of ``tests/adapters/edge``, on one server."""

from __future__ import annotations

import atexit
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import pytest

from ..adapters.edge import test_readonly_again as again
from ..adapters.edge import test_readonly_answers as answers
from ..adapters.edge import test_readonly_guards as guards
from ..adapters.edge import test_readonly_layers as layers
from ..adapters.edge import test_readonly_live as live
from ..adapters.edge import test_readonly_pool as pool
from ..adapters.edge import test_sql_query as tool
from ..adapters.edge.readonly_lab import Lab

Test = Callable[..., None]
Fixture = Any


@cache
def _lab(fixture: Fixture) -> Lab:
    """One server for each module of tests, as its own fixture makes it, for all of a process."""
    made = inspect.unwrap(fixture)
    lab: Iterator[Lab] = made.__wrapped__() if hasattr(made, "__wrapped__") else made()
    found = next(lab)
    atexit.register(lambda: next(lab, None))
    return found


def _on(module: Any, *tests: Test) -> Callable[[], Iterator[None]]:
    """Tests of a module on its server, with every case that they have."""

    def run() -> Iterator[None]:
        for test in tests:
            for case in _cases(test):
                with ExitStack() as stack:
                    given = {**case, **_given(test, module, stack)}
                    try:
                        test(**given)
                    except pytest.fail.Exception as failure:
                        raise AssertionError(str(failure)) from failure
                yield

    return run


def _given(test: Test, module: Any, stack: ExitStack) -> dict[str, Any]:
    names = inspect.signature(test).parameters
    given: dict[str, Any] = {}
    if "lab" in names:
        given["lab"] = _lab(module.lab)
    if "monkeypatch" in names:
        given["monkeypatch"] = stack.enter_context(pytest.MonkeyPatch.context())
    if "tmp_path" in names:
        given["tmp_path"] = Path(stack.enter_context(TemporaryDirectory()))
    return given


def _cases(test: Test) -> Iterable[dict[str, Any]]:
    marks = [each for each in getattr(test, "pytestmark", []) if each.name == "parametrize"]
    cases: list[dict[str, Any]] = [{}]
    for mark in marks:
        names = [mark.args[0]] if isinstance(mark.args[0], str) else list(cast("Iterable[str]", mark.args[0]))
        values = [each if len(names) > 1 else (each,) for each in cast("Iterable[Any]", mark.args[1])]
        cases = [{**case, **dict(zip(names, each, strict=True))} for case in cases for each in values]
    return cases


READONLY_PROPERTIES: Final[tuple[tuple[str, Callable[[], Iterator[None]]], ...]] = (
    (
        "layers: verified",
        _on(
            guards,
            guards.test_a_setting_that_is_not_what_it_should_be_runs_nothing,
            guards.test_a_transaction_that_is_not_what_it_should_be_runs_nothing,
        ),
    ),
    (
        "layers: told truly",
        _on(
            guards,
            guards.test_the_layers_that_stand_are_told_and_no_other,
            guards.test_a_plan_has_no_limit_of_rows_or_cells,
            guards.test_a_text_that_nobody_read_is_not_told_as_read,
            guards.test_without_a_layer_that_is_required_nothing_is_run,
        ),
    ),
    (
        "layers: connections",
        _on(
            pool,
            pool.test_a_clean_connection_is_used_again,
            pool.test_a_tainted_connection_is_not,
            pool.test_an_old_connection_is_not,
            pool.test_connections_that_were_ended_cost_no_query,
        ),
    ),
    (
        "layers: again",
        _on(
            again,
            again.test_another_limit_and_another_reading_are_other_questions,
            again.test_nothing_is_run_where_a_session_is_not_what_it_was_pinned_to,
            again.test_what_the_server_verified_is_verified_here_too,
            again.test_a_layer_that_is_required_is_required_of_a_planned_query,
            again.test_a_view_that_changes_is_looked_at_again_though_it_is_planned,
            again.test_what_changed_since_is_there_at_once,
            again.test_a_mistake_that_came_since_is_told_with_its_place,
            again.test_what_a_planned_query_leaves_is_seen,
            again.test_a_connection_that_was_ended_costs_no_planned_query,
        ),
    ),
    (
        "layers: limits",
        _on(
            layers,
            layers.test_the_ceiling_of_rows_is_hard_and_told,
            layers.test_the_bytes_of_an_answer_are_bounded_and_told,
            layers.test_a_cell_that_is_too_large_is_null_and_told,
            layers.test_a_lock_of_somebody_else_is_not_waited_for,
        ),
    ),
    ("layers: answers", _on(answers, answers.test_every_kind_of_statement_is_answered)),
    (
        "layers: live names",
        _on(
            live,
            live.test_what_only_reads_is_accepted,
            live.test_what_may_do_more_is_refused_by_its_name,
        ),
    ),
    (
        "layers: live on the way",
        _on(
            live,
            live.test_it_is_refused_on_the_way_to_the_rows_too,
            live.test_a_view_that_changes_is_looked_at_again,
        ),
    ),
    (
        "layers: two worlds",
        _on(
            tool,
            tool.test_who_may_not_read_cannot_tell_which_relations_there_are,
            tool.test_who_may_read_can_tell,
        ),
    ),
    (
        "layers: the tool",
        _on(tool, tool.test_a_refusal_names_the_piece_and_its_place, tool.test_the_tool_has_one_name),
    ),
)
