"""The pages on which people decide: who sees what, what a form may do, and what a page lets nobody do."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from urllib.parse import urlencode

import pytest

from nonsuch import BootError, Registry, define_app_mcp
from nonsuch.adapters.edge import extras
from nonsuch.adapters.edge.extras import ExtraMissing
from nonsuch.kernel.audit import ToolCall
from nonsuch.kernel.model import Ok, Unconfirmed

from ..mcp.wire import Answer, Request, in_process
from .bank import Bank, session

HOME = "/desk/confirmations"
HOST = "127.0.0.1:8000"
FORM = "application/x-www-form-urlencoded"
OURS = {"sec-fetch-site": "same-origin", "origin": f"http://{HOST}"}
UNKNOWN = "n" * 32


@pytest.fixture
def bank() -> Bank:
    return Bank()


def get(bank: Bank, path: str = "", who: str | None = "ann", method: str = "GET") -> Answer:
    headers = [("host", HOST), *([("cookie", f"session={who}")] if who else [])]
    return in_process(bank.app, Request(method, HOME + path, tuple(headers)), clock=bank.clock)


def post(
    bank: Bank,
    ident: str,
    fields: Mapping[str, str] | bytes,
    who: str = "ann",
    headers: Mapping[str, str] = OURS,
    media: str = FORM,
) -> Answer:
    body = fields if isinstance(fields, bytes) else urlencode(fields).encode()
    sent = {"host": HOST, "cookie": f"session={who}", "content-type": media, **headers}
    sent["content-length"] = str(len(body))
    asked = Request("POST", f"{HOME}/{ident}", tuple(sent.items()), body)
    return in_process(bank.app, asked, clock=bank.clock)


def form(answer: Answer) -> dict[str, str]:
    """The approval that a page offers."""
    carried = re.search(rb'name="arguments" value="([^"]*)"', answer.body)
    assert carried is not None
    return {"decision": "approve", "arguments": carried[1].decode()}


def code(answer: Answer) -> str:
    """What an error page says."""
    found = re.search(rb"<small>\((X_[A-Z_]+)\)</small>", answer.body)
    assert found is not None, answer.body
    return found[1].decode()


# deciding


def test_what_waits_is_listed_shown_approved_and_run_once(bank: Bank) -> None:
    ident = bank.ask(to="bob", amount=3)
    assert f'href="confirmations/{ident}"'.encode() in get(bank).body
    shown = get(bank, f"/{ident}")
    assert b"waits for a person; time left: 10 minutes" in shown.body
    answer = post(bank, ident, form(shown))
    assert (answer.status, dict(answer.headers)["location"]) == (303, ident)
    assert b"approved, has not run yet" in get(bank, f"/{ident}").body
    assert isinstance(bank.call({"to": "bob", "amount": 3}), Ok)
    assert [each.to for each in bank.ran] == ["bob"]
    assert b"approved, has run" in get(bank).body


def test_what_is_rejected_never_runs(bank: Bank) -> None:
    ident = bank.ask(to="bob")
    assert post(bank, ident, {"decision": "reject"}).status == 303
    told = bank.call({"to": "bob"})
    assert isinstance(told, Unconfirmed)
    assert told.code == "X_MCP_CONFIRMATION_REJECTED"
    assert bank.ran == []
    assert b"rejected, and the agent was told" in get(bank).body


def test_what_is_decided_is_not_decided_again(bank: Bank) -> None:
    ident = bank.ask(to="bob")
    approval = form(get(bank, f"/{ident}"))
    post(bank, ident, {"decision": "reject"})
    again = post(bank, ident, approval)
    assert (again.status, code(again)) == (409, "X_MCP_CONFIRMATION_DECIDED")
    assert b"<form" not in again.body


def test_what_has_lapsed_offers_no_decision(bank: Bank) -> None:
    ident = bank.ask(to="bob")
    approval = form(get(bank, f"/{ident}"))
    bank.later(minutes=10)
    page = get(bank, f"/{ident}")
    assert b"nobody decided in time" in page.body
    assert b"<form" not in page.body
    late = post(bank, ident, approval)
    assert (late.status, code(late)) == (409, "X_MCP_CONFIRMATION_EXPIRED")


def test_a_form_of_other_arguments_approves_nothing(bank: Bank) -> None:
    ident = bank.ask(to="bob", amount=1)
    other = base64.b64encode(b'{"to":"bob","amount":2}').decode()
    answer = post(bank, ident, {"decision": "approve", "arguments": other})
    assert (answer.status, code(answer)) == (409, "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH")
    assert isinstance(bank.call({"to": "bob", "amount": 1}), Unconfirmed)


def test_every_decision_and_every_look_at_arguments_is_audited(bank: Bank) -> None:
    ident = bank.ask(to="bob")
    bank.heard.clear()
    page = get(bank, f"/{ident}")
    post(bank, ident, form(page))
    found = [(each.caller, each.outcome, each.decision) for each in bank.heard if isinstance(each, ToolCall)]
    assert found == [("ann", "ok", "view"), ("ann", "ok", "approve")]


# who


@pytest.mark.parametrize("who", ["eve", "clerk"])
def test_others_see_nothing_and_cannot_tell_it_from_nothing(bank: Bank, who: str) -> None:
    ident = bank.ask(to="bob")
    assert ident.encode() not in get(bank, who=who).body
    there, absent = get(bank, f"/{ident}", who), get(bank, f"/{UNKNOWN}", who)
    assert there == absent
    assert there.status == 403
    there, absent = (post(bank, each, {"decision": "reject"}, who) for each in (ident, UNKNOWN))
    assert there == absent
    assert isinstance(bank.call({"to": "bob"}), Unconfirmed)


def test_nobody_and_no_agent_comes_in(bank: Bank) -> None:
    assert get(bank, who=None).status == 401
    assert get(bank, who="mallory").status == 401
    agent = Request("GET", HOME, (("host", HOST), ("authorization", "Bearer bot")))
    answer = in_process(bank.app, agent)
    assert (answer.status, code(answer)) == (403, "X_FORBIDDEN")


def test_a_person_by_token_may_look(bank: Bank) -> None:
    asked = Request("GET", HOME, (("host", HOST), ("authorization", "Bearer ann")))
    answer = in_process(bank.app, asked)
    assert answer.status == 200


# where a form comes from


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
        {"sec-fetch-site": "same-site", "origin": "https://other.example"},
        {"sec-fetch-site": "same-origin", "origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "none"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": f"http://{HOST}/"},
        {"origin": f"http://{HOST}.evil.example"},
        {"origin": f"ftp://{HOST}"},
        {},
    ],
    ids=str,
)
def test_no_other_page_decides(bank: Bank, headers: dict[str, str]) -> None:
    ident = bank.ask(to="bob")
    answer = post(bank, ident, form(get(bank, f"/{ident}")), headers=headers)
    assert (answer.status, code(answer)) == (403, "X_FORBIDDEN")
    assert b"waits for a person" in get(bank, f"/{ident}").body


@pytest.mark.parametrize(
    "headers",
    [OURS, {"origin": f"http://{HOST}"}, {"origin": f"https://{HOST}"}, {"sec-fetch-site": "same-origin"}],
)
def test_this_page_decides(bank: Bank, headers: dict[str, str]) -> None:
    ident = bank.ask(to="bob")
    assert post(bank, ident, {"decision": "reject"}, headers=headers).status == 303


def test_a_foreign_host_is_answered_nothing(bank: Bank) -> None:
    asked = Request("GET", HOME, (("host", "evil.example"), ("cookie", "session=ann")))
    answer = in_process(bank.app, asked)
    assert (answer.status, code(answer)) == (403, "X_MCP_PROTOCOL")


# what is sent


@pytest.mark.parametrize(
    ("fields", "status", "told"),
    [
        (b"", 422, "X_INPUT_INVALID"),
        (b"decision", 422, "X_INPUT_INVALID"),
        (b"decision=approve&decision=reject", 422, "X_INPUT_INVALID"),
        (b"decision=approve&arguments=%21", 422, "X_INPUT_INVALID"),
        (b"decision=approve&arguments=e30", 422, "X_INPUT_INVALID"),  # no padding
        (b"decision=approve&arguments=eyJhIjoxLCJhIjoyfQ==", 422, "X_INPUT_INVALID"),  # a key twice
        (b"decision=approve&arguments=W10=", 422, "X_INPUT_INVALID"),  # a list
        (b"decision=maybe", 422, "X_INPUT_INVALID"),
        (b"decision=approve", 409, "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"),
        (b"&".join(b"f%d=1" % each for each in range(9)), 422, "X_INPUT_INVALID"),
        (b"decision=reject\xff", 422, "X_INPUT_INVALID"),
    ],
)
def test_what_is_no_form_of_ours_is_refused_and_shown_with_the_page(
    bank: Bank, fields: bytes, status: int, told: str
) -> None:
    ident = bank.ask(to="bob")
    answer = post(bank, ident, fields)
    assert (answer.status, code(answer)) == (status, told)
    assert b"Approve exactly this" in answer.body


def test_a_body_of_another_kind_or_size_is_refused(bank: Bank) -> None:
    ident = bank.ask(to="bob")
    other = post(bank, ident, b'{"decision":"reject"}', media="application/json")
    assert (other.status, code(other)) == (415, "X_MEDIA_TYPE_UNSUPPORTED")
    long = post(bank, ident, b"a" * 1_100_000)
    assert (long.status, code(long)) == (413, "X_MCP_BODY_TOO_LARGE")


@pytest.mark.parametrize("path", ["/x", "/a/b", f"/{UNKNOWN}/", "/style.css/", "/..%2f"])
def test_what_is_no_page_is_not_there(bank: Bank, path: str) -> None:
    answer = get(bank, path)
    assert (answer.status, code(answer)) == (404, "X_ROUTE_NOT_FOUND")


@pytest.mark.parametrize(("path", "allowed"), [("", "GET, HEAD"), (f"/{UNKNOWN}", "GET, HEAD, POST")])
def test_other_methods_are_refused(bank: Bank, path: str, allowed: str) -> None:
    headers = (("host", HOST), ("cookie", "session=ann"), *OURS.items())
    answer = in_process(bank.app, Request("PUT", HOME + path, headers))
    assert (answer.status, code(answer)) == (405, "X_METHOD_NOT_ALLOWED")
    assert dict(answer.headers)["allow"] == allowed


# what a page holds


def test_nothing_of_a_caller_is_markup(bank: Bank) -> None:
    ident = bank.ask(to='"><script>alert(1)</script>', note="{{ 7 * 7 }}</pre>")
    page = get(bank, f"/{ident}").body.decode()
    assert "<script" not in page
    assert page.count("</pre>") == 1
    assert "{{ 7 * 7 }}" in page


def test_what_cannot_be_seen_is_named(bank: Bank) -> None:
    ident = bank.ask(to="\u202eevil", note="а\u200bb")
    page = get(bank, f"/{ident}").body.decode()
    assert '<span class="hidden" title="RIGHT-TO-LEFT OVERRIDE">U+202E</span>' in page
    assert '<span class="hidden" title="ZERO WIDTH SPACE">U+200B</span>' in page
    assert "\u202e" not in page
    assert "\u200b" not in page


def test_every_page_is_kept_by_nobody_and_runs_nothing(bank: Bank) -> None:
    ident = bank.ask(to="bob")
    for answer in (get(bank), get(bank, f"/{ident}"), get(bank, who=None), get(bank, "/x")):
        headers = dict(answer.headers)
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'; ")
        assert headers["x-frame-options"] == "DENY"
        assert b"<script" not in answer.body
        assert b"style=" not in answer.body
        assert b"://" not in answer.body


def test_a_page_names_its_style_sheet_from_wherever_it_is(bank: Bank) -> None:
    ident = bank.ask(to="bob")
    assert b'href="confirmations/style.css"' in get(bank).body
    assert b'href="../confirmations/style.css"' in get(bank, f"/{ident}").body
    assert b'href="../../confirmations/style.css"' in get(bank, "/a/b").body
    style = get(bank, "/style.css", who=None)
    assert (style.status, dict(style.headers)["content-type"]) == (200, "text/css; charset=utf-8")


# declaring


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"confirmations": None}, "has nothing to decide"),
        ({"resolve_principal": None}, "a browser sends no token"),
        ({"inbox": "/api/inbox"}, "something else is there"),
        ({"inbox": "/mcp"}, "something else is there"),
        ({"inbox": "/"}, "something else is there"),
        ({"inbox": "/a//b"}, "something else is there"),
    ],
)
def test_an_inbox_that_cannot_be_is_refused_at_boot(given: dict[str, object], cause: str) -> None:
    with pytest.raises(BootError, match=cause):
        Bank(given)


def test_an_inbox_without_confirmations_has_nothing_to_decide() -> None:
    with pytest.raises(BootError, match="has nothing to decide"):
        define_app_mcp(Registry(), name="bank", inbox="/confirmations", resolve_principal=session)


def test_the_package_that_draws_the_pages_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        del name

    monkeypatch.setattr(extras, "find_spec", nothing)
    with pytest.raises(ExtraMissing, match=r"pip install \"nonsuch\[inbox\]\""):
        Bank()
