"""A plain world of `rules.py` as a real app, served in memory, with a transcript of everything it did.

Knows how to say a world in nonsuch's own terms and how to speak HTTP and MCP to it; decides nothing.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Coroutine, Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, create_model

from nonsuch import (
    ActionError,
    Agent,
    App,
    Context,
    Human,
    Principal,
    Registry,
    asgi,
    can,
    define_app_mcp,
    expose,
    group,
)
from nonsuch import audience as condition
from nonsuch import grant as granted
from nonsuch import tool as hand_written
from nonsuch.adapters.edge.run import Running
from nonsuch.kernel.audit import Event
from nonsuch.kernel.declare import Action
from nonsuch.kernel.model import Outcome
from nonsuch.kernel.strict_json import Json
from nonsuch.kernel.view import View

from . import rules
from .rules import Argument, Caller, Rule, Tool

T = TypeVar("T")
NOON: Final = datetime(2026, 7, 28, 12, tzinfo=UTC)
REVISIONS: Final = ("2025-06-18", "2025-11-25", "2026-07-28")
MODERN: Final = "2026-07-28"
HOST: Final = ("host", "127.0.0.1")
TYPED: Final = ("content-type", "application/json")
_PLAIN_HEADER: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_META: Final[Json] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "0"},
}
_make: Final = cast("Callable[..., type[BaseModel]]", create_model)


class Done(BaseModel):
    """What every handler of these worlds answers."""

    tool: str
    by: str


_FACTS: dict[str, type[BaseModel]] = {}


def facts_of(kind: str) -> type[BaseModel]:
    """The one model of a resource type: policies of two worlds read the same type."""
    made = _make(kind, id=(str, ...), org=(str, ...), published=(bool, ...), level=(int, ...))
    return _FACTS.setdefault(kind, made)


# requests and answers


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, whole."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, as it left: the headers in the order they were sent."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    @property
    def value(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def bearer(token: str | None) -> tuple[tuple[str, str], ...]:
    """The header of a token; none for nobody."""
    return () if token is None else (("authorization", f"Bearer {token}"),)


def http(token: str | None, path: str, body: bytes | Mapping[str, object], method: str = "POST") -> Request:
    """A request to the HTTP surface."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request(method, f"/api/{path}", (HOST, *bearer(token), TYPED), raw)


def mcp(
    token: str | None,
    revision: str,
    method: str,
    params: Mapping[str, object] | None = None,
    ident: object = 1,
) -> Request:
    """A JSON-RPC message of a revision, mirrored as the revision wants it. ``ident=None`` notifies."""
    told = dict(params or {})
    headers = [HOST, *bearer(token), TYPED]
    if method != "initialize":
        headers.append(("mcp-protocol-version", revision))
    if revision == MODERN:
        told["_meta"] = _META
        headers.append(("mcp-method", method))
        if isinstance(told.get("name"), str):
            headers.append(("mcp-name", mirrored(str(told["name"]))))
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": told}
    if ident is not None:
        message["id"] = ident
    return Request("POST", "/mcp", tuple(headers), json.dumps(message).encode())


def mirrored(name: str) -> str:
    """A name as a header value: base64 where it is not plain."""
    if _PLAIN_HEADER.fullmatch(name):
        return name
    return f"=?base64?{base64.b64encode(name.encode()).decode()}?="


def call(
    token: str | None, revision: str, name: str, arguments: Mapping[str, object], ident: object = 1
) -> Request:
    """A `tools/call`."""
    return mcp(token, revision, "tools/call", {"name": name, "arguments": dict(arguments)}, ident)


def manage(
    token: str | None,
    revision: str,
    resource: str,
    action: str,
    params: Mapping[str, object],
    ident: object = 1,
) -> Request:
    """A `tools/call` through the constant surface."""
    arguments = {"resource": resource, "action": action, "params": dict(params)}
    return call(token, revision, "manage_resource", arguments, ident)


# the world


@dataclass(slots=True)
class World:
    """A served app, who its tokens are, and everything that happened in it.

    ``grouped`` serves it by the constant surface: the tools of each resource.
    """

    declared: rules.World
    tokens: dict[str, Principal]
    grouped: Mapping[str, tuple[str, ...]] | None = None
    answers: list[Answer] = field(default_factory=list[Answer])
    ran: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    audit: list[Event] = field(default_factory=list[Event])
    app: App = field(init=False)
    serve: Callable[[Any, Any, Any], Coroutine[Any, Any, None]] = field(init=False)
    running: Running = field(init=False)

    def __post_init__(self) -> None:
        self.app = build(self)
        self.serve = cast("Callable[[Any, Any, Any], Coroutine[Any, Any, None]]", asgi(self.app))
        self.running = Running(self.app, None, lambda: NOON)

    def send(self, request: Request) -> Answer:
        """Serve one request to its end and return what left."""
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        drive(self.serve(scope_of(request), receive, send))
        start, *bodies = sent
        headers = tuple((bytes(name), bytes(value)) for name, value in start["headers"])
        answer = Answer(start["status"], headers, b"".join(each.get("body", b"") for each in bodies))
        self.answers.append(answer)
        return answer

    def invoke(self, caller: Principal, name: str, arguments: Mapping[str, object]) -> Outcome:
        """Call in process, as an in-app agent does."""
        given = cast("Mapping[str, Json]", arguments)
        return drive(self.running.invoke(caller, name, given))


def scope_of(request: Request) -> dict[str, Any]:
    """The ASGI scope of a request."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers]
    return {
        "type": "http",
        "method": request.method,
        "path": request.path,
        "headers": headers,
        "client": ("127.0.0.1", 50_000),
    }


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits: no event loop, so nothing but our own code runs."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    work.close()
    raise RuntimeError("the work waits for something outside of the world")


def principal(caller: Caller) -> Principal:
    """A plain caller as nonsuch knows it."""
    if caller.kind == "human":
        return Human(caller.id, roles=caller.roles, org=caller.org, scopes=caller.scopes)
    behind = None if caller.behind is None else principal(caller.behind)
    if behind is not None and not isinstance(behind, Human):
        raise TypeError("an agent acts for a human only")
    scopes = frozenset[str]() if caller.scopes is None else caller.scopes
    return Agent(caller.id, roles=caller.roles, org=caller.org, scopes=scopes, acts_for=behind)


# plain declarations -> the app's


def build(world: World) -> App:
    """Declare everything and boot."""
    registry, tools = Registry(), dict[str, Action]()
    for each in world.declared.tools:
        if each.kind == "tool":
            tools[each.name] = hand_written(
                f"Does {each.name}",
                handler(world, each),
                policy=can(each.permission, loader(world, each)),
                visible_to=visible_to(each.audience),
            )
        else:
            declare(registry, world, each)
    with TemporaryDirectory() as directory:
        text = "\n".join(map(cedar, dict.fromkeys(world.declared.rules)))
        (Path(directory) / "app.cedar").write_text(text)
        return define_app_mcp(
            registry,
            name="world",
            include="exposed",
            tools=tools,
            scopes=world.declared.scopes,
            instructions=instructions,
            resolve_token=lambda token: world.tokens.get(token),
            roles=sorted(rules.roles_of(world.declared)),
            grants=[granted(role, permission) for role, permission in world.declared.grants],
            policies_dir=directory,
            on_audit=world.audit.append,
            surface="flat" if world.grouped is None else "meta",
            groups={
                name: group(f"What {name} holds", tools) for name, tools in (world.grouped or {}).items()
            },
        )


def instructions(view: View) -> str:
    """What the server tells a caller first: how many tools there are, and which."""
    return f"{len(view.table.tools)} tools: {', '.join(sorted(view.table.tools))}"


def declare(registry: Registry, world: World, each: Tool) -> None:
    """Add an action or a query to the registry."""
    face = expose(f"Does {each.name}", visible_to=visible_to(each.audience)) if each.exposed else None
    policy = can(each.permission, loader(world, each))
    if each.kind == "action":
        registry.action(policy=policy, mcp=face, path=each.path)(handler(world, each))
    else:
        registry.query(policy=policy, mcp=face, path=each.path, single=each.kind == "single")(
            handler(world, each)
        )


def handler(world: World, each: Tool) -> Callable[..., Any]:
    """A handler that notes that it ran, and behaves as declared."""
    rows = each.kind == "query"

    async def handle(input: Any, ctx: Any) -> object:
        world.ran.append((each.name, input.model_dump_json()))
        done = Done(tool=each.name, by=ctx.principal.id)
        match each.behaves:
            case "ok":
                return [done] if rows else done
            case "refuses":
                raise ActionError("X_DEMO", "the demo refuses", "ask again later")
            case "raises":
                raise LookupError("secret words")
            case "none":
                return None
            case "bad":
                return {"tool": 7}

    handle.__name__ = each.name
    answer: object = list[Done] if rows else Done | None if each.kind == "single" else Done
    handle.__annotations__ = {"input": input_of(each), "ctx": Context[Any], "return": answer}
    return handle


def loader(world: World, each: Tool) -> Callable[..., Any] | None:
    """Load the facts of a row by its id."""
    if each.acts_on is None:
        return None
    rows, model = world.declared.rows.get(each.acts_on, {}), facts_of(each.acts_on)

    async def load(input: Any) -> object:
        row = rows.get(input.id)
        if row is None:
            return None
        return model(id=input.id, org=row.org, published=row.published, level=row.level)

    load.__annotations__ = {"input": input_of(each), "return": model | None}
    return load


@cache
def input_of(each: Tool) -> type[BaseModel]:
    """The input model of a tool, the same one for its handler and its loader."""
    return _make(f"{each.name}Input", **{field.name: field_of(field) for field in each.fields})


def field_of(argument: Argument) -> tuple[object, object]:
    """A field's type and default, as pydantic takes them."""
    kind: type[str] | type[int] = str if argument.kind == "str" else int
    if argument.optional:
        return (kind | None, argument.default)
    return (kind, ... if argument.default is None else argument.default)


def visible_to(audience: rules.Audience) -> Any:
    """An audience as `visible_to` takes it."""
    match audience:
        case rules.Everyone():
            return None
        case rules.Roles(names):
            return list(names)
        case rules.OfOrg(name):
            return condition(f"principal has org && principal.org == {json.dumps(name)}")
        case rules.Asked():
            return predicate(audience)


def predicate(asked: rules.Asked) -> Callable[[Principal], object]:
    """A function of the principal, with every answer that such a function can give."""

    def ask(who: Principal) -> object:
        if who.id in asked.raises:
            raise LookupError(who.id)
        return True if who.id in asked.true else 1 if who.id in asked.truthy else None

    return ask


def cedar(rule: Rule) -> str:
    """A rule as Cedar text. Its id says what it is, not where it stands: two worlds name one rule alike."""
    head = "principal" if rule.role is None else f"principal in Role::{json.dumps(rule.role)}"
    notes = {
        "id": f"{rule.effect} {rule.on} {rule.test} {rule.role}",
        "code": rule.code,
        "reason": rule.reason,
    }
    annotations = " ".join(f"@{key}({json.dumps(value)})" for key, value in notes.items() if value)
    return (
        f"{annotations}\n{rule.effect} ({head}, action in Action::{json.dumps(rule.on)}, resource)"
        f"{when(rule.test)};"
    )


def when(test: rules.Test) -> str:
    """A condition as Cedar text."""
    match test:
        case rules.Always():
            return ""
        case rules.SameOrg():
            return " when { principal has org && resource.org == principal.org }"
        case rules.Published():
            return " when { resource.published }"
        case rules.Raised():
            return f" when {{ resource.level + {2**63 - 1} > 0 }}"
        case rules.Over(argument, limit):
            return f" when {{ context.args.{argument} > {limit} }}"
        case rules.Twice(argument, limit):
            return f" when {{ context.args.{argument} + context.args.{argument} > {limit} }}"
        case rules.Says(argument, text):
            held = f"context.args.{argument}"
            return f" when {{ context.args has {argument} && {held} == {json.dumps(text)} }}"
