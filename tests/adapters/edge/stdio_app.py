"""A program that serves the talkers' app on stdio: `python -m tests.adapters.edge.stdio_app [prints]`.

Says on stderr when its lifespan is entered and left; with `prints` it uses stdout afterwards.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from nonsuch import serve_stdio

from .talkers import CLERK, Desk


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
    serve_stdio(desk.app, CLERK, line_limit_bytes=10_000)
    sys.stderr.write("served\n")
    if "prints" in sys.argv:
        sys.stdout.write("the end\n")
