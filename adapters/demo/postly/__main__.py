"""`python -m nonsuch.adapters.demo.postly`: PostgreSQL, the app, a server and a tour, in one process.

Knows how to start and stop them; what is shown is in `transcript.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import logging
import os
import socket
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .... import BootError
from ...edge.extras import ExtraMissing, require

if TYPE_CHECKING:
    from uvicorn import Server

    from .db import Db
    from .tokens import Tokens

_HOST: Final = "127.0.0.1"
_PORT: Final = 8321
_DATA: Final = Path(".nonsuch") / "postly"


class DemoFailed(Exception):
    """The demo cannot run here; the message says why and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        for module, install in (("psycopg_pool", "nonsuch[postgres]"), ("uvicorn", "nonsuch[serve]")):
            require(module, install)
        with (
            _bound(options.port, once=options.once) as listener,
            _database(options.data, once=options.once) as dsn,
        ):
            asyncio.run(_run(dsn, listener, once=options.once))
    except KeyboardInterrupt:
        print("\nstopped")
    except (ExtraMissing, DemoFailed, BootError) as refusal:
        print(refusal, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    name = "python -m nonsuch.adapters.demo.postly"
    parser = argparse.ArgumentParser(prog=name, description="the demo app Postly, with a tour of it")
    parser.add_argument("--once", action="store_true", help="end after the tour; status 1 if it fails")
    parser.add_argument("--port", type=int, help=f"default {_PORT}; with --once a free one")
    parser.add_argument(
        "--data", type=Path, help=f"files of PostgreSQL: default {_DATA}; with --once temporary"
    )
    return parser


@contextmanager
def _bound(port: int | None, *, once: bool) -> Generator[socket.socket]:
    """Take the port before anything else starts."""
    wanted = port if port is not None else 0 if once else _PORT
    # asyncio switches Nagle's algorithm off only where the protocol is spelled out
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((_HOST, wanted))
            listener.listen(128)
        except OverflowError:
            raise DemoFailed(f"{wanted} is no port\nfix: --port with a number from 1 to 65535") from None
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            why = "in use" if error.errno == errno.EADDRINUSE else "not ours to take"
            raise DemoFailed(f"port {wanted} on {_HOST} is {why}\nfix: --port with another number") from None
        yield listener


@contextmanager
def _database(data: Path | None, *, once: bool) -> Generator[str]:
    """Yield the DSN of the server in DATABASE_URL, or of one that is started here."""
    given = os.environ.get("DATABASE_URL")
    if given:
        yield given
        return
    if os.name != "posix":
        raise DemoFailed("the embedded PostgreSQL needs a POSIX system\nfix: set DATABASE_URL")
    from ...edge.embedded import ServerFailed, embedded_postgres

    try:
        server = embedded_postgres(data if data is not None else None if once else _DATA)
        with server as dsn:
            yield dsn
    except ServerFailed as failure:
        raise DemoFailed(str(failure)) from None


async def _run(dsn: str, listener: socket.socket, *, once: bool) -> None:
    from . import db, tokens

    await _prepared(dsn)
    issued = tokens.issue()
    url = f"http://{_HOST}:{listener.getsockname()[1]}/mcp"
    async with _serving(dsn, issued, listener) as served, db.open_db(dsn) as beside:
        await _toured(url, issued, beside, once=once)
        if not once:
            _connect_block(url, issued)
            await asyncio.wait([served])


async def _prepared(dsn: str) -> None:
    from psycopg import Error, OperationalError

    from .db import prepare

    try:
        await prepare(dsn)
    except Error as error:
        told = (str(error).strip().splitlines() or [type(error).__name__])[0]
        what = "does not answer" if isinstance(error, OperationalError) else "refuses to make the tables"
        raise DemoFailed(f"PostgreSQL {what}: {told}\nfix: check DATABASE_URL") from None


@asynccontextmanager
async def _serving(
    dsn: str, tokens: Tokens, listener: socket.socket
) -> AsyncGenerator[asyncio.Task[SystemExit | None]]:
    """Serve on a task of this loop; yield it once the server accepts connections."""
    import uvicorn

    from .... import asgi
    from .app import postly

    settings = uvicorn.Config(asgi(postly(dsn, tokens)), log_level="warning", access_log=False, lifespan="on")
    server = uvicorn.Server(settings)
    task = asyncio.create_task(_served(server, listener))
    try:
        while not server.started and not task.done():  # noqa: ASYNC110  uvicorn offers no event
            await asyncio.sleep(0.01)
        if task.done():
            raise DemoFailed("the server did not start\nfix: read what it logged above")
        yield task
    finally:
        server.should_exit = True
        if (stop := await task) is not None:
            raise stop


async def _served(server: Server, listener: socket.socket) -> SystemExit | None:
    """Serve to the end. uvicorn raises its signals again here, but they are meant for the whole program."""
    try:
        await server.serve(sockets=[listener])
    except SystemExit as stop:
        return stop
    return None


async def _toured(url: str, tokens: Tokens, db: Db, *, once: bool) -> None:
    from .transcript import TourFailed, tour

    try:
        await tour(url, tokens, db)
    except TourFailed as failure:
        raise DemoFailed(f"the tour failed: {failure}\nfix: read the step above it") from None
    except ExtraMissing as missing:
        if once:
            raise
        print(f"no tour: {missing}", file=sys.stderr)


def _connect_block(url: str, tokens: Tokens) -> None:
    """Print how to connect: the only place where a token is shown."""
    print(f"\nserving {url} until Ctrl-C; audit lines follow on stderr. Tokens of this run:")
    for person, token in tokens.by_person.items():
        print(f"   {person:<6} {token}")
    print("people who confirm refunds over HTTP, at POST /api/decideConfirmation:")
    for person, token in tokens.of_people.items():
        print(f"   {person:<6} {token}")
    bearer = f"Bearer {tokens.by_person['edda']}"
    entry = {"type": "http", "url": url, "headers": {"Authorization": bearer}}
    print(f"client configuration: {json.dumps({'mcpServers': {'postly': entry}})}")
    print(f'or: claude mcp add --transport http postly {url} --header "Authorization: {bearer}"', flush=True)
    log = logging.getLogger("nonsuch.audit")
    log.addHandler(logging.StreamHandler())
    log.setLevel(logging.INFO)


if __name__ == "__main__":
    sys.exit(main())
