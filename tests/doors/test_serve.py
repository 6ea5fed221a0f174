"""`nonsuch serve` and `dev` as programs: what they say, how they stop, what they follow, why they refuse."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from nonsuch.adapters.cli import main as entry
from nonsuch.adapters.cli import serve as module
from nonsuch.adapters.edge.extras import ExtraMissing

PATIENCE_SECONDS: Final = 20
PROMPT_SECONDS: Final = 5
MODERN: Final = "2026-07-28"
PROJECT: Final = '[tool.nonsuch]\napp = "notes"\n'
NOTES: Final = """\
from contextlib import asynccontextmanager
import sys

from nonsuch import Agent, Registry, can, define_app_mcp, expose

registry = Registry()

@registry.query(policy=can("note:read"), mcp=expose("Say"))
def say() -> str:
    return "first"

def resolve(token: str) -> Agent | None:
    return Agent("ann", roles={"member"}) if token == "ann" else None

@asynccontextmanager
async def lifespan():
    print("entered", file=sys.stderr, flush=True)
    yield
    print("left", file=sys.stderr, flush=True)

settings = dict(include="exposed", resolve_token=resolve, policies_dir="policies", roles=["member"])
mcp = define_app_mcp(registry, name="notes", lifespan=lifespan, **settings)
"""
OPEN: Final = '@id("open") permit (principal in Role::"member", action in Action::"note:read", resource);\n'
SHUT: Final = '@id("shut") @reason("shut") forbid (principal, action in Action::"note:read", resource);\n'


@dataclass(frozen=True)
class Service:
    """A command that serves."""

    process: subprocess.Popen[str]
    at: Path
    told: Any
    opened: ExitStack

    @property
    def errors(self) -> str:
        """What it said on stderr so far."""
        return (self.at / "stderr").read_text()

    def ask(self, method: str, params: Mapping[str, Any], **headers: str) -> http.client.HTTPResponse:
        """Send one message of the newest revision, and return its answer before its body."""
        meta: dict[str, Any] = {"protocolVersion": MODERN, "clientCapabilities": {}}
        held = {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": held}}
        told = {
            "Authorization": "Bearer ann",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
            **({"Mcp-Name": params["name"]} if "name" in params else {}),
            **headers,
        }
        url: str = self.told["url"]
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_SECONDS)
        self.opened.callback(connection.close)
        connection.request("POST", "/mcp", json.dumps(message), told)
        answer = connection.getresponse()
        self.opened.callback(answer.close)
        return answer

    def say(self) -> str:
        """Call the tool; while the code starts again its old process may close on us."""
        try:
            answer = json.loads(self.ask("tools/call", {"name": "say", "arguments": {}}).read())
        except (OSError, http.client.HTTPException, ValueError) as fault:
            return type(fault).__name__
        text: str = answer["result"]["content"][0]["text"]
        return text

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop, and return its exit status."""
        self.process.send_signal(number)
        return self.process.wait(PROMPT_SECONDS)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with an app."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "notes.py").write_text(NOTES)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "notes.cedar").write_text(OPEN)
    return tmp_path


@contextmanager
def serving(at: Path, command: str, *options: str) -> Generator[Service]:
    """Run a command until it says where it serves, and end it if the test has not."""
    program = [sys.executable, "-m", "nonsuch.adapters.cli", command, "--port", "0", "--json", *options]
    with (
        (at / "stderr").open("w") as errors,
        subprocess.Popen(
            program, cwd=at, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True
        ) as process,
    ):
        try:
            with ExitStack() as opened:
                yield Service(process, at, document(process), opened)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(PATIENCE_SECONDS)


def document(process: subprocess.Popen[str]) -> Any:
    """Read one JSON document from what is said line by line."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line == "}\n":
            return json.loads(text)
    raise AssertionError(f"it ended: {process.wait(PATIENCE_SECONDS)}: {text}")


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.05)


def refused(at: Path, *arguments: str) -> tuple[int, str, str]:
    """Run a command that is to refuse."""
    program = [sys.executable, "-m", "nonsuch.adapters.cli", *arguments]
    done = subprocess.run(
        program, cwd=at, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    return done.returncode, done.stdout, done.stderr


# serving


def test_it_says_what_is_mounted_serves_and_stops_at_once(project: Path) -> None:
    """A subscription is open when the signal comes: it ends with its answer, and nothing is waited for."""
    with serving(project, "serve") as service:
        url = service.told["url"]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
        assert service.told == {
            "url": url,
            "workers": 1,
            "endpoints": [{"name": "notes", "mcp": f"{url}/mcp", "tools": 1}],
            "unmounted": [],
            "runtime": {"middleware": [], "rate_limit_store": None},
        }
        assert service.say() == "first"
        nobody = {"Authorization": "Bearer none", "X-Forwarded-For": "9.9.9.9"}
        assert service.ask("ping", {}, **nobody).status == 401
        stream = service.ask("subscriptions/listen", {"notifications": {}})
        while not (line := stream.readline()).startswith(b"data: "):
            pass
        assert b"acknowledged" in line
        assert service.stop() == 0
        assert b'"resultType":"complete"' in stream.read()
        assert service.process.stdout is not None
        assert service.process.stdout.read() == ""
    assert "INFO nonsuch.serve: app mcp mounted: `notes` at POST /mcp\n" in service.errors
    assert '"reason":"unknown-token","status":401,"address":"127.0.0.1"' in service.errors
    assert service.errors.splitlines()[-1] == "left"
    assert service.errors.count("entered") == 1


def test_ctrl_c_is_a_stop_too_and_a_proxy_is_believed_when_it_is_named(project: Path) -> None:
    with serving(project, "serve", "--forwarded-allow-ips", "127.0.0.1") as service:
        nobody = {"Authorization": "Bearer none", "X-Forwarded-For": "9.9.9.9"}
        assert service.ask("ping", {}, **nobody).status == 401
        assert service.stop(signal.SIGINT) == 0
    assert '"reason":"unknown-token","status":401,"address":"9.9.9.9"' in service.errors


def test_workers_are_processes_that_stop_together(project: Path) -> None:
    with serving(project, "serve", "--workers", "2") as service:
        assert service.told["workers"] == 2
        until(lambda: service.errors.count("entered") == 2)
        assert service.say() == "first"
        stream = service.ask("subscriptions/listen", {"notifications": {}})
        assert stream.status == 200
        assert service.stop() == 0
        assert b'"resultType":"complete"' in stream.read()
    assert service.errors.count("left\n") == 2


def test_workers_that_count_apart_are_told(project: Path) -> None:
    with serving(project, "serve", "--workers", "2") as service:
        until(lambda: "`notes` counts rates in each of 2 processes by itself" in service.errors)


RUNTIME: Final = """
from functools import partial
from nonsuch import Limits, Rate, Runtime, Verdict

class Shared:
    async def take(self, key, rate, count):
        print("counted", file=sys.stderr, flush=True)
        return Verdict(True)

def named(application, name):
    async def within(scope, receive, send):
        async def say(message):
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-within", name)]
            await send(message)
        if scope["type"] == "lifespan":
            print("lifespan within", name.decode(), file=sys.stderr, flush=True)
        await application(scope, receive, say)
    return within

def outer(application):
    return named(application, b"outer")

runtime = Runtime(middleware=(outer, partial(named, name=b"inner")), rate_limit_store=Shared())
"""


@pytest.mark.parametrize("command", [("serve",), ("serve", "--workers", "2"), ("dev",)], ids=" ".join)
def test_what_the_module_says_of_its_runtime_holds_in_development_as_in_a_container(
    project: Path, command: tuple[str, ...]
) -> None:
    """The first middleware is the outermost: what it adds comes last."""
    (project / "notes.py").write_text(NOTES + RUNTIME)
    with serving(project, *command) as service:
        assert service.told["runtime"] == {"middleware": ["outer", "named"], "rate_limit_store": "Shared"}
        until(lambda: service.say() == "first")
        answer = service.ask("tools/list", {})
        within = [value for name, value in answer.getheaders() if name == "x-within"]
        assert (answer.status, within) == (200, ["inner", "outer"])
        assert service.stop() == 0
    said = service.errors
    assert "INFO nonsuch.serve: runtime of `notes`: within `outer`, `named`\n" in said
    assert "INFO nonsuch.serve: runtime of `notes`: rates in `Shared`\n" in said
    assert said.index("lifespan within outer") < said.index("lifespan within inner") < said.index("entered")
    assert "counted\n" in said
    assert "by itself" not in said


def test_an_app_with_a_store_of_its_own_keeps_it(project: Path) -> None:
    own = "from nonsuch import MemoryRateStore, Limits, Rate\n" + NOTES.replace(
        'roles=["member"]',
        'roles=["member"], rate_limit_store=MemoryRateStore(), rate_limits=Limits(Rate(1))',
    )
    (project / "notes.py").write_text(own + RUNTIME)
    with serving(project, "serve") as service:
        assert [service.ask("tools/list", {}).status for _ in range(2)] == [200, 429]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")
def test_a_hangup_reads_the_policies_again(project: Path) -> None:
    with serving(project, "serve") as service:
        assert service.say() == "first"
        (project / "policies" / "notes.cedar").write_text(SHUT)
        os.kill(service.process.pid, signal.SIGHUP)
        until(lambda: service.say().startswith("X_FORBIDDEN: shut"))


def test_dev_follows_policies_and_code(project: Path) -> None:
    with serving(project, "dev") as service:
        until(lambda: service.say() == "first")
        (project / "policies" / "notes.cedar").write_text(SHUT)
        until(lambda: service.say().startswith("X_FORBIDDEN: shut"))
        (project / "policies" / "notes.cedar").write_text(OPEN)
        (project / "notes.py").write_text(NOTES.replace("first", "second"))
        until(lambda: service.say() == "second")
        (project / "notes.py").write_text("import gone\n")
        until(lambda: "`notes` imports `gone`, which is not installed" in service.errors)
        (project / "notes.py").write_text(NOTES.replace("first", "third"))
        until(lambda: service.say() == "third")
        assert service.stop() == 0


# refusing


def test_an_address_that_is_taken_is_told(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, out, err = refused(project, "serve", "--port", str(port))
    assert (status, out) == (2, "")
    assert f"X_SERVE_ADDRESS: `127.0.0.1` port {port} cannot be listened at: address already in use\n" in err


MOUNTED: Final = "define_app_mcp(registry, name="
CASES: Final[Mapping[str, tuple[str, int, str]]] = {
    "no app": (NOTES.replace("mcp = define", "app = define"), 2, "X_MCP_APP_UNMOUNTED"),
    "nobody can enter": (NOTES.replace("resolve_token=resolve, ", ""), 2, "X_MCP_APP_UNMOUNTED"),
    "two on one path": (
        NOTES + 'mcp = [mcp, define_app_mcp(registry, name="two", **settings)]\n',
        1,
        "X_MCP_PATH_DUPLICATE",
    ),
    "a policy that is none": (NOTES.replace('roles=["member"]', 'roles=["other"]'), 1, "X_ROLE_UNKNOWN"),
    "a runtime that is none": (NOTES + "runtime = {}\n", 2, "X_APP_NOT_FOUND"),
    "middleware that raises": (
        NOTES + "from nonsuch import Runtime\nruntime = Runtime(middleware=(int,))\n",
        2,
        "X_SERVE_FAILED",
    ),
    "code that raises": ("raise ValueError\n", 2, "X_APP_NOT_FOUND"),
    "a lifespan that raises": (
        NOTES.replace("    yield\n", "    raise OSError\n    yield\n"),
        2,
        "X_SERVE_FAILED",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_app_that_cannot_be_served_is_told(project: Path, case: str) -> None:
    source, status, code = CASES[case]
    (project / "notes.py").write_text(source)
    told = refused(project, "serve", "--port", "0", "--json")
    assert told[0] == status, told
    assert code in told[1]
    if code == "X_MCP_APP_UNMOUNTED":
        assert str(project / "notes.py") in told[1] or "add `mcp = define_app_mcp(...)` to `notes`" in told[1]


def test_workers_whose_lifespan_raises_do_not_start_for_ever(project: Path) -> None:
    (project / "notes.py").write_text(NOTES.replace("    yield\n", "    raise OSError\n    yield\n"))
    status, _, err = refused(project, "serve", "--port", "0", "--workers", "2")
    assert status == 2
    assert "X_SERVE_FAILED: a worker did not start\n" in err


def test_an_endpoint_that_nobody_could_enter_is_told_once_and_the_others_are_served(project: Path) -> None:
    two = 'mcp = [define_app_mcp(registry, name="shut", policies_dir="policies", roles=["member"]), mcp]\n'
    (project / "notes.py").write_text(NOTES + two)
    with serving(project, "serve") as service:
        assert [each["name"] for each in service.told["endpoints"]] == ["notes"]
        (told,) = service.told["unmounted"]
        assert told == {
            "code": "X_MCP_APP_UNMOUNTED",
            "cause": "`shut` has no `resolve_token`",
            "fix": f"give `define_app_mcp` in `{project / 'notes.py'}` a `resolve_token`",
        }
        assert service.say() == "first"
        service.stop()
    assert service.errors.count("X_MCP_APP_UNMOUNTED") == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("serve", "--port", "65536"), "X_CLI_USAGE"),
        (("serve", "--port", "-1"), "X_CLI_USAGE"),
        (("serve", "--port", "many"), "X_CLI_USAGE"),
        (("serve", "--workers", "0"), "X_CLI_USAGE"),
        (("serve", "--grace", "-1"), "X_CLI_USAGE"),
        *(
            (("serve", "--forwarded-allow-ips", given), "X_CLI_USAGE")
            for given in ("*", "", "proxy", "10.0.0.1/8", "10.0.0.1,*", "127.0.0.1,")
        ),
        (("dev", "--workers", "2"), "X_CLI_USAGE"),
        (("serve", "--app", "gone"), "X_APP_NOT_FOUND"),
        (("dev", "--app", "gone"), "X_APP_NOT_FOUND"),
        (("serve", "--host", "256.256.256.256"), "X_SERVE_ADDRESS"),
    ],
    ids=str,
)
def test_wrong_use_has_a_code(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: str,
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "notes", raising=False)
    monkeypatch.setattr(module, "log_to_stderr", lambda: None)
    assert entry.main([*arguments, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == code
    assert all(error.values())


def test_without_the_extra_it_says_what_to_install(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str, install: str, package: str | None = None) -> Path:
        raise ExtraMissing(package or name, install)

    monkeypatch.chdir(project)
    monkeypatch.setattr(module, "require", missing)
    assert entry.main(["serve"]) == 2
    told = 'X_EXTRA_MISSING: `uvicorn` is not installed\nfix: pip install "nonsuch[serve]"\n'
    assert capsys.readouterr().err == told
