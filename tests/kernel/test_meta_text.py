"""The text of a catalog: golden ones, and its rules over any catalog, read back from the text alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch import MetaAction, MetaResource, render_catalog
from nonsuch.kernel.meta_text import Kind

VECTORS: Final[list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "mcp_meta.json").read_text("utf-8")
)["cases"]


def resource(told: dict[str, Any]) -> MetaResource:
    actions = tuple(
        MetaAction(
            each["name"],
            each["description"],
            each["kind"],
            each["confirms"],
            each["scope"],
            each["inputSchema"],
        )
        for each in told["actions"]
    )
    return MetaResource(told["name"], told["description"], actions)


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
def test_a_catalog_is_the_text_of_its_vector(case: dict[str, Any]) -> None:
    assert render_catalog([resource(each) for each in case["resources"]]).split("\n") == case["text"]


# any catalog

# the schema of a field, and what its type is in words
TYPES: Final[tuple[tuple[dict[str, object], str], ...]] = (
    ({"type": "string"}, "string"),
    ({"type": "integer"}, "integer"),
    ({"type": "array", "items": {"type": "number"}}, "number[]"),
    ({"enum": ["a", "b"]}, '"a"|"b"'),
    ({"enum": list(range(9))}, "0|1|2|3|4|5|6|7|…"),
)
NAMES: Final[tuple[str, ...]] = ("a", "id", "status_eq", "x" * 30, "y" * 60, "z" * 110)
Fields = dict[str, tuple[int, bool]]  # name -> which type, and whether it is required


def schema(fields: Fields) -> dict[str, Any]:
    properties = {name: TYPES[at][0] for name, (at, _) in fields.items()}
    return {"properties": properties, "required": [name for name, (_, needed) in fields.items() if needed]}


fields: Final[st.SearchStrategy[Fields]] = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.integers(0, len(TYPES) - 1), st.booleans())
)
KINDS: Final[tuple[Kind, ...]] = ("query", "action")
actions: Final = st.builds(
    MetaAction,
    st.sampled_from(("getAll", "deleteAll", "x.y")),
    st.text(max_size=20),
    st.sampled_from(KINDS),
    st.booleans(),
    st.none() | st.sampled_from(("s:read", "s:write")),
    fields.map(schema),
)
resources: Final = st.builds(
    MetaResource, st.sampled_from(("posts", "seats")), st.text(max_size=20), st.lists(actions).map(tuple)
)
LINE: Final = re.compile(r"(  )?(\S+)(?: \(([^{}—]*)\))?(?: \{(.*?)\}(?= —|$))?(?: — (.*))?")


def read(line: str) -> tuple[str, list[str], str, str]:
    """A line as name, notes, parameters and description."""
    found = LINE.fullmatch(line)
    assert found is not None, line
    return found[2], (found[3] or "").split("; ") if found[3] else [], found[4] or "", found[5] or ""


@given(st.lists(resources, max_size=3))
def test_there_is_one_line_for_each_resource_and_each_action(catalog: list[MetaResource]) -> None:
    lines = render_catalog(catalog).splitlines()
    if not catalog:
        assert lines == ["no resources"]
        return
    wanted: list[MetaResource | MetaAction] = []
    for held in catalog:
        wanted += [held, *held.actions]
    assert len(lines) == len(wanted)
    for line, each in zip(lines, wanted, strict=True):
        name, _, _, description = read(line)
        assert line.startswith("  ") is isinstance(each, MetaAction)
        assert (name, description) == (each.name, " ".join(each.description.split()))


@given(resources)
def test_kind_and_confirmation_are_told_of_each_action_and_nothing_else_is(held: MetaResource) -> None:
    for line, action in zip(render_catalog([held]).splitlines()[1:], held.actions, strict=True):
        notes = [note for note in read(line)[1] if not note.startswith("scope ")]
        wanted = ["action"] * (action.kind == "action") + ["confirms"] * action.confirms
        assert notes == wanted


@given(resources)
def test_every_scope_is_told_and_none_twice(held: MetaResource) -> None:
    head, *lines = render_catalog([held]).splitlines()
    above = dict(note.rsplit(" ", 1) for note in read(head)[1])
    for line, action in zip(lines, held.actions, strict=True):
        own = [note.removeprefix("scope ") for note in read(line)[1] if note.startswith("scope ")]
        shared = [above[key] for key in ("scope", f"{action.kind} scope") if key in above]
        assert own + shared == ([] if action.scope is None else [action.scope])
        alike = {each.scope for each in held.actions if each.kind == action.kind}
        assert bool(own) == (len(alike) > 1 and action.scope is not None)
    one = {each.scope for each in held.actions}
    assert ("scope" in above) == (len(one) == 1 and one != {None})
    assert "scope" not in above or len(above) == 1


@given(fields)
def test_required_fields_are_told_and_others_while_there_is_room(told: Fields) -> None:
    action = MetaAction("do", "", "query", False, None, schema(told))
    _, line = render_catalog([MetaResource("r", "", (action,))]).splitlines()
    required = [f"{name}: {TYPES[at][1]}" for name, (at, needed) in told.items() if needed]
    optional = [f"{name}?: {TYPES[at][1]}" for name, (at, needed) in told.items() if not needed]
    count = max(
        (
            count
            for count in range(1, len(optional) + 1)
            if len(required) + count <= 4 and len(", ".join(required + optional[:count])) <= 100
        ),
        default=0,
    )
    more = ["…"] if count < len(optional) else []
    assert read(line)[2] == ", ".join([*required, *optional[:count], *more])
