"""The shipped policies -> policies/README.md: what each says, which gate it answers. Decides nothing.

``python -m tests.boundaries.policies_readme`` writes the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nonsuch.kernel.cedar import Policy, parse

POLICIES: Final = Path(__file__).resolve().parents[2] / "policies"
PAGE: Final = POLICIES / "README.md"
GATES: Final = {"see": "visibility", "present": "scope"}
OPENING: Final = """\
# The policies that every app has

Written by `tests/boundaries/policies_readme.py` from the files beside it: change those.

An app adds one policy per audience (visibility), one per grant and the `.cedar` files of its
`policies_dir` (policy). A policy answers one gate: its action head names `see`, `present`, or actions
of the app. Boot refuses any other.
"""


def render(files: Mapping[str, str]) -> str:
    """Return the page for the texts of some files."""
    sections = (
        _section(name, files[name]) for name in sorted(files, key=lambda name: (_is_schema(name), name))
    )
    return "\n".join((OPENING, *sections))


def shipped() -> Mapping[str, str]:
    """The texts that the package ships."""
    return {path.name: path.read_text() for path in POLICIES.glob("*.cedar*")}


def _is_schema(name: str) -> bool:
    return name.endswith("schema")


def _section(name: str, text: str) -> str:
    title = f"## [{name}]({name})\n\n{_comment(text)}\n"
    return title if _is_schema(name) else f"{title}\n{_rows(name, text)}"


def _rows(name: str, text: str) -> str:
    head = "| policy | effect | gate | what it says |\n|---|---|---|---|\n"
    rows = (
        f"| `{each.id}` | {_effect(each)} | {_gate(each)} | {_says(each, text)} |\n"
        for each in parse(text, name)
    )
    return head + "".join(rows)


def _effect(policy: Policy) -> str:
    return "permit" if policy.permit else "forbid"


def _gate(policy: Policy) -> str:
    return ", ".join(sorted({GATES.get(action, "policy") for action in policy.actions or ()})) or "none"


def _says(policy: Policy, text: str) -> str:
    """The comment above a policy, or the policy itself where it has none of its own."""
    before, _, after = text.partition(f'@id("{policy.id}")')
    comment = re.search(r"((?:^//[^\n]*\n)+)\Z", before, re.MULTILINE)
    if comment:
        return _comment(comment[1])
    statement = after.partition(";")[0]
    return f"`{' '.join(statement.split())}`".replace("( ", "(").replace(" )", ")").replace("|", "\\|")


def _comment(text: str) -> str:
    """The comment at the head of a text, as one paragraph."""
    head = re.match(r"(?://[^\n]*\n)*", text)
    lines = head[0].splitlines() if head else []
    return " ".join(line.removeprefix("//").strip() for line in lines if line != "//")


if __name__ == "__main__":
    PAGE.write_text(render(shipped()))
