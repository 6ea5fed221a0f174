"""Rates: one bucket against a model that adds up fractions, a clock that is set, and whose bucket it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch import Agent, Human, Limits, Principal, Rate
from nonsuch.kernel.meter import DEFAULT, NS, PASSES, RateClass, address_key, key_of, take


@dataclass
class Bucket:
    """A bucket as a reader would draw it: so many tokens, which drip in as time goes by."""

    rate: Rate
    held: Fraction = field(init=False)
    last: int = 0

    def __post_init__(self) -> None:
        self.held = Fraction(self.rate.limit)

    def look(self, at: int) -> Fraction:
        """The tokens there are at a time."""
        drip = Fraction((at - self.last) * self.rate.limit, self.rate.window)
        self.held, self.last = min(Fraction(self.rate.limit), self.held + drip), at
        return self.held

    def take(self, at: int, count: int) -> bool:
        """All of them or none."""
        if self.look(at) < count:
            return False
        self.held -= count
        return True


rates = st.builds(Rate, st.integers(1, 6), st.integers(1, 20))  # small, so that bursts spend them
# bursts, a trickle, and pauses in which a bucket fills
pauses = st.one_of(st.just(0), st.integers(0, 2 * NS), st.integers(0, 100 * NS))
steps = st.lists(st.tuples(pauses, st.integers(0, 4)), max_size=60)


@given(st.integers(1, 10**6), st.integers(1, 10**5))
def test_a_window_is_the_seconds_of_the_rate_to_the_nanosecond(limit: int, seconds: int) -> None:
    rate = Rate(limit, seconds)
    assert 0 <= seconds * NS - rate.window < limit
    assert rate.window == limit * rate.interval


@given(rates, st.integers(0, 10**18), steps)
def test_a_bucket_lets_through_what_has_dripped_in(rate: Rate, at: int, moves: list[tuple[int, int]]) -> None:
    bucket, state = Bucket(rate, at), None
    for move, count in moves:
        at += move
        before = state
        state, verdict = take(state, at, rate, count=count)
        if count == 0:
            assert verdict.passes is (bucket.look(at) >= 1)
            assert take(before, at, rate)[1] == take(state, at, rate)[1] == verdict
        else:
            assert verdict.passes is bucket.take(at, count)


@given(rates, st.lists(pauses, max_size=120))
def test_no_span_of_time_sees_more_than_a_bucket_and_what_drips_in_meanwhile(
    rate: Rate, moves: list[int]
) -> None:
    state, at, passed = None, 0, list[int]()
    for move in moves:
        at += move
        state, verdict = take(state, at, rate)
        passed += [at] if verdict.passes else []
    for (first, begin), (last, end) in combinations(enumerate(passed), 2):
        assert last - first + 1 <= rate.limit + Fraction(end - begin, rate.interval)


@given(rates, st.integers(0, 10**18), st.lists(pauses, min_size=1, max_size=80))
def test_who_waits_as_long_as_told_passes_and_a_second_less_is_too_short(
    rate: Rate, at: int, moves: list[int]
) -> None:
    state = None
    for move in moves:
        at += move
        state, verdict = take(state, at, rate)
        if not verdict.passes:
            assert 1 <= verdict.retry_after <= rate.seconds
            assert take(state, at + verdict.retry_after * NS, rate)[1] == PASSES
            assert not take(state, at + (verdict.retry_after - 1) * NS, rate)[1].passes


def forward(times: Iterable[int]) -> int:
    """All the time that went by, as a clock shows it that is also set back."""
    return sum(max(later - sooner, 0) for sooner, later in pairwise(times))


@given(rates, st.lists(st.integers(0, 400 * NS), min_size=1, max_size=80))
def test_a_clock_that_is_set_lets_nothing_through_twice_and_lets_nobody_wait_longer(
    rate: Rate, times: list[int]
) -> None:
    state, passed = None, 0
    for at in times:
        state, verdict = take(state, at, rate)
        passed += verdict.passes
        assert state <= at + rate.window
        assert verdict.passes or 1 <= verdict.retry_after <= rate.seconds
    assert passed <= rate.limit + Fraction(forward(times), rate.interval)


def test_a_clock_set_back_by_an_hour_stops_nobody_for_an_hour() -> None:
    rate, noon = Rate(2, 60), 10**18
    state, _ = take(None, noon, rate, count=2)
    state, verdict = take(state, noon - 3_600 * NS, rate)
    assert (verdict.passes, verdict.retry_after) == (False, 30)
    assert take(state, noon - 3_570 * NS, rate)[1] == PASSES


@given(rates, st.integers(0, 10**18))
def test_more_than_a_bucket_holds_never_passes(rate: Rate, at: int) -> None:
    assert not take(None, at, rate, count=rate.limit + 1)[1].passes
    assert take(None, at, rate, count=rate.limit)[1] == PASSES


@pytest.mark.parametrize(("limit", "seconds"), [(0, 60), (-1, 60), (1, 0), (2 * NS, 1)])
def test_a_rate_that_lets_nothing_or_everything_through_is_none(limit: int, seconds: int) -> None:
    with pytest.raises(ValueError, match="a rate "):
        Rate(limit, seconds)


def test_the_rates_of_an_app_that_says_nothing() -> None:
    assert Limits() == DEFAULT
    found = [(DEFAULT.of(kind).limit, DEFAULT.of(kind).seconds) for kind in KINDS]
    assert found == [(120, 60), (20, 60), (20, 60)]


# Whose bucket

KINDS: tuple[RateClass, ...] = ("read", "write", "unauthenticated")
ANN = Human("ann", roles={"r"}, org="acme")
CALLERS: tuple[Principal, ...] = (
    ANN,
    Human("ann", org="other"),
    Human("ann"),
    Human("bob", org="acme"),
    Agent("ann", org="acme"),
    Agent("bot", org="acme"),
    Agent("bot"),
    ANN.delegate("bot"),
    Human("bob", org="acme").delegate("bot"),
    ANN.delegate("bot2"),
    Agent('bot"], ["Human", "ann", "acme'),
)


def test_no_two_callers_servers_or_classes_share_a_bucket() -> None:
    keys = [key_of(server, kind, who) for server in ("one", "two") for kind in KINDS for who in CALLERS]
    assert len(set(keys)) == len(keys)


def test_one_caller_has_one_bucket_whatever_its_token_carries() -> None:
    poor = Human("ann", org="acme", scopes={"s"})
    assert key_of("one", "read", ANN) == key_of("one", "read", poor)
    assert key_of("one", "read", ANN.delegate("bot")) == key_of(
        "one", "read", poor.delegate("bot", scopes=["s"])
    )


def test_a_key_names_nobody() -> None:
    keys = [key_of("server", "read", ANN.delegate("robot")), address_key("server", "192.0.2.17")]
    for name in ("ann", "acme", "robot", "server", "192.0.2"):
        assert not any(name in key for key in keys)


@pytest.mark.parametrize(
    "group",
    [
        ["192.0.2.1", "::ffff:192.0.2.1", "2002:c000:201:7::9"],
        ["192.0.2.1", "64:ff9b::192.0.2.1", "64:ff9b::c000:201%eth0"],
        ["64:ff9b::192.0.2.2", "192.0.2.2"],
        ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:DB8:1:2:0:0:0:1", "2001:db8:1:2::7%eth0"],
        ["2001:db8:1:3::1"],
        ["192.0.2.2"],
        ["testclient"],
        [""],
        ["192.0.2.1, 192.0.2.2"],
        ["%"],
    ],
)
def test_an_address_is_what_one_host_can_call_itself_by(group: list[str]) -> None:
    """Or a host that holds 2^64 addresses could fail from each of them."""
    assert len({address_key("s", each) for each in group}) == 1
    elsewhere = ["192.0.2.99", "2001:db8:1:4::1", "64:ff9b::192.0.2.98", "64:ff9b:1::1", "other"]
    assert not {address_key("s", each) for each in group} & {address_key("s", each) for each in elsewhere}
    assert address_key("s", group[0]) != address_key("t", group[0])
