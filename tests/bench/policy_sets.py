"""Decisions as the policies grow, a slice against the whole set, and what a new caller sees: lanes, no bars.

In this process and without a socket: the judge is asked, so that nothing but decisions is measured.
"""

import json
import time
from collections.abc import Callable, Iterator
from itertools import count, cycle, islice, product

from pydantic import BaseModel

from nonsuch import Agent, App, Registry, can, define_app_mcp, expose
from nonsuch.adapters.edge import policies as files
from nonsuch.kernel import cedar, cedar_text
from nonsuch.kernel.catalog import Entry
from nonsuch.kernel.cedar_text import Key
from nonsuch.kernel.compile import gate_schema
from nonsuch.kernel.judge import NO_ARGUMENTS, Judge
from nonsuch.kernel.policies import Index, Policies
from nonsuch.kernel.shapes import entity, uid
from nonsuch.kernel.strict_json import Json

from .blocks import Lane, Plan, Sample, Series, interleave

SIZES = (20, 2_000, 20_000)
WHOLE = 2_000
TOOLS = 1_000
CLASSES = 50
CALLERS = 16
POSTS = 64
Ask = Callable[[], bool]


class Post(BaseModel):
    id: str
    org: str


class Which(BaseModel):
    id: str


def find(input: Which) -> Post | None:
    return Post(id=input.id, org="acme")


def publish(input: Which) -> str:
    return input.id


def decisions(plan: Plan) -> dict[str, Series]:
    """One decision at each number of policies, by its slice; and at one of them by the whole set."""
    app = _press()
    judges = {size: _judge(app, size) for size in SIZES}
    lanes = {f"decision at {size:,} policies": _lane(_decisions(app, judges[size])) for size in SIZES}
    lanes |= {f"{WHOLE:,} policies, {what}": _lane(ask) for what, ask in _whole_and_slice(app).items()}
    return interleave(lanes, plan)


def visibility(plan: Plan) -> dict[str, Series]:
    """What a caller that nobody saw before may see of 1,000 tools, and one decision of the same gate."""
    kernel = _catalogue().kernel
    roles = frozenset(_team(index) for index in range(0, CLASSES, 2))
    fresh = (Agent(f"new-{number}", roles=roles) for number in count())
    seen = kernel.view_for(next(fresh))
    if len(seen.table.tools) != TOOLS // 2:
        raise RuntimeError(f"{len(seen.table.tools)} tools are visible")
    lanes = {
        "view of 1,000 tools, new caller": _lane(lambda: bool(kernel.view_for(next(fresh)).table.tools)),
        "one decision of visibility": _lane(_sees(_catalogue(), roles)),
    }
    return interleave(lanes, plan)


# one app, sets of every size


def _press() -> App:
    registry = Registry()
    registry.action(policy=can("post:publish", resource=find), mcp=expose("Publish"))(publish)
    return define_app_mcp(registry, name="press", include="exposed", roles=["editor"])


def _policies(size: int) -> list[cedar_text.Policy]:
    """Half of them name a post and a caller, a quarter a caller, the rest nobody who asks; one fits all."""
    heads = (
        (f'principal == Agent::"a{number}"', f'resource == Post::"p{number}"')
        if number % 2
        else (f'principal == Agent::"{"a" if number % 4 else "z"}{number}"', "resource")
        for number in range(size - 1)
    )
    texts = [
        f'@id("{number}") permit ({who}, action in Action::"post:publish", {what}) '
        'when { resource.org == "acme" };'
        for number, (who, what) in enumerate(heads)
    ]
    common = '@id("editors") permit (principal in Role::"editor", action == Action::"publish", resource);'
    return cedar_text.parse("\n".join([*texts, common]), "bench.cedar")


def _judge(app: App, size: int) -> Judge:
    return Judge(app.kernel.catalog, files.base(), Policies((), (), _policies(size)))


def _asked() -> Iterator[tuple[Agent, str]]:
    callers = [Agent(f"a{number}", roles={"editor"}) for number in range(CALLERS)]
    return cycle(product(callers, [f"p{number}" for number in range(POSTS)]))


def _decisions(app: App, judge: Judge) -> Ask:
    entry = app.kernel.catalog.entries[0]
    asked = _asked()

    def ask() -> bool:
        caller, post = next(asked)
        facts = Post(id=post, org="acme")
        return judge.permits(judge.caller(caller), entry, facts, post, NO_ARGUMENTS).allow

    return _warm(ask, CALLERS * POSTS)


def _whole_and_slice(app: App) -> dict[str, Ask]:
    """The same request, answered by every policy and by those whose heads it can satisfy."""
    entry, policies = app.kernel.catalog.entries[0], _policies(WHOLE)
    of = _judge(app, 2).gate(entry).schema
    index = Index(policies)
    keys: list[Key] = [("Agent",), ("Agent", "a1"), ("Role", "editor")]
    over: list[Key] = [("Post",), ("Post", "p1")]
    facts = [
        entity("Agent", "a1", {"id": "a1", "scopes": [], "audiences": []}, [uid("Role", "editor")]),
        entity("Post", "p1", {"id": "p1", "org": "acme"}),
    ]
    held = cedar.entities(json.dumps(facts), of)
    sets = {"whole set": cedar.policy_set(policies), "slice": cedar.policy_set(index.slice(keys, over))}
    return {what: _decided(entry, chosen, held, of) for what, chosen in sets.items()}


def _decided(entry: Entry, chosen: cedar.PolicySlice, held: cedar.Entities, of: cedar.Schema) -> Ask:
    who, what = uid("Agent", "a1"), uid("Post", "p1")
    return lambda: cedar.decide(who, entry.name, what, NO_ARGUMENTS, chosen, held, of).allow


# many audiences


def _team(index: int) -> str:
    return f"team{index}"


def _catalogue() -> App:
    """1,000 tools in 50 audience classes."""
    registry = Registry()
    for index in range(TOOLS):
        _declare(registry, f"tool{index}", _team(index % CLASSES))
    return define_app_mcp(
        registry, name="catalogue", include="exposed", roles=[_team(index) for index in range(CLASSES)]
    )


def _declare(registry: Registry, name: str, role: str) -> None:
    def handler(input: Which) -> str:
        return input.id

    handler.__name__ = name
    registry.action(policy=can("item:touch"), mcp=expose("Touch", visible_to=[role]))(handler)


def _sees(app: App, roles: frozenset[str]) -> Ask:
    """One decision about one audience class, its slice and its entities at hand."""
    catalog = app.kernel.catalog
    of = cedar.schema(gate_schema(catalog, files.base()))
    role = min(roles)
    text = f'permit (principal, action == Action::"see", resource) when {{ principal in [Role::"{role}"] }};'
    policies = cedar.policy_set(cedar_text.parse(text, "see"))
    parents: list[Json] = [uid("Role", each) for each in sorted(roles)]
    facts = entity("Agent", "a", {"id": "a", "scopes": [], "audiences": []}, parents)
    held = cedar.entities(json.dumps([facts]), of)
    who, what = uid("Agent", "a"), uid("Audience", f"roles:{role}")
    return lambda: cedar.decide(who, "see", what, "{}", policies, held, of).allow


# lanes


def _warm(ask: Ask, times: int) -> Ask:
    if not all(ask() for _ in islice(count(), times)):
        raise RuntimeError("a decision of the bench was refused")
    return ask


def _lane(ask: Ask) -> Lane:
    if not ask():
        raise RuntimeError("a decision of the bench was refused")

    def run(operations: int) -> Sample:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(operations):
            ask()
        return Sample(operations, time.perf_counter() - wall, time.process_time() - cpu)

    return run
