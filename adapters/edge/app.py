"""``define_app_mcp``: declarations and policy files in; a whole app out, or every fault at once."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, cast

from ...kernel.audit import Event
from ...kernel.boot import Declarations, build
from ...kernel.catalog import Catalog
from ...kernel.declare import Action, Audience, Grant, Prompt, Registry, Resource
from ...kernel.errors import BootError, ErrorAudience, Fault, fault
from ...kernel.gates import Kernel
from ...kernel.judge import Judge
from ...kernel.loader import Sources, load
from ...kernel.model import Principal
from ...kernel.steps import RequestFacts
from ..http.invoke import HttpServer
from ..mcp.server import Instructions, McpServer
from ..wire import BODY_LIMIT, Door
from . import policies

log: Final = logging.getLogger("nonsuch.policies")

Resolved = Principal | None
Resolver = Callable[[str, RequestFacts], Awaitable[Resolved] | Resolved]
ResolveTokenArgument = Resolver | Callable[[str], Awaitable[Resolved] | Resolved]
GrantSource = Callable[[], Iterable[Grant]]
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
    policies_dir: Path | None
    sources: Callable[[], Sources]
    fingerprint: Hashable


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
    grant_sources: Sequence[GrantSource] = (),
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
    ``scopes`` maps a scope to the actions it covers and, once given, must cover every tool. An action that is
    no tool and is under no scope is for people's sessions: no token opens it over HTTP.
    ``grants``, the ``.cedar`` files of ``policies_dir`` and what ``grant_sources`` return are what permits
    a call; nothing else does. The last two are read again at a reload.
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
    directory = Path(policies_dir) if policies_dir is not None else None
    seen = policies.fingerprint(directory)
    sources = partial(policies.gather, directory, tuple(grant_sources))
    faults = (
        *_misplaced(path),
        *_duplicates(resources),
        *_unservable(prompts),
        *_unknown_roles(roles, resources, prompts),
    )
    kernel = _kernel(declared, faults, sources())
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
        policies_dir=directory,
        sources=sources,
        fingerprint=seen,
    )


def _kernel(declared: Declarations, extra: Iterable[Fault], sources: Sources) -> Kernel:
    built = build(declared)
    loaded = load(built.catalog, policies.base(), sources, complete=built.complete)
    everything = (*built.faults, *extra, *loaded.faults)
    if everything:
        raise BootError(everything)
    for warning in loaded.warnings:
        log.warning("%s", warning)
    return Kernel(built.catalog, Judge(built.catalog, loaded.base, loaded.policies), loaded.warnings)


def judge_from(catalog: Catalog, sources: Sources) -> tuple[Judge, tuple[Fault, ...]]:
    """Return a judge of a catalog under other policies, and the warnings about them.

    Raises: BootError, with every fault at once.
    """
    loaded = load(catalog, policies.base(), sources)
    if loaded.faults:
        raise BootError(loaded.faults)
    return Judge(catalog, loaded.base, loaded.policies), loaded.warnings


def _misplaced(path: str) -> Iterable[Fault]:
    if f"/{path.strip('/')}/".startswith("/api/"):
        cause = f"the MCP path `{path}` is among the paths of actions"
        yield fault("X_DECLARATION_INVALID", cause, "give `path=` a place outside `/api/`")


def _duplicates(resources: Sequence[Resource]) -> Iterable[Fault]:
    seen: set[str] = set()
    for each in resources:
        if each.uri in seen:
            yield fault("X_MCP_RESOURCE_DUPLICATE", f"two resources claim `{each.uri}`")
        seen.add(each.uri)


def _unservable(prompts: Sequence[Prompt]) -> Iterable[Fault]:
    for each in prompts:
        if not each.path.is_file():
            yield fault(
                "X_DECLARATION_INVALID", f"the prompt `{each.path}` is no file", "give the path of a file"
            )


def _unknown_roles(
    roles: Sequence[str] | None, resources: Sequence[Resource], prompts: Sequence[Prompt]
) -> Iterable[Fault]:
    if roles is None:
        return
    named = [(each.uri, each.visible_to) for each in resources]
    named += [(str(each.path), each.visible_to) for each in prompts]
    for what, visible_to in named:
        if visible_to is None or isinstance(visible_to, Audience) or callable(visible_to):
            continue
        for role in set(visible_to).difference(roles):
            yield fault("X_ROLE_UNKNOWN", f"`visible_to` of `{what}` names the role `{role}`")


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
