"""Policy files and template links -> policies, each with the place it came from. Validates nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from . import cedar_parts, cedar_text
from .advice import advice
from .cedar_text import Policy, PolicyRefused, Template
from .compile import PolicySource
from .errors import Fault, fault
from .links import Link, read_links
from .places import id_literal, meant, mismatched
from .policy_text import Statement, first_unexpected, printable, statements, strain, tokens

MAX_CAUSE: Final = 300
_CONDITION: Final = ("<audience ", "<confirmation ")


@dataclass(frozen=True, slots=True)
class Found:
    """Where a policy stands in its source. Its tokens are read again when a fault wants them."""

    source: PolicySource
    start: int
    end: int

    @property
    def statement(self) -> Statement:
        """The tokens of the policy."""
        return Statement(tuple(tokens(self.source.text, self.start, self.end)))

    def where(self, at: int | None = None) -> str:
        """Return the place of an offset, else of the policy."""
        return self.source.where(self.start if at is None else at)


@dataclass(slots=True)
class Reading:
    """What was read so far. Faults are collected, never raised."""

    shipped: tuple[PolicySource, ...] = ()
    faults: list[Fault] = field(default_factory=list[Fault])
    warnings: list[Fault] = field(default_factory=list[Fault])
    policies: list[Policy] = field(default_factory=list[Policy])
    templates: dict[str, Template] = field(default_factory=dict[str, Template])
    found: dict[str, Found] = field(default_factory=dict[str, Found])

    def refuse(self, code: str, where: str, cause: str, fix: str | None = None) -> None:
        """Add a fault."""
        self.faults.append(fault(code, shown(cause), fix and shown(fix), where=where))

    def warn(self, where: str, cause: str) -> None:
        """Add a warning of a policy that never applies."""
        self.warnings.append(fault("X_POLICY_NEVER_APPLIES", shown(cause), where=where))

    def spot(self, policy: Policy, *words: str) -> str:
        """Return the place of the first of some words in a policy."""
        found = self.found[policy.id]
        return found.where(found.statement.find(*words))


def shown(cause: str) -> str:
    """Return a cause as one line of bounded length, whatever ids and file names it repeats."""
    line = printable(cause)
    return line if len(line) <= MAX_CAUSE else line[: MAX_CAUSE - 3] + "..."


def nearest(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a fix for a name that is unknown."""
    close = get_close_matches(name, sorted(known), 1)
    return f"write `{close[0]}`, or {otherwise}" if close else f"correct the spelling, or {otherwise}"


def one_line(message: object) -> str:
    """Return what an engine says on one line."""
    return " ".join(str(message).split())


# policies


def read(source: PolicySource, reading: Reading) -> None:
    """Read the policies of a text. One that is broken hides no other."""
    if source.origin.startswith(_CONDITION) and len(list(statements(source.text))) != 1:
        reading.refuse("X_POLICY_SYNTAX", source.origin, "the condition closes its own policy")
        return
    for position, statement in enumerate(statements(source.text)):
        _read_one(source, statement, position, reading)


def _read_one(source: PolicySource, statement: Statement, position: int, reading: Reading) -> None:
    strained = strain(statement.tokens)
    if strained is not None:
        reading.refuse("X_POLICY_TOO_DEEP", source.where(strained.at), strained.why)
        return
    found = Found(source, statement.start, statement.end)
    text = source.text[found.start : found.end]
    try:
        held = cedar_text.parse_one(text, f"{source.origin}#{position}", found.where())
    except PolicyRefused as refusal:
        at, told = _stumble(source.text, statement, str(refusal)), one_line(refusal)
        reading.refuse("X_POLICY_SYNTAX", source.where(at), told, advice(told))
        return
    if held.id in reading.found:
        cause = f"`{held.id}` is the id of the policy at {reading.found[held.id].where()} too"
        reading.refuse("X_POLICY_ID_DUPLICATE", found.where(id_literal(statement)), cause)
        if isinstance(held, Policy):  # under another id, so that its other faults are told as well
            _keep(cedar_parts.renamed(held, f"{held.id} at {found.where()}"), found, reading)
        return
    _keep(held, found, reading)


def _keep(held: Policy | Template, found: Found, reading: Reading) -> None:
    reading.found[held.id] = found
    if isinstance(held, Template):
        reading.templates[held.id] = held
    else:
        reading.policies.append(held)


def _stumble(text: str, statement: Statement, message: str) -> int:
    """Return where a parser stumbles; a fault seen only at the end is where its words are."""
    unexpected = message.startswith("unexpected")
    bracket = mismatched(statement) if unexpected else None
    if bracket is not None:  # the parser guesses what was meant and stumbles much later
        return bracket
    at = first_unexpected(text, statement, cedar_text.ends_early)
    if at != statement.tokens[-1].at or unexpected:
        return at
    found = meant(statement, message)
    return statement.start if found is None else found


# template links


def link(sources: Iterable[PolicySource], reading: Reading) -> None:
    """Make a policy of each link; warn of templates that none names."""
    linked: set[str] = set()
    for source in sources:
        links, faults = read_links(source)
        reading.faults.extend(faults)
        for each in links:
            linked.add(each.template)
            _apply(source, each, reading)
    for name in sorted(reading.templates.keys() - linked):
        cause = f"`{name}` is a template that nothing links, so it decides nothing"
        reading.warn(reading.found[name].where(), cause)


def _apply(source: PolicySource, link: Link, reading: Reading) -> None:
    template = reading.templates.get(link.template)
    spot = f"{source.origin}:{link.place}"
    if template is None:
        reading.refuse("X_POLICY_LINK_INVALID", spot, f"no template has the id `{link.template}`")
    elif link.id in reading.found:
        reading.refuse("X_POLICY_ID_DUPLICATE", spot, f"`{link.id}` is the id of another policy")
    elif frozenset(link.values) != template.slots:
        wanted = ", ".join(sorted(f"?{slot}" for slot in template.slots))
        reading.refuse("X_POLICY_LINK_INVALID", spot, f"`{link.template}` takes exactly {wanted}")
    else:
        reading.found[link.id] = reading.found[link.template]
        try:
            reading.policies.append(cedar_text.linked(template, link.id, link.values, spot))
        except PolicyRefused as refusal:
            reading.refuse("X_POLICY_LINK_INVALID", spot, one_line(refusal))
