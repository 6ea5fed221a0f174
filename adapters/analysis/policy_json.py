"""Policies -> Cedar's JSON format of a policy set, and back to text.

Knows the names of the engine's syntax tree, and no app. What it does not know it refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from itertools import pairwise
from json import dumps
from typing import Any, Final, cast

from ...kernel import cedar
from ...kernel.cedar_text import Policy, parse_one
from ...kernel.strict_json import Json

Document = dict[str, Json]
_UNARY: Final = {"not": "!", "neg": "neg", "is_empty": "isEmpty"}
_BINARY: Final = {
    "eq": "==",
    "not_eq": "!=",
    "less": "<",
    "less_eq": "<=",
    "greater": ">",
    "greater_eq": ">=",
    "and": "&&",
    "or": "||",
    "add": "+",
    "sub": "-",
    "mul": "*",
    "in": "in",
    "contains": "contains",
    "contains_all": "containsAll",
    "contains_any": "containsAny",
    "get_tag": "getTag",
    "has_tag": "hasTag",
}
_CALLS: Final = {
    **{name: name for name in ("datetime", "decimal", "duration", "ip", "offset")},
    "is_ipv4": "isIpv4",
    "is_ipv6": "isIpv6",
    "is_loopback": "isLoopback",
    "is_multicast": "isMulticast",
    "is_in_range": "isInRange",
    "to_date": "toDate",
    "to_time": "toTime",
    "to_milliseconds": "toMilliseconds",
    "to_seconds": "toSeconds",
    "to_minutes": "toMinutes",
    "to_hours": "toHours",
    "to_days": "toDays",
    "duration_since": "durationSince",
    "decimal_less_than": "lessThan",
    "decimal_less_eq": "lessThanOrEqual",
    "decimal_greater": "greaterThan",
    "decimal_greater_eq": "greaterThanOrEqual",
}


class PolicyUnwritable(ValueError):
    """A policy has a form that this module cannot write as JSON."""


def policy_set_json(policies: Iterable[Policy]) -> Document:
    """Return policies as one set, each under its id; the engine reads the same from it.

    Raises: PolicyUnwritable.
    """
    static: Document = {each.id: _checked(each) for each in policies}
    return {"staticPolicies": static, "templates": {}, "templateLinks": []}


def _checked(policy: Policy) -> Document:
    """Return a policy that the engine's reader of JSON takes: it nests less than its reader of text."""
    document = policy_json(policy)
    try:
        back = parse_one(policy_text(document), policy.id, policy.where)
    except PolicyUnwritable as refusal:
        raise PolicyUnwritable(f"`{policy.id}`: {refusal}") from None
    if back.node != policy.node:
        raise PolicyUnwritable(f"`{policy.id}`: its JSON form would be another policy")
    return document


def policy_json(policy: Policy) -> Document:
    """Return one policy. Raises: PolicyUnwritable, at an expression that is not known here."""
    node = policy.node
    return {
        "effect": node.effect,
        "principal": _head(_plain(node.principal)),
        "action": _head(_plain(node.action)),
        "resource": _head(_plain(node.resource)),
        "conditions": [_condition(_plain(each)) for each in node.clauses],
        "annotations": dict(node.annotations),
    }


def policy_text(document: Document) -> str:
    """Return one policy in Cedar's JSON format as Cedar text. Raises: PolicyUnwritable."""
    whole: Document = {"staticPolicies": {"policy0": document}, "templates": {}, "templateLinks": []}
    try:
        return str(cedar.PolicySet.from_json_str(dumps(whole)))
    except ValueError as refusal:
        cause = " ".join(str(refusal).split())
        raise PolicyUnwritable(f"the engine does not read its JSON form: {cause}") from None


def _plain(node: object) -> Any:
    """Return a node as a tuple of its class's name and its members, so that it can be matched by shape."""
    if is_dataclass(node):
        return (type(node).__name__, *(_plain(getattr(node, each.name)) for each in fields(node)))
    if isinstance(node, tuple):
        return [_plain(each) for each in cast("tuple[object, ...]", node)]
    if isinstance(node, Mapping):
        return {key: _plain(each) for key, each in cast("Mapping[str, object]", node).items()}
    return node


def _head(node: Any) -> Document:
    match node:
        case ("ScopeAny",):
            return {"op": "All"}
        case ("ScopeEq" | "ActionEq", uid):
            return {"op": "==", "entity": _uid(uid)}
        case ("ScopeIn", uid):
            return {"op": "in", "entity": _uid(uid)}
        case ("ActionIn", [uid]):
            return {"op": "in", "entity": _uid(uid)}
        case ("ActionIn", uids):
            return {"op": "in", "entities": [_uid(each) for each in uids]}
        case ("ScopeIs", kind):
            return {"op": "is", "entity_type": _type(kind)}
        case ("ScopeIsIn", kind, uid):
            return {"op": "is", "entity_type": _type(kind), "in": {"entity": _uid(uid)}}
        case _:
            raise _unknown(node)


def _condition(node: Any) -> Document:
    kind, body = node
    return {"kind": kind.lower(), "body": _expression(body)}


def _expression(node: Any) -> Document:
    match node:
        case ("Var", name):
            return {"Var": name}
        case ("BoolLit" | "LongLit" | "StringLit", value):
            return {"Value": value}
        case ("EntityLit", uid):
            return {"Value": {"__entity": cast("Json", _uid(uid))}}
        case ("Set", members):
            return {"Set": [_expression(each) for each in members]}
        case ("Record", members):
            return {"Record": {key: _expression(each) for key, each in members.items()}}
        case ("UnaryOp" | "BinaryOp", name, *parts):
            return _operation(name, [_expression(each) for each in parts])
        case _:
            return _of_one(node)


def _operation(name: str, parts: list[Document]) -> Document:
    if name in _UNARY:
        return {_UNARY[name]: {"arg": parts[0]}}
    if name in _BINARY:
        return {_BINARY[name]: {"left": parts[0], "right": parts[1]}}
    if name in _CALLS:
        return {_CALLS[name]: list[Json](parts)}
    raise _unknown((name,))


def _of_one(node: Any) -> Document:
    match node:
        case ("GetAttr", base, attribute):
            return {".": {"left": _expression(base), "attr": attribute}}
        case ("HasAttr", base, attributes):
            return _has(_expression(base), attributes)
        case ("Like", base, pattern):
            return {"like": {"left": _expression(base), "pattern": [_element(each) for each in pattern]}}
        case ("Is", base, kind, None):
            return {"is": {"left": _expression(base), "entity_type": _type(kind)}}
        case ("Is", base, kind, over):
            told: Document = {"left": _expression(base), "entity_type": _type(kind), "in": _expression(over)}
            return {"is": told}
        case ("IfThenElse", condition, then, otherwise):
            names = zip(("if", "then", "else"), (condition, then, otherwise), strict=True)
            return {"if-then-else": {name: _expression(each) for name, each in names}}
        case _:
            raise _unknown(node)


def _has(base: Document, attributes: list[str]) -> Document:
    """``x has a.b`` is ``x has a && x.a has b``."""
    whole: Document = {"has": {"left": base, "attr": attributes[0]}}
    for held, attribute in pairwise(attributes):
        base = {".": {"left": base, "attr": held}}
        whole = {"&&": {"left": whole, "right": {"has": {"left": base, "attr": attribute}}}}
    return whole


def _element(node: Any) -> Json:
    return "Wildcard" if node == ("Wildcard",) else {"Literal": node[1]}


def _uid(node: Any) -> Document:
    match node:
        case ("EntityUid", kind, ident):
            return {"type": _type(kind), "id": ident}
        case _:
            raise _unknown(node)


def _type(node: Any) -> str:
    _, basename, namespace = node
    return "::".join((*namespace, basename))


def _unknown(node: Any) -> PolicyUnwritable:
    return PolicyUnwritable(f"the engine's `{node[0]}` has no JSON form here")
