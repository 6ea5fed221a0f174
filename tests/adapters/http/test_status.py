"""One table of statuses: every code that a caller can meet over HTTP has one, and every outcome is in it."""

from __future__ import annotations

from typing import get_args

import pytest

from nonsuch.adapters.http.status import STATUS, status_of
from nonsuch.kernel.codes import CODES
from nonsuch.kernel.model import (
    Failed,
    Hidden,
    InvalidArguments,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    ScopeDenied,
    Unconfirmed,
    Unfit,
)


def test_every_code_that_a_caller_can_meet_has_a_status() -> None:
    """Those of MCP that are met over HTTP too are in the table; the rest of them are MCP's own."""
    met = {code for code, each in CODES.items() if each.culprit == "caller" and not code.startswith("X_MCP_")}
    assert met - set(STATUS) == set()
    assert set(STATUS) <= set(CODES)


def test_a_status_is_a_refusal() -> None:
    assert all(400 <= status < 600 for status in STATUS.values())


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Ok(b""), 200),
        (Hidden("x"), 404),
        (ScopeDenied("x"), 403),
        (InvalidArguments(()), 422),
        (PolicyDenied("X_NOT_FOUND", "", "", ""), 403),
        (PolicyDenied("X_APP", "", "", ""), 403),
        (PolicyError(()), 403),
        (Unfit("x"), 500),
        (Unconfirmed("X_MCP_CONFIRMATION_PENDING", "", "", "", ""), 409),
        (Unconfirmed("X_MCP_CONFIRMATION_REJECTED", "", "", "", ""), 403),
        (Failed("X_NOT_FOUND", "", "", ""), 404),
        (Failed("X_APP", "", "", ""), 409),
        (Failed("X_INTERNAL", "", "", ""), 500),
        (Failed("X_OUTPUT_INVALID", "", "", ""), 500),
        (Failed("X_IDEMPOTENCY_CONFLICT", "", "", ""), 409),
        (Failed("X_IDEMPOTENCY_IN_PROGRESS", "", "", ""), 409),
        (Failed("X_IDEMPOTENCY_KEY_REQUIRED", "", "", ""), 428),
        (Failed("X_IDEMPOTENCY_STORE_FAILED", "", "", ""), 503),
    ],
)
def test_an_outcome_has_its_status(outcome: Outcome, status: int) -> None:
    assert status_of(outcome) == status


def test_no_outcome_was_left_out_here() -> None:
    assert len(get_args(Outcome)) == 11
