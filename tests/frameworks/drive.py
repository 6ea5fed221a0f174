"""Runs every check on every pair of the plan and prints what came of it: one JSON object.

A program of the environment with the frameworks. Each pair is a process of its own, forked from one that
has imported them all; the server in it is the real one.
"""

from __future__ import annotations

import json
import multiprocessing
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from .checks import CHECKS, PATIENCE_SECONDS, Mount
from .hosting import HOST, host
from .plan import PAIRS, Framework

AT_ONCE: Final = 3
STOP: Final = "stop"
_forked: Final = multiprocessing.get_context("forkserver")

Told = dict[str, str | None]


def main() -> None:
    """Print {framework: {server: {check: why it failed, or null}}}."""
    _forked.set_forkserver_preload(["tests.frameworks.preloaded"])
    wanted = [pair for pair in PAIRS if not sys.argv[1:] or pair[0].mount in sys.argv[1:]]
    told = dict[str, dict[str, Told]]()
    with TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        made = pool.map(lambda pair: checked(*pair, Path(folder)), wanted)
        for (framework, server), results in zip(wanted, made, strict=True):
            told.setdefault(framework.mount, {})[server] = results
    json.dump(told, sys.stdout, indent=2)


def checked(framework: Framework, server: str, folder: Path) -> Told:
    """Serve one pair, run the checks, and stop it."""
    port, output = _free_port(), folder / f"{framework.mount}-{server}"
    process = _forked.Process(target=host, args=(framework.mount, server, port, str(output)))
    process.start()
    try:
        if not _reachable(port):
            return dict.fromkeys([*CHECKS, STOP], f"did not start: {_said(output)}")
        mount = Mount(port, framework.prefix)
        told: Told = {name: _failure(name, mount) for name in CHECKS}
        told[STOP] = _stopped(process, output)
        return told
    finally:
        if process.is_alive():
            process.kill()
        process.join()


def _failure(name: str, mount: Mount) -> str | None:
    try:
        CHECKS[name](mount)
    except Exception as failed:  # noqa: BLE001  (told as the result)
        return f"{type(failed).__name__}: {failed}"[:600]
    return None


def _stopped(process: multiprocessing.process.BaseProcess, output: Path) -> str | None:
    """End it as a supervisor does: it ends in time, and the lifespan was entered once and left."""
    process.terminate()
    process.join(PATIENCE_SECONDS)
    if process.is_alive():
        return f"did not stop: {_said(output)}"
    said = _said(output)
    lines = [line for line in said.splitlines() if line.startswith("lifespan ")]
    return None if lines == ["lifespan entered", "lifespan left"] else f"said: {said}"


def _said(output: Path) -> str:
    return output.read_text()[-2000:] if output.exists() else ""


def _free_port() -> int:
    with socket.socket() as one:
        one.bind((HOST, 0))
        port: int = one.getsockname()[1]
        return port


def _reachable(port: int) -> bool:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        with socket.socket() as one:
            if one.connect_ex((HOST, port)) == 0:
                return True
        time.sleep(0.02)
    return False


if __name__ == "__main__":
    main()
