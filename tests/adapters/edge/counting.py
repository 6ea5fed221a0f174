"""Counts requests against one key from a process of its own: waits for a line, then takes as often as told.

Called as ``counting.py DSN TABLE TIMES LIMIT``; prints how many passed. Knows no app.
"""

from __future__ import annotations

import asyncio
import sys

from nonsuch import Rate, postgres_rate_limit_store


async def main(dsn: str, table: str, times: int, limit: int) -> int:
    """Take as often as told, as many at once as there are connections."""
    store = postgres_rate_limit_store(dsn, table, timeout_seconds=30)
    rate = Rate(limit, 3_600)
    await store.take("warm", rate, 1)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    try:
        verdicts = await asyncio.gather(*(store.take("one key", rate, 1) for _ in range(times)))
    finally:
        await store.close()
    return sum(verdict.passes for verdict in verdicts)


if __name__ == "__main__":
    _, DSN, TABLE, TIMES, LIMIT = sys.argv
    sys.stdout.write(f"{asyncio.run(main(DSN, TABLE, int(TIMES), int(LIMIT)))}\n")
