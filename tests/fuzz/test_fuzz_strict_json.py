"""A short, repeatable run of `fuzz_strict_json.py`, so that the target itself does not rot."""

import random
from itertools import islice

from nonsuch.kernel.strict_json import JsonRefused, loads

from .fuzz_strict_json import LIMITS, at_random, inputs


def accepted(raw: bytes) -> bool:
    try:
        loads(raw, LIMITS)
    except JsonRefused:
        return False
    return True


def test_loads_gives_a_value_that_survives_or_refuses() -> None:
    assert at_random(seconds=60, seed=1, most=5_000) == 5_000


def test_the_inputs_reach_both_verdicts() -> None:
    verdicts = [accepted(raw) for raw in islice(inputs(random.Random(1)), 2_000)]  # noqa: S311 - repeatable
    assert 100 < sum(verdicts) < 1_900
