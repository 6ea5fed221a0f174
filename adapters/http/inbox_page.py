"""The pages on which people decide: rows and arguments to what a template draws. Decides and reads nothing.

No script and nothing from elsewhere: a page works by links and forms alone, and its style sheet is ours.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pydantic_core import to_json

from ...kernel.confirmation import Confirmation, Status
from ...kernel.errors import Refusal
from ...kernel.strict_json import Json
from ..wire import Reply
from .plain_text import alphabets, pieces, segments

MAX_BYTES: Final = 65_536  # of arguments as JSON: whoever is shown more has not seen it
HTML: Final = "text/html; charset=utf-8"
CSS: Final = "text/css; charset=utf-8"
# Content Security Policy 3: the style sheet and forms of this origin, in no frame, and nothing else
_HEADERS: Final = (
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "same-origin"),  # under `no-referrer` a form has the origin `null`
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cache-control", "no-store"),
)
_STATUS: Final[Mapping[Status, str]] = {
    "pending": "waits for a person",
    "approved": "approved, has not run yet",
    "rejected": "rejected",
    "running": "approved, runs now",
    "ran": "approved, has run",
    "refused": "rejected, and the agent was told",
    "expired": "nobody decided in time",
    "interrupted": "approved, and its run was interrupted",
}


@dataclass(frozen=True, slots=True)
class Inbox:
    """Where the pages are, how they are titled, the path of the action that decides, and what draws them.

    ``path`` starts with a slash and ends without one. ``draw`` turns what a page holds into HTML, in which
    everything it holds is text.
    """

    path: str
    title: str
    decides: str
    draw: Callable[[Mapping[str, object]], str]
    style: bytes

    def first(self, path: str) -> str:
        """Return the address of the first page as seen from a path below it.

        Links are relative: before them stands whatever prefix the host has put there.
        """
        below = path.removeprefix(self.path).count("/")
        return "../" * below + self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Looking:
    """Who looks at a page, from where, and when (seconds since 1970)."""

    inbox: Inbox
    path: str
    at: float
    who: str = ""

    @property
    def moment(self) -> datetime:
        """When, as a time."""
        return datetime.fromtimestamp(self.at, UTC)


def listed(seen: Looking, waiting: Iterable[Confirmation], ended: Iterable[Confirmation]) -> Reply:
    """Return the page of what waits for a person, and of what was decided."""
    rows = {"waiting": [_row(each, seen.moment) for each in waiting]}
    rows["ended"] = [_row(each, seen.moment) for each in ended]
    return _page(200, "list", seen, **rows)


def shown(seen: Looking, told: Mapping[str, Json], said: Refusal | None = None, status: int = 200) -> Reply:
    """Return the page of one confirmation with its exact arguments; ``said`` is why it was not decided.

    Arguments of more than 64 KiB it does not show, and cannot have approved: its cost is bounded.
    """
    arguments = told.get("arguments")
    carried = to_json(arguments)
    readable = len(carried) <= MAX_BYTES
    return _page(
        status,
        "one",
        seen,
        said=said,
        told={key: pieces(str(value)) for key, value in told.items() if value is not None},
        state=_STATUS[_status(told)],
        open=told["status"] == "pending",
        left=_left(datetime.fromisoformat(str(told["expiresAt"])), seen.moment),
        length=len(carried),
        readable=readable,
        segments=segments(arguments) if readable else (),
        mixed=alphabets(arguments) if readable else (),
        carried=base64.b64encode(carried).decode() if readable else "",
    )


def refused(seen: Looking, status: int, said: Refusal, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """Return a page that says what is wrong and what to do."""
    return _page(status, "wrong", seen, headers, said=said)


def style(inbox: Inbox) -> Reply:
    """Return the style sheet."""
    kept = (("cache-control", "max-age=3600"), ("x-content-type-options", "nosniff"))
    return Reply(200, inbox.style, kept, CSS)


def _status(told: Mapping[str, Json]) -> Status:
    return next(each for each in _STATUS if each == told["status"])


def _row(row: Confirmation, at: datetime) -> dict[str, object]:
    status = row.status_at(at)
    return {
        "ident": row.ident,
        "tool": pieces(row.tool),
        "actor": pieces(row.actor),
        "person": None if row.person is None else pieces(row.person),
        "left": _left(row.expires, at),
        "state": _STATUS[status],
        "by": None if row.decided_by is None else pieces(row.decided_by),
        "at": row.decided_at or row.expires,
    }


def _left(expires: datetime, at: datetime) -> str:
    """Return how long there is, in words; the time itself stands beside it."""
    seconds = int((expires - at).total_seconds())
    if seconds <= 0:
        return "none"
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = seconds // size
        if count:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a minute"


def _page(
    status: int, name: str, seen: Looking, headers: tuple[tuple[str, str], ...] = (), /, **told: object
) -> Reply:
    inbox = seen.inbox
    given = {"page": name, "title": inbox.title, "home": inbox.first(seen.path), "who": pieces(seen.who)}
    text = inbox.draw({**given, **told})
    return Reply(status, text.encode(), (*headers, *_HEADERS), HTML)
