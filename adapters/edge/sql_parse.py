"""Reads the text of a query in a thread with a large stack, so that no nesting of it can end the process.

Decides nothing. The parser lets other threads run, so an event loop goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Final

from ...kernel.sql import analyse, unread
from ...kernel.sql_catalog import Catalogue, Own
from ...kernel.sql_facts import SqlFacts

STACK: Final = 64 * 1024 * 1024  # of address space: memory is used as far as a text nests
_sizing: Final = threading.Lock()


def facts_of(text: object, catalogue: Catalogue, own: Own) -> SqlFacts:
    """Return the facts of a text. Raises: RuntimeError, where no thread can be started."""
    early = unread(text)
    return early if early is not None else _reading(str(text), catalogue, own).result()


async def facts_of_async(text: object, catalogue: Catalogue, own: Own) -> SqlFacts:
    """Return the facts of a text; the event loop goes on. Raises: RuntimeError, as ``facts_of``."""
    early = unread(text)
    return early if early is not None else await asyncio.wrap_future(_reading(str(text), catalogue, own))


def _reading(text: str, catalogue: Catalogue, own: Own) -> Future[SqlFacts]:
    """Begin to read a text. One thread for each: none is left behind, and none is lost in a fork."""
    read: Future[SqlFacts] = Future()

    def run() -> None:
        try:
            found = analyse(text, catalogue, own)
        except BaseException as fault:  # noqa: BLE001  (it belongs to who waits for the facts)
            read.set_exception(fault)
        else:
            read.set_result(found)

    _start(threading.Thread(target=run, name="nonsuch-sql", daemon=True))
    return read


def _start(thread: threading.Thread) -> None:
    """Start a thread with the large stack. The size is one for the process, so it is put back at once."""
    with _sizing:
        before = threading.stack_size(STACK)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
