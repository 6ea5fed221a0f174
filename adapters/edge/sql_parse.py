"""Reads the text of a query in a thread with a large stack, so that no nesting of it can end the process.

Decides nothing. The parser lets other threads run, so an event loop goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Final

from ...kernel.sql import analyse, unread
from ...kernel.sql_catalog import Catalogue, Own
from ...kernel.sql_facts import SqlFacts

STACK: Final = 64 * 1024 * 1024  # of address space: memory is used as far as a text nests
READERS: Final = 2
_sizing = threading.Lock()


def facts_of(text: object, catalogue: Catalogue, own: Own) -> SqlFacts:
    """Return the facts of a text. Raises: RuntimeError, where no thread can be started."""
    early = unread(text)
    return early if early is not None else _reading(str(text), catalogue, own).result()


async def facts_of_async(text: object, catalogue: Catalogue, own: Own) -> SqlFacts:
    """Return the facts of a text; the event loop goes on. Raises: RuntimeError, as ``facts_of``."""
    early = unread(text)
    return early if early is not None else await asyncio.wrap_future(_reading(str(text), catalogue, own))


def _reading(text: str, catalogue: Catalogue, own: Own) -> Future[SqlFacts]:
    """Begin to read a text on one of a few threads, which stay.

    The parser takes a thread-local key from the process for each thread that ever used it, and there are
    1,024 of them: a thread for each text would leave OpenSSL without one.
    """
    with _sizing:  # the size of stacks is one for the process, so it is put back at once
        before = threading.stack_size(STACK)
        try:
            return readers().submit(analyse, text, catalogue, own)
        finally:
            threading.stack_size(before)


@cache
def readers() -> ThreadPoolExecutor:
    """Return the threads that read."""
    return ThreadPoolExecutor(READERS, "nonsuch-sql")


def _forked() -> None:
    """A child has none of its parent's threads, and perhaps a lock that one of them held."""
    global _sizing
    _sizing = threading.Lock()
    readers.cache_clear()


os.register_at_fork(after_in_child=_forked)
