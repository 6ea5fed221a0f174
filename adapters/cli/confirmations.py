"""`nonsuch confirmations`: a person lists, views and decides what waits, by the same action as over HTTP.

Whoever can run it holds the app's keys and database already; it says who decides, and the audit keeps that.
"""

from __future__ import annotations

import asyncio
import json as encoding
import sys
import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from ...kernel.confirmation import Confirmation
from ...kernel.errors import refusal
from ...kernel.model import Human, Ok, PrincipalInvalid
from ...kernel.strict_json import Json
from ..edge.confirmations import MemoryConfirmationStore
from ..edge.confirming_lists import confirmations_for
from ..edge.opening import Open
from ..edge.run import Running
from ..http.plain_text import Segment, alphabets, pieces, segments
from .caller import USAGE, names, record
from .options import ASKED, Asked
from .render import FINDINGS, FINE, Refused, Result, table

T = TypeVar("T")
_LEFTWARD: Final = frozenset({"R", "AL", "AN"})  # UAX 9, 3.2; marks are shown by their code
_ISOLATED: Final = ("\u2068", "\u2069")  # UAX 9, 2.4: first strong isolate, and its end
Decision = Literal["view", "approve", "reject"]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Person:
    """Who decides."""

    id: Annotated[str, Parameter(name="--as", help="id of the person who decides")]
    roles: Annotated[str, Parameter(help="the person's roles, with commas")] = ""
    org: Annotated[str | None, Parameter(help="the person's organisation")] = None

    def principal(self) -> Human:
        """Return the person. Raises: Refused."""
        try:
            return Human(self.id, roles=names(self.roles), org=self.org)
        except PrincipalInvalid as fault:
            raise Refused(USAGE, str(fault)) from None


Ident = Annotated[str, Parameter(help="id of the confirmation")]


def list_(
    *,
    person: Person,
    ended: Annotated[bool, Parameter(negative="", help="what is over instead of what is open")] = False,
    asked: Asked = ASKED,
) -> Result:
    """List the confirmations that a person may view, the newest first."""
    who = person.principal()

    async def seen(running: Running) -> tuple[list[Confirmation], list[str]]:
        rows = await confirmations_for(running, who, "ended" if ended else "open")
        return rows, [each.status_at(running.clock()) for each in rows]

    rows, states = _with(asked, seen)
    told = list(zip(rows, states, strict=True))

    def show(console: Console) -> None:
        heads = ("id", "tool", "asked by", "for", "status", "until")
        console.print(table(heads, (_cells(row, state) for row, state in told)))

    return Result([_document(row, state) for row, state in told], show)


def view(ident: Ident, *, person: Person, asked: Asked = ASKED) -> Result:
    """Show a confirmation with its exact arguments."""
    who = person.principal()
    return _shown(_with(asked, lambda running: _asked(running, who, ident, "view")))


def approve(
    ident: Ident,
    *,
    person: Person,
    arguments: Annotated[
        str | None,
        Parameter(help="the arguments as `view` shows them: JSON, `@file`, or `-`; without it you are asked"),
    ] = None,
    asked: Asked = ASKED,
) -> Result:
    """Approve a call, once, with exactly these arguments."""
    who = person.principal()
    given = None if arguments is None else record("--arguments", arguments)

    async def decided(running: Running) -> Mapping[str, Any]:
        agreed = given if given is not None else _agreed(await _asked(running, who, ident, "view"))
        return await _asked(running, who, ident, "approve", agreed)

    return _shown(_with(asked, decided))


def reject(ident: Ident, *, person: Person, asked: Asked = ASKED) -> Result:
    """Refuse a call; its caller is told so once."""
    who = person.principal()
    return _shown(_with(asked, lambda running: _asked(running, who, ident, "reject")))


def _with(asked: Asked, work: Callable[[Running], Awaitable[T]]) -> T:
    app = asked.one()
    if app.confirmations is None:
        fix = "give `define_app_mcp` what `mcp_confirmations` returned, as `confirmations=`"
        raise Refused(USAGE, f"nothing of the app `{app.name}` waits for a person", fix)
    if isinstance(app.confirmations.store, MemoryConfirmationStore):
        fix = "decide in the app's inbox, or keep them in `postgres_confirmation_store(...)`"
        raise Refused(USAGE, f"what waits for a person is in the memory of the serving `{app.name}`", fix)

    async def within() -> T:
        async with Open(app) as running:
            return await work(running)

    return asyncio.run(within())


async def _asked(
    running: Running, who: Human, ident: str, decision: Decision, arguments: Json = None
) -> Mapping[str, Any]:
    """Return what the decision action answers. Raises: Refused, with its code, cause and fix."""
    desk = running.app.confirmations
    sent: dict[str, Json] = {"id": ident, "decision": decision}
    if decision == "approve":
        sent["arguments"] = arguments
    outcome = await running.invoke(who, "" if desk is None else desk.path, sent, "http")
    if not isinstance(outcome, Ok):
        told = refusal(outcome, "" if desk is None else desk.name, "caller")
        raise Refused(told.code, told.cause, told.fix)
    found: Mapping[str, Any] = encoding.loads(outcome.json)
    return found


def _agreed(told: Mapping[str, Any]) -> Json:
    """Show what would be approved, and return it if the person says so. Raises: Refused."""
    if not sys.stdin.isatty():
        fix = "pass what `nonsuch confirmations view` shows as `--arguments`"
        raise Refused(USAGE, "nobody is here to be asked whether these are the arguments", fix)
    console = Console(markup=False, emoji=False, highlight=False, stderr=True)
    _show(console, told)
    lines = sum(each.text.count("\n") for part in segments(told["arguments"]) for each in part.pieces) + 1
    console.print(f"Approve exactly this, arguments of {lines} lines? Type `yes`: ", end="")
    if sys.stdin.readline().strip() != "yes":
        raise Refused(USAGE, "it was not approved", "type `yes` to approve, or use `reject`")
    arguments: Json = told["arguments"]
    return arguments


def _shown(told: Mapping[str, Any]) -> Result:
    status = FINE if told["status"] in ("pending", "approved", "rejected") else FINDINGS
    return Result(told, lambda console: _show(console, told), status)


def _show(console: Console, told: Mapping[str, Any]) -> None:
    for key, held in told.items():
        if key != "arguments" and held is not None:
            console.print(Text(f"{key:10} ").append(_plain((Segment(pieces(str(held))),))), soft_wrap=True)
    if told.get("arguments") is None:
        return
    mixed = alphabets(told["arguments"])
    if mixed:
        console.print(f"a word in them mixes alphabets that look alike: {', '.join(mixed)}", style="bold red")
    console.print(_plain(segments(told["arguments"])), soft_wrap=True)


def _plain(parts: tuple[Segment, ...]) -> Text:
    """Return text for a terminal; a character that shows nothing stands there as its code.

    What is a string stands out from what holds strings together, and its direction ends with it.
    """
    text = Text()
    for part in parts:
        before, after = _ISOLATED if _turns(part) else ("", "")
        text.append(before)
        for each in part.pieces:
            shown = "cyan" if part.string else None
            text.append(each.text, style=shown if each.name is None else "reverse")
        text.append(after)
    return text


def _turns(part: Segment) -> bool:
    """Whether something in it is written from right to left, which would draw its neighbours along."""
    return any(unicodedata.bidirectional(char) in _LEFTWARD for each in part.pieces for char in each.text)


def _cells(row: Confirmation, state: str) -> tuple[str | Text, ...]:
    asked_by, person = (_plain((Segment(pieces(each or "")),)) for each in (row.actor, row.person))
    return row.ident, row.tool, asked_by, person, state, row.expires.isoformat(timespec="seconds")


def _document(row: Confirmation, state: str) -> dict[str, object]:
    return {
        "id": row.ident,
        "tool": row.tool,
        "status": state,
        "askedBy": row.actor,
        "actsFor": row.person,
        "org": row.org,
        "askedAt": row.created.isoformat(),
        "expiresAt": row.expires.isoformat(),
        "decidedBy": row.decided_by,
    }
