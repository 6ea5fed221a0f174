"""A pre-forking server in small: imports the app, forks, and lets every process answer.

`python -m tests.adapters.edge.forking cold` forks before the first request, `... warm` after it. Each
process writes one line of JSON: what it answered and how often its lifespan was entered.
"""

import json
import os
import sys

from nonsuch import wsgi

from .environs import asked
from .talkers import LEGACY, Desk, call

CHILDREN = 2
HEADERS = [
    ("Host", "localhost"),
    ("Content-Type", "application/json"),
    ("Authorization", "Bearer clerk"),
    ("Accept", "application/json, text/event-stream"),
    ("MCP-Protocol-Version", LEGACY),
]


def main() -> None:
    """Fork, answer, and wait for the children."""
    desk = Desk()
    door = wsgi(desk.app)
    if sys.argv[1] == "warm":
        answered(door, 1)
    children = forked()
    told = [answered(door, 3) for _ in range(3)]
    door.close()
    statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    line = {"told": told, "lifespans": desk.lifespans, "children": statuses}
    os.write(1, json.dumps(line).encode() + b"\n")
    os._exit(0)


def forked() -> list[int]:
    """Fork, and return the children; a child has none."""
    children = list[int]()
    for _ in range(CHILDREN):
        child = os.fork()
        if not child:
            return []
        children.append(child)
    return children


def answered(door: object, to: int) -> list[object]:
    """Have a stream and a whole answer."""
    seen: list[object] = []
    for told in (call("count", {"to": to}, progressToken=0), call("hello", {"name": "fork"})):
        answer = asked(door, "POST", "/mcp", HEADERS, json.dumps(told).encode())
        seen.append([answer.status, len(answer.body)])
    return seen


if __name__ == "__main__":
    main()
