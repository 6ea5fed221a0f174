"""The state table of confirmations -> the diagram in its decision page. ``python -m`` writes it there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from nonsuch.kernel.confirmation import OPEN, TRANSITIONS

PAGE: Final = Path(__file__).resolve().parents[2] / "threat-model/decisions/0020-a-call-waits-for-a-person.md"
BLOCK: Final = re.compile(r"```mermaid\n.*?```", re.DOTALL)
_WHEN: Final = {"live": ": before it lapses", "lapsed": ": once it has lapsed", "any": ""}


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> pending"]
    for status, following in TRANSITIONS.items():
        lines += [f"    {status} --> {after}{_WHEN[when]}" for after, when in following.items()]
    lines += [f"    {status} --> [*]" for status in TRANSITIONS if status not in OPEN]
    return "\n".join([*lines, "```"])


def page() -> str:
    """Return the page with the diagram of today's table."""
    return BLOCK.sub(lambda _: diagram(), PAGE.read_text())


if __name__ == "__main__":
    PAGE.write_text(page())
