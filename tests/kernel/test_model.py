"""Principals are values that a policy can be asked about safely, or they are not made at all."""

from typing import Any

import pytest

from nonsuch import Agent, Human
from nonsuch.kernel.model import Issue, Ok, PrincipalInvalid, parties

MAKERS: list[Any] = [Agent, Human]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("bad", ["", "x" * 513, "a\nb", "a\0b", "\x7f", "\x85", "\ud800"])
def test_an_id_is_printable_and_short(make: Any, bad: str) -> None:
    with pytest.raises(PrincipalInvalid, match=r"needs an id of 1 to 512 printable characters"):
        make(bad)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "good", ["a", "x" * 512, "O'Brien", 'a"; permit(principal, action, resource)//', "é"]
)
def test_an_id_may_hold_what_code_looks_like(make: Any, good: str) -> None:
    assert make(good).id == good


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", ["roles", "scopes"])
def test_a_set_of_names_is_not_one_string(make: Any, name: str) -> None:
    with pytest.raises(PrincipalInvalid, match=f"{name} is a set of names, not one string"):
        make("a", **{name: "admin"})


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", ["roles", "scopes"])
def test_a_name_is_a_string(make: Any, name: str) -> None:
    with pytest.raises(PrincipalInvalid, match=f"{name} is a set of names, and a name is a string"):
        make("a", **{name: ["admin", 5]})


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("org", ["\ud800", 5])
def test_an_organisation_is_as_printable_as_an_id(make: Any, org: Any) -> None:
    """Policies compare it: what the engine cannot be told must not become a principal."""
    with pytest.raises(PrincipalInvalid):
        make("a", org=org)


def test_any_iterable_of_names_becomes_a_set() -> None:
    made = Agent("a", roles=["r", "r"], scopes=iter(("s",)))
    assert (made.roles, made.scopes) == (frozenset({"r"}), frozenset({"s"}))
    assert Human("h", scopes=["s"]).scopes == frozenset({"s"})


def test_a_person_has_no_limit_of_scopes_and_an_agent_has_none() -> None:
    assert Human("h").scopes is None
    assert Agent("a").scopes == frozenset()
    assert Human("h", scopes=()).scopes == frozenset()


def test_principals_are_frozen_values() -> None:
    assert Agent("a", roles={"r"}) == Agent("a", roles=("r",))
    assert len({Agent("a"), Agent("a"), Human("a")}) == 2
    assert len({Agent("a"), Human("a")}) == 2
    for name in ("id", "roles", "org", "scopes", "acts_for"):
        with pytest.raises(AttributeError):
            setattr(Agent("a"), name, None)


def test_a_delegate_has_the_roles_and_the_organisation_of_its_person_and_only_its_own_scopes() -> None:
    person = Human("h", roles={"r"}, org="acme", scopes={"s", "t"})
    agent = person.delegate("a", scopes=["s"])
    assert agent == Agent("a", roles={"r"}, org="acme", scopes={"s"}, acts_for=person)
    assert person.delegate("a").scopes == frozenset()


def test_a_delegates_scopes_are_a_set_of_names_too() -> None:
    with pytest.raises(PrincipalInvalid, match="scopes is a set of names, not one string"):
        Human("h").delegate("a", scopes="admin")


def test_the_parties_of_a_principal() -> None:
    person = Human("h")
    agent = person.delegate("a")
    assert parties(agent) == (agent, person)
    assert parties(person) == (person,)
    assert parties(Agent("b")) == (Agent("b"),)


def test_an_issue_says_where_and_what() -> None:
    assert str(Issue("a.0", "required")) == "a.0: required"
    assert str(Issue("", "must be of type object")) == "must be of type object"


def test_an_answer_can_be_read_as_plain_values() -> None:
    assert Ok(b'{"a":[1,null]}').value == {"a": [1, None]}
