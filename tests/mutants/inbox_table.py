"""The mutants of the inbox: another page decides, others look, what is seen is not what is approved."""

from __future__ import annotations

from typing import Final

from .mutant import mutant

PAGES: Final = "the inbox"
SEEN: Final = "what a person is shown"
LED: Final = "where a client is led"
_ORIGIN: Final = "adapters.http.inbox:same_origin"
_SERVE: Final = "adapters.http.inbox:serve"
_PLAIN: Final = "adapters.http.plain_text"

INBOX_MUTANTS: Final = (
    mutant(
        "inbox-any-origin",
        "a form of another site decides",
        (_SERVE, "not same_origin(head)", "False"),
        first=PAGES,
    ),
    mutant(
        "inbox-same-site",
        "a form of a neighbouring origin decides",
        (_ORIGIN, 'site == "same-origin"', 'site != "cross-site"'),
        first=PAGES,
    ),
    mutant(
        "inbox-no-headers",
        "who says nothing of where a form comes from decides",
        (_ORIGIN, "else origin is not None", "else True"),
        first=PAGES,
    ),
    mutant(
        "inbox-origin-by-prefix",
        "an origin that begins like ours decides",
        ("adapters.http.inbox:_is_host", "authority == host", "authority.startswith(host)"),
        first=PAGES,
    ),
    mutant(
        "inbox-fetch-alone",
        "the origin of a form is not looked at",
        (_ORIGIN, "origin is not None and not _is_host", "False and not _is_host"),
        first=PAGES,
    ),
    mutant(
        "inbox-foreign-host",
        "a page answers to any name",
        (_SERVE, "if told is not None:", "if False:"),
        first=PAGES,
    ),
    mutant(
        "inbox-agents",
        "an agent looks into the inbox",
        (_SERVE, "if isinstance(who, Agent):", "if False:"),
        first=PAGES,
    ),
    mutant(
        "inbox-markup",
        "an argument is markup",
        ("adapters.edge.inboxes:_draw", "autoescape=True", "autoescape=False"),
        first=PAGES,
    ),
    mutant(
        "inbox-kept",
        "a page is kept by a cache",
        ("adapters.http.inbox_page:_page", "*_HEADERS", "*_HEADERS[:-1]"),
        first=PAGES,
    ),
    mutant(
        "inbox-own-arguments",
        "an approval takes the row's arguments instead of those that it carries",
        (
            "adapters.http.inbox:_Desk.decided",
            '{"id": self._ident, **sent}',
            '{"id": self._ident, **sent, **({} if "arguments" not in sent else {"arguments": loads('
            '(yield from self._asked({"id": self._ident, "decision": "view"})).json)["arguments"]})}',
        ),
        first=PAGES,
    ),
    mutant(
        "inbox-late-form",
        "what has lapsed still offers a decision",
        ("adapters.http.inbox_page:shown", 'told["status"] == "pending"', "True"),
        first=PAGES,
    ),
    mutant(
        "inbox-unseen",
        "a character that shows nothing is shown as nothing",
        (f"{_PLAIN}:_hides", "return char in _DRAWN_AS_NOTHING or", "return False and"),
        first=SEEN,
    ),
    mutant(
        "inbox-formats-alone",
        "letters that are drawn as nothing are shown as nothing",
        (f"{_PLAIN}:_hides", "char in _DRAWN_AS_NOTHING or ", ""),
        first=SEEN,
    ),
    mutant(
        "inbox-runs-on",
        "the direction of one string reaches the next",
        (f"{_PLAIN}:segments", "bool(place % 2)", "False"),
        first=SEEN,
    ),
    mutant(
        "inbox-answered",
        "a client that says yes has confirmed its call",
        (
            "adapters.mcp.tools:call",
            "if isinstance(outcome, Unconfirmed):",
            'if isinstance(outcome, Unconfirmed) and "inputResponses" in params:\n'
            '        return answer(request, asked.name, entry, __import__("nonsuch.kernel.model", '
            'fromlist=["Ok"]).Ok(b"{}"))\n'
            "    if isinstance(outcome, Unconfirmed):",
        ),
        first=LED,
    ),
    mutant(
        "inbox-any-address",
        "a client is led to what is no address",
        (
            "adapters.mcp.deciding:led",
            'not address.startswith(("https://", "http://")) or ',
            "",
        ),
        first=LED,
    ),
    mutant(
        "inbox-guessed",
        "a client is led that did not say it opens addresses",
        ("adapters.mcp.deciding:led", "or not line.opens_addresses", ""),
        first=LED,
    ),
)
