"""The tests of MCP's wire as bounded properties: each runs the cases of a few tests without a test runner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from ..adapters.mcp import test_headers as headers
from ..adapters.mcp import test_listen as listening
from ..adapters.mcp import test_paging as paging
from ..adapters.mcp import test_questions as questions
from ..adapters.mcp import test_request_state as state
from ..adapters.mcp import test_rounds as rounds
from ..adapters.mcp import test_streams as streams
from ..adapters.mcp.live import MODERN, REVISIONS
from ..adapters.mcp.questions import BAD
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


WIRES: Final[dict[str, Callable[[], Iterator[Case]]]] = {
    "a seal opens what it sealed": sealed,
    "a round is its caller's": its_round,
    "pages are a list": pages,
    "an answer is its client's": asked,
    "a handler speaks to its client": said,
    "a stream ends with its right": heard,
    "a request fits its tool": fits,
}
