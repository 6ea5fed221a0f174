"""policies/README.md says what the shipped policies say, and each of them answers one gate."""

from __future__ import annotations

import re

from .policies_readme import (
    CONFIRMATIONS,
    GUIDE,
    MIGRATIONS,
    OPENING,
    PAGE,
    QUERIES,
    SENTENCES,
    page,
    render,
    shipped,
)

MADE_UP = {
    "b.cedarschema": "// The types.\n\nentity Agent;\n",
    "a.cedar": (
        "// Gate 3: a file\n// in two lines.\n\n"
        "// Nobody may.\n// Not once.\n"
        '@id("no")\n@reason("no")\nforbid (principal, action == Action::"post", resource);\n\n'
        '@id("yes")\npermit (\n  principal,\n  action == Action::"see",\n  resource\n)\n'
        "when { principal.a || principal.b };\n"
    ),
}


def test_the_page_is_what_the_policies_say() -> None:
    """A stale page fails: run ``python -m tests.boundaries.policies_readme``."""
    assert PAGE.read_text() == page() == f"{render(shipped())}\n{GUIDE.read_text()}"


def test_every_shipped_policy_is_on_the_page_with_one_gate() -> None:
    """A policy of the base answers visibility or scope: what permits a call is the app's own.

    Those about queries, confirmations and migrations only forbid.
    """
    declared = {ident for text in shipped().values() for ident in re.findall(r'@id\("(.*?)"\)', text)}
    rows = re.findall(r"^\| `(.*?)` \| (permit|forbid) \| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    assert declared == {ident for ident, _, _ in rows}
    forbids = (*QUERIES, CONFIRMATIONS, MIGRATIONS)
    assert {gate for ident, _, gate in rows if not ident.startswith(forbids)} == {"visibility", "scope"}
    others = {(effect, gate) for ident, effect, gate in rows if ident.startswith(forbids)}
    assert others == {("forbid", "policy")}
    assert SENTENCES.keys() <= declared


def test_the_page_of_made_up_policies() -> None:
    assert render(MADE_UP) == OPENING + (
        "\n## [a.cedar](a.cedar)\n\nGate 3: a file in two lines.\n\n"
        "| policy | effect | gate | what it says |\n|---|---|---|---|\n"
        "| `no` | forbid | policy | Nobody may. Not once. |\n"
        '| `yes` | permit | visibility | `permit (principal, action == Action::"see", resource) '
        "when { principal.a \\|\\| principal.b }` |\n"
        "\n## [b.cedarschema](b.cedarschema)\n\nThe types.\n"
    )


def test_another_text_is_another_page() -> None:
    """Or the first test could not fail."""
    changed = {name: text.replace("permit (", "forbid (") for name, text in shipped().items()}
    assert render(changed) not in PAGE.read_text()
