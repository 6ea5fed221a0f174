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

from .policy_text import place, statements, too_deep

Uid = Mapping[str, Any]
Key = tuple[str, ...]
PolicySet = cedarpy.PolicySet
Schema = cedarpy.Schema
Entities = cedarpy.Entities

ANYONE: Final[Key] = ()
_ANY: Final = pst.ScopeAny()
_PLACE: Final = re.compile(r"policy `(p[0-9]+)`")


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
    arguments that the conditions read, ``None`` when that cannot be told; ``reads_resource`` says
    that they read the resource.
    """

    id: str
    where: str
    permit: bool
    actions: frozenset[str] | None
    exact: bool
    principal: Key
    resource: Key
    annotations: Mapping[str, str]
    reads: frozenset[str] | None
    reads_resource: bool
    node: pst.Template


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A policy with slots: it decides nothing until it is linked."""

    id: str
    slots: frozenset[str]
    node: pst.Template


def parse(text: str, origin: str) -> list[Policy]:
    """Return the policies of a text, under their ``@id`` or ``origin#position``.

    Raises: PolicyRefused, PolicyTooDeep.
    """
    check_nesting(text)
    found = (
        parse_one(text[each.start : each.end], f"{origin}#{position}", origin)
        for position, each in enumerate(statements(text))
    )
    return [_no_template(each) for each in found]


def _no_template(read: Policy | Template) -> Policy:
    if isinstance(read, Template):
        raise PolicyRefused("a policy with `?principal` or `?resource` is a template, which nothing links")
    return read


def parse_one(text: str, ident: str, where: str) -> Policy | Template:
    """Return the one policy or template of a text that ``check_nesting`` passed, by ``@id`` or ``ident``.

    Raises: PolicyRefused.
    """
    try:
        found = cedarpy.policies_to_pst(text)
    except ValueError as refusal:
        raise PolicyRefused(str(refusal)) from None
    if len(found.templates) + len(found.static_policies) != 1:
        raise PolicyRefused("the text holds no policy, or more than one")
    for node in found.templates.values():
        slots = frozenset(_slots((node.principal, node.resource)))
        return Template(node.annotations.get("id") or ident, slots, node)
    (node,) = found.static_policies.values()
    return _policy(node, node.annotations.get("id") or ident, where)


def _slots(node: object) -> Iterator[str]:
    if isinstance(node, pst.Slot):
        yield node.name
    for part in _parts(node):
        yield from _slots(part)


def linked(template: Template, ident: str, values: Mapping[str, Uid], where: str) -> Policy:
    """Return the policy that a template makes with an entity in each slot. Raises: PolicyRefused."""
    names = {slot: pst.EntityUid(_type(str(each["type"])), str(each["id"])) for slot, each in values.items()}
    for each in names.values():
        _check_type(str(each.type))
    principal, resource = (_filled(head, names) for head in (template.node.principal, template.node.resource))
    return _policy(replace(template.node, principal=principal, resource=resource), ident, where)


def _check_type(name: str) -> None:
    """Refuse a word of the language where a type stands; the engine would do so later, without a place."""
    try:
        cedarpy.policies_to_pst(f"permit(principal is {name}, action, resource);")
    except ValueError:
        raise PolicyRefused(f"`{name}` is no entity type") from None


def _type(name: str) -> pst.EntityType:
    *namespace, basename = name.split("::")
    return pst.EntityType(basename, tuple(namespace))


def _filled(
    head: pst.PrincipalOrResourceConstraint, names: Mapping[str, pst.EntityUid]
) -> pst.PrincipalOrResourceConstraint:
    if isinstance(head, (pst.ScopeEq, pst.ScopeIn, pst.ScopeIsIn)) and isinstance(head.entity, pst.Slot):
        return replace(head, entity=names[head.entity.name])
    return head


def check_nesting(text: str) -> None:
    """Refuse text that could exhaust the engine's stack, before its recursive parser sees it.

    Raises: PolicyTooDeep.
    """
    strain = too_deep(text)
    if strain is not None:
        raise PolicyTooDeep(f"line {place(text, strain.at).line}: {strain.why}")


def ends_early(prefix: str) -> bool:
    """Whether the parser would read on: a prefix that it takes, or refuses only because it ends."""
    try:
        cedarpy.policies_to_pst(prefix)
    except ValueError as refusal:
        return str(refusal) == "unexpected end of input"
    return True


def schema_ends_early(prefix: str) -> bool:
    """Whether the schema parser would read on."""
    try:
        Schema.from_str(prefix)
    except ValueError as refusal:
        return not str(refusal).startswith("error parsing schema") or "end of input" in str(refusal)
    return True


def never_applying(policies: Iterable[Policy]) -> frozenset[str]:
    """Return the ids of policies of which some condition is false whatever is asked.

    The engine is asked once about every condition, with nothing known of principal, resource and context.
    """
    parts = [
        (policy.id, replace(policy, node=_headless(policy.node, (pst.When(each),))))
        for policy in policies
        for clause in policy.node.clauses
        for each in _conjuncts(clause)
    ]
    alone = policy_set(part for _, part in parts)
    try:
        told = cedarpy.is_authorized_partial({}, alone.handle, "[]").diagnostics
    except ValueError:
        return frozenset()
    alive = {
        *told.nontrivial_residuals,
        *told.reasons,
        *(place[1] for place in map(_PLACE.search, told.errors) if place),
    }
    return frozenset(ident for position, (ident, _) in enumerate(parts) if f"p{position}" not in alive)


def _headless(node: pst.Template, clauses: tuple[pst.Clause, ...]) -> pst.Template:
    return replace(node, principal=_ANY, action=_ANY, resource=_ANY, clauses=clauses)


def _policy(node: pst.Template, ident: str, where: str) -> Policy:
    return Policy(
        id=ident,
        where=where,
        permit=node.effect == "permit",
        actions=_actions(node.action),
        exact=isinstance(node.action, pst.ActionEq),
        principal=_key(node.principal),
        resource=_key(node.resource),
        annotations=dict(node.annotations),
        reads=_reads(node.clauses),
        reads_resource=_mentions(node.clauses, pst.Var("resource")),
        node=replace(node, id=ident, annotations={**node.annotations, "id": ident}),
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


def _mentions(clauses: Iterable[pst.Clause], variable: pst.Var) -> bool:
    stack: list[object] = list(clauses)
    while stack:
        node = stack.pop()
        if node == variable:
            return True
        stack.extend(_parts(node))
    return False


def _parts(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        yield from cast("tuple[object, ...]", node)
    elif isinstance(node, Mapping):
        yield from cast("Mapping[str, object]", node).values()
    elif is_dataclass(node) and not isinstance(node, type):
        yield from (getattr(node, each.name) for each in fields(node))


@dataclass(frozen=True, slots=True, eq=False)
class PolicySlice:
    """An engine handle, and our ids by the engine's: an id of ours in a message would come back escaped."""

    handle: PolicySet
    ids: Mapping[str, str]

    def __str__(self) -> str:
        return str(self.handle)


def policy_set(policies: Iterable[Policy]) -> PolicySlice:
    """Return some policies as the engine takes them."""
    chosen = {f"p{position}": policy for position, policy in enumerate(policies)}
    nodes = {key: replace(policy.node, id=key) for key, policy in chosen.items()}
    handle = PolicySet.from_pst(pst.PolicySet(templates={}, static_policies=nodes, template_links=()))
    return PolicySlice(handle, {key: policy.id for key, policy in chosen.items()})


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
    result = cedarpy.validate_policies(str(policy_set(policies).handle), against)
    names = result.id_annotations_by_policy_id
    return [(names.get(each.policy_id, each.policy_id), each.error) for each in result.errors]


def decide(
    principal: Uid,
    action: str,
    resource: Uid,
    context: str,
    policies: PolicySlice,
    held: Entities,
    of: Schema,
) -> Decision:
    """Ask the engine. Whatever it cannot answer is a denial with an error."""
    request = {
        "principal": principal,
        "action": {"type": "Action", "id": action},
        "resource": resource,
        "context": context,
    }
    try:
        answer = cedarpy.is_authorized(request, policies.handle, held, of)
        return _decision(answer, policies.ids)
    except BaseException as fault:  # a Rust panic is a BaseException; anything unanswered denies
        if isinstance(fault, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        return Decision(False, errors=("<engine>",))


def _decision(answer: cedarpy.AuthzResult, ids: Mapping[str, str]) -> Decision:
    diagnostics, decision = answer.diagnostics, answer.decision
    if diagnostics.errors:  # the engine may have allowed: what it names then determined nothing
        return Decision(False, errors=tuple(_erring(each, ids) for each in diagnostics.errors))
    if decision is cedarpy.Decision.NoDecision:
        return Decision(False, errors=("<request>",))
    return Decision(
        decision is cedarpy.Decision.Allow, tuple(sorted(ids[each] for each in diagnostics.reasons))
    )


def _erring(message: str, ids: Mapping[str, str]) -> str:
    """The policy in an engine message. The message itself can quote values and is dropped."""
    place = _PLACE.search(message)
    return ids.get(place[1], "<request>") if place else "<request>"


def clauses(policy: Policy) -> list[Policy]:
    """Return the policy once for each of its ``when`` and ``unless``, with that one only."""
    return [replace(policy, node=replace(policy.node, clauses=(each,))) for each in policy.node.clauses]


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
    over = _mentions(node.clauses, pst.Var("resource"))
    return replace(policy, permit=True, reads=_reads(node.clauses), reads_resource=over, node=node)


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
    """Return policy text in the engine's format: the same policies, and their comments.

    Raises: PolicyRefused, PolicyTooDeep.
    """
    check_nesting(source)
    try:
        made = cedarpy.format_policies(source).lstrip("\n")
        same = cedarpy.policies_to_pst(source) == cedarpy.policies_to_pst(made)
    except ValueError as refusal:
        raise PolicyRefused(str(refusal)) from None
    if not same:
        raise PolicyRefused("the formatted text would mean something else")
    return made
