"""What is asked of a mutant of telemetry: tests of its spans, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ..adapters.edge import test_telemetry as spans
from ..adapters.edge import test_telemetry_leaks as leaks
from ..adapters.edge import test_telemetry_traces as traces
from ..adapters.mcp.live import MODERN


def _spans() -> Iterator[None]:
    for case in spans.CALLS:
        spans.test_a_call_is_one_span_and_one_duration(case, MODERN)
        yield
    for case in ("template", "hidden resource", "malformed", "malformed, hidden"):
        spans.test_any_other_request_is_one_span_and_one_duration(case, MODERN)
        yield
    for case in ("no method", "no token"):
        spans.test_what_never_became_a_message_is_an_http_request(case)
        yield
    for case in ("ok", "hidden", "absent"):
        spans.test_an_action_over_http_is_one_span_and_one_duration(case)
        yield
    spans.test_a_method_that_nobody_knows_has_no_name(MODERN)
    yield


def _worlds() -> Iterator[None]:
    leaks.test_the_telemetry_of_what_is_hidden_is_that_of_a_world_without_it("flat", {})
    yield
    leaks.test_in_process_the_hidden_is_the_absent()
    yield


def _traces() -> Iterator[None]:
    for case in traces.TOLD:
        traces.test_a_message_is_in_the_trace_that_its_client_says(case)
        traces.test_callers_that_are_not_believed_are_linked(case)
        yield
    for test in (
        traces.test_no_baggage_of_a_callers_arrives_at_a_handler,
        traces.test_a_host_that_traces_itself_has_our_span_inside_and_its_metrics_alone,
        traces.test_a_request_leaves_its_task_as_it_found_it,
        traces.test_calls_that_run_beside_each_other_each_see_their_own_span,
        traces.test_a_client_that_leaves_ends_the_span_of_its_call,
        traces.test_a_client_that_leaves_within_its_body_ends_a_span_without_a_status,
    ):
        test()
        yield


TELEMETRY_PROPERTIES: Final[tuple[tuple[str, Callable[[], Iterator[None]]], ...]] = (
    ("telemetry tells how each call ended", _spans),
    ("telemetry tells nothing hidden", _worlds),
    ("telemetry is in the right trace", _traces),
)
