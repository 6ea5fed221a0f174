"""Parts of conditions: for every tree of `&&`, `||` and `!`, what is said of a part is what happened to it.

The oracle is a small evaluator of the drawn tree; it reads no text and knows no engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from nonsuch import Human, Registry, can, expose
from nonsuch.adapters.analysis.attempts import UNLOADED, Facts
from nonsuch.adapters.analysis.condition_text import split
from nonsuch.adapters.analysis.explain import Explainer, Explanation
from nonsuch.adapters.analysis.parts import Condition, Oracle, Truth, in_order
from nonsuch.adapters.analysis.witness import Considered
from nonsuch.adapters.cli.rules import rules_of
from nonsuch.kernel.cedar_text import PolicyTooDeep
from nonsuch.kernel.model import Call

from ...kernel.trial import boot, folder

Kind = Literal["true", "false", "error", "open", "risky"]
N: Final = 2**62


class Ask(BaseModel):
    n: int


class Post(BaseModel):
    id: str
    size: int = 0


def find(input: Ask) -> Post | None:
    return None


def publish(input: Ask) -> str:
    return "done"


ANN: Final = Human("ann")
CALL: Final = Call("publish", {"n": N}, "mcp")

# Trees, and what happens when one is evaluated.


@dataclass(frozen=True)
class Atom:
    number: int
    kind: Kind

    @property
    def text(self) -> str:
        at = self.number
        return {
            "true": f"context.args.n > {at}",
            "false": f"context.args.n < {at}",
            "error": f"context.args.n + {2**63 - 1 - at} > 0",
            "open": f"resource.size > {at}",
            "risky": f"resource.size + {at} > 0",
        }[self.kind]


@dataclass(frozen=True)
class Node:
    join: Literal["&&", "||", "!"]
    parts: tuple[Tree, ...]

    @property
    def text(self) -> str:
        if self.join == "!":
            return f"!({self.parts[0].text})"
        return f" {self.join} ".join(f"({each.text})" for each in self.parts)


Tree = Atom | Node
Seen = dict[int, Truth]
NOT: Final[dict[Truth, Truth]] = {"true": "false", "false": "true", "error": "error", "unknown": "unknown"}
MAY_BE: Final[dict[Kind, tuple[Truth, ...]]] = {
    "true": ("true",),
    "false": ("false",),
    "error": ("error",),
    "open": ("true", "false"),
    "risky": ("true", "false", "error"),
}


def run(tree: Tree, world: Mapping[int, Truth], seen: Seen) -> Truth:
    """Evaluate a tree from the left as far as needed, and write down what was evaluated."""
    if isinstance(tree, Atom):
        seen[tree.number] = world[tree.number]
        return seen[tree.number]
    if tree.join == "!":
        return NOT[run(tree.parts[0], world, seen)]
    stop: Truth = "false" if tree.join == "&&" else "true"
    for part in tree.parts:
        got = run(part, world, seen)
        if got in (stop, "error"):
            return got
    return "true" if stop == "false" else "false"


def worlds(tree: Tree) -> Iterator[dict[int, Truth]]:
    """Yield every way in which the atoms can turn out."""
    held = list(atoms(tree))
    for each in product(*(MAY_BE[atom.kind] for atom in held)):
        yield dict(zip((atom.number for atom in held), each, strict=True))


def atoms(tree: Tree) -> Iterator[Atom]:
    if isinstance(tree, Atom):
        yield tree
    else:
        for each in tree.parts:
            yield from atoms(each)


JOINS: Final[tuple[Literal["&&", "||", "!"] | None, ...]] = (None, "&&", "||", "!")


@st.composite
def trees(draw: st.DrawFn, kinds: tuple[Kind, ...], depth: int = 3) -> Tree:
    count = iter(range(10, 1000))

    def tree(depth: int) -> Tree:
        join = draw(st.sampled_from(JOINS)) if depth else None
        if join is None:
            return Atom(next(count), draw(st.sampled_from(kinds)))
        width = 1 if join == "!" else draw(st.integers(2, 3))
        return Node(join, tuple(tree(depth - 1) for _ in range(width)))

    return tree(depth)


# The engine, asked about a policy with the drawn condition.


class Bench:
    """Explains one call of one tool under any one policy."""

    def __init__(self, at: Path) -> None:
        self._at = at
        self._registry = Registry()
        self._registry.action(policy=can("post:publish", resource=find), mcp=expose("P"))(publish)
        self._app = boot(self._registry, policies_dir=folder(at, own=""))

    def considered(self, clauses: str, facts: Facts) -> Considered:
        """Return what is said of a policy with these clauses."""
        head = 'forbid (principal, action in Action::"post:publish", resource is Post)'
        return (
            self.explainer(f'@id("x") {head} {clauses};').explain(ANN, CALL, facts).verdicts[0].considered[0]
        )

    def under(self, rules: list[tuple[str, str, str]]) -> Explainer:
        """Return who explains under policies of an effect, a resource head and a clause each."""
        head = 'principal, action in Action::"post:publish"'
        texts = (
            f'@id("p{number}") {effect} ({head}, {over}) {under};'
            for number, (effect, over, under) in enumerate(rules)
        )
        return self.explainer("\n".join(texts))

    def explainer(self, policies: str) -> Explainer:
        folder(self._at, own=policies)
        rules = rules_of(self._app, self._at)
        return Explainer(rules.catalog, rules.base, rules.policies)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("policies"))


def leaves(conditions: tuple[Condition, ...]) -> Iterator[Condition]:
    for each in conditions:
        if each.parts:
            yield from leaves(each.parts)
        else:
            yield each


def held_by(leaf: Condition, tree: Tree) -> list[Atom]:
    """Return the atoms of a leaf: one, or several under a `!!` that nothing takes apart."""
    plain = re.split(r"[()!]+|&&|\|\|", leaf.text)
    return [each for each in atoms(tree) if each.text in [text.strip() for text in plain]]


def asked(tree: Tree, keyword: str) -> tuple[str, Tree]:
    """Return a clause, and the tree whose truth makes the policy take effect."""
    return f"{keyword} {{ {tree.text} }}", tree if keyword == "when" else Node("!", (tree,))


KEYWORDS: Final = st.sampled_from(["when", "unless"])


@given(tree=trees(("true", "false", "error")), keyword=KEYWORDS)
def test_a_part_is_reached_and_holds_as_it_was_evaluated(bench: Bench, tree: Tree, keyword: str) -> None:
    clause, whole = asked(tree, keyword)
    [world] = worlds(tree)
    seen: Seen = {}
    truth = run(whole, world, seen)
    found = bench.considered(clause, Post(id="p"))
    assert found.holds == truth
    told = [(leaf, held_by(leaf, tree)) for leaf in leaves(found.conditions)]
    assert [one.number for _, held in told for one in held] == [each.number for each in atoms(tree)]
    for leaf, held in told:
        assert leaf.reached == any(each.number in seen for each in held), (leaf, seen)
        if leaf.reached and len(held) == 1:
            inner = world[held[0].number]
            assert leaf.holds == (NOT[inner] if leaf.text.count("!") % 2 else inner), (leaf, seen)


@given(tree=trees(("true", "false", "error", "open", "risky"), depth=2), keyword=KEYWORDS)
def test_without_facts_nothing_is_claimed_that_some_facts_would_refute(
    bench: Bench, tree: Tree, keyword: str
) -> None:
    clause, whole = asked(tree, keyword)
    found = bench.considered(clause, UNLOADED)
    told = [(leaf, held_by(leaf, tree)) for leaf in leaves(found.conditions)]
    for world in worlds(tree):
        seen: Seen = {}
        truth = run(whole, world, seen)
        assert found.holds in ("unknown", truth)
        for leaf, held in told:
            reached = any(each.number in seen for each in held)
            assert leaf.reached or not reached, (leaf, world)
            if leaf.reached and leaf.holds == "error":
                assert any(seen.get(each.number) == "error" for each in held), (leaf, world)


@given(tree=trees(("true", "false", "error")), keyword=KEYWORDS)
def test_the_part_that_decided_is_a_part_that_was_evaluated_to_it(
    bench: Bench, tree: Tree, keyword: str
) -> None:
    for each in bench.considered(asked(tree, keyword)[0], Post(id="p")).conditions:
        found = each.decided
        assert (found.holds, found.reached) == (each.holds, each.reached) or not each.reached
        assert found is each or found in list(everything(each.parts))


def everything(conditions: tuple[Condition, ...]) -> Iterator[Condition]:
    for each in conditions:
        yield each
        yield from everything(each.parts)


def test_a_policy_that_reads_a_resource_that_is_not_there_is_not_asked(bench: Bench) -> None:
    found = bench.considered("when { context.args.n > 1 && resource.size > 1 }", None)
    assert (found.applies, found.asked, found.holds) == ("true", False, "error")
    assert [(each.text, each.reached) for each in found.conditions] == [
        ("context.args.n > 1", False),
        ("resource.size > 1", False),
    ]
    assert bench.considered("when { context.args.n > 1 }", None).holds == "true"


@pytest.mark.parametrize(
    ("text", "join", "parts"),
    [
        ("(a) || (b)", "or", ("a", "b")),
        ("((a) || (b)) || (c)", "or", ("a", "b", "c")),
        ("(a) || ((b) || (c))", "or", ("a", "(b) || (c)")),
        ("((a) && (b)) || (c)", "or", ("(a) && (b)", "c")),
        ("!((a) && (b))", "or", ("!(a)", "!(b)")),
        ("!((a) || (b))", "and", ("!(a)", "!(b)")),
        ("!((a) == ((b) || (c)))", None, ()),
        ("!(!((a) && (b)))", None, ()),
        ("if (a) then ((b) || (c)) else (d)", None, ()),
        ('(a) == ("x || y")', None, ()),
        ("[(a) || (b)].contains(c)", None, ()),
        ("{x: (a) || (b)}", None, ()),
        ("a", None, ()),
        ("", None, ()),
    ],
)
def test_the_outermost_operator_splits_a_text(text: str, join: str | None, parts: tuple[str, ...]) -> None:
    assert split(text) == (None if join is None else (join, parts))


def test_what_the_engine_says_of_the_whole_stands_above_its_parts() -> None:
    """Parts that would tell another story are left out."""
    answers: dict[str, Truth] = {"(a) || (b)": "false", "a": "false", "b": "true"}
    [told] = in_order("and", ["(a) || (b)"], Oracle(answers.__getitem__, lambda _: ()))
    assert told == Condition("a || b", "false")


def test_a_part_that_cannot_be_asked_alone_is_not_taken_apart() -> None:
    def holds(text: str) -> Truth:
        if text == "b":
            raise PolicyTooDeep("too deep")
        return "true"

    [told] = in_order("and", ["(a) || (b)"], Oracle(holds, lambda _: ()))
    assert told == Condition("a || b", "true")


# What is said of a whole call without facts.

OVER: Final = ("resource", "resource is Post", 'resource == Post::"p"', 'resource == Post::"q"')
UNDER: Final = (
    "",
    "when { context.args.n > 1 }",
    "when { context.args.n < 1 }",
    "when { resource.size > 5 }",
    "when { resource.size > 5 && context.args.n > 1 }",
    "when { resource.size > 5 && context.args.n < 1 }",
    "when { context.args.n < 1 && resource.size > 5 }",
    "when { context.args.n > 1 || resource.size > 5 }",
    "when { resource.size + 9223372036854775807 > 0 && context.args.n < 1 }",
    "when { context.args.n + 9223372036854775807 > 0 }",
    "unless { resource.size > 5 || context.args.n < 1 }",
)
FACTS: Final = (None, *(Post(id=ident, size=size) for ident in ("p", "q", "r") for size in (0, 6)))
RULES: Final = st.tuples(st.sampled_from(["permit", "forbid"]), st.sampled_from(OVER), st.sampled_from(UNDER))


@given(rules=st.lists(RULES, min_size=1, max_size=3))
def test_a_verdict_without_facts_is_the_one_that_every_fact_leads_to(
    bench: Bench, rules: list[tuple[str, str, str]]
) -> None:
    explainer = bench.under(rules)
    found = explainer.explain(ANN, CALL, UNLOADED).verdicts[0]
    told = {each.policy.id: each for each in found.considered}
    for facts in FACTS:
        after = explainer.explain(ANN, CALL, facts)
        allowed = after.attempt.outcome == "ok" or _not_found(after)
        assert {"true": allowed, "unknown": True}.get(found.holds, not allowed), (found, facts)
        if facts is None:
            continue
        for each in after.verdicts[0].considered:
            before = told[each.policy.id]
            assert before.holds in ("unknown", each.holds), (before, facts)
            assert before.applies in ("unknown", each.applies), (before, facts)


YES: Final = ("permit", "resource", "")


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        ([YES], "true"),
        ([YES, ("forbid", "resource", "when { context.args.n < 1 }")], "true"),
        ([YES, ("forbid", "resource", "when { context.args.n < 1 && resource.size > 5 }")], "unknown"),
        ([YES, ("forbid", "resource", "when { resource.size > 5 }")], "unknown"),
        ([YES, ("forbid", 'resource == Post::"p"', "")], "unknown"),
        ([YES, ("forbid", "resource", "when { context.args.n > 1 }")], "false"),
        ([YES, ("permit", "resource", "when { context.args.n + 9223372036854775807 > 0 }")], "error"),
        ([("permit", "resource", "when { context.args.n < 1 && resource.size > 5 }")], "false"),
        ([("permit", "resource", "when { resource.size > 5 }")], "unknown"),
    ],
)
def test_a_verdict_without_facts(bench: Bench, rules: list[tuple[str, str, str]], verdict: Truth) -> None:
    assert bench.under(rules).explain(ANN, CALL, UNLOADED).verdicts[0].holds == verdict


def _not_found(found: Explanation) -> bool:
    return found.attempt.event is not None and found.attempt.event.code == "X_NOT_FOUND"
