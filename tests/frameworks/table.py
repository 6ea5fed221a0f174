"""The plan -> the table in README.md: `python -m tests.frameworks.table` writes it. Runs no check."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import Final

from .plan import ASGI, CHECKS, NO_PAIR, NOT, OVER_ASGI, OVER_WSGI, WSGI, Framework, Server, planned

README: Final = Path(__file__).resolve().parents[2] / "README.md"
BEGIN: Final = "<!-- frameworks: written by `python -m tests.frameworks.table` -->"
END: Final = "<!-- /frameworks -->"
SECTION: Final = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}\n", re.DOTALL)
MOUNTS: Final = "tests/frameworks/mounts"
WIDTH: Final = 120
OPENING: Final = (
    "A mount is a file of a few lines, linked below. A framework that runs no lifespan of what it mounts"
    " is given `asgi(app).lifespan`; WSGI has none, and the first request enters it. Each cell counts what"
    " `make test` does there, over a real socket under the real server:"
)


def section() -> str:
    """Return the part of README between the two comments, with them."""
    notes = [NO_PAIR, *dict.fromkeys(NOT.values())]
    told = "\n".join(f"{number}. {note}." for number, note in enumerate(notes, 1))
    checks = "; ".join(f"{name}: {what}" for name, what in CHECKS.items())
    return "\n".join(
        [
            BEGIN,
            fill(f"{OPENING} {checks}.", WIDTH),
            "",
            *_table("ASGI", OVER_ASGI, ASGI, notes),
            "",
            *_table("WSGI", OVER_WSGI, WSGI, notes),
            "",
            told,
            "",
            "Sanic mounts neither ASGI nor WSGI applications: put nonsuch beside it, behind one proxy.",
            END,
            "",
        ]
    )


def _table(
    kind: str, frameworks: Sequence[Framework], servers: Sequence[Server], notes: Sequence[str]
) -> Iterator[str]:
    yield f"| {kind} | " + " | ".join(each.title for each in servers) + " |"
    yield "|---" * (len(servers) + 1) + "|"
    for framework in frameworks:
        cells = " | ".join(_cell(framework, each.name, notes) for each in servers)
        yield f"| [{framework.title}]({MOUNTS}/{framework.mount}.py) | {cells} |"


def _cell(framework: Framework, server: str, notes: Sequence[str]) -> str:
    if server not in framework.servers:
        return f"- (note {notes.index(NO_PAIR) + 1})"
    missing = sorted({notes.index(why) + 1 for (where, _), why in NOT.items() if where == server})
    told = "".join(f" (note {number})" for number in missing)
    return f"{len(planned(server))} of {len(CHECKS)}{told}"


def main() -> None:
    """Write the section into README."""
    README.write_text(SECTION.sub(lambda _: section(), README.read_text()))


if __name__ == "__main__":
    main()
