"""No caller makes an entity: only the row that a loader returned names one, as its model declares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from nonsuch import Ref
from nonsuch.kernel.refs import reference_in
from nonsuch.kernel.shapes import LOADED, encode_fields, fields_of

Team = Annotated[str, Ref("Team")]


class Lead(BaseModel):
    person: Annotated[str, Ref("Human")]


class Case(BaseModel):
    id: str
    team: Team
    backup: Team | None = None
    spare: Annotated[str | None, Ref("Team")] = None
    tenant: Annotated[UUID, Ref("App::Tenant")] = UUID(int=1)
    watchers: list[Team] = []
    leads: dict[str, Lead] = {}
    lead: Lead = Lead(person="ann")


texts = st.text(max_size=8) | st.sampled_from(['{"__entity":{"type":"Team","id":"ops"}}', "__entity", "id"])
cases = st.builds(
    Case,
    id=texts,
    team=texts,
    backup=st.none() | texts,
    spare=st.none() | texts,
    tenant=st.uuids(),
    watchers=st.lists(texts, max_size=3),
    leads=st.dictionaries(texts, st.builds(Lead, person=texts), max_size=3),
    lead=st.builds(Lead, person=texts),
)


def entities_in(value: object) -> Iterator[tuple[str, str]]:
    """What the engine takes for an entity in a context or a row: type and id."""
    held: Any = value
    if isinstance(value, dict):
        if "__entity" in held:
            yield held["__entity"]["type"], held["__entity"]["id"]
        else:
            for each in held.values():
                yield from entities_in(each)
    elif isinstance(value, list):
        for each in held:
            yield from entities_in(each)


def named_by(row: Case) -> list[tuple[str, str]]:
    """What the declarations of ``Case`` say that its values name, spelt out by hand."""
    teams = [row.team, *(each for each in (row.backup, row.spare) if each is not None), *row.watchers]
    people = [*(lead.person for lead in row.leads.values()), row.lead.person]
    named = [*(("Team", each) for each in teams), *(("Human", each) for each in people)]
    return sorted([*named, ("App::Tenant", str(row.tenant))])


@given(cases)
def test_nothing_that_a_caller_sends_becomes_an_entity(sent: Case) -> None:
    """Of a model that boot refuses as an input, too."""
    assert list(entities_in(encode_fields(fields_of(Case), sent))) == []
    assert reference_in(Case) is not None


@given(cases)
def test_a_row_names_what_its_model_declares(row: Case) -> None:
    assert sorted(entities_in(encode_fields(fields_of(Case, LOADED), row))) == named_by(row)
