"""Which confirmations a person may view, and waiting for one of them to change. Decides and keeps nothing."""

from __future__ import annotations

import asyncio
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
    every one's where the app has a ``check``, the newest thousand are looked at.
    """
    desk = running.app.confirmations
    if desk is None:
        return []
    now = running.clock()
    every = Listing(desk.servers, principal.org, desk.crosses_orgs, which == "open", now, SCANNED)
    seen: list[Confirmation] = []
    for row in await desk.store.listed(every):
        if len(seen) < limit and await running.permitted(principal, desk.path, _view(row)):
            seen.append(row)
    return seen


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
