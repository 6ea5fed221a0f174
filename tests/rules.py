"""The rules again, naive: who sees a tool and what comes of a call, over plain values.

Written from the documents. Imports nothing of nonsuch: it is the oracle that the kernel is held against.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Surface = Literal["mcp", "http", "agent"]
Json = object
Effect = Literal["permit", "forbid"]
Kind = Literal["action", "query", "single", "tool"]
Behaviour = Literal["ok", "refuses", "raises", "none", "bad", "speaks", "asks"]
ContentKind = Literal["resource", "template", "prompt"]
LONG = range(-(2**63), 2**63)
NO_SCOPE = "-"


# who calls


@dataclass(frozen=True, slots=True)
class Caller:
    """An agent or a human. ``scopes=None``: a session that no token limits; ``behind``: an agent's human."""

    id: str
    kind: Literal["agent", "human"] = "agent"
    roles: frozenset[str] = frozenset()
    org: str | None = None
    scopes: frozenset[str] | None = frozenset()
    behind: Caller | None = None


def parties(caller: Caller) -> list[Caller]:
    """Everyone who must be allowed for ``caller`` to be allowed."""
    return [caller] if caller.behind is None else [caller, caller.behind]


# who may know of a tool


@dataclass(frozen=True, slots=True)
class Everyone:
    """No audience was declared."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Holders of one of these roles; of none, nobody."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OfOrg:
    """A Cedar condition: members of one organisation."""

    name: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A function of the principal: ``True`` for some, truthy for others, raising for a third group."""

    true: frozenset[str]
    truthy: frozenset[str] = frozenset()
    raises: frozenset[str] = frozenset()


Audience = Everyone | Roles | OfOrg | Asked


def admits(audience: Audience, party: Caller) -> bool:
    """Whether an audience holds one party. A predicate admits by the literal ``True`` alone."""
    match audience:
        case Everyone():
            return True
        case Roles(names):
            return any(role in party.roles for role in names)
        case OfOrg(name):
            return party.org == name
        case Asked(true, _, raises):
            return party.id in true and party.id not in raises


# what is declared


@dataclass(frozen=True, slots=True)
class Argument:
    """One declared input field. ``optional`` may be absent or null and then is not there for policies.

    ``header`` is the header that repeats it, in the newest revision of the protocol.
    """

    name: str
    kind: Literal["str", "int"] = "str"
    optional: bool = False
    default: Json = None
    header: str | None = None


DECIDE = "doc:decide"  # the permission of whoever decides calls that wait for a person


@dataclass(frozen=True, slots=True)
class Tool:
    """An action, a query of many rows, a query of one, or a hand-written tool (which has no path).

    A ``keyed`` action takes an idempotency key: `replay_rules.py` says what comes of it. One that
    ``confirms`` waits for a person.
    """

    name: str
    path: str = ""
    kind: Kind = "action"
    exposed: bool = True
    audience: Audience = Everyone()
    permission: str = "app:use"
    acts_on: str | None = None
    arguments: tuple[Argument, ...] = ()
    behaves: Behaviour = "ok"
    needs: tuple[str, ...] = ()
    keyed: bool = False
    confirms: bool = False

    @property
    def fields(self) -> tuple[Argument, ...]:
        """All input fields: ``id`` first where something is acted on."""
        return (Argument("id"), *self.arguments) if self.acts_on else self.arguments


@dataclass(frozen=True, slots=True)
class Content:
    """A resource at a URI, a template with the variable ``id``, or a prompt with the argument ``id``.

    Without a ``permission`` whoever sees it may use it. ``completes`` are the values of ``id``.
    """

    name: str
    kind: ContentKind
    uri: str = ""
    audience: Audience = Everyone()
    scope: str | None = None
    permission: str | None = None
    completes: tuple[str, ...] = ()
    behaves: Behaviour = "ok"

    @property
    def action(self) -> str:
        """The name that policies know it by."""
        return f"prompts/{self.name}" if self.kind == "prompt" else f"resources/{self.name}"


@dataclass(frozen=True, slots=True)
class Always:
    """No condition."""


@dataclass(frozen=True, slots=True)
class SameOrg:
    """The principal has an organisation and the resource is of it. Reads facts."""


@dataclass(frozen=True, slots=True)
class Published:
    """The resource is published. Reads facts."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The resource's level and the largest integer add up: overflows, and so errs, for a level over 0."""


@dataclass(frozen=True, slots=True)
class Over:
    """An integer argument is over a limit."""

    argument: str
    limit: int


@dataclass(frozen=True, slots=True)
class Twice:
    """An integer argument, doubled, is over a limit: overflows, and so errs, for a large one."""

    argument: str
    limit: int


@dataclass(frozen=True, slots=True)
class Says:
    """An optional text argument is there and is this text."""

    argument: str
    text: str


Test = Always | SameOrg | Published | Raised | Over | Twice | Says


@dataclass(frozen=True, slots=True)
class Rule:
    """One policy. ``on`` is a tool, a permission or ``any``; ``role`` confines the head; ``code`` is told."""

    effect: Effect
    on: str
    test: Test = Always()
    role: str | None = None
    code: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """The facts of one resource."""

    org: str
    published: bool = False
    level: int = 0


@dataclass(frozen=True, slots=True)
class World:
    """Everything an application declares, and its rows. ``scopes=None``: no scopes map was given."""

    tools: tuple[Tool, ...]
    scopes: Mapping[str, tuple[str, ...]] | None = None
    grants: tuple[tuple[str, str], ...] = ()
    rules: tuple[Rule, ...] = ()
    rows: Mapping[str, Mapping[str, Row]] = field(default_factory=dict[str, Mapping[str, Row]])
    content: tuple[Content, ...] = ()


def covers(rule: Rule, tool: Tool) -> bool:
    """Whether a policy is about a tool."""
    return rule.on in ("any", tool.permission, tool.name)


def every_rule(world: World) -> list[Rule]:
    """The policies, and the grants as policies without a condition."""
    return [*world.rules, *(Rule("permit", permission, role=role) for role, permission in world.grants)]


def roles_of(world: World) -> frozenset[str]:
    """Every role that the world names."""
    audiences = [*(each.audience for each in world.tools), *(each.audience for each in world.content)]
    listed = [role for each in audiences if isinstance(each, Roles) for role in each.names]
    return frozenset([*listed, *(rule.role for rule in every_rule(world) if rule.role is not None)])


def purge(world: World, hidden: Iterable[str]) -> World:
    """The world in which what is hidden, and whatever speaks of it only, was never declared."""
    gone = set(hidden)
    kept = tuple(tool for tool in world.tools if tool.name not in gone)
    content = tuple(each for each in world.content if each.name not in gone)
    alive = {"any", *(tool.name for tool in kept), *(tool.permission for tool in kept)}
    alive |= {name for each in content for name in (each.action, each.permission) if name is not None}
    alive |= {DECIDE for tool in kept if tool.confirms}
    types = {tool.acts_on for tool in kept}
    left = {
        scope: tuple(name for name in names if name not in gone)
        for scope, names in (world.scopes or {}).items()
    }
    return replace(
        world,
        tools=kept,
        scopes=None if world.scopes is None else {scope: names for scope, names in left.items() if names},
        grants=tuple(each for each in world.grants if each[1] in alive),
        rules=tuple(rule for rule in world.rules if rule.on in alive),
        rows={kind: rows for kind, rows in world.rows.items() if kind in types},
        content=content,
    )


# gate 1: visibility


def sees(tool: Tool, caller: Caller, surface: Surface) -> bool:
    """Whether a caller may know of a tool on a surface: every party must be of its audience."""
    there = bool(tool.path) if surface == "http" else tool.exposed
    audience = tool.audience if tool.kind == "tool" or tool.exposed else Everyone()
    return there and all(admits(audience, party) for party in parties(caller))


def visible(world: World, caller: Caller, surface: Surface = "mcp") -> frozenset[str]:
    """The names of the tools that a caller may know of."""
    return frozenset(tool.name for tool in world.tools if sees(tool, caller, surface))


# what comes of a call


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, the code that is told (none when it went well), and whether the handler ran."""

    outcome: str
    code: str | None = None
    ran: bool = False


def outcome(
    world: World, caller: Caller, surface: Surface, name: str, arguments: Mapping[str, Json]
) -> Verdict:
    """What must come of a call: visibility, then scope, then arguments, then policy, then the handler."""
    if surface == "mcp" and caller.kind == "human":
        return Verdict("unauthenticated", "X_MCP_AGENTS_ONLY")
    found = [tool for tool in world.tools if name == (tool.path if surface == "http" else tool.name)]
    seen = [tool for tool in found if sees(tool, caller, surface)]
    if not seen:
        return Verdict("hidden", "X_ROUTE_NOT_FOUND" if surface == "http" else "X_MCP_TOOL_UNKNOWN")
    tool = seen[0]
    if not all(presents(party, scope) for scope in needed(world, tool) for party in parties(caller)):
        return Verdict("scope-denied", "X_MCP_SCOPE_DENIED")
    given = typed(world, tool, arguments)
    if given is None:
        return Verdict("invalid-args", "X_INPUT_INVALID")
    row = world.rows.get(tool.acts_on, {}).get(str(given["id"])) if tool.acts_on else None
    missing = tool.acts_on is not None and row is None
    for party in parties(caller):
        refused = judged(world, party, tool, row, given, missing=missing)
        if refused is not None:
            return refused
    if missing and any(reads_facts(rule) for party in parties(caller) for rule in heads(world, party, tool)):
        return Verdict("policy-denied", "X_FORBIDDEN")
    return Verdict("failed", "X_NOT_FOUND") if missing else run(tool)


def needed(world: World, tool: Tool) -> list[str]:
    """The scopes of a tool: one where a scopes map is given. What that names nowhere, no token opens."""
    if world.scopes is None:
        return []
    return [scope for scope, names in world.scopes.items() if tool.name in names] or [NO_SCOPE]


def presents(party: Caller, scope: str) -> bool:
    """A token presents exactly the scopes it carries; a session presents all."""
    return party.scopes is None or scope in party.scopes


def typed(world: World, tool: Tool, arguments: Mapping[str, Json]) -> dict[str, Json] | None:
    """The arguments as the handler gets them, or nothing if they do not satisfy the declaration."""
    if not set(arguments) <= {each.name for each in tool.fields}:
        return None
    given: dict[str, Json] = {}
    for each in tool.fields:
        held = arguments.get(each.name, each.default)
        if each.name not in arguments and not each.optional and each.default is None:
            return None
        if held is None and each.optional:
            continue
        value = of_kind(each.kind, held)
        if value is None:
            return None
        if isinstance(value, int) and value not in LONG and is_read(world, tool, each.name):
            return None  # a policy could not hold it
        given[each.name] = value
    return given


def of_kind(kind: str, value: Json) -> Json:
    """The value as its declared kind, or nothing. In JSON 2.0 is an integer and true is not."""
    if kind == "str":
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value == int(value) else None


def is_read(world: World, tool: Tool, argument: str) -> bool:
    """Whether a policy about the tool reads an argument."""
    tests = [rule.test for rule in world.rules if covers(rule, tool)]
    return any(isinstance(test, (Over, Twice, Says)) and test.argument == argument for test in tests)


def heads(world: World, party: Caller, tool: Tool) -> list[Rule]:
    """The policies about a tool whose head a party satisfies."""
    about = [rule for rule in every_rule(world) if covers(rule, tool)]
    return [rule for rule in about if rule.role is None or rule.role in party.roles]


def reads_facts(rule: Rule) -> bool:
    """Whether a policy reads the resource. Of one that is not there it cannot be asked."""
    return isinstance(rule.test, (SameOrg, Published, Raised))


def judged(
    world: World, party: Caller, tool: Tool, row: Row | None, given: Mapping[str, Json], *, missing: bool
) -> Verdict | None:
    """Why one party is refused: forbid overrides permit, silence refuses, an error refuses before both.

    What errs for a row that is not there is refused like what nothing permits.
    """
    asked = [rule for rule in heads(world, party, tool) if not (missing and reads_facts(rule))]
    answers = [(rule, holds(rule.test, party, row, given)) for rule in asked]
    erred = any(answer is None for _, answer in answers)
    forbids = [rule for rule, answer in answers if answer is True and rule.effect == "forbid"]
    permits = [rule for rule, answer in answers if answer is True and rule.effect == "permit"]
    if permits and not forbids and not erred:
        return None
    if erred:
        return Verdict("policy-denied" if missing else "policy-error", "X_FORBIDDEN")
    codes = [rule.code for rule in forbids if rule.code is not None]
    return Verdict("policy-denied", codes[0] if codes else "X_FORBIDDEN")


def holds(test: Test, party: Caller, row: Row | None, given: Mapping[str, Json]) -> bool | None:
    """Whether a condition holds; nothing when it cannot be evaluated, as for the facts of no resource."""
    match test:
        case Always():
            return True
        case SameOrg():
            return False if party.org is None else None if row is None else row.org == party.org
        case Published():
            return None if row is None else row.published
        case Raised():
            return None if row is None or row.level > 0 else row.level + 2**63 - 1 > 0
        case Over(argument, limit):
            return number(given[argument]) > limit
        case Twice(argument, limit):
            double = number(given[argument]) * 2
            return double > limit if double in LONG else None
        case Says(argument, text):
            return given.get(argument) == text


def number(value: Json) -> int:
    """An argument that was declared an integer."""
    if not isinstance(value, int):
        raise TypeError("a policy reads a number where none is declared")
    return value


def run(tool: Tool) -> Verdict:
    """What the handler makes of a call that was permitted."""
    match tool.behaves:
        case "ok" | "speaks":
            return Verdict("ok", None, True)
        case "asks":
            return Verdict("input-required", None, True)
        case "refuses":
            return Verdict("failed", "X_DEMO", True)
        case "raises":
            return Verdict("failed", "X_INTERNAL", True)
        case "none":
            return Verdict("failed", "X_NOT_FOUND" if tool.kind == "single" else "X_OUTPUT_INVALID", True)
        case "bad":
            return Verdict("failed", "X_OUTPUT_INVALID", True)
