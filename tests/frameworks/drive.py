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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from .checks import OVER_A_SOCKET, PATIENCE_SECONDS, Mount, ended, listening
from .hosting import HOST, host
from .plan import ASGI, PAIRS, Framework, planned

AT_ONCE: Final = 3
STOP_SECONDS: Final = 10
LISTENING: Final = tuple(each.name for each in ASGI)
_forked: Final = multiprocessing.get_context("forkserver")

Told = dict[str, str | None]


def main() -> None:
    """Print {framework: {server: {check: why it failed, or null}}}, of the mounts named, or of all."""
    _forked.set_forkserver_preload(["tests.frameworks.preloaded"])
    wanted = [pair for pair in PAIRS if not sys.argv[1:] or pair[0].mount in sys.argv[1:]]
    told = dict[str, dict[str, Told]]()
    with TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        in_folder = partial(checked, Path(folder))
        made = pool.map(in_folder, (each for each, _ in wanted), (server for _, server in wanted))
        for (framework, server), results in zip(wanted, made, strict=True):
            told.setdefault(framework.mount, {})[server] = results
    json.dump(told, sys.stdout, indent=2)


def checked(folder: Path, framework: Framework, server: str) -> Told:
    """Serve one pair, run its checks, and stop it."""
    port, output = _free_port(), folder / f"{framework.mount}-{server}"
    process = _forked.Process(target=host, args=(framework.mount, server, port, str(output)))
    process.start()
    try:
        if not _reachable(port):
            return dict.fromkeys(planned(server), f"did not start: {_said(output)}")
        mount = Mount(port, framework.prefix)
        return {
            check: _failed(_stop, process, output, mount, server)
            if check == "stop"
            else _failed(OVER_A_SOCKET[check], mount)
            for check in planned(server)
        }
    finally:
        if process.is_alive():
            process.kill()
        process.join()


def _failed(check: Callable[..., None], *given: object) -> str | None:
    try:
        check(*given)
    except Exception as failed:  # noqa: BLE001  (told as the result)
        return f"{type(failed).__name__}: {failed}"
    return None


def _stop(process: BaseProcess, output: Path, mount: Mount, server: str) -> None:
    """End it as a supervisor does: it ends in time, and the lifespan was entered once and left.

    A server of ASGI applications also ends the subscription that is open.
    """
    subscription = listening(mount) if server in LISTENING else None
    process.terminate()
    process.join(STOP_SECONDS)
    assert not process.is_alive(), f"it did not stop: {_said(output)}"
    if subscription is not None:
        ended(subscription)
    lines = [line for line in output.read_text().splitlines() if line.startswith("lifespan ")]
    assert lines == ["lifespan entered", "lifespan left"], f"{lines}: {_said(output)}"


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
