"""A policy taken apart, so that the engine itself says which part fails. Decides nothing for a caller."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# cedarpy declares `dict` without its parameters; what this module returns is typed in full.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, cast

from cedarpy import PolicySet, pst

from .cedar_text import ANYONE, Policy, mentions, nodes, reads

Path = tuple[str, ...]

_ANY: Final = pst.ScopeAny()
_REST: Final = (pst.Var("resource"), pst.Var("context"))
_ILL_TYPED: Final = pst.When(pst.BinaryOp("less", pst.StringLit(""), pst.LongLit(0)))


def path(node: object) -> Path:
    """Return the variable and the attributes that ``resource.a.b`` names, nothing for another expression."""
    match node:
        case pst.Var(name):
            return (name,)
        case pst.GetAttr(base, attr):
            return (*over, attr) if (over := path(base)) else ()
        case _:
            return ()


def paths(node: object) -> frozenset[Path]:
    """Return every path that an expression can stand for, also by way of an ``if`` or a record."""
    return frozenset(found for each in _values(node) if (found := path(each)))


def _values(node: object) -> Iterator[object]:
    match node:
        case pst.IfThenElse(_, one, other):
            yield from (*_values(one), *_values(other))
        case pst.GetAttr(base, attr):
            for each in _values(base):
                held = each.fields.get(attr) if isinstance(each, pst.Record) else None
                yield from _values(held) if held is not None else (pst.GetAttr(cast("pst.Expr", each), attr),)
        case _:
            yield node


def named(policy: Policy) -> frozenset[Path]:
    """Return what the conditions read, or ask for with ``has`` or as a tag."""
    found: set[Path] = set()
    for node in nodes(policy.node.clauses):
        match node:
            case pst.GetAttr():
                found |= paths(node)
            case pst.HasAttr(base, attrs):
                found |= {(*each, *attrs) for each in paths(base)}
            case pst.BinaryOp("get_tag" | "has_tag" as op, base, _):
                found |= {(*each, "getTag" if op == "get_tag" else "hasTag") for each in paths(base)}
            case _:
                pass
    return frozenset(found)


def placed_in(policy: Policy) -> Iterator[tuple[Path, frozenset[str], frozenset[Path]]]:
    """Yield what the conditions ask to be ``in`` entities: the types of those named, the paths of others."""
    for node in nodes(policy.node.clauses):
        match node:
            case pst.BinaryOp("in", base, over) | pst.Is(base, _, over) if over is not None:
                kinds = frozenset(str(each.type) for each in pst.entity_uids(over))
                read = frozenset(one for each in nodes((over,)) for one in paths(each))
                yield from ((each, kinds, read) for each in paths(base))
            case _:
                pass


def unless_false(policy: Policy) -> Policy:
    """Return a policy that the validator takes only if the conditions are false whatever is asked.

    It knows when they are, and then does not look at what follows them: something that is ill-typed.
    """
    return replace(policy, node=replace(policy.node, clauses=(*policy.node.clauses, _ILL_TYPED)))


def tests(policy: Policy) -> Iterator[tuple[Path, Policy]]:
    """Yield what each ``has`` asks for, with a policy of that condition alone, whoever acts on whatever."""
    for node in nodes(policy.node.clauses):
        if isinstance(node, pst.HasAttr):
            alone = replace(policy.node, principal=_ANY, resource=_ANY, clauses=(pst.When(node),))
            yield (*path(node.base), *node.attrs), replace(policy, node=alone)


def clauses(policy: Policy) -> list[Policy]:
    """Return the policy once for each of its ``when`` and ``unless``, with that one only."""
    return [replace(policy, node=replace(policy.node, clauses=(each,))) for each in policy.node.clauses]


def conditions(policy: Policy, kind: str | None = None) -> list[tuple[str, Policy]]:
    """Return the head and every conjunct of a policy, each as its text and a permit of head and conjunct.

    The first has no text: it is the head alone. ``unless {a || b}`` has the conjuncts ``!a`` and ``!b``.
    The permits are named ``id#0``, ``id#1``, ...; ``kind`` confines them to principals of one type.
    """
    parts = [each for clause in policy.node.clauses for each in _conjuncts(clause)]
    texts = ["", *(_expression(each) for each in parts)]
    clauses: list[tuple[pst.Clause, ...]] = [(), *((pst.When(each),) for each in parts)]
    return [
        (text, renamed(confined(policy, kind, clause), f"{policy.id}#{position}"))
        for position, (text, clause) in enumerate(zip(texts, clauses, strict=True))
    ]


def confined(policy: Policy, kind: str | None, clauses: tuple[pst.Clause, ...] | None = None) -> Policy:
    """Return a policy for principals of one type only; with ``clauses`` it permits under these instead."""
    own = (pst.When(pst.Is(pst.Var("principal"), pst.EntityType(kind), None)),) if kind else ()
    if clauses is None:
        return replace(policy, node=replace(policy.node, clauses=(*own, *policy.node.clauses)))
    node = replace(policy.node, effect="permit", clauses=(*own, *clauses))
    over = mentions(node.clauses, pst.Var("resource"))
    return replace(policy, permit=True, reads=reads(node.clauses), reads_resource=over, node=node)


def of_caller(policy: Policy) -> Policy | None:
    """Return what a policy says of every call of a caller, whatever it acts on; ``None``, if nothing.

    A permit without the conjuncts that read the resource or the context, and over any resource of its type:
    it permits wherever the policy does. A forbid only if it reads neither and names no resource.
    """
    parts = [each for clause in policy.node.clauses for each in _conjuncts(clause)]
    whens = [pst.When(each) for each in parts]
    about = tuple(each for each in whens if not any(mentions((each,), rest) for rest in _REST))
    named = len(policy.resource) == 2
    if not policy.permit and (named or len(about) < len(parts)):
        return None
    node = replace(policy.node, resource=_ANY if named else policy.node.resource, clauses=about)
    over = ANYONE if named else policy.resource
    return replace(policy, resource=over, reads=frozenset(), reads_resource=False, node=node)


def renamed(policy: Policy, ident: str) -> Policy:
    """Return a policy under another id."""
    node = replace(policy.node, id=ident, annotations={**policy.node.annotations, "id": ident})
    return replace(policy, id=ident, node=node)


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
