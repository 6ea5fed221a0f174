"""Hypothesis profiles, chosen by NONSUCH_PROFILE: `default` is bounded and repeatable, `review` explores."""

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]  # an example boots two whole apps

settings.register_profile(
    "default",
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=_SLOW,
)
settings.register_profile(
    "review",
    max_examples=3_000,
    stateful_step_count=60,
    deadline=None,
    print_blob=True,
    suppress_health_check=_SLOW,
)
settings.load_profile(os.environ.get("NONSUCH_PROFILE", "default"))
