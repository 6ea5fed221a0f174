"""``define_app_mcp``: declarations and policy files in; a whole app out, or every fault at once."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from ...kernel.audit import Event
from ...kernel.boot import Declarations, build
from ...kernel.declare import Action, Grant, Prompt, Registry, Resource
from ...kernel.errors import BootError, ErrorAudience, Fault, fault
from ...kernel.gates import Kernel
from ...kernel.judge import Judge
from ...kernel.model import Principal
from ...kernel.policies import load
from ...kernel.steps import RequestFacts
from ..http.invoke import HttpServer
from ..mcp.server import Instructions, McpServer
from ..wire import BODY_LIMIT, Door
from . import policies

Resolved = Principal | None
Resolver = Callable[[str, RequestFacts], Awaitable[Resolved] | Resolved]
ResolveTokenArgument = Resolver | Callable[[str], Awaitable[Resolved] | Resolved]
Lifespan = Callable[[], AbstractAsyncContextManager[Any]]
OnAudit = Callable[[Event], object]


@dataclass(frozen=True, slots=True, eq=False)
class App:
    """An app that booted: one kernel, its surfaces, and what the edge needs to run them."""

    name: str
    kernel: Kernel
    mcp: McpServer
    http: HttpServer
    path: str
    resolve_token: Resolver | None
    on_audit: OnAudit | None
    lifespan: Lifespan | None
    resources: tuple[Resource, ...]
    prompts: tuple[Prompt, ...]


def define_app_mcp(
    registry: Registry,
    *,
    name: str,
    version: str = "0",
    include: Literal["exposed"] | None = None,
    actions: Sequence[Action] = (),
    queries: Sequence[Action] = (),
    tools: Mapping[str, Action] | None = None,
    resources: Sequence[Resource] = (),
    prompts: Sequence[Prompt] = (),
    scopes: Mapping[str, Sequence[str]] | None = None,
    instructions: Instructions = None,
    resolve_token: ResolveTokenArgument | None = None,
    error_audience: ErrorAudience = "caller",
    roles: Sequence[str] | None = None,
    grants: Sequence[Grant] = (),
    policies_dir: Path | str | None = None,
    on_audit: OnAudit | None = None,
    path: str = "/mcp",
    lifespan: Lifespan | None = None,
    allowed_hosts: Iterable[str] = (),
    allowed_origins: Iterable[str] = (),
    body_limit_bytes: int = BODY_LIMIT,
) -> App:
    """Return an app, ready to be served or called in process.

    ``include="exposed"`` serves every action and query of the registry that declared ``mcp=expose(...)``;
    ``actions`` and ``queries`` list some of them; ``tools`` adds hand-written ones by name.
    ``scopes`` maps a scope to the tools it covers and, once given, must cover every tool.
    ``grants`` and the ``.cedar`` files of ``policies_dir`` are what permits a call; nothing else does.
    ``roles``, once given, is the whole list of roles that declarations and policies may name.
    ``resolve_token(token, facts)`` returns an ``Agent``, a ``Human`` (HTTP only) or ``None``; it may be
    async, a plain function must not block. ``lifespan`` is entered at start; what it yields is
    ``ctx.resources``. ``allowed_hosts`` and ``allowed_origins`` admit more than loopback.
    ``resources`` and ``prompts`` are checked now and served from a later version on.

    Raises: BootError, with every fault of the declarations and policies at once.
    """
    declared = Declarations(
        server=name,
        registry=registry,
        include=include,
        actions=actions,
        queries=queries,
        tools=tools or {},
        scopes=scopes,
        roles=roles,
        grants=grants,
    )
    kernel = _kernel(declared, resources, Path(policies_dir) if policies_dir is not None else None)
    door = Door(frozenset(allowed_hosts), frozenset(allowed_origins), body_limit_bytes, error_audience)
    return App(
        name=name,
        kernel=kernel,
        mcp=McpServer(kernel, name, version, door, instructions),
        http=HttpServer(kernel, door),
        path="/" + path.strip("/"),
        resolve_token=_two_arguments(resolve_token),
        on_audit=on_audit,
        lifespan=lifespan,
        resources=tuple(resources),
        prompts=tuple(prompts),
    )


def _kernel(declared: Declarations, resources: Sequence[Resource], policies_dir: Path | None) -> Kernel:
    catalog, faults = build(declared)
    sources, unreadable = policies.read(policies_dir)
    base = policies.base()
    judged, refused = load(catalog, base, sources, complete=not faults)
    everything = (*faults, *_duplicates(resources), *unreadable, *refused)
    if everything:
        raise BootError(everything)
    return Kernel(catalog, Judge(catalog, base, judged))


def _duplicates(resources: Sequence[Resource]) -> Iterable[Fault]:
    seen: set[str] = set()
    for each in resources:
        if each.uri in seen:
            yield fault("X_MCP_RESOURCE_DUPLICATE", f"two resources claim `{each.uri}`")
        seen.add(each.uri)


def _two_arguments(resolve: ResolveTokenArgument | None) -> Resolver | None:
    """Accept the one-argument form of a resolver."""
    if resolve is None:
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(resolve).parameters.values()
    variadic = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters)
    if variadic or sum(each.kind in kinds for each in parameters) >= 2:
        return cast("Resolver", resolve)
    one = cast("Callable[[str], Awaitable[Resolved] | Resolved]", resolve)
    return lambda token, _facts: one(token)
