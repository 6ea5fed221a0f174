"""``define_app_mcp``: declarations and policy files in; a whole app out, or every fault at once."""

from __future__ import annotations

import logging
import secrets
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from ...kernel.audit import Event
from ...kernel.boot import Declarations, build
from ...kernel.catalog import Catalog
from ...kernel.declare import Action, Grant, Group, Icon, Prompt, Registry, Resource, Surfaced
from ...kernel.errors import BootError, ErrorAudience, Fault, fault
from ...kernel.gates import Kernel
from ...kernel.judge import Judge
from ...kernel.loader import Sources, load
from ...kernel.meter import DEFAULT, Limits
from ...kernel.policy_text import printable
from ...kernel.seal import Seal
from ...kernel.tasks import TaskLimits
from ..door import BODY_LIMIT, Door
from ..http.inbox_page import Inbox
from ..http.invoke import HttpServer
from ..http.openapi import Described
from ..http.routes import faults as route_faults
from ..mcp import lint
from ..mcp.endpoint import About, Instructions, McpServer
from ..mcp.oauth import OAuth, protected
from ..mcp.oauth import faults as oauth_faults
from . import policies
from .admitted import admitted_faults, listed
from .changes import Changes
from .confirming import Desk, desk_of
from .draft import Draft, NotBooted
from .idempotency import DAY_SECONDS, MAX_SECONDS, IdempotencyStore, MemoryIdempotencyStore, unshared
from .inboxes import inbox_faults, inbox_of
from .limits import MemoryRateStore, RateStore
from .prompts import read_prompts
from .resolvers import Resolver, ResolveTokenArgument, SessionResolver, resolver_faults, resolver_of
from .streams import StreamLimits
from .task_store import MemoryTaskStore, TaskStore
from .telemetry import Telemetry

log: Final = logging.getLogger("nonsuch.policies")

_UNNAMEABLE: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})  # controls, half pairs, what ends a line

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
    notify: Changes
    ask_seconds: float
    streams: StreamLimits
    rate_store: RateStore
    counts_alone: bool  # in this process, because no store was given
    tasks: TaskLimits
    task_store: TaskStore
    idempotency_store: IdempotencyStore
    idempotency_seconds: float
    confirmations: Desk | None
    inbox: Inbox | None
    resolve_principal: SessionResolver | None
    policies_dir: Path | None
    sources: Callable[[], Sources]
    fingerprint: Hashable
    telemetry: Telemetry | None = None


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
    groups: Mapping[str, Group] | None = None,
    surface: Surfaced = "flat",
    title: str | None = None,
    website_url: str | None = None,
    icons: Sequence[Icon] = (),
    page_size: int | None = None,
    secret: bytes | Sequence[bytes] | None = None,
    ask_seconds: float = 300,
    rate_limits: Limits | None = DEFAULT,
    rate_limit_store: RateStore | None = None,
    oauth: OAuth | None = None,
    tasks: TaskLimits | None = None,
    task_store: TaskStore | None = None,
    idempotency_store: IdempotencyStore | None = None,
    idempotency_seconds: float = DAY_SECONDS,
    confirmations: Action | None = None,
    inbox: str | None = None,
    resolve_principal: SessionResolver | None = None,
    principal_headers: Sequence[str] = (),
    session_cookie: str = "session",
    hide_paths: bool = True,
    streams: StreamLimits | None = None,
    telemetry: Telemetry | None = None,
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
    ``surface="meta"`` serves the tools of ``groups`` behind three constant ones; a list of roles, an
    audience or a function of the principal serves them so to some.
    ``page_size`` cuts lists into pages. ``secret`` (32 bytes or more) seals cursors and the state of
    unfinished rounds, and what is recorded of keyed calls: several processes behind one address share it,
    one process makes its own. Of several the first makes, and the others are those it replaced.
    ``ask_seconds`` is how long a handler waits for its client's answer; in a task it waits as long as
    the task is kept. ``tasks`` bounds the tasks of tools that declare ``task=``, and ``task_store`` keeps
    them: in this process, unless a store is given that several processes share.

    ``rate_limits`` are what a caller may send, 120 reads and 20 writes in a minute unless said otherwise,
    and how often an address may fail to become a caller; ``None`` counts nothing. ``rate_limit_store`` is
    where it is counted: in this process by default, where each of several allows the whole rate.
    ``streams`` bounds how many streams of one caller may be open at once in this process: 100 unless said
    otherwise, subscriptions and calls of the older revisions that wait for their client's answer together.
    ``oauth`` says which authorization servers issue tokens for this endpoint.

    ``idempotency_store`` keeps, for ``idempotency_seconds``, what calls under an idempotency key answered;
    in this process by default. ``confirmations`` is what ``mcp_confirmations`` returned: calls of the tools
    that it names then wait for a person, by whatever surface they come. ``inbox`` is the path of pages on
    which people decide, ``/confirmations`` say; a path of this app, below what it is mounted at. Over HTTP
    ``resolve_principal(facts)`` says who calls without a token: by a cookie,
    or by one of the ``principal_headers``, which a proxy must remove from what it passes on, ``X_User`` as
    well as ``X-User``; ``session_cookie`` is its name in the OpenAPI document, and who shows one that is
    nobody's, or such a header, has failed to become a caller.
    A page of another site can make a browser send cookies: a changing request must be JSON and come from an
    origin that is admitted, and the rest (SameSite, CORS) is the host's. ``hide_paths=False`` lets
    ``visible_to`` hide tools only: at a path every caller is then told what policy says.
    ``telemetry=otel()`` records spans and metrics.

    Raises: BootError, with every fault of the declarations and policies at once.
    """
    readable, unreadable = read_prompts(prompts)
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
        resources=resources,
        prompts=readable,
        groups=groups or {},
        surface=surface,
        hides_paths=hide_paths,
        confirmations=confirmations,
    )
    directory = Path(policies_dir) if policies_dir is not None else None
    seen = policies.fingerprint(directory)
    sources = partial(policies.gather, directory, tuple(grant_sources))
    keys = _secrets(secret)
    hosts, origins = frozenset(allowed_hosts), frozenset(allowed_origins)
    unusable = (
        *_misnamed(name),
        *_misplaced(path),
        *admitted_faults(sorted(hosts), sorted(origins)),
        *resolver_faults(resolve_token),
        *inbox_faults(inbox, path, desk_of(confirmations), sessions=resolve_principal is not None),
        *_unusable(keys, page_size, idempotency_store, idempotency_seconds),
        *unshared(registry.actions, idempotency_store),
        *unreadable,
    )
    seal, opened = _seal(keys, name), streams or StreamLimits()
    kernel = _kernel(declared, unusable, sources(), oauth, seal)
    desk = desk_of(confirmations)
    if desk is not None:
        desk.serve(kernel.catalog)
    door = Door(
        listed(hosts),
        origins,
        body_limit_bytes,
        error_audience,
        rate_limits,
        name,
    )
    return App(
        name=name,
        kernel=kernel,
        mcp=McpServer(
            kernel,
            About(name, version, title, website_url, tuple(icons)),
            door,
            seal,
            instructions,
            page_size,
            None if oauth is None else protected(oauth, kernel.catalog, path),
            opened.resources,
        ),
        http=HttpServer(
            kernel,
            door,
            Described(title or name, version, None if resolve_principal is None else session_cookie),
            resolve_principal is not None,
            tuple(each.lower() for each in principal_headers),
        ),
        path="/" + path.strip("/"),
        resolve_token=resolver_of(resolve_token),
        on_audit=on_audit,
        lifespan=lifespan,
        notify=Changes(),
        ask_seconds=ask_seconds,
        streams=opened,
        rate_store=MemoryRateStore() if rate_limit_store is None else rate_limit_store,
        counts_alone=rate_limit_store is None,
        tasks=tasks or TaskLimits(),
        task_store=task_store or MemoryTaskStore(),
        idempotency_store=idempotency_store or MemoryIdempotencyStore(),
        idempotency_seconds=idempotency_seconds,
        confirmations=desk,
        inbox=inbox_of(inbox, title or name, desk),
        resolve_principal=resolve_principal,
        policies_dir=directory,
        sources=sources,
        fingerprint=seen,
        telemetry=telemetry,
    )


def _kernel(
    declared: Declarations, extra: Iterable[Fault], sources: Sources, oauth: OAuth | None, seal: Seal
) -> Kernel:
    built = build(declared)
    extra = (*extra, *(() if oauth is None else oauth_faults(oauth, built.catalog)))
    loaded = load(built.catalog, policies.base(), sources, complete=built.complete)
    wrong = (*built.faults, *lint.faults(built.catalog), *route_faults(built.catalog), *extra)
    if wrong or loaded.faults:
        raise NotBooted((*wrong, *loaded.faults), Draft(built.catalog, sources, wrong, built.complete))
    warnings = (*lint.warnings(built.catalog), *loaded.warnings)
    for warning in warnings:
        log.warning("%s", warning)
    return Kernel(built.catalog, Judge(built.catalog, loaded.base, loaded.policies), warnings, seal)


def judge_from(catalog: Catalog, sources: Sources) -> tuple[Judge, tuple[Fault, ...]]:
    """Return a judge of a catalog under other policies, and the warnings about them.

    Raises: BootError, with every fault at once.
    """
    loaded = load(catalog, policies.base(), sources)
    if loaded.faults:
        raise BootError(loaded.faults)
    warnings = (*lint.warnings(catalog), *loaded.warnings)
    return Judge(catalog, loaded.base, loaded.policies), warnings


def _misnamed(name: str) -> Iterable[Fault]:
    """An app is known by its name: to clients, in what is sealed and recorded, to policies as the server."""
    fix = 'give `name=` words of one line, for example `define_app_mcp(..., name="notes")`'
    if not name.strip():
        yield fault("X_DECLARATION_INVALID", "the app has an empty name", fix)
    elif any(unicodedata.category(each) in _UNNAMEABLE for each in name):
        cause = f"the app's name `{printable(name)}` has a character that is none of a name"
        yield fault("X_DECLARATION_INVALID", cause, fix)


def _misplaced(path: str) -> Iterable[Fault]:
    if f"/{path.strip('/')}/".startswith("/api/"):
        cause = f"the MCP path `{path}` is among the paths of actions"
        yield fault("X_DECLARATION_INVALID", cause, "give `path=` a place outside `/api/`")


def _secrets(secret: bytes | Sequence[bytes] | None) -> tuple[bytes, ...]:
    return () if secret is None else (secret,) if isinstance(secret, bytes) else tuple(secret)


def _seal(given: tuple[bytes, ...], name: str) -> Seal:
    """Return the key of an app: the given one, if it is one, or one of this process."""
    sound = given if given and all(len(each) >= 32 for each in given) else (secrets.token_bytes(32),)
    return Seal(sound[0], sound[1:]).of(name.encode("utf-8", "replace").decode())  # half a pair is a fault


def _unusable(
    given: tuple[bytes, ...], page_size: int | None, store: IdempotencyStore | None, seconds: float
) -> Iterable[Fault]:
    if not 0 < seconds < MAX_SECONDS:
        cause = f"`idempotency_seconds` keeps no record for {seconds} seconds"
        yield fault("X_DECLARATION_INVALID", cause, "give the seconds for which a retry may come")
    if any(len(each) < 32 for each in given):
        fix = "give 32 random bytes or more, the same to every process"
        yield fault("X_DECLARATION_INVALID", "`secret` is too short to seal anything", fix)
    if not given and store is not None and not isinstance(store, MemoryIdempotencyStore):
        cause = "`idempotency_store` outlives a process, and without `secret` no other one can read it"
        yield fault("X_DECLARATION_INVALID", cause, "give a `secret`, the same to every process")
    if page_size is not None and page_size < 1:
        yield fault("X_DECLARATION_INVALID", "`page_size` is no number of names", "give 1 or more, or None")
