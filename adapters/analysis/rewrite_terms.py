"""Expressions in Cedar's JSON format, taken apart and built; and why one has no exact counterpart.

Knows no schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from .policy_json import Document

ARGUMENTS: Final[Document] = {".": {"left": {"Var": "context"}, "attr": "args"}}


@dataclass(frozen=True, slots=True)
class Inexact:
    """Why a policy has no exact counterpart; ``word`` is what to look for in its text."""

    cause: str
    fix: str
    word: str = ""
    code: str = "X_POLICY_INVALID"


class NoCounterpart(Exception):
    """Ends the rewriting of one policy; never leaves ``rewrite.rewritten``."""

    def __init__(self, cause: str, fix: str, word: str = "", code: str = "X_POLICY_INVALID") -> None:
        self.told = Inexact(cause, fix, word, code)
        super().__init__(cause)


def of(name: str, base: Document, attribute: str) -> Document:
    """Return ``base.attribute`` or ``base has attribute``."""
    return {name: {"left": base, "attr": attribute}}


def along(base: Document, names: Iterable[str]) -> Document:
    """Return ``base.a.b``."""
    return reduce(lambda held, name: of(".", held, name), names, base)


def path(node: Any) -> tuple[str, tuple[str, ...]] | None:
    """Return the variable and the attributes of ``variable.a.b``; nothing else has a path."""
    names: list[str] = []
    while "." in node:
        names.insert(0, node["."]["attr"])
        node = node["."]["left"]
    return (node["Var"], tuple(names)) if "Var" in node else None


def read(node: Any) -> tuple[str, tuple[str, ...]]:
    """Return the path of an expression that an attribute is read of. Raises: NoCounterpart."""
    found = path(node)
    if found is None:
        raise NoCounterpart(
            "it reads an attribute of an expression", "read attributes of principal, resource and context"
        )
    return found


def conjuncts(node: Any) -> Iterator[Any]:
    """Yield what ``&&`` joins, from the left."""
    if "&&" in node:
        yield from conjuncts(node["&&"]["left"])
        yield from conjuncts(node["&&"]["right"])
    else:
        yield node


def conjunction(parts: Iterable[Document]) -> Document:
    """Return expressions joined by ``&&``."""
    return reduce(lambda left, right: {"&&": {"left": left, "right": right}}, parts)


def tested(node: Any, of_path: tuple[str, ...]) -> str:
    """Return the attribute that ``context... has`` tests for, or nothing if this is no such test."""
    told = node.get("has")
    return told["attr"] if told is not None and path(told["left"]) == ("context", of_path) else ""


def literal(node: Any) -> tuple[str, str] | None:
    """Return type and id of an entity literal."""
    held = node.get("Value")
    return uid(held["__entity"]) if isinstance(held, dict) else None


def uid(told: Any) -> tuple[str, str]:
    """Return type and id of a uid."""
    return told["type"], told["id"]
