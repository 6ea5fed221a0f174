"""The shipped policies and the guide beside this file -> policies/README.md. Decides nothing.

``python -m tests.boundaries.policies_readme`` writes the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nonsuch.kernel.cedar_text import Policy, parse

POLICIES: Final = Path(__file__).resolve().parents[2] / "policies"
PAGE: Final = POLICIES / "README.md"
GUIDE: Final = Path(__file__).with_name("policies_page.md")
GATES: Final = {"see": "visibility", "present": "scope"}
QUERIES: Final = ("nonsuch.never.", "nonsuch.sql.")  # about db.query: their reasons are their sentences
CONFIRMATIONS: Final = "nonsuch.confirmation."  # about who decides them, in apps that have them
MIGRATIONS: Final = "nonsuch.migrate."  # about where `db.migrate` may run, in apps that have it
OPENING: Final = """\
# The policies that every app has

Written by `python -m tests.boundaries.policies_readme` from the files beside it and
`tests/boundaries/policies_page.md`: change those.

An app adds one policy per audience (visibility), one per grant and the `.cedar` files of its
`policies_dir` (policy). A policy answers one gate: its action head names `see`, `present`, or actions
of the app. Boot refuses any other. The policies about `db.query` and `db.migrate` are for apps that have
them.
"""


SENTENCES: Final = {
    "nonsuch.confirmation.org": "People decide what their own organisation asked for, and nothing else.",
    "nonsuch.scope.token": "A caller presents the scopes that its token carries, and no other.",
    "nonsuch.scope.session": "A person who came in by a session that no token limits presents every scope.",
    "nonsuch.visibility.everyone": "A tool without `visible_to` may be known to every caller.",
}


def page() -> str:
    """Return the whole page: what the package ships, then how to write policies of one's own."""
    return f"{render(shipped())}\n{GUIDE.read_text()}"


def render(files: Mapping[str, str]) -> str:
    """Return the part of the page about the texts of some files."""
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
    """Its sentence, the comment above it, or the policy itself where it has neither."""
    if policy.id in SENTENCES:
        return SENTENCES[policy.id]
    before, _, after = text.partition(f'@id("{policy.id}")')
    comment = re.search(r"((?:^//[^\n]*\n)+)\Z", before, re.MULTILINE)
    if comment:
        return _comment(comment[1])
    if policy.id.startswith(QUERIES):
        return f"A query that {policy.annotations['reason']}."
    statement = after.partition(";")[0]
    return f"`{' '.join(statement.split())}`".replace("( ", "(").replace(" )", ")").replace("|", "\\|")


def _comment(text: str) -> str:
    """The comment at the head of a text, as one paragraph."""
    head = re.match(r"(?://[^\n]*\n)*", text)
    lines = head[0].splitlines() if head else []
    return " ".join(line.removeprefix("//").strip() for line in lines if line != "//")


if __name__ == "__main__":
    PAGE.write_text(page())
