"""The one table of HTTP statuses: what each code of ours is over HTTP, and what an application's own is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from ...kernel.model import (
    Begun,
    Failed,
    Hidden,
    InputRequired,
    InvalidArguments,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    ScopeDenied,
    Unconfirmed,
    Unfit,
)

OK: Final = 200
FORBIDDEN: Final = 403  # whatever code a policy gives its denial
APPLICATION: Final = 409  # a code that is the application's: the state of something is in the way
STATUS: Final[Mapping[str, int]] = {
    "X_JSON_INVALID": 400,
    "X_UNAUTHENTICATED": 401,
    "X_FORBIDDEN": FORBIDDEN,
    "X_MCP_PROTOCOL": 403,  # the request's host or origin is none of ours
    "X_MCP_SCOPE_DENIED": 403,
    "X_MCP_CONFIRMATION_REJECTED": FORBIDDEN,
    "X_NOT_FOUND": 404,
    "X_ROUTE_NOT_FOUND": 404,
    "X_MCP_CONFIRMATION_UNKNOWN": 404,
    "X_METHOD_NOT_ALLOWED": 405,
    "X_IDEMPOTENCY_CONFLICT": 409,
    "X_IDEMPOTENCY_IN_PROGRESS": 409,
    "X_INTERRUPTED": 409,
    "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH": 409,
    "X_MCP_CONFIRMATION_CONTESTED": 409,
    "X_MCP_CONFIRMATION_DECIDED": 409,
    "X_MCP_CONFIRMATION_EXPIRED": 409,
    "X_MCP_CONFIRMATION_PENDING": 409,
    "X_MCP_CONFIRMATION_UNREADABLE": 409,
    "X_DB_BRANCH_BUSY": 409,
    "X_DB_MIGRATION_FAILED": 409,
    "X_DB_MIGRATIONS_DIFFER": 409,
    "X_MCP_CLIENT_SILENT": 409,  # nobody can be asked over HTTP
    "X_MCP_BODY_TOO_LARGE": 413,
    "X_MEDIA_TYPE_UNSUPPORTED": 415,
    "X_INPUT_INVALID": 422,
    "X_DB_SQL_FILE": 422,
    "X_DB_QUERY_FAILED": 422,
    "X_DB_TIMEOUT": 422,  # the query's own fault: it was allowed so many seconds
    "X_IDEMPOTENCY_KEY_REQUIRED": 428,
    "X_MCP_CONFIRMATIONS_FULL": 429,
    "X_MCP_RATE_LIMITED": 429,
    "X_INTERNAL": 500,
    "X_OUTPUT_INVALID": 500,
    "X_IDEMPOTENCY_STORE_FAILED": 503,
    "X_MCP_CONFIRMATION_STORE_FAILED": 503,
    "X_RATE_STORE_FAILED": 503,
}


def status_of(outcome: Outcome) -> int:
    """Return the status of how a call ended."""
    match outcome:
        case Ok():
            return OK
        case Hidden():
            return STATUS["X_ROUTE_NOT_FOUND"]
        case ScopeDenied():
            return STATUS["X_MCP_SCOPE_DENIED"]
        case InvalidArguments():
            return STATUS["X_INPUT_INVALID"]
        case PolicyDenied() | PolicyError():
            return FORBIDDEN
        case InputRequired() | Begun() | Unfit():  # HTTP has no line that could bring one of these about
            return STATUS["X_INTERNAL"]
        case Failed(code) | Unconfirmed(code):
            return STATUS.get(code, APPLICATION)
        case _:
            assert_never(outcome)
