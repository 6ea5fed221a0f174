"""A program that serves the talkers' app on stdio: `python -m tests.adapters.edge.stdio_app [person|visitor]`.

Says on stderr when its lifespan is entered and left.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from nonsuch import serve_stdio

from .talkers import KNOWN, Desk


@asynccontextmanager
async def lifespan() -> AsyncGenerator[str]:
    """Say that it is there."""
    sys.stderr.write("entered\n")
    sys.stderr.flush()
    yield "the desk"
    sys.stderr.write("left\n")


if __name__ == "__main__":
    desk = Desk()
    desk.app = desk.build(lifespan=lifespan)
    serve_stdio(desk.app, KNOWN[sys.argv[1] if len(sys.argv) > 1 else "clerk"], line_limit_bytes=10_000)
    sys.stderr.write("served\n")
    sys.stdout.write("the end\n")
