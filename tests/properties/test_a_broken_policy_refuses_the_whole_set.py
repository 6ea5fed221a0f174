"""A broken policy refuses the whole set, wherever it stands: its code is told, and nothing is taken.

A template that nothing links decides nothing.
"""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nonsuch import BootError
from nonsuch.adapters.edge.app import judge_from
from nonsuch.kernel.compile import PolicySource
from nonsuch.kernel.gates import Kernel
from nonsuch.kernel.loader import Sources

from . import shelf
from .drawn_policies import callers, given_arguments, rows, sets, tools
from .plain_policies import Set
from .test_a_slice_answers_as_the_whole_set import Question, found

_HEAD: Final = 'permit (principal, action == Action::"use", resource)'
BROKEN: Final[dict[str, tuple[str, str]]] = {
    "a catch-all": ("permit (principal, action, resource);", "X_POLICY_HEAD_UNCONFINED"),
    "a catch-all that forbids": ("forbid (principal, action, resource);", "X_POLICY_HEAD_UNCONFINED"),
    "two gates": (
        'permit (principal, action in [Action::"see", Action::"use"], resource);',
        "X_POLICY_HEAD_UNCONFINED",
    ),
    "the two gates before": (
        'forbid (principal, action in [Action::"see", Action::"present"], resource);',
        "X_POLICY_HEAD_UNCONFINED",
    ),
    "shows every tool": (
        'permit (principal, action == Action::"see", resource);',
        "X_POLICY_HEAD_UNCONFINED",
    ),
    "shows every tool by type": (
        'permit (principal, action == Action::"see", resource is Audience);',
        "X_POLICY_HEAD_UNCONFINED",
    ),
    "grants every scope": (
        'permit (principal, action == Action::"present", resource is Scope);',
        "X_POLICY_HEAD_UNCONFINED",
    ),
    "an id of ours": (f'@id("nonsuch.scope.token") {_HEAD};', "X_POLICY_ID_DUPLICATE"),
    "an id twice": (f'@id("p0") {_HEAD}; @id("p0") {_HEAD};', "X_POLICY_ID_DUPLICATE"),
    "no such tool": ('permit (principal, action == Action::"user", resource);', "X_POLICY_ACTION_UNKNOWN"),
    "no such role": (
        'permit (principal in Role::"r9", action == Action::"use", resource);',
        "X_ROLE_UNKNOWN",
    ),
    "no such audience": (
        'permit (principal, action == Action::"see", resource == Audience::"all");',
        "X_POLICY_INVALID",
    ),
    "no such scope": (
        'permit (principal, action == Action::"present", resource == Scope::"doc");',
        "X_POLICY_INVALID",
    ),
    "a has of nothing": (f"{_HEAD} unless {{ context.args has sise }};", "X_POLICY_INVALID"),
    "no such attribute": (f"{_HEAD} when {{ principal.admin }};", "X_POLICY_INVALID"),
    "an attribute that may be absent": (f'{_HEAD} when {{ principal.org == "acme" }};', "X_POLICY_INVALID"),
    "another type": (f'{_HEAD} when {{ context.args.size == "6" }};', "X_POLICY_INVALID"),
    "arguments at a gate before": (
        'forbid (principal, action == Action::"see", resource) when { context.args.size > 0 };',
        "X_POLICY_INVALID",
    ),
    "no such resource": (
        'permit (principal, action == Action::"use", resource == Doc::"d1");',
        "X_POLICY_INVALID",
    ),
    "not closed": (f"{_HEAD} when {{ true ", "X_POLICY_SYNTAX"),
    "nested": (f"{_HEAD} when {{ {'(' * 40}true{')' * 40} }};", "X_POLICY_TOO_DEEP"),
    "a chain": (f"{_HEAD} when {{ {' && '.join(['true'] * 120)} }};", "X_POLICY_TOO_DEEP"),
    "a chain of sums": (f"{_HEAD} when {{ {' + '.join(['1'] * 120)} > 0 }};", "X_POLICY_TOO_DEEP"),
    "negations": (f"{_HEAD} when {{ {'!' * 40}true }};", "X_POLICY_TOO_DEEP"),
}


def refused(sources: Sources) -> list[str]:
    """The codes of the faults for which a set is not taken; none for one that is."""
    try:
        judge_from(shelf.catalog(), sources)
    except BootError as refusal:
        return [each.code for each in refusal.faults]
    return []


def inserted(held: Set, text: str, at: int, *, alone: bool) -> Sources:
    """A text among the policies of a set, or as a file of its own before or after it."""
    texts = held.texts
    place = at % (len(texts) + 1)
    if alone:
        both = (PolicySource("own.cedar", "\n".join(texts)), PolicySource("other.cedar", text))
        return Sources(policies=both if place % 2 else both[::-1])
    return Sources(policies=(PolicySource("own.cedar", "\n".join([*texts[:place], text, *texts[place:]])),))


@given(sets(5, 2, "q"), st.sampled_from(tuple(BROKEN)), st.integers(0, 9), st.booleans())
def test_a_broken_policy_refuses_the_whole_set(held: Set, name: str, at: int, alone: bool) -> None:
    text, code = BROKEN[name]
    told = refused(inserted(held, text, at, alone=alone))
    assert code in told
    assert set(told) <= {code, "X_POLICY_SYNTAX"} if name == "not closed" else set(told) == {code}


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_policy_is_refused_alone(name: str) -> None:
    text, code = BROKEN[name]
    assert set(refused(shelf.sources(text))) == {code}


def test_all_broken_policies_are_told_at_once() -> None:
    told = refused(
        Sources(
            policies=tuple(PolicySource(f"{at}.cedar", text) for at, (text, _) in enumerate(BROKEN.values()))
        )
    )
    assert set(told) == {code for _, code in BROKEN.values()}
    assert len(told) >= len(BROKEN)


TEMPLATES: Final = (
    '@id("t0") permit (principal == ?principal, action in Action::"any", resource);',
    '@id("t1") permit (principal in ?principal, action in Action::"any", resource);',
    '@id("t2") forbid (principal, action in Action::"any", resource == ?resource);',
    '@id("t3") permit (principal, action == Action::"see", resource == ?resource);',
)
questions: Final = st.lists(st.tuples(callers, tools, rows, given_arguments), min_size=6, max_size=8)


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(sets(5, 2), st.sampled_from(TEMPLATES), questions)
def test_a_template_that_nothing_links_decides_nothing(
    held: Set, template: str, asked: list[Question]
) -> None:
    without, warned = (
        shelf.kernel(held),
        judge_from(shelf.catalog(), shelf.sources(f"{held.text}\n{template}")),
    )
    assert "X_POLICY_NEVER_APPLIES" in {each.code for each in warned[1]}
    beside = Kernel(shelf.catalog(), warned[0])
    for caller, tool, row, arguments in asked:
        there = found(tool, row)
        facts = None if there is None else shelf.doc(there)
        assert shelf.called(without, caller, tool.name, shelf.sent(arguments), facts) == shelf.called(
            beside, caller, tool.name, shelf.sent(arguments), facts
        )
