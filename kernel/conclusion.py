"""What a handler answered or raised, as an outcome: serialised, or told in words that give nothing away.

Decides nothing: whoever gets here was permitted.
"""

from __future__ import annotations

from pydantic_core import to_json

from .asks import Incapable, RoundEnded
from .catalog import Entry
from .codes import CODES
from .denials import failed
from .errors import ActionError
from .model import Failed, InputRequired, Ok, Outcome, PolicyError, Unfit
from .schema import OutputRefused
from .steps import Answer, Raised, Returned, UnknownStep


def concluded(entry: Entry, answer: Answer) -> Outcome:
    """Return what a call came to."""
    return _answered(entry, answer.value) if isinstance(answer, Returned) else raised(answer)


def _answered(entry: Entry, value: object) -> Outcome:
    if entry.single and value is None:
        return failed("X_NOT_FOUND")
    try:
        return Ok(entry.output.serialise(value))
    except OutputRefused:
        return failed("X_OUTPUT_INVALID")


def raised(answer: Raised) -> Failed | PolicyError | InputRequired | Unfit:
    """Application errors are told to the caller in their own words; anything else never is."""
    error = answer.error
    if isinstance(error, RoundEnded):
        return InputRequired(error.asks, error.state)
    if isinstance(error, Incapable):
        return Unfit("the client does not declare what this work asks of it", error.needs)
    denied = edge_denied(error)
    if denied is not None:
        return denied
    if not isinstance(error, Exception):
        return failed("X_INTERRUPTED")
    if isinstance(error, ActionError):
        words = error.words()
        return Failed(*words) if words is not None else failed("X_INTERNAL")
    return failed("X_INTERNAL")


def edge_denied(error: BaseException) -> PolicyError | None:
    """Return the denial of an edge that does not know a step of the kernel's; nothing for another error."""
    standard = CODES["X_FORBIDDEN"]
    unknown = isinstance(error, UnknownStep)
    return PolicyError(("<edge>",), standard.cause, standard.fix, standard.caller_fix) if unknown else None


def suggested(values: list[str]) -> Ok | Failed:
    """Return the values of a completion."""
    try:
        return Ok(to_json(values))
    except ValueError:  # half a surrogate pair, which nobody can be sent
        return failed("X_OUTPUT_INVALID")
