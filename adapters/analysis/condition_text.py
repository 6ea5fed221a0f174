"""Condition text for people: redundant brackets taken away, and which attributes a condition reads.

Lexical only; the engine is the one who evaluates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Join = Literal["and", "or"]
_TOKEN: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:::"(?:[^"\\]|\\.)*")?|\d+|==|!=|<=|>=|&&|\|\||\S'
)
_LEVELS: Final = ("if then else", "||", "&&", "== != < <= > >= in has like is", "+ -", "*", "!", ".")
_RANK: Final = {mark: rank for rank, marks in enumerate(_LEVELS) for mark in marks.split()}
_COMPARISON: Final = 3
_UNARY: Final = 6
_TIGHT: Final = 8
_JOINS: Final[dict[str, Join]] = {"&&": "and", "||": "or"}
_DUAL: Final[dict[Join, Join]] = {"and": "or", "or": "and"}
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_LOOSE: Final = -1
_READ: Final = re.compile(r"\b(principal|resource|context\.args)(?:\.| has )([A-Za-z_]\w*)")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_ROLE: Final = re.compile(r"\bprincipal (?:in|is)\b")
_ERRS: Final = re.compile(r"[-+*]|\b(?:ip|decimal|datetime|duration|getTag)\(")
_VARIABLE: Final = re.compile(r"\b(?:principal|resource|context)\b")


@dataclass(slots=True)
class _Group:
    """What stands between two brackets, or a single token."""

    text: str
    rank: int
    call: bool = False


def tidy(text: str) -> str:
    """Return a fully bracketed condition without the brackets that precedence makes redundant."""
    tokens = _TOKEN.findall(text)
    groups, _ = _read(tokens, 0)
    return _join(groups)


def _read(tokens: Sequence[str], at: int) -> tuple[list[_Group], int]:
    found: list[_Group] = []
    while at < len(tokens) and tokens[at] not in (")", "]", "}"):
        token = tokens[at]
        if token in ("(", "[", "{"):
            inner, at = _read(tokens, at + 1)
            found.append(_bracketed(token, inner, call=bool(found) and _is_called(token, found[-1])))
        else:
            found.append(_Group(token, _TIGHT))
        at += 1
    return found, at


def _bracketed(opening: str, inner: Sequence[_Group], *, call: bool) -> _Group:
    body = _join(inner)
    if opening == "(" and not call:
        return _Group(body, _weakest(inner))
    return _Group(opening + body + _CLOSING[opening], _TIGHT, call=call)


def _is_called(opening: str, before: _Group) -> bool:
    """Whether a bracket belongs to what stands before it: ``ip(...)``, ``.contains(...)``, ``x["k"]``."""
    return (
        opening != "{"
        and re.fullmatch(r"[A-Za-z_][\w:]*", before.text) is not None
        and before.text not in _RANK
    )


def _weakest(groups: Sequence[_Group]) -> int:
    return min((_RANK.get(each.text, _TIGHT) for each in groups), default=_TIGHT)


def _join(groups: Sequence[_Group]) -> str:
    out = ""
    for index, group in enumerate(groups):
        before = _RANK.get(groups[index - 1].text, _LOOSE) if index else _LOOSE
        after = _RANK.get(groups[index + 1].text, _LOOSE) if index + 1 < len(groups) else _LOOSE
        word = f"({group.text})" if _keeps(group.rank, before, after) else group.text
        out += ("" if _sticks(groups, index) else " ") + word
    return out


def _keeps(rank: int, before: int, after: int) -> bool:
    """Whether a group needs its brackets: every chain groups from the left, comparisons do not chain."""
    if rank == _TIGHT:
        return False
    right = rank == before and rank not in (1, 2, _UNARY)
    return rank < max(before, after) or right or (rank == after and rank in (_COMPARISON, _UNARY))


def _sticks(groups: Sequence[_Group], index: int) -> bool:
    """Whether no space stands before this group."""
    if index == 0 or groups[index].call:
        return True
    here, left = groups[index].text, groups[index - 1].text
    unary = left == "!" or (left == "-" and (index == 1 or groups[index - 2].text in _RANK))
    return unary or here in (".", ",", ":") or left == "."


def tidy_policy(text: str) -> str:
    """Return a policy with its conditions tidied."""
    out, end, depth = "", 0, 0
    opened: int | None = None
    before = ""
    for match in _TOKEN.finditer(text):
        mark = match[0]
        depth += (mark in "([{") - (mark in ")]}")
        if mark == "{" and before in ("when", "unless") and depth == 1:
            opened = match.end()
        elif mark == "}" and depth == 0 and opened is not None:
            out += f"{text[end:opened]} {tidy(text[opened : match.start()])} "
            end, opened = match.start(), None
        before = mark
    return out + text[end:]


def split(text: str) -> tuple[Join, tuple[str, ...]] | None:
    """Return the operator that joins parts in a condition as the engine writes it, and the parts.

    ``!(a && b)`` is ``!a || !b``: the same is evaluated, in the same order. ``None``: nothing is joined.
    """
    joined = _joined(text)
    if joined is not None or text[:1] != "!":
        return joined
    inner = _joined(_unwrapped(text[1:]))
    return None if inner is None else (_DUAL[inner[0]], tuple(f"!({each})" for each in inner[1]))


def _joined(text: str) -> tuple[Join, tuple[str, ...]] | None:
    """The engine brackets every operand: the operator outside all brackets is the outermost one."""
    mark = next((each for each in _outside(text) if each[0] in _JOINS), None)
    if mark is None:
        return None
    join = _JOINS[mark[0]]
    left, right = _unwrapped(text[: mark.start()].strip()), _unwrapped(text[mark.end() :].strip())
    before = _joined(left)  # a chain groups from the left
    return join, (*(before[1] if before is not None and before[0] == join else (left,)), right)


def _outside(text: str) -> Iterator[re.Match[str]]:
    depth = 0
    for match in _TOKEN.finditer(text):
        depth += (match[0] in _CLOSING) - (match[0] in _CLOSING.values())
        if depth == 0:
            yield match


def _unwrapped(text: str) -> str:
    """Return a text without the one pair of brackets around all of it."""
    if text[:1] == "(" and [each.start() for each in _outside(text)] == [len(text) - 1]:
        return text[1:-1].strip()
    return text


def negated(text: str) -> str | None:
    """Return the condition that this one is the negation of, if it is one."""
    (bang, body) = (text[:1], text[1:])
    if bang != "!":
        return None
    if re.fullmatch(r"[\w.]+(?:\([^()]*\))?", body):
        return body
    groups, _ = _read(_TOKEN.findall(body), 0)
    return groups[0].text if len(groups) == 1 else None


def reads(text: str) -> tuple[str, ...]:
    """Return the attributes that a tidy condition names: ``principal.org``, ``context.args.amount``, ..."""
    bare = _STRING.sub('""', text)
    found = [f"{owner}.{name}" for owner, name in _READ.findall(bare)]
    roles = ["principal.roles"] if re.search(r"\bprincipal in\b", bare) else []
    return tuple(dict.fromkeys([*roles, *found]))


def mentions(text: str, variable: str) -> bool:
    """Whether a condition reads a variable."""
    return re.search(rf"\b{variable}\b", _STRING.sub('""', text)) is not None


def may_err(text: str) -> bool:
    """Whether a validated condition can fail on a resource that exists: overflow, odd text, no tag."""
    return _ERRS.search(_STRING.sub('""', text)) is not None


def of_roles_only(text: str) -> bool:
    """Whether nothing but the principal's roles and type can change what a condition evaluates to."""
    return _VARIABLE.search(_ROLE.sub("", _STRING.sub('""', text))) is None
