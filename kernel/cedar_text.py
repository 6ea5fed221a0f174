"""Cedar text -> policies as values: the head as look-up keys, what the conditions read, the tree itself.

Decides nothing, and never shows the engine a text that could exhaust its stack.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# cedarpy declares `dict` without its parameters; what this module returns is typed in full.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import cedarpy
from cedarpy import Schema, pst

from .policy_text import place, statements, too_deep

Uid = Mapping[str, Any]
Key = tuple[str, ...]

ANYONE: Final[Key] = ()


class PolicyRefused(ValueError):
    """Text that the engine does not take as policies or schema."""


class PolicyTooDeep(PolicyRefused):
    """Text whose nesting could exhaust the engine's stack."""


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
    for part in _inner(node):
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
        reads=reads(node.clauses),
        reads_resource=mentions(node.clauses, pst.Var("resource")),
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


def reads(clauses: Iterable[pst.Clause]) -> frozenset[str] | None:
    """Return the arguments that ``context.args.NAME`` and ``has`` read; ``None`` if context is used whole."""
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
                stack.extend(_inner(other))
    return frozenset(found)


def mentions(clauses: Iterable[pst.Clause], variable: pst.Var) -> bool:
    """Whether conditions speak of a variable."""
    return any(node == variable for node in nodes(clauses))


def nodes(clauses: Iterable[pst.Clause | pst.Expr]) -> Iterator[object]:
    """Yield every node of some conditions, or of expressions in them."""
    stack: list[object] = list(clauses)
    while stack:
        node = stack.pop()
        yield node
        stack.extend(_inner(node))


def _inner(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        yield from cast("tuple[object, ...]", node)
    elif isinstance(node, Mapping):
        yield from cast("Mapping[str, object]", node).values()
    else:
        yield from (getattr(node, name) for name in getattr(type(node), "__dataclass_fields__", ()))


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
