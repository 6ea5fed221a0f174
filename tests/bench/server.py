"""Runs one subject under uvicorn in a process of its own on loopback and reads that process's CPU time."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .load import HOST
from .subjects import SUBJECTS, TOOLS

ROOT = Path(__file__).resolve().parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")
_BOOT_SECONDS = 120
_CORES = sorted(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Server:
    """A running subject."""

    name: str
    port: int
    pid: int

    def cpu(self) -> float:
        """CPU seconds, user and system, since the process began."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


def environment(tools: int) -> dict[str, str]:
    """The environment in which a child process finds the package and the bench."""
    paths = [str(ROOT / ".editable"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        TOOLS: str(tools),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONHASHSEED": "0",
    }


@contextmanager
def serve(name: str, tools: int) -> Generator[Server]:
    """The subject, accepting connections; ended on leaving. Raises `RuntimeError` when it does not boot."""
    port = _free_port()
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            _command(name, port), cwd=ROOT, env=environment(tools), stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _pin(process.pid, 0)
            if not _accepts(port, process):
                log.seek(0)
                raise RuntimeError(f"`{name}` did not boot: {log.read()[-3000:]}")
            yield Server(name, port, process.pid)
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def pin_driver() -> None:
    """Keep the driver off the servers' core."""
    _pin(os.getpid(), 1)


def _command(name: str, port: int) -> list[str]:
    factory = f"{__package__}.subjects:{SUBJECTS[name].factory}"
    flags = [
        "--loop",
        "uvloop",
        "--http",
        "httptools",
        "--ws",
        "none",
        "--no-access-log",
        "--log-level",
        "warning",
    ]
    return [
        sys.executable,
        "-m",
        "uvicorn",
        "--factory",
        factory,
        "--host",
        HOST,
        "--port",
        str(port),
        *flags,
    ]


def _pin(pid: int, core: int) -> None:
    """Only where there is a core to spare for each side."""
    if len(_CORES) > 1:
        os.sched_setaffinity(pid, {_CORES[core]})


def _accepts(port: int, process: subprocess.Popen[bytes]) -> bool:
    limit = time.monotonic() + _BOOT_SECONDS
    while time.monotonic() < limit and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return True
        time.sleep(0.05)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
