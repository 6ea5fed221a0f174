"""The drafts app as a server process, and what it saw: `python -m tests.conformance.watched static`.

`static` knows two kinds of token, `editor-<n>` and `viewer-<n>`, each a caller of its own; `oauth` knows
those of its authorization server, which it starts. Knows no client.
"""

import itertools
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import uvicorn

from nonsuch import Agent, App, asgi, oauth
from nonsuch.kernel.audit import Event

from .authority import Authority, Token
from .drafts import app
from .environment import ROOT

MODULE: Final = "tests.conformance.watched"
PATIENCE: Final = 60
_numbers: Final = itertools.count(1)
Seen = dict[str, Any]

# The parent's side


@dataclass(frozen=True, slots=True)
class Service:
    """A running server."""

    url: str
    said: Path

    def seen(self, kind: str, caller: str) -> list[Seen]:
        """Return what the server saw of a caller: its `request`s, or its `event`s."""
        whole = [json.loads(line) for line in _lines(self.said)[1:]]
        return [each for each in whole if each["saw"] == kind and each["caller"] == caller]

    def events(self, caller: str, count: int) -> list[Seen]:
        """Return a caller's audit events, which come after the answers; waits for so many of them."""
        until(lambda: len(self.seen("event", caller)) >= count)
        return self.seen("event", caller)


def _lines(said: Path) -> list[str]:
    """Whole lines only: the last may be half written."""
    return [line for line in said.read_text().splitlines(keepends=True) if line.endswith("\n")]


def fresh(role: str) -> str:
    """Return a name that no caller had yet; `editor` and `viewer` make it a static token too."""
    return f"{role}-{next(_numbers)}"


@contextmanager
def serving(kind: str) -> Generator[Service]:
    """Serve the app from a process of its own."""
    with TemporaryDirectory() as directory:
        said = Path(directory, "said.txt")
        with said.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", MODULE, kind, directory], cwd=ROOT, stdout=output
            )
        try:
            until(lambda: bool(_lines(said)) or process.poll() is not None)
            if process.poll() is not None:
                raise RuntimeError(f"the server did not start: exit code {process.returncode}")
            yield Service(_lines(said)[0].strip(), said)
        finally:
            process.terminate()
            process.wait(PATIENCE)


def until(done: Callable[[], bool]) -> None:
    """Wait a little for another process; whoever asks says afterwards whether it came true."""
    end = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < end:
        time.sleep(0.01)


# The program


def say(saw: str, caller: str, **more: object) -> None:
    sys.stdout.write(json.dumps({"saw": saw, "caller": caller, **more}) + "\n")
    sys.stdout.flush()


def audit(event: Event) -> None:
    told = asdict(event)
    told.pop("at")
    say("event", told.pop("caller", ""), **told)


def watched(application: Any, caller_of: Callable[[str], str]) -> Any:
    """Return the application, saying what is asked, by whom, in which revision, and how it is answered."""

    async def watching(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope.get("headers", ())}
        caller = caller_of(headers.get("authorization", "").removeprefix("Bearer "))

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                say("request", caller, **_told(scope, headers), status=message["status"])
            await send(message)

        await application(scope, receive, sending)

    return watching


def _told(scope: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, object]:
    version = headers.get("mcp-protocol-version")
    return {"method": scope["method"], "path": scope["path"], "version": version}


SCOPES: Final = frozenset({"read", "write"})
EDITOR: Final = frozenset({"editor"})
Serving = tuple[App, Callable[[str], str]]  # the app, and who holds a token


def resolve(token: str) -> Agent | None:
    role, _, number = token.partition("-")
    known = role in ("viewer", "editor") and number.isdigit()
    return Agent(token, roles=frozenset({role}), scopes=SCOPES) if known else None


@contextmanager
def static(directory: Path, url: str) -> Generator[Serving]:
    yield app(directory, resolve_token=resolve, on_audit=audit), lambda token: token


@contextmanager
def authorized(directory: Path, url: str) -> Generator[Serving]:
    def issued(token: Token) -> None:
        say("token", token.subject, scopes=sorted(token.scopes))

    with Authority(url, issued) as authority:

        def resolve(token: str) -> Agent | None:
            held = authority.tokens.get(token)
            return None if held is None else Agent(held.subject, roles=EDITOR, scopes=held.scopes)

        def caller_of(token: str) -> str:
            held = authority.tokens.get(token)
            return "" if held is None else held.subject

        served = app(directory, resolve_token=resolve, on_audit=audit, oauth=oauth([authority.issuer]))
        yield served, caller_of


KINDS: Final = {"static": static, "oauth": authorized}


def main() -> None:
    """Listen on a free port, say where, and serve."""
    kind, directory = sys.argv[1:]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        with KINDS[kind](Path(directory), url) as (served, caller_of):
            config = uvicorn.Config(
                watched(asgi(served), caller_of), log_config=None, lifespan="on", ws="none"
            )
            uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
