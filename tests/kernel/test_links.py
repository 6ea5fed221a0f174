"""Template links: what a file of them says, and what is wrong with it and where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.kernel.compile import PolicySource
from nonsuch.kernel.errors import Fault, fault
from nonsuch.kernel.links import Link, read_links
from nonsuch.kernel.policy_text import Place, quoted
from nonsuch.kernel.shapes import uid


def read(text: str) -> tuple[list[Link], list[Fault]]:
    return read_links(PolicySource("own.links.json", text))


def link(**changed: Any) -> dict[str, Any]:
    return {"template_id": "team", "link_id": "one", "args": {"?principal": 'Role::"editor"'}, **changed}


def refused(text: str) -> list[tuple[str, str]]:
    """The place and the cause of every fault."""
    found, faults = read(text)
    assert found == []
    fix = "give `template_id`, `link_id` and an entity for each slot of the template"
    assert {(each.code, each.fix) for each in faults} <= {("X_POLICY_LINK_INVALID", fix)}
    return [(each.where.removeprefix("own.links.json:"), each.cause) for each in faults]


def test_no_links() -> None:
    assert read("[]") == ([], [])


def test_a_link_has_the_template_its_own_id_an_entity_for_each_slot_and_its_place() -> None:
    text = json.dumps(
        [link(), link(link_id="two", args={"?principal": 'A::B::"x"', "?resource": 'Post::"p"'})]
    )
    assert read(text.replace(", {", ",\n  {")) == (
        [
            Link("team", "one", {"principal": uid("Role", "editor")}, Place(1, 2)),
            Link("team", "two", {"principal": uid("A::B", "x"), "resource": uid("Post", "p")}, Place(2, 3)),
        ],
        [],
    )


def test_the_place_of_a_link_is_not_moved_by_brackets_in_its_strings() -> None:
    text = json.dumps([link(link_id='[{"]}'), link(link_id="two")]).replace(", {", ",\n{")
    assert [each.place for each in read(text)[0]] == [Place(1, 2), Place(2, 1)]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_an_entity_id_is_read_as_it_was_quoted(ident: str) -> None:
    """For ids that need no escape but those of a quote and a backslash; any other escape is refused."""
    text = f"User::{quoted(ident)}"
    found, faults = read(json.dumps([link(args={"?principal": text})]))
    if ident.isprintable():
        assert [each.values for each in found] == [{"principal": uid("User", ident)}]
    else:
        assert [each.cause for each in faults] == ['`?principal` needs an entity such as `Role::"editor"`']


ENTITIES: list[Any] = [
    "editor",
    "Role::editor",
    'Role:"editor"',
    'Role::"editor',
    'Role::"ed"itor"',
    'Role::"editor" || true',
    ' Role::"editor"',
    '::"editor"',
    '1Role::"editor"',
    '"editor"',
    "",
    None,
    7,
    ["Role", "editor"],
    {"type": "Role", "id": "editor"},
]


@pytest.mark.parametrize("value", ENTITIES)
def test_a_slot_takes_an_entity_as_policies_write_it(value: Any) -> None:
    text = json.dumps([link(args={"?principal": 'Role::"editor"', "?resource": value})])
    assert refused(text) == [("1:2", '`?resource` needs an entity such as `Role::"editor"`')]


MEMBERS = "a link has exactly `template_id`, `link_id` and `args`"
KINDS = "`template_id` and `link_id` are strings and `args` is an object"
ITEMS: list[tuple[Any, str]] = [
    ({}, MEMBERS),
    ({"template_id": "team", "link_id": "one"}, MEMBERS),
    (link(more=1), MEMBERS),
    (link(template_id=1), KINDS),
    (link(link_id=None), KINDS),
    (link(args=[]), KINDS),
    (link(args="?principal"), KINDS),
]


@pytest.mark.parametrize(("item", "cause"), ITEMS)
def test_a_link_that_is_no_link_is_told_and_the_others_are_read(item: Any, cause: str) -> None:
    assert refused(json.dumps([item])) == [("1:2", cause)]
    found, faults = read(json.dumps([link(), item, link(link_id="two")], indent=1))
    assert [each.id for each in found] == ["one", "two"]
    assert [each.cause for each in faults] == [cause]


@pytest.mark.parametrize("item", ["7", "null", '"team"', "[]", '[{"a": 1}]', "true"])
def test_an_item_that_is_no_object_is_told_at_its_place(item: str) -> None:
    text = f"[{json.dumps(link())},\n {item},\n  {json.dumps(link(link_id='two'))}]"
    found, faults = read(text)
    assert [(each.id, each.place) for each in found] == [("one", Place(1, 2)), ("two", Place(3, 3))]
    assert faults == [fault("X_POLICY_LINK_INVALID", MEMBERS, where="own.links.json:2:2")]


@pytest.mark.parametrize("text", ["{}", '"team"', "7", "null", json.dumps(link())])
def test_a_file_is_a_list(text: str) -> None:
    assert refused(text) == [("1:1", "the file is not a list")]


JSON = {
    "": "1:1",
    "[": "1:2",
    '[\n "é", ]': "2:7",
    "[]\n\n7": "3:1",
    '["\\ud800"]': "1:3",
}


@pytest.mark.parametrize("text", JSON)
def test_text_that_is_no_json_is_told_where_it_stops_being_some(text: str) -> None:
    ((where, cause),) = refused(text)
    assert where == JSON[text]
    assert "\n" not in cause


@pytest.mark.parametrize("text", ['[{"a": 1, "a": 1}]', "[" * 10_000, "[1e999]"])
def test_text_that_is_refused_as_a_whole_is_told_at_its_beginning(text: str) -> None:
    ((where, _),) = refused(text)
    assert where == "1:1"
