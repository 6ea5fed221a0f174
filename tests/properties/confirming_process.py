"""One process of an app whose refunds wait for a person, on a database that others share.

``python -m tests.properties.confirming_process DSN TABLE LEDGER`` prints ``ready`` and then does what each
line of its input says: ``ask N``, ``approve ID N``, ``call N`` (N at once, all alike), ``cycle FROM`` (ask,
approve, run, from one amount to the next, until it is killed). It prints what came of it, a line each.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Final

from nonsuch import Human, postgres_confirmation_store
from nonsuch.adapters.edge.run import Running
from nonsuch.kernel.model import Unconfirmed
from nonsuch.kernel.strict_json import Json

from ..adapters.edge.shop import BOSS, CALL, Shop, call, code_of, decide

SENTINEL: Final = "s3ntinel-of-an-argument"


def say(*words: object) -> None:
    """Print a line now."""
    sys.stdout.write(f"{json.dumps(words)}\n")
    sys.stdout.flush()


def sent(amount: int) -> dict[str, Json]:
    """The arguments of one refund."""
    return {"order": "o1", "amount": amount, "note": SENTINEL}


async def ask(running: Running, times: int) -> None:
    """Ask for one refund, so many times at once."""
    outcomes = await asyncio.gather(*(call(running) for _ in range(times)))
    say([(code_of(each), each.ident if isinstance(each, Unconfirmed) else None) for each in outcomes])


async def approve(running: Running, ident: str, times: int) -> None:
    """Have so many people approve one at once."""
    people = [Human(f"{BOSS.id}{number}", roles=BOSS.roles, org=BOSS.org) for number in range(times)]
    decisions = [decide(running, ident, "approve", each, dict(CALL)) for each in people]
    say([code_of(each) for each in await asyncio.gather(*decisions)])


async def cycle(running: Running, amount: int) -> None:
    """Ask for a refund, approve it, run it, and say each step once it is done; then the next one."""
    while True:
        outcome = await call(running, sent=sent(amount))
        if isinstance(outcome, Unconfirmed):
            say("asked", amount, outcome.ident)
            decided = await decide(running, outcome.ident, "approve", arguments=sent(amount))
            say("approved", amount, code_of(decided))
            say("ran", amount, code_of(await call(running, sent=sent(amount))))
        amount += 1


async def main(dsn: str, table: str, ledger: str) -> None:
    """Serve the lines of the input."""
    shop = Shop(postgres_confirmation_store(dsn, table, connections=8), ledger=Path(ledger), ticks=True)
    async with shop.open() as running:
        say("ready")
        while line := await asyncio.to_thread(sys.stdin.readline):
            match line.split():
                case ["ask" | "call", times]:
                    await ask(running, int(times))
                case ["approve", ident, times]:
                    await approve(running, ident, int(times))
                case ["cycle", first]:
                    await cycle(running, int(first))
                case _:
                    raise ValueError(line)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
