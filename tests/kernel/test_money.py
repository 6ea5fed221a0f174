"""Money is whole minor units of one currency: no float comes in or out, and currencies never mix."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from nonsuch import Human, Money, Registry, can, expose
from nonsuch.kernel.model import Ok, PolicyDenied
from nonsuch.kernel.money import EXACT
from nonsuch.kernel.schema import Invalid, publish_input
from nonsuch.kernel.shapes import encode_fields, fields_of, record_text
from nonsuch.kernel.steps import Returned
from nonsuch.kernel.strict_json import Json

from .trial import Spy, boot, called, folder


class Refund(BaseModel):
    amount: Money


def money(minor: int, currency: str = "EUR") -> Money:
    return Money(minor=minor, currency=currency)


HALF = EXACT // 2
MINOR = st.integers(-HALF, HALF)
CURRENCY = st.text("ABCXYZ", min_size=3, max_size=3)
ARITHMETIC: list[Callable[[Any, Any], Any]] = [operator.add, operator.sub]
COMPARISON: list[Callable[[Any, Any], Any]] = [operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("calculate", ARITHMETIC)
@given(left=MINOR, right=MINOR, currency=CURRENCY)
def test_one_currency_calculates_as_its_minor_units_do(
    calculate: Callable[[Any, Any], Any], left: int, right: int, currency: str
) -> None:
    found = calculate(money(left, currency), money(right, currency))
    assert (found.minor, type(found.minor), found.currency) == (calculate(left, right), int, currency)


@pytest.mark.parametrize("compare", [*COMPARISON, operator.eq, operator.ne])
@given(left=MINOR, right=MINOR, currency=CURRENCY)
def test_one_currency_compares_as_its_minor_units_do(
    compare: Callable[[Any, Any], Any], left: int, right: int, currency: str
) -> None:
    assert compare(money(left, currency), money(right, currency)) is compare(left, right)


@pytest.mark.parametrize("mix", [*ARITHMETIC, *COMPARISON])
@given(left=MINOR, right=MINOR, currencies=st.lists(CURRENCY, min_size=2, max_size=2, unique=True))
def test_two_currencies_never_mix(
    mix: Callable[[Any, Any], Any], left: int, right: int, currencies: list[str]
) -> None:
    one, other = currencies
    with pytest.raises(ValueError, match=f"^`{one}` and `{other}` are two currencies$"):
        mix(money(left, one), money(right, other))
    assert money(left, one) != money(left, other)


@pytest.mark.parametrize("mix", [*ARITHMETIC, *COMPARISON])
@pytest.mark.parametrize("other", [5, 5.0, "five", None])
def test_money_goes_with_money_only(mix: Callable[[Any, Any], Any], other: object) -> None:
    with pytest.raises(TypeError):
        mix(money(5), other)


NO_MONEY: list[dict[str, Any]] = [
    {"minor": 5.0, "currency": "EUR"},
    {"minor": 5.5, "currency": "EUR"},
    {"minor": "5", "currency": "EUR"},
    {"minor": True, "currency": "EUR"},
    {"minor": None, "currency": "EUR"},
    {"minor": EXACT + 1, "currency": "EUR"},
    {"minor": -EXACT - 1, "currency": "EUR"},
    {"minor": 5, "currency": "eur"},
    {"minor": 5, "currency": "EURO"},
    {"minor": 5, "currency": "EU"},
    {"minor": 5, "currency": "EUR\n"},
    {"minor": 5, "currency": "\u0415UR"},
    {"minor": 5},
    {"currency": "EUR"},
    {"minor": 5, "currency": "EUR", "rate": 1},
]


@pytest.mark.parametrize("given", NO_MONEY, ids=str)
def test_what_is_no_money_is_refused_in_code_and_on_the_wire(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Money"):
        Money(**given)
    assert isinstance(publish_input(Refund).parse({"amount": given}), Invalid)


def test_the_largest_amounts_are_money_and_more_is_none() -> None:
    assert money(EXACT) - money(1) == money(EXACT - 1)
    with pytest.raises(ValueError, match="Money"):
        _ = money(EXACT) + money(1)


def test_money_cannot_be_changed_and_can_be_a_key() -> None:
    with pytest.raises(ValueError, match="frozen"):
        money(5).minor = 6  # type: ignore[misc]  # what is tested for
    assert {money(5): 1}[money(5)] == 1


def test_the_published_schema_says_what_an_amount_is() -> None:
    assert publish_input(Refund).document["$defs"]["Money"] == {
        "type": "object",
        "description": "An amount of money: a whole number of minor units, and the code of their currency.",
        "additionalProperties": False,
        "required": ["minor", "currency"],
        "properties": {
            "minor": {
                "type": "integer",
                "description": "whole minor units of the currency, such as cents",
                "minimum": -EXACT,
                "maximum": EXACT,
            },
            "currency": {
                "type": "string",
                "description": "the currency's ISO 4217 code, such as EUR",
                "pattern": "^[A-Z]{3}$",
            },
        },
    }


# what a policy reads


def test_cedar_holds_a_record_of_an_integer_and_a_text() -> None:
    fields = fields_of(Refund)
    assert record_text(fields) == '{"amount": {"minor": Long, "currency": String}}'
    assert encode_fields(fields, Refund(amount=money(-5))) == {"amount": {"minor": -5, "currency": "EUR"}}


RULES = """
@id("refunds") permit (principal, action == Action::"refund", resource);
@id("large") forbid (principal, action == Action::"refund", resource)
when { context.args.amount.minor > 10000 && context.args.amount.currency == "EUR" };
"""


def refund(input: Refund) -> Money:
    return input.amount


@pytest.mark.parametrize(
    ("minor", "currency", "allowed"),
    [(10_000, "EUR", True), (10_001, "EUR", False), (10_001, "USD", True), (-10_001, "EUR", True)],
)
def test_a_policy_limits_an_amount(minor: int, currency: str, allowed: bool, tmp_path: Path) -> None:
    registry = Registry()
    registry.action(policy=can("order:refund"), mcp=expose("Refund"))(refund)
    app = boot(registry, policies_dir=folder(tmp_path, own=RULES))
    given: dict[str, Json] = {"amount": {"minor": minor, "currency": currency}}
    spy = Spy(handled=lambda _: Returned(money(minor, currency)))
    told = called(app, Human("h"), "refund", given, spy)
    assert isinstance(told, Ok if allowed else PolicyDenied)
