"""Processes that append to one audit chain: `python chaining.py file|postgres WHERE COUNT NAME`.

A process says `ready`, waits for a line, appends so many events under its name, closes and says `done`.
With a count of 0 it appends until it is killed. One named `fork` forks after its first event.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Final

from nonsuch import file_audit_chain, postgres_audit_chain
from nonsuch.adapters.edge.audit_chain import AuditChain
from nonsuch.kernel.audit import ToolCall

KEYS: Final[Mapping[str, bytes]] = {"k1": b"1" * 32, "k2": b"2" * 32}


def chain_at(kind: str, where: str, keys: Mapping[str, bytes] = KEYS) -> AuditChain:
    """The chain in a file, or in the table that stands behind a DSN and a space."""
    if kind == "file":
        return file_audit_chain(where, keys)
    dsn, _, table = where.partition(" ")
    return postgres_audit_chain(dsn, keys, table)


def event(name: str, number: int) -> ToolCall:
    """An event that no other is."""
    return ToolCall(f"{name}-{number}", "ok", "mcp", "a", "agent")


def main() -> None:
    """Append as the arguments say."""
    kind, where, count, name = sys.argv[1:]
    chain = chain_at(kind, where)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    numbers = range(int(count) or 10**9)
    for number in numbers:
        chain(event(name, number))
        if name == "fork" and number == 0:
            time.sleep(0.2)
            name = "child" if os.fork() == 0 else "parent"
        if number % 20 == 0:
            time.sleep(0.002 if int(count) else 0.02)
    chain.shut()
    if name == "parent":
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    if name != "child":
        sys.stdout.write("done\n")


if __name__ == "__main__":
    main()
