"""The page of `who --html`: it stands on its own, and a browser draws it so that it can be read."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest

from .desk import Desk

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
BROWSER: Final = next((found for each in BROWSERS if (found := shutil.which(each))), None)
QUIET: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
WIDTH: Final = 900
HEIGHT: Final = 560
WORDS: Final = ("always", "depends", "never", "hidden")


class Page(HTMLParser):
    """What a page holds: cells by row, tags with their attributes, embedded data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[list[str]] = []
        self.data = ""
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        self._open = "json" if attributes.get("type") == "application/json" else tag
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in ("td", "th"):
            self.cells[-1][-1] += data.strip()
        if self._open == "json":
            self.data += data


def test_the_page_holds_the_same_matrix(desk: Desk) -> None:
    found = desk.json("who", "--html", "who.html")
    page = Page((desk.at / "who.html").read_text())
    head, *rows = page.cells
    assert head == ["Tool", "Scope", "admin", "editor", "staff", "viewer", "(no role)"]
    width = len(found["roles"])
    results = [each["result"] for each in found["cells"]]
    assert [row[2:] for row in rows] == [results[at : at + width] for at in range(0, len(results), width)]
    assert [row[0] for row in rows] == [each["name"] for each in found["tools"]]
    rules = json.loads(page.data)
    named = {
        each["policy"] for cell in found["cells"] for each in [*cell["calls_rules"], *cell["sees_rules"]]
    }
    assert {each["policy"] for each in rules} == named


def test_the_page_needs_nothing_from_elsewhere(desk: Desk) -> None:
    desk.run("who", "--html", "who.html")
    text = (desk.at / "who.html").read_text()
    page = Page(text)
    assert [tag for tag, attributes in page.tags if {"src", "href", "action"} & attributes.keys()] == []
    assert "http://" not in text
    assert "https://" not in text
    assert "prefers-color-scheme: dark" in text
    assert any(attributes.get("role") == "grid" for _, attributes in page.tags)


def test_names_cannot_break_out_of_the_page(desk: Desk) -> None:
    (desk.at / "policies").mkdir()
    (desk.at / "policies" / "a.cedar").write_text(
        '@id("</script><script>x()</script>") permit (principal, action in Action::"a:b", resource)'
        ' when { principal has org && principal.org == "<b onload=x()>" };'
    )
    (desk.at / "hostile_app.py").write_text(
        "from nonsuch import Registry, can, define_app_mcp, expose\n"
        "registry = Registry()\n"
        "@registry.action(policy=can('a:b'), mcp=expose('A'))\n"
        "def ping() -> str: return 'pong'\n"
        "mcp = define_app_mcp(registry, name='<img src=x>', include='exposed', policies_dir='policies')\n"
    )
    assert desk.run("who", "--app", "hostile_app", "--html", "who.html").status == 0
    text = (desk.at / "who.html").read_text()
    assert "<img" not in text
    assert text.count("<script") == 2
    assert "<b onload" not in text
    assert json.loads(Page(text).data)[0]["policy"] == "</script><script>x()</script>"


# A browser.

ALL_FOUR: Final = """
from nonsuch import Registry, can, define_app_mcp, expose, grant
registry = Registry()
@registry.action(policy=can("a:all"), mcp=expose("A"))
def everybody() -> str: return "done"
@registry.action(policy=can("a:some"), mcp=expose("B"))
def some() -> str: return "done"
@registry.action(policy=can("a:none"), mcp=expose("C", visible_to=["admin"]))
def nobody() -> str: return "done"
mcp = define_app_mcp(
    registry, name="four", include="exposed", roles=["admin", "editor"], policies_dir="own",
    grants=[grant("admin", "a:all"), grant("editor", "a:all")],
)
"""


@dataclass(frozen=True, slots=True)
class Browser:
    """Draws one page."""

    page: Path
    dark: bool

    def run(self, *arguments: str) -> str:
        flags = (*QUIET, f"--user-data-dir={self.page.with_suffix('.profile')}")
        theme = ("--force-dark-mode",) if self.dark else ()
        size = f"--window-size={WIDTH},{HEIGHT}"
        program = [str(BROWSER), *flags, *theme, size, *arguments, self.page.as_uri()]
        return subprocess.run(program, capture_output=True, check=True, timeout=120, text=True).stdout

    def measured(self) -> dict[str, Any]:
        """Return what a script in a copy of the page measures."""
        return self._told(self.page.read_text().replace("</body>", f"{script('measure')}</body>"))

    def drawn(self) -> dict[str, int]:
        """Return the colours of a picture of the page, and how often each is in it."""
        picture = self.page.with_suffix(".png")
        self.run(f"--screenshot={picture}")
        held = base64.b64encode(picture.read_bytes()).decode()
        return self._told(f'<body><img src="data:image/png;base64,{held}">{script("count")}</body>')

    def _told(self, text: str) -> dict[str, Any]:
        copy = self.page.with_name("asked.html")
        copy.write_text(text)
        dumped = Browser(copy, self.dark).run("--dump-dom")
        held = Output(dumped).text
        assert held, dumped[-2000:]
        found: dict[str, Any] = json.loads(held)
        return found


def script(name: str) -> str:
    """Return a script of this directory as an element."""
    return f"<script>{Path(__file__).with_name(f'{name}.js').read_text()}</script>"


class Output(HTMLParser):
    """The text of the last ``output`` of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self._open = "", False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag == "output"

    def handle_data(self, data: str) -> None:
        if self._open:
            self.text += data


@pytest.fixture(params=[False, True], ids=["light", "dark"])
def browser(desk: Desk, request: pytest.FixtureRequest) -> Browser:
    if BROWSER is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the path")
    (desk.at / "own").mkdir()
    (desk.at / "own" / "a.cedar").write_text(
        '@id("some") permit (principal, action in Action::"a:some", resource) when { principal has org };'
    )
    name = f"four_{'dark' if request.param else 'light'}"
    (desk.at / f"{name}.py").write_text(ALL_FOUR)
    assert desk.run("who", "--app", name, "--html", "who.html").status == 0
    return Browser(desk.at / "who.html", request.param)


def test_a_browser_shows_the_whole_table_so_that_it_can_be_read(browser: Browser) -> None:
    found = browser.measured()
    assert found["dark"] is browser.dark
    assert (found["page"] < 0.05, found["page"] > 0.9) == (browser.dark, not browser.dark)
    assert found["contrast"] >= 4.5  # WCAG 2.2, 1.4.3
    assert found["smallest"] >= 12
    assert (found["width"], found["shown"]) == (WIDTH, "3 of 3 tools")
    assert found["bottom"] <= HEIGHT


def test_a_browser_tells_the_results_apart_without_colour(browser: Browser) -> None:
    found = browser.measured()
    assert set(found["signs"]) == set(WORDS)
    assert len(set(found["signs"].values())) == len(WORDS)
    assert found["legend"] == [[word, found["signs"][word]] for word in WORDS]


def test_a_browser_answers_a_click(browser: Browser) -> None:
    found = browser.measured()
    assert set(found["dimmed"]) == {"hidden"}
    assert found["detail"].startswith("everybody for admin: always\n")
    assert "permit grant admin a:all" in " ".join(found["detail"].split())


# The grounds of always, depends, never and hidden, as the page's style names them.
GROUNDS: Final = {
    False: ("d7f2df", "fff2cc", "fadbdb", "f3f5f7"),
    True: ("14391f", "3d3110", "451a1c", "191d22"),
}


def test_a_browser_paints_every_result(browser: Browser) -> None:
    drawn = browser.drawn()
    assert sum(drawn.values()) == WIDTH * HEIGHT
    grounds = {colour: drawn.get(colour, 0) for colour in GROUNDS[browser.dark]}
    assert min(grounds.values()) > 500, grounds
