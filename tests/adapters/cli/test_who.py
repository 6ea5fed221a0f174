"""`who`: the matrix as a table, as JSON, and as a page that stands on its own and draws in a browser."""

from __future__ import annotations

import json
import shutil
import subprocess
import zlib
from html.parser import HTMLParser
from typing import Final

import pytest

from .desk import Desk

CHROMIUM: Final = shutil.which("chromium")


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


def test_the_matrix_of_the_demo(desk: Desk) -> None:
    found = desk.json("who")
    cells = {(each["tool"], each["role"]): each for each in found["cells"]}
    assert found["roles"] == ["admin", "editor", "staff", "viewer", None]
    assert {role: cells["refundOrder", role]["result"] for role in found["roles"]} == {
        "admin": "depends",
        "editor": "depends",
        "staff": "depends",
        "viewer": "hidden",
        None: "hidden",
    }
    admin = {each["policy"]: each["conditions"] for each in cells["refundOrder", "admin"]["calls_rules"]}
    editor = {each["policy"]: each["conditions"] for each in cells["refundOrder", "editor"]["calls_rules"]}
    assert editor.keys() - admin.keys() == {"order.refund-limit"}
    assert editor["order.refund-limit"] == ["context.args.amountMinor > 10000"]
    assert cells["refundOrder", "admin"]["scope"] == "orders:write"
    assert cells["refundOrder", "admin"]["token"] == "needed"


def test_people_in_a_session_need_no_scope(desk: Desk) -> None:
    assert {each["token"] for each in desk.json("who", "--human")["cells"]} == {"none"}


def test_some_tools_and_roles(desk: Desk) -> None:
    found = desk.json("who", "--tool", "getPost,listPosts", "--role", "viewer")
    assert [(each["tool"], each["role"]) for each in found["cells"]] == [
        ("listPosts", "viewer"),
        ("getPost", "viewer"),
    ]


def test_the_table_lists_tools_by_role_and_then_the_conditions(desk: Desk) -> None:
    told = desk.run("who").out
    assert "tool" in told.splitlines()[0]
    assert "\n  depends for editor, staff:\n" in told
    assert "    forbid order.refund-limit: not if context.args.amountMinor > 10000\n" in told
    assert '    forbid payout.open: only if resource.status == "open"\n' in told


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


@pytest.mark.skipif(CHROMIUM is None, reason="no browser here")
@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_draws_the_page(desk: Desk, dark: bool) -> None:
    desk.run("who", "--html", "who.html")
    shot = desk.at / "who.png"
    program = [
        str(CHROMIUM),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        f"--user-data-dir={desk.at / 'profile'}",
        "--window-size=1200,700",
        f"--screenshot={shot}",
        *(["--force-dark-mode"] if dark else []),
        (desk.at / "who.html").as_uri(),
    ]
    subprocess.run(program, capture_output=True, check=True, timeout=120)
    drawn = pixels(shot.read_bytes())
    assert len(set(drawn)) > 8
    assert max(drawn.count(each) for each in set(drawn)) < len(drawn) * 0.97


def pixels(png: bytes) -> list[bytes]:
    """Return some pixels of a PNG: a filtered scan line says as well as a plain one whether all are alike."""
    at, data, size = 8, b"", 0
    while at < len(png):
        length, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + length]
        size = int.from_bytes(body[:4], "big") if kind == b"IHDR" else size
        data += body if kind == b"IDAT" else b""
        at += length + 12
    raw = zlib.decompress(data)
    stride = len(raw) // 700
    rows = [raw[row * stride + 1 : (row + 1) * stride] for row in range(0, 700, 7)]
    return [row[column : column + 3] for row in rows for column in range(0, len(row) - 3, 33)]
