"""What may be given as `resolve_token`: each kind gets what it takes, an unclear one is refused at boot."""

from __future__ import annotations

import operator
from collections import ChainMap, OrderedDict, UserDict, defaultdict
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import pytest

from nonsuch import Agent, BootError, Principal, Registry, RequestFacts, define_app_mcp

ANN: Final = Agent("ann")
TOKENS: Final[dict[str, Principal]] = {"t": ANN}
FACTS: Final = RequestFacts("192.0.2.1", None, None, "/mcp")


def resolve(given: Any, token: str) -> Any:
    """What an app makes of a token."""
    app = define_app_mcp(Registry(), name="x", resolve_token=given)
    assert app.resolve_token is not None
    return app.resolve_token(token, FACTS)


GETS: Final[dict[str, Any]] = {
    "dict": TOKENS.get,
    "OrderedDict": OrderedDict(TOKENS).get,
    "mapping proxy": MappingProxyType(TOKENS).get,
    "defaultdict": defaultdict(lambda: ANN, TOKENS).get,
    "ChainMap": ChainMap(TOKENS).get,
    "UserDict": UserDict(TOKENS).get,
    "partial": partial(TOKENS.get),
}


@pytest.mark.parametrize("kind", GETS)
def test_the_get_of_a_mapping_is_given_the_token_alone(kind: str) -> None:
    """Its second argument is who everybody else would be."""
    assert [resolve(GETS[kind], token) for token in ("t", "unknown")] == [ANN, None]


def needs_facts(token: str, where: RequestFacts) -> Any:
    return token, where


def may_take_facts(token: str, facts: RequestFacts | None = None) -> Any:
    return token, facts


def anything(*given: Any) -> Any:
    return given


def any_more(token: str, *more: Any) -> Any:
    return (token, *more)


def has_more(token: str, facts: RequestFacts, cache: bool = True) -> Any:
    return token, facts


@pytest.mark.parametrize("given", [needs_facts, may_take_facts, anything, any_more, has_more])
def test_whoever_takes_facts_is_given_them(given: Any) -> None:
    assert resolve(given, "t") == ("t", FACTS)


def one(token: str) -> Any:
    return (token,)


def one_by_name(token: str, *, cache: str = "c") -> Any:
    return token, cache


def bare() -> Any:
    return ANN


def by_name_alone(token: str, *, cache: str) -> Any:
    return token, cache


def three(token: str, facts: RequestFacts, cache: str) -> Any:
    return token, facts, cache


def unclear(token: str, where: RequestFacts | None = None) -> Any:
    """Without facts it would find nothing wrong with any request."""
    return token, where


@pytest.mark.parametrize(("given", "told"), [(one, ("t",)), (one_by_name, ("t", "c"))])
def test_whoever_takes_a_token_is_given_no_more(given: Any, told: Any) -> None:
    assert resolve(given, "t") == told


REFUSED: Final[dict[str, tuple[Any, str]]] = {
    "nothing to call": ("t", "is no function"),
    "a mapping": (TOKENS, "is no function"),
    "no argument": (bare, "takes no token"),
    "a keyword that must be given": (by_name_alone, "needs more than a token and facts"),
    "three arguments": (three, "needs more than a token and facts"),
    "a second one that may be anything": (
        unclear,
        "has a default for `where`: it may be the facts or not",
    ),
    "written in C": (TOKENS.__getitem__, "does not say what it takes"),
    "an object written in C": (operator.itemgetter("t"), "does not say what it takes"),
    "a get of something else": (operator.attrgetter("get"), "does not say what it takes"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_called_safely_is_refused_at_boot(case: str) -> None:
    given, told = REFUSED[case]
    with pytest.raises(BootError) as raised:
        define_app_mcp(Registry(), name="x", resolve_token=given)
    (fault,) = raised.value.faults
    assert (fault.code, fault.cause) == ("X_DECLARATION_INVALID", f"`resolve_token` {told}")
    assert fault.fix == "give a function of `(token, facts)` or of `(token)`"
