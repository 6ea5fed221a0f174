"""``mcp_confirmations``: the action by which people decide, and the desk that keeps what waits for them.

Which call waits, and who may decide, are the kernel's; this brings it time, ids, nonces and a store.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NoReturn

from pydantic import BaseModel, Field
from pydantic_core import from_json

from ...kernel.catalog import Catalog, Entry
from ...kernel.codes import CODES
from ...kernel.confirm_seal import NONCE_BYTES, KeysRefused, SealKeys
from ...kernel.confirmation import (
    ARGUMENTS_PURPOSE,
    IDENT,
    Asking,
    Confirmation,
    Confirming,
    Gated,
    Opened,
    Status,
    moved,
)
from ...kernel.confirmed import carried
from ...kernel.declare import Action, Context, can
from ...kernel.errors import ActionError, Fault, fault
from ...kernel.steps import MoveConfirmation, OpenConfirmation
from .confirmations import NOBODYS, ConfirmationStore, MemoryConfirmationStore
from .seal_keys import are_given, keys_of_this_process, seal_keys

DEFAULT_MCP_CONFIRMATION_TTL: Final = timedelta(minutes=10)
MAX_TTL: Final = timedelta(days=366)
ID_BYTES: Final = 24


class McpConfirmation(BaseModel):
    """A confirmation as policies see it: ``actor`` asked, ``user`` is the person behind.

    Whose ``org`` or ``user`` is the empty string has none: rows of one shape take one time to judge.
    """

    id: str
    tool: str
    org: str
    actor: str
    user: str


class DecideConfirmation(BaseModel):
    """View a confirmation, or decide it. An approval carries the arguments that the view returned."""

    id: str = Field(max_length=128)
    decision: Literal["view", "approve", "reject"]
    arguments: dict[str, Any] | None = None


class ConfirmationDetail(BaseModel):
    """A confirmation as people see it; ``arguments`` only in a view, exactly as they were sent."""

    id: str
    tool: str
    status: Status
    askedBy: str
    actsFor: str | None
    org: str | None
    askedAt: datetime
    expiresAt: datetime
    decidedBy: str | None
    decidedAt: datetime | None
    arguments: dict[str, Any] | None = None


def _random(_: Asking) -> str:
    return secrets.token_hex(ID_BYTES)


@dataclass(slots=True, eq=False)
class Desk:
    """What one ``mcp_confirmations`` keeps and decides. ``where`` is where people decide.

    ``ident`` makes ids: 24 random bytes, of which no other call can tell anything.
    """

    name: str
    tools: tuple[str, ...]
    store: ConfirmationStore
    keys: SealKeys
    ttl: timedelta
    where: str
    crosses_orgs: bool
    ident: Callable[[Asking], str] = _random
    _gates: dict[str, Mapping[str, Entry]] = field(default_factory=dict[str, Mapping[str, Entry]])

    @property
    def path(self) -> str:
        """Where the action answers, after ``/api/``."""
        return self.name

    @property
    def servers(self) -> tuple[str, ...]:
        """The apps whose confirmations are decided here."""
        return tuple(self._gates)

    def serve(self, catalog: Catalog) -> None:
        """Decide the confirmations of an app: called once, when it boots."""
        gated = {each.name: each for each in catalog.entries if isinstance(each.confirming, Gated)}
        self._gates[catalog.server] = gated

    # what the kernel asks of it

    async def open(self, step: OpenConfirmation, now: datetime) -> Opened | None:
        """Return the open row of a call, made if there is none; ``None`` where too many wait."""
        asking = step.asking
        row = await self.store.find(asking.owner, asking.tool, asking.fingerprint)
        if row is None:
            row = await self.store.open(self._sealed(step.gated, asking, now), step.gated.limit)
        return None if row is None else Opened(row, now)

    async def move(self, step: MoveConfirmation, now: datetime) -> Confirmation | None:
        """Change a row, if nobody did meanwhile."""
        changed = moved(step.row, step.to, now)
        return changed if changed is not None and await self.store.swap(changed) else None

    def _sealed(self, gated: Gated, asking: Asking, now: datetime) -> Confirmation:
        ident, nonce = self.ident(asking), secrets.token_bytes(NONCE_BYTES)
        who = (asking.org, asking.actor, asking.actor_kind, asking.person)
        call = (asking.tool, asking.fingerprint)
        times = (now, now + gated.ttl, now)
        row = Confirmation(ident, asking.server, asking.owner, *who, *call, b"", *times)
        sealed = gated.keys.seal(ARGUMENTS_PURPOSE, nonce, row.bound, asking.arguments)
        return Confirmation(ident, asking.server, asking.owner, *who, *call, sealed, *times)

    # what people ask of it

    async def facts(self, input: DecideConfirmation) -> McpConfirmation:
        """Return what policies see of a confirmation. One that is not there is nobody's."""
        row = await self._read(input.id) or NOBODYS
        person = row.person if row.actor_kind == "agent" else row.actor
        return McpConfirmation(
            id=row.ident, tool=row.tool, org=row.org or "", actor=row.actor, user=person or ""
        )

    async def decide(self, input: DecideConfirmation, ctx: Context[Any]) -> ConfirmationDetail:
        """Answer a person who may decide this confirmation. Raises: ActionError."""
        row = await self._kept(input.id, sealed=input.decision == "view")
        if input.decision == "view":
            return _detail(row, ctx.now, self._arguments(row))
        wanted: Status = "approved" if input.decision == "approve" else "rejected"
        if row.open_at(ctx.now) and wanted == "approved":
            self._same(row, input.arguments)
        decided = moved(row, wanted, ctx.now, ctx.principal.id)
        if decided is None or not await self._swapped(decided):
            _refuse(await self._late(row, ctx.now))
        return _detail(decided, ctx.now, None)

    async def _late(self, row: Confirmation, now: datetime) -> str:
        """Return why a row is not decided any more, as it is by now."""
        latest = await self._kept(row.ident)
        lapsed = latest.status_at(now) == "expired" and latest.decided_at is None
        return "X_MCP_CONFIRMATION_EXPIRED" if lapsed else "X_MCP_CONFIRMATION_DECIDED"

    def _same(self, row: Confirmation, sent: Mapping[str, Any] | None) -> None:
        """Hold the arguments of an approval against those of the call."""
        entry = self._gates[row.server].get(row.tool)
        gated = None if entry is None else entry.confirming
        if entry is None or not isinstance(gated, Gated) or sent is None:
            _refuse("X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH")
        # No timing-safe comparison: whoever may approve may read the row's arguments anyway.
        if carried(gated, row, entry, sent) != row.fingerprint:
            _refuse("X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH")

    def _arguments(self, row: Confirmation) -> dict[str, Any]:
        opened = self.keys.unseal(ARGUMENTS_PURPOSE, row.bound, row.sealed)
        if opened is None:
            _refuse("X_MCP_CONFIRMATION_UNREADABLE")
        held: dict[str, Any] = from_json(opened)
        return held

    async def _kept(self, ident: str, *, sealed: bool = False) -> Confirmation:
        try:
            row = await self._read(ident, sealed=sealed)
        except Exception as fault:  # a driver's, of any kind
            raise _error("X_MCP_CONFIRMATION_STORE_FAILED") from fault
        if row is None:
            _refuse("X_MCP_CONFIRMATION_UNKNOWN")
        return row

    async def _swapped(self, row: Confirmation) -> bool:
        try:
            return await self.store.swap(row)
        except Exception as fault:  # a driver's, of any kind
            raise _error("X_MCP_CONFIRMATION_STORE_FAILED") from fault

    async def _read(self, ident: str, *, sealed: bool = False) -> Confirmation | None:
        if not IDENT.fullmatch(ident):
            return None
        row = await self.store.read(ident, sealed=sealed)
        return row if row is not None and row.server in self._gates else None


def mcp_confirmations(
    *,
    tools: Sequence[str],
    store: ConfirmationStore,
    permission: str,
    check: str | None = None,
    ttl: timedelta = DEFAULT_MCP_CONFIRMATION_TTL,
    keys: SealKeys | None = None,
    where: str | None = None,
    max_pending: int = 100,
    name: str = "decideConfirmation",
) -> Action:
    """Return the action by which people view and decide calls of ``tools``, which then wait for that.

    Register it (``registry.add``) and give it to ``define_app_mcp(confirmations=...)``. It answers
    ``POST /api/<name>`` with ``{id, decision, arguments}``; people need ``permission``, and may decide what
    was asked for in their own organisation, unless ``check``, a Cedar condition over ``principal`` and
    ``resource`` (a ``McpConfirmation``), says otherwise. No agent may, whatever it is permitted.

    A call that waits is told where people decide (``where``, an address of the app's in which ``{id}`` is
    replaced, or the action's path; a client that can open an address is asked to open it),
    and lapses after ``ttl``; one caller may have ``max_pending`` of them. ``store`` keeps them, their
    arguments sealed by ``keys`` (``seal_keys()`` unless given; with a store of one process also a key of
    that process). What is wrong with any of it is told when the app boots.
    """
    faults = list(_unusable(ttl, max_pending))
    held = keys or _keys(store, faults)
    address = where or f"POST /api/{name}"
    desk = Desk(name, tuple(tools), store, held or keys_of_this_process(), ttl, address, check is not None)
    told = Confirming(desk.tools, check, held, ttl, address, max_pending, desk, tuple(faults))
    rule = can(permission, resource=desk.facts)
    return Action(name, "action", desk.decide, rule, None, name, False, True, False, confirming=told)


def _unusable(ttl: timedelta, limit: int) -> Iterable[Fault]:
    if not timedelta(0) < ttl <= MAX_TTL:
        yield fault("X_DECLARATION_INVALID", f"`ttl` keeps no confirmation for {ttl}", "give a timedelta")
    if limit < 1:
        cause = f"`max_pending` lets {limit} calls wait"
        yield fault("X_DECLARATION_INVALID", cause, "give 1 or more")


def _keys(store: ConfirmationStore, faults: list[Fault]) -> SealKeys | None:
    if isinstance(store, MemoryConfirmationStore) and not are_given():
        return keys_of_this_process()
    try:
        return seal_keys()
    except KeysRefused as refusal:
        faults.append(fault("X_SEAL_KEYS_INVALID", str(refusal)))
        return None


def desk_of(action: Action | None) -> Desk | None:
    """Return the desk of what ``mcp_confirmations`` returned."""
    desk = None if action is None or action.confirming is None else action.confirming.desk
    return desk if isinstance(desk, Desk) else None


def _detail(row: Confirmation, now: datetime, arguments: dict[str, Any] | None) -> ConfirmationDetail:
    return ConfirmationDetail(
        id=row.ident,
        tool=row.tool,
        status=row.status_at(now),
        askedBy=row.actor,
        actsFor=row.person,
        org=row.org,
        askedAt=row.created,
        expiresAt=row.expires,
        decidedBy=row.decided_by,
        decidedAt=row.decided_at,
        arguments=arguments,
    )


def _error(code: str) -> ActionError:
    told = CODES[code]
    return ActionError(told.code, told.cause, told.fix, told.caller_fix)


def _refuse(code: str) -> NoReturn:
    raise _error(code)
