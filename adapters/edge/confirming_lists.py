"""Which confirmations a person may view, and waiting for one of them to change. Decides and keeps nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Literal

from ...kernel.confirmation import Confirmation
from ...kernel.model import Principal
from .confirmations import Listing

if TYPE_CHECKING:
    from .run import Running

SCANNED: Final = 1_000
POLL_SECONDS: Final = 0.25


async def confirmations_for(
    running: Running, principal: Principal, which: Literal["open", "ended"] = "open", limit: int = 100
) -> list[Confirmation]:
    """Return the confirmations that ``principal`` may view now, the newest first and without arguments.

    Each is judged as a view of it would be; listing them is no event. Of an organisation's own rows, or of
    every one's where the app has a ``check``, the newest thousand are looked at; of more than ``limit``
    that are open, each caller's newest come before any caller's next.
    """
    desk = running.app.confirmations
    if desk is None or not _admitted(running, principal, desk.path):
        return []
    now = running.clock()
    every = Listing(desk.servers, principal.org, desk.crosses_orgs, which == "open", now, SCANNED)
    seen: list[Confirmation] = []
    rows = await desk.store.listed(every)
    for row in _in_turn(rows) if every.open else rows:
        if len(seen) == limit:
            break
        if await running.permitted(principal, desk.path, _view(row)):
            seen.append(row)
    return sorted(seen, key=lambda row: (row.created, row.ident), reverse=True)


def _admitted(running: Running, principal: Principal, path: str) -> bool:
    """Whether anything could permit a view to this person: if not, no row need be judged."""
    view = running.app.kernel.view_for(principal)
    entry = view.find(path, "http")
    return entry is not None and view.judge.admits(view.caller, entry).allow


def _in_turn(rows: Iterable[Confirmation]) -> list[Confirmation]:
    """Return rows with the newest of each caller first, then the next: none fills the page alone."""
    before = Counter[str]()
    turns: list[tuple[int, Confirmation]] = []
    for row in rows:
        turns.append((before[row.owner], row))
        before[row.owner] += 1
    return [row for _, row in sorted(turns, key=lambda turn: turn[0])]


def _view(row: Confirmation) -> dict[str, Any]:
    return {"id": row.ident, "decision": "view"}


async def waited(running: Running, ident: str, version: int, seconds: float) -> Confirmation | None:
    """Return a confirmation once it is no longer of this version, or as it is when the seconds are over.

    Looks four times a second, so that what another process decides is seen too. Whoever waits has been
    allowed to see it: this asks nobody.
    """
    desk, loop = running.app.confirmations, asyncio.get_running_loop()
    until = loop.time() + seconds
    while desk is not None:
        row = await desk.store.read(ident)
        if row is None or row.version != version or loop.time() >= until:
            return row
        await asyncio.sleep(min(POLL_SECONDS, max(0.0, until - loop.time())))
    return None
