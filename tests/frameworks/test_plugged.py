"""README's app of FastAPI, before and after the added lines: served, met by an MCP client and over HTTP."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from ..boundaries.test_readme import (
    PATIENCE,
    README,
    Answer,
    blocks,
    call_at,
    free_port,
    reachable,
    tools_at,
    until,
)
from .running import ENVIRONMENT, command

FILE: Final = re.compile(r"[ +](?:#|//) ([\w./]+)\n")
PUBLISHED: Final = {"id": "1", "org": "acme", "live": True}
OPEN: Final = {
    "/posts": "ann",
    "/docs": None,
    "/openapi.json": None,
}  # FastAPI's own, and whose key they need


def files(marks: str) -> Mapping[str, str]:
    """Return README's files of one side: the lines with these marks, without them."""
    found = [text for text in blocks("diff") if FILE.match(text)]
    return {_named(text): _side(text, marks) for text in found}


def _named(text: str) -> str:
    match = FILE.match(text)
    assert match is not None
    return match[1]


def _side(text: str, marks: str) -> str:
    lines = [line or " " for line in text.splitlines()]
    return "".join(f"{line[1:]}\n" for line in lines if line[0] in marks)


@contextmanager
def served(folder: Path, marks: str) -> Generator[str]:
    """Write one side's files, serve them where FastAPI is installed, and end it."""
    for name, text in files(marks).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    port = free_port()
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            command("uvicorn", "blog:site", "--port", str(port)),
            cwd=folder,
            env=ENVIRONMENT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            until(lambda: reachable(port) or process.poll() is not None)
            assert process.poll() is None, (folder / "output").read_text()
            yield f"http://localhost:{port}"
        finally:
            process.terminate()
            process.wait(PATIENCE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with served(tmp_path_factory.mktemp("after"), " +") as url:
        yield url


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with served(tmp_path_factory.mktemp("before"), " -") as url:
        yield url


def called(site: str, token: str, post: str, tool: str = "publishPost") -> Answer:
    return call_at(f"{site}/agents/mcp", {"Authorization": f"Bearer {token}"}, tool, {"id": post})


def posted(site: str, key: str, post: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx2.post(f"{site}/posts/publish", json={"id": post}, headers=headers, trust_env=False)


def got(site: str, path: str, key: str | None) -> Any:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    answer = httpx2.get(f"{site}{path}", headers=headers, trust_env=False)
    assert answer.status_code == 200
    return answer


def test_under_fifteen_lines_are_added_in_all_files_together() -> None:
    added = [line for text in blocks("diff") for line in text.splitlines() if line.startswith("+")]
    assert len(added) < 15
    assert f"in {len(added)} added lines" in README
    assert max(map(len, added)) <= 130


def test_what_was_there_worked_before(before: str) -> None:
    """Or nothing would have been plugged into it."""
    assert all("nonsuch" not in text for text in files(" -").values())
    assert posted(before, "ann", "1").json() == PUBLISHED
    assert [posted(before, "ann", "2").status_code, posted(before, "vera", "1").status_code] == [403, 403]
    assert got(before, "/posts", "ann").json() == [PUBLISHED]
    assert httpx2.get(f"{before}/agents/mcp", trust_env=False).status_code == 404


def test_each_agent_lists_what_its_human_may_see(site: str) -> None:
    tools = {
        token: tools_at(f"{site}/agents/mcp", {"Authorization": f"Bearer {token}"})
        for token in ("ann-write", "ann-read", "vera-write")
    }
    assert tools == {
        "ann-write": ["listPosts", "publishPost"],
        "ann-read": ["listPosts", "publishPost"],
        "vera-write": ["listPosts"],
    }


def test_the_three_outcomes_over_mcp(site: str) -> None:
    hidden, absent = called(site, "vera-write", "1"), called(site, "vera-write", "1", "publishPage")
    assert hidden.text.startswith("tool not found: publishPost")
    assert (absent.code, absent.text.replace("Page", "Post")) == (hidden.code, hidden.text)
    assert called(site, "ann-read", "1").data["code"] == "X_MCP_SCOPE_DENIED"
    assert called(site, "ann-write", "2").text.startswith("X_FORBIDDEN: ")


def test_the_three_outcomes_over_the_hosts_own_route(site: str) -> None:
    """By a person's key, and by an agent's, which is judged there as it is over MCP."""
    codes = {
        (key, post): (answer.status_code, answer.json()["code"])
        for key, post in (
            ("vera", "1"),
            ("vera-write", "1"),
            ("ann-read", "1"),
            ("ann-write", "2"),
            ("ann", "2"),
        )
        if (answer := posted(site, key, post))
    }
    assert codes == {
        ("vera", "1"): (404, "X_ROUTE_NOT_FOUND"),
        ("vera-write", "1"): (404, "X_ROUTE_NOT_FOUND"),
        ("ann-read", "1"): (403, "X_MCP_SCOPE_DENIED"),
        ("ann-write", "2"): (403, "X_FORBIDDEN"),
        ("ann", "2"): (403, "X_FORBIDDEN"),
    }
    assert posted(site, "", "1").status_code == posted(site, "nobody", "1").status_code == 401


def test_what_is_permitted_is_done_by_either_way(tmp_path: Path) -> None:
    with served(tmp_path, " +") as fresh:
        assert got(fresh, "/posts", "ann").json() == [{**PUBLISHED, "live": False}]
        assert called(fresh, "ann-write", "1").data == PUBLISHED
        assert got(fresh, "/posts", "ann").json() == [PUBLISHED]
        assert posted(fresh, "ann", "1").json() == posted(fresh, "ann-write", "1").json() == PUBLISHED


def test_the_hosts_own_routes_are_as_they_were(site: str, before: str) -> None:
    for path, key in OPEN.items():
        one, two = got(site, path, key), got(before, path, key)
        assert one.headers["content-type"] == two.headers["content-type"]
        if path == "/docs":
            assert one.text == two.text
    bad = [httpx2.post(f"{each}/posts", trust_env=False) for each in (site, before)]
    assert [(each.status_code, each.text) for each in bad] == [(405, '{"detail":"Method Not Allowed"}')] * 2
