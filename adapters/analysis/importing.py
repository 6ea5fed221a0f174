"""Policies written for a generated schema of MCP tools -> policies of an app, or why each of them is none.

Nothing is taken half: a text is a policy that the app would load, or there is none. Decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...kernel import cedar
from ...kernel.cedar_text import Policy, parse_one
from ...kernel.compile import PolicySource
from ...kernel.errors import Fault, fault
from ...kernel.reading import Found, Reading, one_line, read
from .counterparts import Counterparts
from .export import policy_source
from .policy_json import PolicyUnwritable, policy_json, policy_text
from .rewrite import rewritten
from .rewrite_terms import Inexact

Check = Callable[[tuple[PolicySource, ...]], Iterable[Fault]]
_OPENING = re.compile(r"^for policy `policy[0-9]+`[,:] ")
_THERE = "make it valid against the schema that it was written for"


@dataclass(frozen=True, slots=True)
class Taken:
    """One policy: its text in the entity model of the app, or the faults that refuse it."""

    id: str
    where: str
    permit: bool
    text: str
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Import:
    """All policies, and the faults of texts that are none."""

    policies: tuple[Taken, ...] = ()
    unread: tuple[Fault, ...] = ()

    @property
    def refused(self) -> tuple[Fault, ...]:
        """Every fault."""
        return (*self.unread, *(each for policy in self.policies for each in policy.faults))


def imported(sources: Iterable[PolicySource], schema: str, known: Counterparts, check: Check) -> Import:
    """Return every policy of some texts as it is here.

    1. read them  2. validate each against its own schema  3. rewrite it  4. let ``check`` say what the app
    would find wrong with those that were rewritten. ``schema`` is a text that the engine takes.
    """
    reading, against = Reading(), cedar.schema(schema)
    for source in sources:
        read(source, reading)  # 1
    taken = [_taken(policy, against, known, reading) for policy in reading.policies]
    told, others = _checked(taken, check)
    return Import(told, (*reading.faults, *_templates(reading), *others))


def _templates(reading: Reading) -> Iterator[Fault]:
    for name in sorted(reading.templates):
        where, fix = reading.found[name].where(), "write a policy for each of its links"
        yield fault("X_POLICY_INVALID", f"`{name}` is a template", fix, where=where)


def _taken(policy: Policy, against: cedar.Schema, known: Counterparts, reading: Reading) -> Taken:
    invalid = [_OPENING.sub("", one_line(message)) for _, message in cedar.invalid([policy], against)]  # 2
    if invalid:
        cause = f"`{policy.id}` does not fit its own schema: {invalid[0]}"
        return _refused(policy, fault("X_POLICY_INVALID", cause, _THERE, where=policy.where))
    made = rewritten(policy_json(policy), known)  # 3
    if isinstance(made, Inexact):
        where = _place(reading.found[policy.id], made.word)
        return _refused(policy, fault(made.code, f"`{policy.id}`: {made.cause}", made.fix, where=where))
    try:
        here = parse_one(policy_text(made), policy.id, policy.where)
    except PolicyUnwritable as refusal:
        return _refused(policy, fault("X_POLICY_TOO_DEEP", f"`{policy.id}`: {refusal}", where=policy.where))
    text = policy_source(here) if isinstance(here, Policy) else ""
    return Taken(policy.id, policy.where, policy.permit, text)


def _refused(policy: Policy | Taken, *faults: Fault) -> Taken:
    return Taken(policy.id, policy.where, policy.permit, "", faults)


def _place(found: Found, word: str) -> str:
    """Return the place of a word behind the annotations, where it is no part of what they say."""
    held = found.statement.tokens
    head = next((at for at, each in enumerate(held) if each.text in ("permit", "forbid")), 0)
    spots = [each.at for text in (word, f'"{word}"') for each in held[head:] if each.text == text]
    return found.where(spots[0] if spots else None)


def _checked(taken: Iterable[Taken], check: Check) -> tuple[tuple[Taken, ...], tuple[Fault, ...]]:
    """Take the text from every policy that the app would not load; return also what is wrong elsewhere."""
    named = {f"<import {number}>": each for number, each in enumerate(taken)}
    sources = (PolicySource(origin, each.text) for origin, each in named.items() if each.text)
    wrong: dict[str, list[Fault]] = {}
    for each in check(tuple(sources)):  # 4
        wrong.setdefault(each.where, []).append(each)
    told = tuple(_told(each, wrong.pop(origin, ())) for origin, each in named.items())
    return told, tuple(each for faults in wrong.values() for each in faults)


def _told(taken: Taken, wrong: Sequence[Fault]) -> Taken:
    """Return a policy with what is wrong with it, at the place where it was read."""
    here = (fault(each.code, each.cause, each.fix, where=taken.where) for each in wrong)
    return _refused(taken, *here) if wrong else taken
