"""The Cedar engine: parses policies, validates them, decides. The only file that imports cedarpy.

Knows nothing of tools, views or steps. Allow means that the engine said Allow and reported no error.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# cedarpy declares `dict` without its parameters; what this module returns is typed in full.

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, cast

import cedarpy
from cedarpy import pst

Uid = Mapping[str, Any]
Key = tuple[str, ...]
PolicySet = cedarpy.PolicySet
Schema = cedarpy.Schema
Entities = cedarpy.Entities

ANYONE: Final[Key] = ()
MAX_NESTING: Final = 32
_TOKENS: Final = re.compile(r'//[^\n]*|"(?:[^"\\]|\\.)*"|\bif\b|[()\[\]{};!-]')
_PLACE: Final = re.compile(r"policy `([^`]*)`")


class PolicyRefused(ValueError):
    """Text that the engine does not take as policies or schema."""


class PolicyTooDeep(PolicyRefused):
    """Text whose nesting could exhaust the engine's stack."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the engine said, with our own policy ids.

    INVARIANT: ``allow`` is true only when the engine allowed and ``errors`` is empty.
    """

    allow: bool
    determining: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """One policy: the head as look-up keys, and what its conditions read.

    ``actions`` is ``None`` for a head that names no action. A key is ``()`` for anyone, ``(type,)``
    or ``(type, id)``: a necessary condition of the head, never more. ``reads`` names the
    arguments that the conditions read, ``None`` when that cannot be told.
    """

    id: str
    origin: str
    permit: bool
    actions: frozenset[str] | None
    exact: bool
    principal: Key
    resource: Key
    annotations: Mapping[str, str]
    reads: frozenset[str] | None
    node: pst.Template


def parse(text: str, origin: str) -> list[Policy]:
    """Return the policies of a text, under their ``@id`` or ``origin#position``.

    Raises: PolicyRefused, PolicyTooDeep.
    """
    check_nesting(text)
    try:
        found = cedarpy.policies_to_pst(text)
    except ValueError as refusal:
        raise PolicyRefused(str(refusal)) from None
    if found.templates:
        raise PolicyRefused("a policy with `?principal` or `?resource` is a template, which nothing links")
    nodes = sorted(found.static_policies.values(), key=lambda node: int(node.id.removeprefix("policy")))
    return [_policy(node, origin, position) for position, node in enumerate(nodes)]


def check_nesting(text: str) -> None:
    """Refuse nesting over 32 levels before the engine's recursive parser sees it.

    Raises: PolicyTooDeep.
    """
    depth = prefixes = branches = 0
    before, end = "", 0
    for match in _TOKENS.finditer(text):
        mark = match[0]
        depth += (mark in "([{") - (mark in ")]}")
        branches = 0 if mark == ";" else branches + (mark == "if")
        stacked = mark in "!-" and before in ("!", "-") and not text[end : match.start()].strip()
        prefixes = prefixes + 1 if stacked else 0
        if max(depth, prefixes, branches) > MAX_NESTING:
            line = text.count("\n", 0, match.start()) + 1
            raise PolicyTooDeep(f"line {line}: more than {MAX_NESTING} levels of nesting")
        before, end = mark, match.end()


def _policy(node: pst.Template, origin: str, position: int) -> Policy:
    ident = node.annotations.get("id") or f"{origin}#{position}"
    named = replace(node, id=ident, annotations={**node.annotations, "id": ident})
    return Policy(
        id=ident,
        origin=origin,
        permit=node.effect == "permit",
        actions=_actions(node.action),
        exact=isinstance(node.action, pst.ActionEq),
        principal=_key(node.principal),
        resource=_key(node.resource),
        annotations=dict(node.annotations),
        reads=_reads(node.clauses),
        node=named,
    )


def _actions(head: pst.ActionConstraint) -> frozenset[str] | None:
    match head:
        case pst.ScopeAny():
            return None
        case pst.ActionEq(uid):
            return frozenset({uid.id})
        case pst.ActionIn(uids):
            return frozenset(uid.id for uid in uids)


def _key(head: pst.PrincipalOrResourceConstraint) -> Key:
    match head:
        case pst.ScopeAny():
            return ANYONE
        case pst.ScopeIs(kind):
            return (str(kind),)
        case pst.ScopeEq(uid) | pst.ScopeIn(uid) | pst.ScopeIsIn(_, uid):
            if isinstance(uid, pst.Slot):
                raise PolicyRefused("a slot stands in a policy that is no template")
            return (str(uid.type), uid.id)


def _reads(clauses: Iterable[pst.Clause]) -> frozenset[str] | None:
    """The argument names that ``context.args.NAME`` and ``has`` read; ``None`` if context is used whole."""
    found: set[str] = set()
    stack: list[object] = list(clauses)
    while stack:
        match stack.pop():
            case pst.GetAttr(pst.GetAttr(pst.Var("context"), "args"), name):
                found.add(name)
            case pst.HasAttr(pst.GetAttr(pst.Var("context"), "args"), names):
                found.add(names[0])
            case pst.HasAttr(pst.Var("context"), names) if names[0] == "args":
                found.update(names[1:2])
            case pst.Var("context"):
                return None
            case other:
                stack.extend(_parts(other))
    return frozenset(found)


def _parts(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        yield from cast("tuple[object, ...]", node)
    elif isinstance(node, Mapping):
        yield from cast("Mapping[str, object]", node).values()
    elif is_dataclass(node) and not isinstance(node, type):
        yield from (getattr(node, each.name) for each in fields(node))


def policy_set(policies: Iterable[Policy]) -> PolicySet:
    """Return an engine handle whose policy ids are ours."""
    nodes = {policy.id: policy.node for policy in policies}
    return PolicySet.from_pst(pst.PolicySet(templates={}, static_policies=nodes, template_links=()))


def schema(text: str) -> Schema:
    """Return a schema handle. Raises: PolicyRefused."""
    try:
        return Schema.from_str(text)
    except ValueError as refusal:
        raise PolicyRefused(str(refusal)) from None


def entities(document: str, of: Schema) -> Entities:
    """Return an entities handle, checked against a schema. Raises: ValueError."""
    return Entities.from_json_str(document, of)


def with_entity(held: Entities, one: str, of: Schema) -> Entities:
    """Return ``held`` and one more entity. Raises: ValueError."""
    return held.with_added_json_str(f"[{one}]", of)


def invalid(policies: Iterable[Policy], against: Schema) -> list[tuple[str, str]]:
    """Return ``(policy id, message)`` for everything the strict validator refuses."""
    result = cedarpy.validate_policies(str(policy_set(policies)), against)
    names = result.id_annotations_by_policy_id
    return [(names.get(each.policy_id, each.policy_id), each.error) for each in result.errors]


def decide(
    principal: Uid, action: str, resource: Uid, context: str, policies: PolicySet, held: Entities, of: Schema
) -> Decision:
    """Ask the engine. Whatever it cannot answer is a denial with an error."""
    request = {
        "principal": principal,
        "action": {"type": "Action", "id": action},
        "resource": resource,
        "context": context,
    }
    try:
        answer = cedarpy.is_authorized(request, policies, held, of)
    except BaseException as fault:  # a Rust panic is a BaseException; anything unanswered denies
        if isinstance(fault, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        return Decision(False, errors=("<engine>",))
    return _decision(answer)


def _decision(answer: cedarpy.AuthzResult) -> Decision:
    diagnostics = answer.diagnostics
    errors = tuple(_erring(each) for each in diagnostics.errors)
    if answer.decision is cedarpy.Decision.NoDecision:
        errors = errors or ("<request>",)
    if errors:  # the engine may have allowed: what it names then determined nothing
        return Decision(False, errors=errors)
    return Decision(answer.decision is cedarpy.Decision.Allow, tuple(sorted(diagnostics.reasons)))


def _erring(message: str) -> str:
    """The policy id in an engine message. The message itself can quote values and is dropped."""
    place = _PLACE.search(message)
    return place[1] if place else "<request>"


# for explanations: a policy taken apart, so that the engine itself says which part fails


def conditions(policy: Policy, kind: str | None = None) -> list[tuple[str, Policy]]:
    """Return the head and every conjunct of a policy, each as its text and a permit of head and conjunct.

    The first has no text: it is the head alone. ``unless {a || b}`` has the conjuncts ``!a`` and ``!b``.
    The permits are named ``id#0``, ``id#1``, ...; ``kind`` confines them to principals of one type.
    """
    parts = [each for clause in policy.node.clauses for each in _conjuncts(clause)]
    texts = ["", *(_expression(each) for each in parts)]
    clauses: list[tuple[pst.Clause, ...]] = [(), *((pst.When(each),) for each in parts)]
    return [
        (text, _named(confined(policy, kind, clause), f"{policy.id}#{position}"))
        for position, (text, clause) in enumerate(zip(texts, clauses, strict=True))
    ]


def confined(policy: Policy, kind: str | None, clauses: tuple[pst.Clause, ...] | None = None) -> Policy:
    """Return a policy for principals of one type only; with ``clauses`` it permits under these instead."""
    own = (pst.When(pst.Is(pst.Var("principal"), pst.EntityType(kind), None)),) if kind else ()
    if clauses is None:
        return replace(policy, node=replace(policy.node, clauses=(*own, *policy.node.clauses)))
    node = replace(policy.node, effect="permit", clauses=(*own, *clauses))
    return replace(policy, permit=True, node=node)


def _named(policy: Policy, ident: str) -> Policy:
    return replace(policy, id=ident, node=replace(policy.node, id=ident))


def _conjuncts(clause: pst.Clause) -> Iterator[pst.Expr]:
    negated = isinstance(clause, pst.Unless)
    stack: list[pst.Expr] = [clause.expr]
    while stack:
        match stack.pop():
            case pst.BinaryOp(op, left, right) if op == ("or" if negated else "and"):
                stack += [right, left]
            case other:
                yield pst.UnaryOp("not", other) if negated else other


def _expression(condition: pst.Expr) -> str:
    """Return an expression as the engine writes it."""
    anyone = pst.ScopeAny()
    node = pst.Template("policy0", "permit", anyone, anyone, anyone, (pst.When(condition),), {})
    handle = PolicySet.from_pst(
        pst.PolicySet(templates={}, static_policies={"policy0": node}, template_links=())
    )
    return str(handle).strip().partition("when {")[2].removesuffix("};").strip()


def formatted(source: str) -> str:
    """Return policy text in the engine's format; comments stay. Raises: PolicyRefused, PolicyTooDeep."""
    check_nesting(source)
    try:
        return cedarpy.format_policies(source).lstrip("\n")
    except ValueError as refusal:
        raise PolicyRefused(str(refusal)) from None
