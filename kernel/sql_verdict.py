"""Facts of a statement -> a verdict: the facts as Cedar's context, Cedar's decision, and it in words.

Knows no caller: it judges the statement by policies about ``db.query`` that ask nothing of who acts. Reads
no file: policies come as texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel, PrivateAttr

from . import cedar
from .cedar import Decision, PolicySlice, Schema
from .cedar_text import Policy, PolicyRefused, nodes, parse
from .compile import PolicySource
from .policy_text import Place, quoted
from .shapes import encode_fields, fields_of, record_text, uid
from .sql_facts import Piece, SqlFacts, schema_of, where
from .told import Told, Words

ACTION: Final = "db.query"
CODE: Final = "X_MCP_QUERY_REJECTED"
CONTEXTS: Final = 64  # whose decisions are remembered
LONGEST: Final = 4 * 1024  # characters of one of them


class QueryContext(BaseModel):
    """What a policy about ``db.query`` can read of a statement, beside the arguments of the call."""

    kinds: frozenset[str] = frozenset()
    families: frozenset[str] = frozenset()
    relations: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    schemas: frozenset[str] = frozenset()


FIELDS: Final = fields_of(QueryContext)
_SCHEMA: Final = (
    "entity Human; entity Agent; entity Server;\n"
    f"action {quoted(ACTION)} appliesTo {{ "
    f"principal: [Agent, Human], resource: [Server], context: {record_text(FIELDS)} }};"
)
_PERMIT: Final = PolicySource(
    "<guard>", f'@id("<guard>")\npermit (principal, action == Action::{quoted(ACTION)}, resource);'
)
_SOMEBODY: Final = uid("Human", "-")
_SERVER: Final = uid("Server", "-")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a statement is a read, and if not, why: the piece of it that is told first, and where it is."""

    allow: bool
    code: str | None = None
    family: str | None = None
    cause: str | None = None
    fix: str | None = None
    place: Place | None = None
    policies: tuple[str, ...] = ()


ACCEPTED: Final = Verdict(True)


@dataclass(frozen=True, slots=True, eq=False)
class QueryPolicies:
    """Policies about ``db.query``, ready to be asked: ``decide`` takes a context as JSON."""

    by_id: dict[str, Policy]
    decide: Callable[[str], Decision]


@dataclass(frozen=True, slots=True)
class _Told:
    """A piece of a statement that a policy may speak of, by these words."""

    words: frozenset[str]
    text: str
    at: int | None
    family: str | None = None
    why: str = ""


def context(facts: SqlFacts) -> str:
    """Return the facts as the context that policies read: JSON of the declared types."""
    return json.dumps(encode_fields(FIELDS, QueryContext.model_validate(_members(facts))))


def _members(facts: SqlFacts) -> dict[str, frozenset[str]]:
    return {
        "kinds": frozenset(facts.kinds),
        "families": facts.families,
        "relations": facts.relation_names,
        "columns": facts.columns,
        "functions": facts.functions,
        "schemas": facts.schemas,
    }


def policies(sources: Iterable[PolicySource]) -> QueryPolicies:
    """Return policies about ``db.query``, validated. Raises: PolicyRefused."""
    found = [policy for each in (_PERMIT, *sources) for policy in parse(each.text, each.origin)]
    schema = cedar.schema(_SCHEMA)
    for policy, message in cedar.invalid(found, schema):
        raise PolicyRefused(f"`{policy.id}`: {message}")
    by_id = {each.id: each for each in found}
    if len(by_id) != len(found):
        raise PolicyRefused("two policies carry one @id")
    return QueryPolicies(by_id, _deciding(cedar.policy_set(found), schema))


def _deciding(handle: PolicySlice, schema: Schema) -> Callable[[str], Decision]:
    """A decision rests on its context alone, so it is remembered: most texts differ in literals only."""
    nobody = cedar.entities("[]", schema)

    def decided(context: str) -> Decision:
        return cedar.decide(_SOMEBODY, ACTION, _SERVER, context, handle, nobody, schema)

    remembered = lru_cache(CONTEXTS)(decided)
    return lambda context: (remembered if len(context) <= LONGEST else decided)(context)


def judge(facts: SqlFacts, text: str, asked: QueryPolicies) -> Verdict:
    """Return what the policies say of a statement. What cannot be decided is refused."""
    decision = asked.decide(context(facts))
    return ACCEPTED if decision.allow else _refused(facts, text, decision, asked)


class QueryFacts(QueryContext, Told):
    """The facts of a statement as the context of ``db.query``, and what its answer needs of them."""

    only = ACTION
    _text: str = PrivateAttr("")
    _facts: SqlFacts = PrivateAttr(SqlFacts())

    @classmethod
    def of(cls, text: str, facts: SqlFacts) -> QueryFacts:
        """Return the facts of a text."""
        made = cls.model_validate(_members(facts))
        made._text, made._facts = text, facts
        return made

    @property
    def text(self) -> str:
        """The text that was read."""
        return self._text

    @property
    def facts(self) -> SqlFacts:
        """Everything that was read in it."""
        return self._facts

    def words(self, policies: Sequence[Any]) -> Words | None:
        """Name the piece of the statement that is refused, and where it stands."""
        if not policies:
            return None
        told = explained(self._facts, self._text, policies)
        return Words(told.code or CODE, told.cause or "", told.fix or "")


def _refused(facts: SqlFacts, text: str, decision: Decision, asked: QueryPolicies) -> Verdict:
    if not decision.determining:
        cause = "the query cannot be judged"
        return Verdict(False, CODE, None, cause, "read the server's log", None, decision.errors)
    return explained(facts, text, [asked.by_id[each] for each in decision.determining])


def explained(facts: SqlFacts, text: str, policies: Sequence[Policy]) -> Verdict:
    """Return the refusal of a statement by policies, at least one: by the first piece that one speaks of."""
    told = list(_pieces(facts))
    spoken = [(_first(each, told), each) for each in policies]
    piece, policy = min(spoken, key=lambda each: _order(each[0]))
    place = None if piece is None else where(text, piece.at)
    return Verdict(
        allow=False,
        code=policy.annotations.get("code", "X_FORBIDDEN"),
        family=policy.annotations.get("family") if piece is None or piece.family is None else piece.family,
        cause=_cause(policy, piece, place),
        fix=policy.annotations.get("fix", "ask for something else"),
        place=place,
        policies=tuple(each.id for each in policies),
    )


def _pieces(facts: SqlFacts) -> Iterator[_Told]:
    """Yield what policies may speak of, what rules out a read first."""
    for each in facts.offences:
        yield _Told(frozenset({each.family}), each.text, each.at, each.family, each.why)
    for relation in facts.relations:
        words = {f"{name}.{column}" for name in relation.piece.names for column in relation.columns}
        yield _told(relation.piece, words)
    for call in facts.calls:
        yield _told(call.piece, set())


def _told(piece: Piece, words: set[str]) -> _Told:
    schemas = {schema_of(name) for name in piece.names}
    return _Told(frozenset(words | schemas | {*piece.names}), piece.text, piece.at)


def _first(policy: Policy, told: Iterable[_Told]) -> _Told | None:
    """Return the first piece that the conditions of a policy speak of."""
    words = frozenset(_texts(policy))
    spoken = [each for each in told if not words.isdisjoint(each.words)]
    return min(spoken, key=_order, default=None)


def _texts(policy: Policy) -> Iterator[str]:
    """Yield the texts that stand in the conditions of a policy."""
    for each in nodes(policy.node.clauses):
        if type(each).__name__ == "StringLit":
            yield str(getattr(each, "value", ""))


def _order(piece: _Told | None) -> tuple[bool, int]:
    return (piece is None, -1 if piece is None or piece.at is None else piece.at)


def _cause(policy: Policy, piece: _Told | None, place: Place | None) -> str:
    reason = f"the query {policy.annotations.get('reason', 'is refused by a policy')}"
    if piece is None:
        return reason
    what = piece.why or (f"`{piece.text}`" if piece.text else "")
    return f"{reason}{f': {what}' if what else ''}{f' at {place}' if place is not None else ''}"
