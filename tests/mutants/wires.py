"""The tests of MCP's wire as bounded properties: each runs the cases of a few tests without a test runner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from nonsuch.kernel.meter import address_key

from ..adapters.edge import test_admitted as admitted
from ..adapters.edge import test_client_leaves as leaving
from ..adapters.edge import test_signed_tokens as signed
from ..adapters.http import test_limits as visits
from ..adapters.mcp import test_addresses as addresses
from ..adapters.mcp import test_echo as echo
from ..adapters.mcp import test_headers as headers
from ..adapters.mcp import test_listen as listening
from ..adapters.mcp import test_oauth as oauth
from ..adapters.mcp import test_open_streams as streams_open
from ..adapters.mcp import test_paging as paging
from ..adapters.mcp import test_questions as questions
from ..adapters.mcp import test_request_state as state
from ..adapters.mcp import test_rounds as rounds
from ..adapters.mcp import test_rounds_remembered as remembered
from ..adapters.mcp import test_streams as streams
from ..adapters.mcp import test_tasks_hidden as hidden_tasks
from ..adapters.mcp import test_tasks_that_run as tasks_that_run
from ..adapters.mcp.live import MODERN, REVISIONS
from ..adapters.mcp.questions import BAD
from ..adapters.mcp.test_addresses import TOKENS
from ..kernel import test_seal as seal

Case = Callable[[], object]


def sealed() -> Iterator[Case]:
    """A seal opens what it sealed, and nothing else."""
    yield from (partial(seal.test_nothing_else_opens_it, name) for name in seal.OTHERS)
    yield seal.test_what_it_is_bound_to_does_not_run_into_the_payload
    yield partial(seal.test_every_character_counts, b"xy")
    yield from (partial(seal.test_a_second_spelling_is_refused, name) for name in seal.spellings("A" * 8))


def its_round() -> Iterator[Case]:
    """What a round left opens for its caller, its request and its hour."""
    yield from (partial(state.test_a_state_is_its_callers, who) for who in ("other", "ann"))
    yield state.test_a_state_of_an_agent_for_one_person_is_not_one_of_the_same_agent_for_another
    yield state.test_a_state_is_its_requests
    yield state.test_a_state_is_taken_for_an_hour
    yield state.test_every_byte_of_a_state_counts
    yield state.test_a_state_of_another_server_with_the_same_secret_is_not_taken


def pages() -> Iterator[Case]:
    """Pages are the list, and a cursor is its caller's."""
    yield from (partial(paging.test_the_pages_together_are_the_list, size) for size in (None, 1, 3))
    yield paging.test_a_cursor_is_for_its_list
    yield paging.test_a_cursor_is_its_callers
    yield partial(paging.test_every_character_of_a_cursor_counts, MODERN)


def asked() -> Iterator[Case]:
    """An answer is its client's, and an answer."""
    yield partial(questions.test_an_answer_of_another_caller_is_not_taken, "other")
    yield questions.test_an_answer_of_the_same_agent_for_another_person_is_not_taken
    yield from (partial(rounds.test_what_is_no_answer_is_asked_for_again, *each) for each in BAD[-12:])
    yield rounds.test_some_of_the_answers_are_not_enough_and_all_is_asked_again
    yield from (
        partial(rounds.test_nothing_is_asked_that_a_client_did_not_declare, *each) for each in rounds.DECLARED
    )


def said() -> Iterator[Case]:
    """What a handler says arrives as its client wants it."""
    yield streams.test_an_event_is_one_line_of_data_for_every_reader
    for revision in REVISIONS:
        yield partial(streams.test_progress_has_the_clients_own_token, revision, 0)
        yield partial(streams.test_without_a_token_there_is_no_progress_and_no_stream, revision, {})
    yield partial(streams.test_who_takes_no_stream_is_sent_the_answer_alone, "application/json")
    yield streams.test_a_client_of_the_newest_revision_that_names_no_level_is_sent_none
    yield streams.test_progress_is_told_once


def heard() -> Iterator[Case]:
    """A stream ends with the right to it, and sees what its caller sees now."""
    for change in (listening.revoked, listening.anothers, listening.for_a_person):
        yield partial(listening.test_a_stream_does_not_outlive_the_right_of_its_caller, change)
    yield listening.test_an_update_is_told_to_who_may_read_it
    yield listening.test_a_caller_who_lost_a_role_is_told_nothing_of_what_it_opened


def fits() -> Iterator[Case]:
    """A request is one for its tool: headers agree, capabilities are declared."""
    yield from (
        partial(headers.test_a_call_whose_headers_disagree_is_not_made, *each) for each in headers.DISAGREE
    )
    yield partial(headers.test_a_tool_is_not_run_for_a_client_that_lacks_what_it_needs, {}, headers.BOTH)


def once() -> Iterator[Case]:
    """Each answer serves one question, and is there again in the next round."""
    for what in ("twice", "under one key", "as it was answered", "nested groups"):
        yield partial(remembered.test_both_eras_come_to_the_same_end, what)
    yield remembered.test_a_state_takes_the_place_of_what_was_answered
    yield remembered.test_a_round_that_ended_has_ended
    yield remembered.test_a_bug_in_a_task_group_is_a_bug_whatever_else_was_raised


def left() -> Iterator[Case]:
    """Who has left is not waited for."""
    yield partial(leaving.test_over_asgi, "ask")


def opened() -> Iterator[Case]:
    """As many streams are open as may be, of each caller and of all."""
    yield streams_open.test_a_caller_has_so_many_streams_and_no_more
    yield streams_open.test_all_callers_together_have_so_many_and_no_more
    yield partial(streams_open.test_whatever_ends_a_stream_gives_it_back, streams_open.left)
    yield streams_open.test_a_call_that_asks_is_a_stream_of_its_callers_while_it_waits


def short() -> Iterator[Case]:
    """What a caller's own words come back as is short."""
    yield partial(echo.test_an_id_comes_back_or_is_refused_by_name, MODERN, "513")
    yield partial(echo.test_a_token_comes_back_or_is_refused_before_anything_runs, MODERN, "513")
    for revision in REVISIONS:
        yield partial(echo.test_a_long_word_comes_back_short, "a resource", revision, "flat")


def owned() -> Iterator[Case]:
    """A task is its owner's, while its tool is seen and until it ends."""
    for what in ("another agent", "the same name for a person", "the role is lost"):
        case = hidden_tasks.test_a_task_that_is_not_ones_own_is_unknown_byte_for_byte
        yield partial(case, hidden_tasks.GONE[what], False)
    yield hidden_tasks.test_without_the_scope_a_task_is_refused_as_its_call_is
    yield hidden_tasks.test_listening_to_tasks_that_are_not_ones_own_tells_nothing_of_them
    yield hidden_tasks.test_a_listener_who_loses_the_role_is_told_no_more
    yield tasks_that_run.test_a_finished_task_is_cancelled_in_vain
    yield tasks_that_run.test_a_cancelled_task_stops_its_handler_and_stays_cancelled


def doors() -> Iterator[Case]:
    """Who stands before a door is who it says, and what is told there leads to it."""
    yield from (partial(addresses.test_what_can_be_no_token_reaches_no_resolver, case) for case in TOKENS)
    yield partial(addresses.test_two_authorization_headers_are_no_token, "Bearer t", 0)
    yield address_key.cache_clear  # it remembers what the real code made of an address
    for second in ("::ffff:192.0.2.1", "64:ff9b::192.0.2.1"):
        yield partial(
            addresses.test_a_host_does_not_begin_anew_by_another_of_its_addresses,
            "192.0.2.1",
            second,
            shared=True,
        )
    yield partial(visits.test_a_session_that_is_nobodys_is_a_failure, ("cookie", "sid=guess"))
    yield partial(
        visits.test_the_page_of_a_visitor_who_never_signed_in_keeps_nobody_out, [("cookie", "theme=dark")]
    )
    yield signed.test_claims_are_read_as_they_are_documented
    yield from (
        partial(oauth.test_under_a_prefix_a_challenge_points_to_where_the_document_is, case, "asgi")
        for case in oauth.MOUNTED
    )
    yield partial(oauth.test_mounted_a_second_time_the_document_is_at_the_root_of_the_host, "asgi")
    yield partial(admitted.test_what_is_no_origin_is_refused_at_boot, "null")


WIRES: Final[dict[str, Callable[[], Iterator[Case]]]] = {
    "a seal opens what it sealed": sealed,
    "a round is its caller's": its_round,
    "pages are a list": pages,
    "an answer is its client's": asked,
    "a handler speaks to its client": said,
    "a stream ends with its right": heard,
    "a request fits its tool": fits,
    "an answer serves one question": once,
    "who has left is not waited for": left,
    "open streams are counted": opened,
    "what comes back is short": short,
    "a task is its owner's": owned,
    "a door is what it says": doors,
}
