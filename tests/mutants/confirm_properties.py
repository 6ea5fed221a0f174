"""What is asked of a mutant of confirmations: tests of theirs, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from nonsuch import Human, memory_confirmation_store

from ..adapters.edge import test_confirmation_stores as stores
from ..adapters.edge import test_confirming as gate
from ..adapters.edge.shop import AGENT, ANN, CALL, LONER, MS, NOBODY, OTHER
from ..kernel import test_confirmation as table
from ..properties import test_a_digest_is_what_a_handler_can_tell as digest
from ..properties import test_hidden_gated_tools_are_absent as hidden

_LATE: Final = (-MS, timedelta(0), MS)


def _asked() -> Iterator[None]:
    for test in (
        gate.test_a_call_waits_is_viewed_approved_and_runs_once,
        gate.test_what_is_viewed_is_what_was_sent_to_the_letter,
        gate.test_viewing_changes_nothing,
        gate.test_the_same_call_has_the_same_id_whatever_its_spelling_and_its_surface,
        gate.test_a_rejected_call_is_told_so_once_and_audited_as_a_denial,
        gate.test_it_is_decided_once,
        gate.test_a_rejection_carries_nothing,
        gate.test_a_run_that_failed_is_spent,
        gate.test_the_same_call_while_it_runs_is_told_to_come_back,
        gate.test_a_keyed_call_waits_runs_and_is_replayed_without_a_second_confirmation,
        gate.test_one_caller_has_so_many_calls_wait_and_no_more,
        gate.test_who_always_loses_is_told_to_come_back,
        gate.test_who_loses_a_decision_is_not_told_that_it_counts,
        gate.test_every_line_says_which_confirmation_and_what_a_person_did,
        gate.test_no_policy_reads_a_resource_before_a_person_approved,
    ):
        test()
        yield
    for who, tool in ((OTHER, "refund"), (ANN, "refund"), (LONER, "refund"), (AGENT, "fails")):
        gate.test_nobody_rides_on_an_approval_and_no_other_call(who, tool, CALL)
        yield
    gate.test_nobody_rides_on_an_approval_and_no_other_call(AGENT, "refund", {**CALL, "amount": 6})
    for sent in (None, {}, {**CALL, "amount": 6}):
        code = "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"
        gate.test_an_approval_carries_the_arguments_of_the_call(sent, code)
        yield
    gate.test_a_store_that_fails_lets_nothing_run("swap")
    yield


def _times() -> Iterator[None]:
    for late in _LATE:
        live = late == -MS
        gate.test_a_person_decides_before_it_lapses_and_not_from_then_on(late, "ok" if live else "X")
        gate.test_an_approval_is_used_before_it_lapses_and_not_from_then_on(late, live)
        gate.test_what_nobody_decided_is_told_once_to_have_lapsed(late, gate.PENDING if live else "X")
        yield
    gate.test_a_run_that_was_stopped_is_told_once_when_it_has_lapsed()
    yield


def _who() -> Iterator[None]:
    for test in (
        gate.test_no_agent_views_or_decides_whatever_it_holds,
        gate.test_a_foreign_an_unknown_and_a_misspelt_id_are_one_answer,
        gate.test_what_nobodys_organisation_asked_for_people_of_none_decide,
        gate.test_a_person_without_the_permission_decides_nothing,
        gate.test_another_apps_confirmation_is_none_here,
        gate.test_nothing_opens_for_a_hidden_tool,
    ):
        test()
        yield
    with TemporaryDirectory() as folder:
        gate.test_no_policy_of_an_app_admits_an_agent(Path(folder))
        yield
    stranger = Human("x", org="acme").delegate("ag", scopes={"orders"})
    for who in (NOBODY, stranger):
        gate.test_nothing_opens_for_a_call_that_another_gate_refuses(who, CALL, "X_FORBIDDEN")
        yield


def _rotated() -> Iterator[None]:
    for test in (
        gate.test_after_a_new_key_the_call_is_asked_anew_and_the_old_approval_never_applies,
        gate.test_an_approval_from_before_a_new_key_lets_nothing_run,
        gate.test_a_tool_that_is_not_gated_any_more_cannot_be_approved,
    ):
        test()
        yield
    for model in (gate.NARROWER, gate.WIDER):
        gate.test_after_a_change_of_the_schema_an_approval_is_refused_and_an_older_one_runs_nothing(model)
        yield


def _digest() -> Iterator[None]:
    digest.test_the_values_that_are_known_to_be_confused()
    yield


def _table() -> Iterator[None]:
    for before in table.STATUSES:
        for after in table.STATUSES:
            table.test_a_row_moves_as_the_table_says(before, after)
        table.test_what_lapsed_is_shown_as_over(before)
        table.test_only_what_waits_can_be_decided(before)
        yield
    table.test_a_run_lapses_as_long_after_it_began_as_a_person_had_to_decide()
    table.test_sealed_arguments_are_bound_to_everything_that_tells_a_row_from_another()
    yield


def _stores() -> Iterator[None]:
    for test in (
        stores.test_of_one_call_one_row_is_open,
        stores.test_a_change_takes_the_place_of_its_last_version_alone,
        stores.test_so_many_of_one_caller_wait_and_no_more,
        stores.test_rows_are_listed_by_organisation_the_newest_first,
        stores.test_what_was_over_before_then_is_purged_and_nothing_else,
    ):
        test(memory_confirmation_store())
        yield
    for end in stores.ENDS:
        stores.test_once_a_row_is_over_the_call_may_be_asked_for_again(memory_confirmation_store(), end)
        yield


def _hidden() -> Iterator[None]:
    hidden.walk()
    yield


CONFIRM_PROPERTIES: Final[tuple[tuple[str, Callable[[], Iterator[None]]], ...]] = (
    ("confirmed calls", _asked),
    ("confirmed in time", _times),
    ("who confirms", _who),
    ("confirmed by keys of today", _rotated),
    ("one digest, two digests", _digest),
    ("the table of confirmations", _table),
    ("confirmations in memory", _stores),
    ("hidden gated tools are absent, walked", _hidden),
)
