"""The inbox in a real browser: what a person sees is what is approved, by mouse or by keyboard."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.resources import files
from threading import Thread
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from nonsuch.kernel.model import Ok, Unconfirmed

from .bank import Bank, served

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
BROWSER: Final = next((found for each in BROWSERS if (found := shutil.which(each))), None)
QUIET: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AXE: Final = files("axe_playwright_python") / "axe.min.js"
HOME: Final = "/desk/confirmations"
HOSTILE: Final = {"to": "moc.elpmaxe\u202e@bob", "amount": 5, "note": "pay\u200b\u2066now"}

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here")


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with sync_playwright() as player:
        opened = player.chromium.launch(executable_path=BROWSER, args=list(QUIET))
        yield opened
        opened.close()


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def url(bank: Bank) -> Generator[str]:
    with served(bank) as address:
        yield address


def person(browser: Browser, url: str, **given: Any) -> Page:
    """A window of Ann's; whatever a page complains of fails the test."""
    context = browser.new_context(**given)
    context.add_cookies([{"name": "session", "value": "ann", "url": url, "sameSite": "Lax"}])
    page = context.new_page()
    page.on("console", _complained)
    page.goto(url + HOME)
    return page


def _complained(message: Any) -> None:
    raise AssertionError(message.text)


def test_what_is_seen_is_what_is_approved(browser: Browser, bank: Bank, url: str) -> None:
    bank.ask(**HOSTILE)
    page = person(browser, url)
    page.get_by_role("link", name="transfer").click()
    shown = page.get_by_role("region", name="Its arguments, exactly").inner_text()
    assert shown.split("\n")[1:4] == [
        '  "to": "moc.elpmaxeU+202E@bob",',
        '  "amount": 5,',
        '  "note": "payU+200BU+2066now"',
    ]
    page.get_by_role("button", name="Approve exactly this").click()
    assert page.get_by_role("status").inner_text() == "approved, has not run yet"
    assert isinstance(bank.call(HOSTILE), Ok)
    assert [each.model_dump() for each in bank.ran] == [HOSTILE]


def test_a_second_window_is_told_that_it_was_decided(browser: Browser, bank: Bank, url: str) -> None:
    bank.ask(to="bob")
    first, second = person(browser, url), person(browser, url)
    for page in (first, second):
        page.get_by_role("link", name="transfer").click()
    first.get_by_role("button", name="Reject").click()
    assert first.get_by_role("status").inner_text() == "rejected"
    second.remove_listener("console", _complained)  # the browser writes the status of the answer there
    second.get_by_role("button", name="Approve exactly this").click()
    assert "decided" in second.get_by_role("alert").inner_text()
    assert second.get_by_role("button").count() == 0
    assert isinstance(bank.call({"to": "bob"}), Unconfirmed)


def test_the_keyboard_is_enough(browser: Browser, bank: Bank, url: str) -> None:
    bank.ask(to="bob")
    page = person(browser, url)
    _walk(page, "transfer")
    page.keyboard.press("Enter")
    page.wait_for_url("**/confirmations/*")
    _walk(page, "Reject")
    page.keyboard.press("Enter")
    page.get_by_text("rejected").wait_for()


def _walk(page: Page, wanted: str) -> None:
    """Go on to the next thing until the wanted one has the focus."""
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText") == wanted:
            return
    raise AssertionError(f"the keyboard does not reach `{wanted}`")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_keeps_anybody_out(browser: Browser, bank: Bank, url: str, scheme: str) -> None:
    bank.ask(to="gone")
    bank.later(minutes=11)
    bank.ask(**HOSTILE)
    page = person(browser, url, color_scheme=scheme)
    found = _faults(page)
    page.get_by_role("link", name="transfer").first.click()
    found += _faults(page)
    page.remove_listener("console", _complained)
    page.goto(f"{url}{HOME}/nothing")
    assert found + _faults(page) == []


def _faults(page: Page) -> list[str]:
    """What axe-core finds by the rules of WCAG 2.2 AA and its own of best practice."""
    page.evaluate(AXE.read_text("utf-8"))
    found: list[str] = page.evaluate("axe.run().then(told => told.violations.map(each => each.help))")
    return found


class Evil(BaseHTTPRequestHandler):
    """A page of another origin that sends a form in the name of whoever looks at it, and one that frames."""

    ident = target = ""

    def do_GET(self) -> None:
        action = f"{self.target}{HOME}/{self.ident}"
        if self.path == "/form":
            form = f"<form method='post' action='{action}'><input name='decision' value='reject'></form>"
            text = f"{form}<script>document.forms[0].submit()</script>"
        else:
            text = f"<iframe src='{action}'></iframe>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def evil(bank: Bank, url: str) -> Generator[str]:
    server = HTTPServer(("127.0.0.1", 0), Evil)
    Evil.ident, Evil.target = bank.ask(to="bob"), url
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"  # the same site: SameSite keeps no cookie back
    server.shutdown()
    thread.join()
    server.server_close()


def test_another_origin_decides_nothing_in_a_persons_name(
    browser: Browser, bank: Bank, url: str, evil: str
) -> None:
    page = person(browser, url)
    page.remove_listener("console", _complained)
    with page.expect_response(f"**{HOME}/*") as told:
        page.goto(f"{evil}/form")
    assert told.value.request.all_headers()["cookie"] == "session=ann"  # the browser did send it
    assert told.value.status == 403
    page.goto(f"{url}{HOME}/{Evil.ident}")
    assert page.get_by_role("status").inner_text().startswith("waits for a person")


def test_another_origin_frames_nothing(browser: Browser, bank: Bank, url: str, evil: str) -> None:
    page = person(browser, url)
    page.remove_listener("console", _complained)
    page.goto(f"{evil}/frame")
    framed = page.frames[1]
    assert framed.get_by_role("button").count() == 0
