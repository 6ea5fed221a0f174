"""The states of a confirmation: what may follow what and when, against a table of the tests' own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, get_args

import pytest

from nonsuch.kernel.confirmation import OPEN, TRANSITIONS, Confirmation, Ended, Open, Status, moved

NOON: Final = datetime(2026, 7, 28, 12, tzinfo=UTC)
TTL: Final = timedelta(minutes=10)
MS: Final = timedelta(milliseconds=1)
STATUSES: Final[tuple[Status, ...]] = (*get_args(Open), *get_args(Ended))
# By hand: from, to, and whether it may happen before the row lapses, and from then on.
MAY: Final = {
    ("pending", "approved"): (True, False),
    ("pending", "rejected"): (True, False),
    ("pending", "expired"): (False, True),
    ("approved", "running"): (True, False),
    ("approved", "expired"): (False, True),
    ("rejected", "refused"): (True, True),
    ("running", "ran"): (True, True),
    ("running", "approved"): (True, True),
    ("running", "interrupted"): (False, True),
}


def row(status: Status = "pending", updated: datetime = NOON) -> Confirmation:
    who = ("ident-of-a-confirmation", "shop", "owner", "acme", "ag", "agent", "ann")
    return Confirmation(*who, "refund", "k:print", b"sealed", NOON, NOON + TTL, updated, status)  # type: ignore[arg-type]  # a literal


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
def test_a_row_moves_as_the_table_says(before: Status, after: Status) -> None:
    live, lapsed = MAY.get((before, after), (False, False))
    for at, may in (
        (NOON, live),
        (NOON + TTL - MS, live),
        (NOON + TTL, lapsed),
        (NOON + TTL + MS, lapsed),
    ):
        changed = moved(row(before), after, at)
        assert changed == (replace(row(before), status=after, updated=at, version=1) if may else None), at


def test_the_table_names_every_status_and_the_open_ones_are_those_that_something_follows() -> None:
    assert set(TRANSITIONS) == set(STATUSES)
    assert {before for before, _ in MAY} == OPEN == set(get_args(Open))


def test_who_decides_is_written_down_and_stays() -> None:
    decided = moved(row(), "approved", NOON + MS, "bob")
    assert decided is not None
    assert (decided.decided_by, decided.decided_at) == ("bob", NOON + MS)
    running = moved(decided, "running", NOON + 2 * MS)
    assert running is not None
    assert (running.decided_by, running.decided_at, running.version) == ("bob", NOON + MS, 2)


def test_a_run_lapses_as_long_after_it_began_as_a_person_had_to_decide() -> None:
    began = NOON + TTL - MS
    running = row("running", began)
    assert running.lapses == began + TTL
    assert moved(running, "interrupted", began + TTL - MS) is None
    assert moved(running, "interrupted", began + TTL) is not None


def test_a_clock_that_goes_back_does_not_shorten_a_run() -> None:
    approved = row("approved", NOON + TTL - MS)
    running = moved(approved, "running", NOON)
    assert running is not None
    assert running.updated == NOON + TTL - MS


@pytest.mark.parametrize("status", STATUSES)
def test_what_lapsed_is_shown_as_over(status: Status) -> None:
    shown = {"pending": "expired", "approved": "expired", "running": "interrupted"}
    assert row(status).status_at(NOON + TTL - MS) == status
    assert row(status).status_at(NOON + TTL) == shown.get(status, status)


@pytest.mark.parametrize("status", STATUSES)
def test_only_what_waits_can_be_decided(status: Status) -> None:
    assert row(status).open_at(NOON + TTL - MS) is (status == "pending")
    assert not row(status).open_at(NOON + TTL)


def test_sealed_arguments_are_bound_to_everything_that_tells_a_row_from_another() -> None:
    others = [
        replace(row(), ident="x"),
        replace(row(), server="x"),
        replace(row(), owner="x"),
        replace(row(), tool="x"),
        replace(row(), fingerprint="x"),
    ]
    assert len({each.bound for each in (row(), *others)}) == 6


def test_a_row_shows_no_sealed_bytes() -> None:
    assert "sealed" not in repr(row())
