"""An app that takes money and notes in a table how often, by each rule of its store; and two ways to run it.

`python -m tests.adapters.edge.paying serve ADDRESS TABLE` serves it over HTTP and prints where, until its
standard input ends. `... crash ADDRESS TABLE RULE ROUNDS SEED` calls it in processes that are killed in the
middle, calls again, and prints a line of JSON for each round.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final, Literal

import psycopg
from psycopg import sql
from pydantic import BaseModel

from nonsuch import Agent, App, Open, Registry, asgi, can, define_app_mcp, expose, grant
from nonsuch.adapters.edge.idempotency import IdempotencyStore, MemoryIdempotencyStore
from nonsuch.adapters.edge.postgres.idempotency import PostgresIdempotencyStore
from nonsuch.kernel.model import Failed, Ok, Outcome

import_module("psycopg_pool")  # before the fork, and not in each child
Rule = Literal["memory", "durable", "atomic"]
Moment = Literal["never", "before", "within", "recorded"]
AGENT: Final = Agent("a", roles={"cashier"})
SECRET: Final = b"s" * 32


class Order(BaseModel):
    """What is paid."""

    orderId: str


class Paid(BaseModel):
    """What was paid."""

    orderId: str


def paying(address: str, table: str, rule: Rule = "durable") -> App:
    """Return the app: `pay` changes the table in a transaction of its own, `payAtomic` in its record's."""
    registry, records = Registry(), store(address, table, rule)
    note = sql.SQL("insert into {} (order_id) values (%s)").format(sql.Identifier(f"{table}_paid"))

    @registry.action(policy=can("order:pay"), mcp=expose("Pay"), path="pay", idempotent=True)
    async def pay(input: Order) -> Paid:  # pyright: ignore[reportUnusedFunction]
        die("before")
        async with await psycopg.AsyncConnection.connect(address) as connection:
            await connection.execute(note, [input.orderId])
        die("within")
        return Paid(orderId=input.orderId)

    if isinstance(records, PostgresIdempotencyStore):

        @registry.action(
            policy=can("order:pay"), mcp=expose("Pay"), path="payAtomic", idempotent=True, atomic=True
        )
        async def payAtomic(input: Order) -> Paid:  # pyright: ignore[reportUnusedFunction]
            die("before")
            async with records.transaction() as connection:
                await connection.execute(note, [input.orderId])
            die("within")
            return Paid(orderId=input.orderId)

    return define_app_mcp(
        registry,
        name="paying",
        include="exposed",
        grants=[grant("cashier", "any")],
        resolve_token=lambda token: AGENT if token == "t" else None,
        secret=SECRET,
        idempotency_store=records,
        rate_limits=None,
    )


def store(address: str, table: str, rule: Rule) -> IdempotencyStore:
    """Return the store of a rule."""
    if rule == "memory":
        return MemoryIdempotencyStore()
    return PostgresIdempotencyStore(address, table, connections=4)


@dataclass
class Fate:
    """When this process dies, and to whom it says that its handler has begun."""

    dies: Moment = "never"
    tells: int = -1


FATE: Final = Fate()


def die(moment: Moment) -> None:
    """Die as a process does that is killed, if it is time."""
    if moment == FATE.dies:
        os.kill(os.getpid(), signal.SIGKILL)
    if moment == "before" and FATE.tells >= 0:
        os.write(FATE.tells, b" ")


# over HTTP


def serve(address: str, table: str) -> None:
    """Serve until nobody needs it any more."""
    import uvicorn

    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(asgi(paying(address, table)), log_level="error"))
        threading.Thread(target=_watch, args=(server,), daemon=True).start()
        sys.stdout.write(f"http://127.0.0.1:{door.getsockname()[1]}\n")
        sys.stdout.flush()
        server.run([door])


def _watch(server: Any) -> None:
    sys.stdin.read()
    server.should_exit = True


# in processes that are killed


def crash(address: str, table: str, rule: Rule, rounds: int, seed: int) -> None:
    """Call, die and call again: at every moment that has a name, and otherwise whenever it comes."""
    rng = random.Random(seed)  # noqa: S311  (a test that can be repeated)
    app, name = paying(address, table, rule), "payAtomic" if rule == "atomic" else "pay"
    for number in range(rounds):
        named = NAMED[number % len(NAMED)]
        wait = None if named else rng.uniform(0, LONGEST)
        call = partial(called, app, name, f"o{number}")
        told = {"order": f"o{number}", "dies": named or "whenever"}
        told |= {"first": forked(call, wait, named or "never"), "last": forked(call)}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


LONGEST: Final = 0.02  # from the handler's beginning to the end of the process, more or less
NAMED: Final[tuple[Moment | None, ...]] = ("never", "before", "within", "recorded", None, None, None, None)


def called(app: App, name: str, order: str) -> str:
    """Call under a key, and return `ok` or the code."""

    async def call() -> Outcome:
        async with Open(app) as running:
            given = {"orderId": order, "idempotencyKey": f"key of {order}"}
            outcome = await running.invoke(AGENT, name, given)
            die("recorded")
            return outcome

    match asyncio.run(call()):
        case Ok():
            return "ok"
        case Failed(code):
            return code
        case other:
            return repr(other)


def forked(call: Callable[[], str], wait: float | None = None, dies: Moment = "never") -> str:
    """Run a call in a process, and kill it a while after its handler began; return what it said."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.close(reads)
        FATE.dies, FATE.tells = dies, writes
        os.write(writes, call().encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as said:
        told = said.read(1)
        if wait is not None:
            time.sleep(wait)
            os.kill(child, signal.SIGKILL)
        told += said.read()
    os.waitpid(child, 0)
    return told.decode().strip()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", address, table]:
            serve(address, table)
        case ["crash", address, table, "memory" | "durable" | "atomic" as rule, rounds, seed]:
            crash(address, table, rule, int(rounds), int(seed))
        case _:
            sys.exit("serve ADDRESS TABLE, or crash ADDRESS TABLE RULE ROUNDS SEED")
