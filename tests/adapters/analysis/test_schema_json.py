"""A schema in Cedar's JSON format is the schema that the text is: the engine is asked about both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from cedarpy import Schema
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.adapters.analysis import schema_json as translator
from nonsuch.adapters.analysis.schema_json import SchemaUnwritable, schema_json, unquoted
from nonsuch.kernel import cedar
from nonsuch.kernel.cedar_text import PolicyRefused
from nonsuch.kernel.policy_text import quoted

from .engine import faults, schema_of
from .parcels import VECTORS

FORMS: Final = r"""
type Money = { cents: Long, "odd \"key\"\n\u{7}é": Set<Set<String>>, ip: ipaddr, "in"?: Bool };
type Name = __cedar::String;
@doc("a \"team\"") @empty
entity Team, Squad in [Team] = { "a"?: Money, @inner("z") b: Name } tags Set<Money>;
entity Bare; entity None = {}; entity Tagged tags String;
entity Kind enum ["x", "a\u{1}\"b\\", "it's"];
action any; action "quoted \"one\"\t" in [any];
action "see", "read all" in [Action::"any", N::Action::"go"] appliesTo {
  principal: [Team, Kind], resource: N::Post, context: { args: { "a b"?: Money, c: Long } } };
@doc("names") namespace N {
  type Body = { when: datetime, far: duration, much: decimal };
  entity Post in [Team] = { body: Body, more: N::M::Deep };
  @why action "go" in ["stop"] appliesTo { principal: Post, resource: [Post], context: Body };
  action stop;
}
namespace N::M { entity Deep = { up: N::Post, q: __cedar::Long }; }
"""


def engine(document: Any) -> str:
    return str(schema_of(document))


@pytest.mark.parametrize(
    "text", [FORMS, "", "entity A;", 'entity A enum ["a"]; action a appliesTo { principal: A, resource: A };']
)
def test_the_engine_reads_one_schema_from_both_forms(text: str) -> None:
    assert engine(schema_json(text)) == str(Schema.from_str(text))


def test_a_schema_has_the_json_that_the_format_prescribes() -> None:
    text = """
    type Cents = { sum: Long };
    @doc("who") entity User in [Group] = { name?: String, tags: Set<Cents> } tags String;
    entity Group; entity Kind enum ["a", "b"];
    action all;
    action pay in [all] appliesTo { principal: User, resource: [Group], context: { cents: Cents } };
    """
    assert schema_json(text) == {
        "": {
            "commonTypes": {
                "Cents": {
                    "type": "Record",
                    "attributes": {"sum": {"type": "EntityOrCommon", "name": "Long"}},
                }
            },
            "entityTypes": {
                "Group": {},
                "Kind": {"enum": ["a", "b"]},
                "User": {
                    "memberOfTypes": ["Group"],
                    "shape": {
                        "type": "Record",
                        "attributes": {
                            "name": {"type": "EntityOrCommon", "name": "String", "required": False},
                            "tags": {"type": "Set", "element": {"type": "EntityOrCommon", "name": "Cents"}},
                        },
                    },
                    "tags": {"type": "EntityOrCommon", "name": "String"},
                    "annotations": {"doc": "who"},
                },
            },
            "actions": {
                "all": {"appliesTo": {"principalTypes": [], "resourceTypes": []}},
                "pay": {
                    "memberOf": [{"type": "Action", "id": "all"}],
                    "appliesTo": {
                        "principalTypes": ["User"],
                        "resourceTypes": ["Group"],
                        "context": {
                            "type": "Record",
                            "attributes": {"cents": {"type": "EntityOrCommon", "name": "Cents"}},
                        },
                    },
                },
            },
        }
    }


def test_a_generated_schema_has_the_meaning_of_its_own_json() -> None:
    """The generator writes both forms itself."""
    text = (VECTORS / "default.cedarschema").read_text()
    own = json.loads((VECTORS / "default.cedarschema.json").read_text())
    assert engine(schema_json(text)) == engine(own)


SMOKE: Final = VECTORS.parent / "cedar_corpus"


@pytest.mark.parametrize("path", sorted(SMOKE.rglob("*.cedarschema")), ids=lambda path: path.name)
def test_the_schemas_of_the_corpus_have_a_json_form(path: Path) -> None:
    assert engine(schema_json(path.read_text())) == str(Schema.from_str(path.read_text()))


# drawn schemas: a policy fits one form of a schema as it fits the other

NAMES: Final = ("A", "B", "C")
SCALARS: Final = ("Long", "String", "Bool", "ipaddr", "datetime", "Set<Long>", *NAMES)


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.integers(0, 4 if depth else 1))
    if kind < 3:
        return draw(st.sampled_from(SCALARS))
    if kind == 3:
        return f"Set<{draw(types(depth - 1))}>"
    keys = draw(st.lists(st.sampled_from(["x", "y", "in", "a b", '"']), unique=True, max_size=3))
    held = (f"{quoted(key)}{draw(st.sampled_from(['', '?']))}: {draw(types(depth - 1))}" for key in keys)
    return "{" + ", ".join(held) + "}"


@st.composite
def schemas(draw: st.DrawFn) -> str:
    parts: list[str] = []
    for name in NAMES:
        parents = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=2))
        within = f" in [{', '.join(parents)}]" if parents else ""
        shape = draw(st.sampled_from(["", f" = {{ x: {draw(types())}, y?: {draw(types())} }}"]))
        parts.append(f"entity {name}{within}{shape}{draw(st.sampled_from(['', ' tags Long']))};")
    for name in ("do", "see"):
        applies = ", ".join(draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=3)))
        context = f"{{ x: {draw(types())}, y?: {draw(types())} }}"
        over = f"principal: [{applies}], resource: [C], context: {context}"
        parts.append(f"action {name} in [all] appliesTo {{ {over} }};")
    return "\n".join([*parts, "action all;"])


POLICIES: Final = "\n".join(
    f"permit (principal{who}, action {what}, resource) when {{ {condition} }};"
    for who in ("", " is A", ' in B::"b"')
    for what in ('== Action::"do"', 'in Action::"all"')
    for condition in (
        "principal has x && principal.x == context.x",
        "context has y && context.y == 1",
        "context.x.contains(2)",
        'principal.getTag("t") > 1',
        'context has x.y && context.x.y like "a*"',
        "resource in context.x",
    )
)


@given(schemas())
def test_every_policy_fits_one_form_as_it_fits_the_other(text: str) -> None:
    schema = schema_json(text)
    told, again = (faults(POLICIES, each) for each in (text, schema_of(schema)))
    assert told == again
    assert told  # some fault is always there, or nothing would be compared


# what is refused


def test_a_text_that_is_no_schema_is_refused_by_the_engine() -> None:
    with pytest.raises(PolicyRefused):
        schema_json("entity ;")


@pytest.mark.parametrize(
    "written", ["mystery X;", "entity A like B;", "action a appliesTo { context: {}; };"], ids=range(3)
)
def test_a_form_that_nobody_knows_is_refused_and_not_left_out(
    monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setattr(cedar, "schema", _always(written))
    with pytest.raises(SchemaUnwritable, match="has a JSON form here"):
        schema_json("entity A;")


def _always(written: str) -> Callable[[str], str]:
    return lambda _: written


def test_a_document_that_lost_something_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    read = translator._Reader.document  # pyright: ignore[reportPrivateUsage]  (to lose a part of what it read)

    def careless(reader: Any) -> Any:
        document: Any = read(reader)
        del document[""]["entityTypes"]["A"]["shape"]
        return document

    monkeypatch.setattr(translator._Reader, "document", careless)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(SchemaUnwritable, match="another schema"):
        schema_json("entity A = { x: Long };")


@given(st.text())
def test_a_literal_is_read_as_it_was_written(text: str) -> None:
    assert unquoted(quoted(text)) == text
