"""README.md does what it says: its example is written out, served, and met by a real MCP client."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

import nonsuch

from .sources import ROOT

README: Final = (ROOT / "README.md").read_text()
BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED: Final = re.compile(r"`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"\]\(([^)#:]+)\)")
SHELL: Final = ("console", "sh", "shell", "bash")
PORT: Final = "8000"
PATIENCE: Final = 30

# Shell lines of README that are run elsewhere. Every other one is run here.
ELSEWHERE: Final = {
    "make demo": "tests/adapters/demo/test_postly.py",
    "make test": "this run",
    "pip install nonsuch[serve]": "tests/boundaries/test_packaging.py",
    "export NONSUCH_AUDIT_KEYS=2026-11:$(openssl rand -hex 32)": "tests/adapters/cli/test_audit.py",
    "nonsuch audit verify audit.jsonl --heads /mnt/elsewhere/heads": "tests/adapters/cli/test_audit.py",
    "nonsuch audit head audit.jsonl": "tests/adapters/cli/test_audit.py",
    "nonsuch db grant-readonly --to app": "tests/adapters/edge/test_readonly_grant.py",
    "nonsuch db query SELECT count(*) FROM orders": "tests/adapters/cli/test_db_query.py",
    "echo SELECT * FROM totals | nonsuch db guard --database $DATABASE_URL": (
        "tests/adapters/cli/test_db_query.py"
    ),
}


@dataclass(frozen=True)
class Answer:
    """What a client was told: a JSON-RPC error has a code, a result has none."""

    code: int | None
    text: str
    data: Any = None
    is_error: bool = False


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(README) if name == language]


def shell() -> list[str]:
    """The shell lines, without their comments."""
    lines = [line for name, text in BLOCK.findall(README) if name in SHELL for line in text.splitlines()]
    return [shlex.join(words) for line in lines if (words := shlex.split(line, comments=True))]


def line_of(command: str) -> list[str]:
    return next(words for line in shell() if (words := shlex.split(line))[0] == command)


def app() -> str:
    """The one complete Python example."""
    (source,) = [text for text in blocks("python") if text.startswith("# app.py\n")]
    return source


def tokens() -> list[str]:
    """The keys of the example's table of tokens."""
    (table,) = re.findall(r"^TOKENS = \{(.*?)\}$", app(), re.MULTILINE | re.DOTALL)
    return re.findall(r'"([\w-]+)":', table)


def client_of_readme() -> tuple[str, dict[str, str]]:
    """The address and headers of the client configuration."""
    (text,) = blocks("json")
    (server,) = json.loads(text)["mcpServers"].values()
    assert server["type"] == "http"
    return server["url"], server["headers"]


# The example, served.


def write(folder: Path) -> None:
    for name, text in {**dict(NAMED.findall(README)), "app.py": app()}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@contextmanager
def served(folder: Path) -> Generator[int]:
    """Write the example's files, run README's own command on a free port, and end it."""
    write(folder)
    port = free_port()
    program, *arguments = (str(port) if word == PORT else word for word in line_of("uvicorn"))
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", program, *arguments], cwd=folder, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            until(lambda: reachable(port) or process.poll() is not None)
            assert process.poll() is None, (folder / "output").read_text()
            yield port
        finally:
            process.terminate()
            process.wait(PATIENCE)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return cast("int", one.getsockname()[1])


def reachable(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, "the server did not start"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Generator[int]:
    """A server that no test changes."""
    with served(tmp_path_factory.mktemp("example")) as number:
        yield number


@pytest.fixture
def fresh_port(tmp_path: Path) -> Generator[int]:
    """A server of one test."""
    with served(tmp_path) as number:
        yield number


# A client.


@asynccontextmanager
async def connected(url: str, headers: Mapping[str, str]) -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=PATIENCE, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


def headers_of(token: str) -> dict[str, str]:
    """The headers that README configures a client with, for another token."""
    _, headers = client_of_readme()
    (given,) = [each for each in tokens() if headers["Authorization"] == f"Bearer {each}"]
    return {name: value.replace(given, token) for name, value in headers.items()}


def url_of(port: int) -> str:
    """The address that README configures a client with, at another port."""
    url, _ = client_of_readme()
    assert f":{PORT}/" in url
    return url.replace(PORT, str(port))


def tools_at(url: str, headers: Mapping[str, str]) -> list[str]:
    """The names that a client lists."""

    async def ask() -> list[str]:
        async with connected(url, headers) as client:
            return sorted(tool.name for tool in (await client.list_tools()).tools)

    return asyncio.run(ask())


def call_at(url: str, headers: Mapping[str, str], tool: str, arguments: Mapping[str, Any]) -> Answer:
    """What a client is told of a call."""

    async def ask() -> Answer:
        async with connected(url, headers) as client:
            try:
                result = await client.call_tool(tool, dict(arguments))
            except MCPError as error:
                return Answer(error.code, error.message, error.data)
            text = "".join(each.text for each in result.content if isinstance(each, TextContent))
            return Answer(None, text, result.structured_content, result.is_error)

    return asyncio.run(ask())


def listed(port: int, token: str) -> list[str]:
    return tools_at(url_of(port), headers_of(token))


def called(port: int, token: str, tool: str, arguments: dict[str, Any] | None = None) -> Answer:
    return call_at(url_of(port), headers_of(token), tool, arguments or {})


# What README says of itself.


def test_the_example_has_under_forty_lines() -> None:
    assert len(app().splitlines()) < 40


def test_every_shell_line_is_run_here_or_elsewhere() -> None:
    run_here = {"uvicorn", "curl"}
    assert [
        line for line in shell() if line.split()[0] not in run_here and plain(line) not in ELSEWHERE
    ] == []
    assert run_here <= {line.split()[0] for line in shell()}


def plain(line: str) -> str:
    return " ".join(shlex.split(line))


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_every_extra_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"])
    assert set(re.findall(r"nonsuch\[(\w+)\]", README)) <= extras
    assert set(re.findall(r"nonsuch\[(\w+)\]`", README.partition("| install |")[2])) == extras


def test_every_table_that_an_app_makes_is_imported_from_the_package() -> None:
    named = set(re.findall(r"`(SQL_\w+)`", README + (ROOT / "policies" / "README.md").read_text()))
    assert named
    assert [each for each in named if not hasattr(nonsuch, each)] == []


def test_the_decision_table_holds_for_the_example(tmp_path: Path) -> None:
    write(tmp_path)
    command = [sys.executable, "-m", "nonsuch.adapters.cli", "policy", "test", "--app", "app", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [row["outcome"] for row in json.loads(done.stdout)["rows"]] == [
        "ok",
        "policy-denied",
        "hidden",
    ]


def test_every_link_leads_to_a_file() -> None:
    assert [link for link in LINK.findall(README) if not (ROOT / link).exists()] == []


# What README says of the example.


def test_a_caller_without_a_token_is_refused(port: int) -> None:
    url, _ = client_of_readme()
    answer = httpx2.post(url.replace(PORT, str(port)), json={}, trust_env=False)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="nonsuch-mcp"')


def test_each_token_lists_what_it_may_see(port: int) -> None:
    assert {token: listed(port, token) for token in tokens()} == {
        "ann-all": ["deleteNote", "listNotes"],
        "ann-read": ["deleteNote", "listNotes"],
        "vera-all": ["listNotes"],
    }


def test_everybody_lists_the_notes_of_the_own_organisation(port: int) -> None:
    rows = {"rows": [{"id": "1", "org": "acme"}]}
    assert {token: called(port, token, "listNotes").data for token in tokens()} == dict.fromkeys(
        tokens(), rows
    )


def test_a_hidden_tool_answers_what_a_name_nobody_declared_answers(port: int) -> None:
    hidden = called(port, "vera-all", "deleteNote", {"id": "1"})
    absent = called(port, "vera-all", "deleteNova", {"id": "1"})
    assert hidden.text.startswith("tool not found: deleteNote")
    assert (absent.code, absent.text.replace("Nova", "Note"), absent.data) == (hidden.code, hidden.text, None)


def test_a_missing_scope_is_told_by_name(port: int) -> None:
    answer = called(port, "ann-read", "deleteNote", {"id": "1"})
    assert answer.code == -32600
    assert answer.data["code"] == "X_MCP_SCOPE_DENIED"
    assert answer.data["scope"] == "write"
    assert answer.data["fix"]


def test_a_foreign_note_is_refused_like_one_that_is_not_there(port: int) -> None:
    foreign = called(port, "ann-all", "deleteNote", {"id": "2"})
    absent = called(port, "ann-all", "deleteNote", {"id": "9"})
    assert foreign == absent
    assert foreign.is_error
    assert re.fullmatch(r"X_FORBIDDEN: .+\nfix: .+", foreign.text)


def test_an_own_note_is_deleted(fresh_port: int) -> None:
    assert called(fresh_port, "ann-all", "deleteNote", {"id": "1"}).data == {"id": "1", "org": "acme"}
    assert called(fresh_port, "ann-all", "listNotes").data == {"rows": []}


def test_the_same_action_answers_over_http(fresh_port: int) -> None:
    first, second = (sent(line_of("curl"), fresh_port) for _ in range(2))
    assert (first.status_code, first.json()) == (200, {"id": "1", "org": "acme"})
    assert (second.status_code, second.json()["code"]) == (403, "X_FORBIDDEN")


def sent(curl: list[str], port: int) -> httpx2.Response:
    """Send what a curl line sends; a machine that runs the tests need not have curl."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-H", action="append", dest="headers")
    parser.add_argument("-d", dest="body")
    parser.add_argument("url")
    line = parser.parse_args(curl[1:])
    headers = dict(header.split(": ", 1) for header in line.headers)
    url = f"http://{line.url.replace(PORT, str(port))}"
    return httpx2.post(url, headers=headers, content=line.body, trust_env=False)
