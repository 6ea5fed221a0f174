"""Judges texts with what one database says of their names, and runs none of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..extras import require
from ..sql_guard import Guard, Judged
from .readonly_batch import Unpinned
from .readonly_live import judged
from .readonly_session import Session, opened
from .readonly_standing import Wanted
from .readonly_wire import LinkLost, ServerError, Wire
from .readonly_words import lost, of_server, unpinned
from .refused import one_line

_TIMEOUT_MS: Final = 30_000


async def judged_by(address: str, guard: Guard, texts: Iterable[object]) -> list[Judged]:
    """Return a verdict on each text, with the facts that it was made from.

    Raises: DatabaseRefused, when the database does not answer or cannot be asked; ExtraMissing.
    """
    require("psycopg", "nonsuch[postgres]")
    wire = await _connected(address)
    try:
        session = await opened(wire, Wanted(guard.own.path, _TIMEOUT_MS, None), 0)
        return [await _judged(session, guard, each) for each in texts]
    except LinkLost as fault:
        raise lost(str(fault)) from None
    except Unpinned as fault:
        raise unpinned(str(fault)) from None
    except ServerError as refusal:
        raise of_server(refusal, "") from None
    finally:
        wire.close()


async def _connected(address: str) -> Wire:
    from psycopg import AsyncConnection, Error

    try:
        return Wire(await AsyncConnection.connect(address, autocommit=True, connect_timeout=5))
    except Error as fault:
        raise lost(one_line(fault)) from None


async def _judged(session: Session, guard: Guard, text: object) -> Judged:
    """Judge one text in a transaction of its own, so that the names mean what they mean to a query."""
    first = await guard.judge_async(text)
    if not isinstance(text, str) or not first.facts.kinds:
        return first  # nothing could be read in it
    await session.begin()
    try:
        return await judged(guard, session.look, text, first.facts)
    finally:
        await session.leave()
