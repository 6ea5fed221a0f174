"""What is asked of a mutant of the audit or its chain: bounded runs of their tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from nonsuch.adapters.edge import audit_chain

from ..adapters.edge import test_audit_chain as written
from ..adapters.edge import test_audit_outcomes as outcomes
from ..adapters.edge.ledger import Ledger
from ..kernel import test_chain as chain
from ..threats import test_attack_audit as attack

Run = Callable[[], Iterator[None]]
HOWS: Final = ("emptied", "replaced by an earlier copy")
WAYS: Final = (
    "call: fine",
    "call: hidden",
    "call: no name",
    "call: without an id",
    "read: no URI",
    "read: without an id",
    "completion: no shape",
    "a foreign host",
    "a page of another origin",
    "task: no id",
    "HTTP: fine",
    "HTTP: no JSON",
    "HTTP: another method",
)


def _each(*tests: Callable[[], None]) -> Run:
    def run() -> Iterator[None]:
        for test in tests:
            test()
            yield

    return run


def _over(test: Any) -> Run:
    """Every case of a parametrised test."""

    def run() -> Iterator[None]:
        (mark,) = [each for each in test.pytestmark if each.name == "parametrize"]
        for case in mark.args[1]:
            test(case)
            yield

    return run


def _all(*runs: Run) -> Run:
    def run() -> Iterator[None]:
        for each in runs:
            yield from each()

    return run


def _written() -> Iterator[None]:
    """The tests of a chain in a file that take nothing but its path."""
    tests: list[Callable[[Path], None]] = [
        written.test_what_was_lost_last_is_told_without_another_event,
        written.test_of_many_threads_nothing_is_lost_uncounted,
        written.test_a_chain_goes_on_over_processes_and_keys,
        written.test_while_some_processes_have_the_next_key_none_stops,
        written.test_the_first_line_of_all_can_be_torn_too,
        written.test_the_end_of_a_long_chain_is_found,
        *(partial(written.test_so_does_one_whose_file_is_another, how=how) for how in HOWS),
        *(partial(written.test_a_line_that_a_crash_tore_is_kept_and_told, cut=cut) for cut in (2, 70)),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_chain, "RETRY_SECONDS", 0.01)
        patch.setattr(written, "PATIENCE", 6.0)
        for test in (*tests, _full):
            with TemporaryDirectory() as place:
                test(Path(place) / "audit.jsonl")
            yield


def _full(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        written.test_a_disk_that_is_full_in_the_middle_of_a_line_repeats_nothing_and_loses_nothing(
            path, patch
        )


def _outcomes() -> Iterator[None]:
    for way in WAYS:
        with TemporaryDirectory() as place, outcomes.heard(Ledger(Path(place))) as ledger:
            outcomes.test_every_way_has_its_one_line(way, ledger)
        yield


def _lines() -> Iterator[None]:
    for kind in range(6):
        attack.test_every_text_in_every_member_is_one_line(kind)
        yield
    for where in ("the name of a tool", "the argument that is completed"):
        with TemporaryDirectory() as place:
            attack.test_every_text_in_every_field_of_a_request_is_one_line_and_one_record(where, Path(place))
        yield


CHAIN_PROPERTIES: Final[tuple[tuple[str, Run], ...]] = (
    (
        "chain: another program's",
        _each(
            chain.test_a_chain_made_by_another_program_is_whole_and_told_in_full,
            chain.test_the_same_events_make_the_same_lines_as_there,
        ),
    ),
    (
        "chain: attacks",
        _all(
            _each(chain.test_the_whole_chain_is_whole),
            _over(chain.test_a_record_has_one_spelling),
            _over(chain.test_an_attack_is_seen_at_its_record_and_its_line),
        ),
    ),
    (
        "chain: heads",
        _all(
            _over(chain.test_an_end_that_was_cut_off_shows_by_a_head_and_by_nothing_else),
            _each(chain.test_a_head_shows_what_was_rewritten_with_the_key),
        ),
    ),
    (
        "chain: keys",
        _each(
            chain.test_a_key_comes_in_by_the_key_before_it,
            chain.test_who_stole_a_key_rewrites_nothing_of_the_key_before_it,
            chain.test_a_writer_with_a_newer_key_lets_it_in_with_the_one_before,
        ),
    ),
    (
        "chain: torn lines",
        _all(
            _each(
                chain.test_a_torn_line_is_told_and_the_chain_goes_on,
                chain.test_two_crashes_in_one_place_are_told_as_one,
            ),
            _over(chain.test_a_torn_line_that_was_changed_later_shows),
        ),
    ),
    (
        "chain: writers",
        _each(
            chain.test_a_writer_that_misses_what_it_wrote_says_so_for_good,
            chain.test_a_chain_says_who_did_not_end,
            chain.test_no_text_of_a_caller_is_a_note_of_the_chain,
        ),
    ),
    ("chain: written", _written),
    ("audit: outcomes", _outcomes),
    ("audit: lines", _lines),
)
