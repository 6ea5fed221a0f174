"""The inbox: pages on which people see what waits for them, and decide it. Every decision is the kernel's.

A page shows what the decision action answers, and its forms are calls of that action: whoever may not decide
over ``/api`` may not here. Knows no framework, no socket and no store.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast
from urllib.parse import parse_qs

from pydantic_core import from_json

from ...kernel.codes import CODES
from ...kernel.confirmation import IDENT, Confirmation
from ...kernel.errors import Refusal, refusal, refused
from ...kernel.model import Agent, Call, Hidden, Human, Ok, Outcome
from ...kernel.steps import Audit, ListConfirmations, ReadBody, Returned, Steps
from ...kernel.strict_json import Json, JsonRefused, loads
from ...kernel.view import View
from ..authentication import Unauthenticated
from ..door import auth_refused, foreign
from ..meters import metered
from ..wire import Head, Reply, media_type
from . import inbox_page as page
from .inbox_page import Inbox, Looking
from .invoke import HttpServer, caller_of
from .status import STATUS, status_of

FORM: Final = "application/x-www-form-urlencoded"
STYLE: Final = "style.css"
MAX_FIELDS: Final = 8
_READS: Final = ("GET", "HEAD")


def is_inbox(inbox: Inbox | None, head: Head) -> bool:
    """Whether a request is for one of the pages, there or not."""
    return inbox is not None and (head.path == inbox.path or head.path.startswith(f"{inbox.path}/"))


def serve(server: HttpServer, inbox: Inbox, head: Head) -> Steps[Reply]:
    """Answer one request for a page.

    1. Host  2. where a form comes from  3. who  4. that it is a person  5. the rate  6. which page, and then
    the gates of the decision action.
    """
    seen = Looking(inbox, head.path, head.received)
    told = yield from foreign(_without_origin(head), server.door)  # 1
    if told is not None:
        return page.refused(seen, 403, told)
    place = head.path.removeprefix(inbox.path).removeprefix("/")
    if place == STYLE and head.method in _READS:
        return page.style(inbox)
    if head.method not in _READS and not same_origin(head):  # 2
        yield Audit(auth_refused("foreign-origin", 403, head))
        return _wrong(server, seen, "X_FORBIDDEN", "a decision comes from this page, and from no other site")
    who = yield from caller_of(server, head)  # 3
    if isinstance(who, Unauthenticated):
        return page.refused(seen, who.status, who.refusal, who.headers())
    if isinstance(who, Agent):  # 4
        return _wrong(server, seen, "X_FORBIDDEN", "confirmations are for people")
    held = yield from metered(server.door, "read" if head.method in _READS else "write", who)  # 5
    if held is not None:
        return page.refused(seen, held.status, refused(held.code, server.door.audience), held.headers)
    return (yield from _paged(server, replace(seen, who=who.id), head, who, place))


def _paged(server: HttpServer, seen: Looking, head: Head, who: Human, place: str) -> Steps[Reply]:
    item = head.path != seen.inbox.path
    if item and not IDENT.fullmatch(place):
        return _wrong(server, seen, "X_ROUTE_NOT_FOUND")
    methods = ("GET", "HEAD", "POST") if item else _READS
    if head.method not in methods:
        told = refused("X_METHOD_NOT_ALLOWED", server.door.audience)
        return page.refused(seen, 405, told, (("allow", ", ".join(methods)),))
    if not item:
        return (yield from _listed(server, seen, who))
    desk = _Desk(server, seen, head, server.kernel.view_for(who), place)
    return (yield from (desk.decided() if head.method == "POST" else desk.shown()))


def _listed(server: HttpServer, seen: Looking, who: Human) -> Steps[Reply]:
    waiting = yield ListConfirmations(who, "open")
    ended = yield ListConfirmations(who, "ended")
    if not isinstance(waiting, Returned) or not isinstance(ended, Returned):
        return _wrong(server, seen, "X_MCP_CONFIRMATION_STORE_FAILED")
    rows = (cast("list[Confirmation]", each.value) for each in (waiting, ended))
    return page.listed(seen, *rows)


class _Desk:
    """One confirmation, and the person before it."""

    def __init__(self, server: HttpServer, seen: Looking, head: Head, view: View, ident: str) -> None:
        self._server, self._seen, self._head = server, seen, head
        self._view, self._ident = view, ident

    def shown(self, said: Refusal | None = None, status: int = 200) -> Steps[Reply]:
        """Return the page; ``said`` is why a decision was not taken."""
        outcome = yield from self._asked({"id": self._ident, "decision": "view"})
        if isinstance(outcome, Ok):
            told = cast("Mapping[str, Json]", from_json(outcome.json))  # ours, and longer than what was sent
            return page.shown(self._seen, told, said, status)
        if said is None:
            said, status = self._why(outcome), status_of(outcome)
        return page.refused(self._seen, status, said)

    def decided(self) -> Steps[Reply]:
        """Take a decision; the answer leads back to the page, so that loading it again decides nothing."""
        sent = yield from self._sent()
        if isinstance(sent, Refusal):
            return (yield from self.shown(sent, STATUS[sent.code]))
        outcome = yield from self._asked({"id": self._ident, **sent})
        if isinstance(outcome, Ok):
            return Reply(303, headers=(("location", self._ident), ("cache-control", "no-store")))
        return (yield from self.shown(self._why(outcome), status_of(outcome)))

    def _asked(self, arguments: Mapping[str, Json]) -> Steps[Outcome]:
        call = Call(self._seen.inbox.decides, arguments, "http")
        return (yield from self._server.kernel.invoke(self._view, call))

    def _why(self, outcome: Outcome) -> Refusal:
        if isinstance(outcome, Hidden):
            return _said("X_ROUTE_NOT_FOUND")
        return refusal(outcome, self._seen.inbox.decides, self._server.door.audience)

    def _sent(self) -> Steps[dict[str, Json] | Refusal]:
        """Return what a form of ours holds, or why it is none."""
        if media_type(self._head) != FORM:
            return _said("X_MEDIA_TYPE_UNSUPPORTED", f"a decision is a form: {FORM}")
        body = yield ReadBody(self._server.door.body_limit)
        if not isinstance(body, Returned) or not isinstance(body.value, bytes):
            return _said("X_MCP_BODY_TOO_LARGE")
        try:
            return _decision(body.value.decode("ascii"))
        except (ValueError, JsonRefused, binascii.Error):
            return _said("X_INPUT_INVALID", "this is not a form of this page")


def _decision(text: str) -> dict[str, Json]:
    """Return the decision of a form, and the arguments that it carries. Raises: ValueError, JsonRefused."""
    fields = parse_qs(text, strict_parsing=True, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    if any(len(each) != 1 for each in fields.values()):
        raise ValueError("a field comes twice")
    sent: dict[str, Json] = {"decision": fields["decision"][0] if "decision" in fields else ""}
    if "arguments" in fields:
        sent["arguments"] = loads(base64.b64decode(fields["arguments"][0], validate=True))
    return sent


def same_origin(head: Head) -> bool:
    """Whether a browser says that a request comes from a page of this very origin.

    By ``Sec-Fetch-Site`` (Fetch Metadata Request Headers, 2.3), which no page can set; of a browser without
    it, by ``Origin`` (Fetch, 3.2), which it sends with every form. Who sends neither is no person's browser.
    """
    site, origin = head.headers.get("sec-fetch-site"), head.headers.get("origin")
    if origin is not None and not _is_host(origin, head.headers.get("host", "")):
        return False
    return site == "same-origin" if site is not None else origin is not None


def _is_host(origin: str, host: str) -> bool:
    scheme, _, authority = origin.partition("://")
    return scheme in ("http", "https") and bool(host) and authority == host


def _without_origin(head: Head) -> Head:
    """Return the head as it is judged by its host alone: the origin is judged here, and more strictly."""
    if "origin" not in head.headers:
        return head
    return replace(head, headers={name: told for name, told in head.headers.items() if name != "origin"})


def _said(code: str, cause: str | None = None) -> Refusal:
    told = CODES[code]
    return Refusal(code, cause or told.cause, told.caller_fix)


def _wrong(server: HttpServer, seen: Looking, code: str, cause: str | None = None) -> Reply:
    told = refused(code, server.door.audience)
    return page.refused(seen, STATUS[code], Refusal(code, cause or told.cause, told.fix))
