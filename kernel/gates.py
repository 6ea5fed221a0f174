"""The gates, in their one order: visibility, scope, arguments, admission, policy; then a Permit.

A generator: it yields what it asks of the world and is sent answers. The only maker of a Permit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never, cast

from pydantic import BaseModel

from .audit import prompt_get, resource_read, tool_call, with_slip
from .catalog import Catalog, Completer, Entry
from .conclusion import concluded, edge_denied, raised, suggested
from .confirmation import Confirmation, Gated, Slip
from .confirmed import claimed, confirmed, noted, spent, unspent
from .declare import Completing
from .denials import denied, failed, unscoped
from .errors import Fault
from .idempotency import Asked, Attempt, Judged, Kept, Parsed, asked
from .judge import NO_ARGUMENTS, Judge
from .line import Line, TaskLine
from .model import (
    Begun,
    Call,
    Failed,
    Hidden,
    InvalidArguments,
    Issue,
    Ok,
    Outcome,
    PolicyError,
    Principal,
    ScopeDenied,
    owner_key,
)
from .replay import admitted, remembered, reserved
from .schema import InputBroken, Invalid
from .seal import Seal
from .shapes import Unencodable, copied
from .steps import (
    Answer,
    Audit,
    Launch,
    Load,
    NoRoom,
    Permit,
    Raised,
    Ran,
    Remember,
    Returned,
    Steps,
)
from .strict_json import Json
from .values import value
from .view import View, Viewer


class Kernel:
    """One app's catalog and judge. Stateless but for memos; safe to share between threads."""

    def __init__(
        self, catalog: Catalog, judge: Judge, warnings: tuple[Fault, ...] = (), seal: Seal | None = None
    ) -> None:
        """``seal`` is the key of what is told of keyed calls; without one none runs."""
        self.catalog, self.warnings, self._seal = catalog, warnings, seal
        self._viewer = Viewer(catalog, judge)

    @property
    def judge(self) -> Judge:
        """The judge of requests that begin now."""
        return self._viewer.judge

    def swap(self, judge: Judge, warnings: tuple[Fault, ...] = ()) -> None:
        """Judge every request that begins from now on by other policies; those under way keep theirs.

        The memos of the old judge go with it, so that what it permitted is not remembered.
        """
        before = self.judge
        self.warnings, self._viewer = warnings, Viewer(self.catalog, judge)
        before.forget()

    def view_for(self, principal: Principal) -> View:
        """Return what ``principal`` may see."""
        return self._viewer.view_for(principal)

    def invoke(self, view: View, call: Call, line: Line | None = None) -> Steps[Outcome]:
        """Decide a call, run it if every gate permits, and have the outcome audited.

        1. visibility  2. scope  3. arguments  4. admission  5. policy  6. the handler  7. serialise
        8. audit. ``line`` is how the handler speaks to its client, where it can.
        The caller must still turn the outcome into an answer, and record the audit event only
        after that answer has left.
        """
        if call.group is None:
            entry = view.find(call.name, call.surface)  # 1. hidden and absent are this one miss
        else:
            entry = view.grouped(call.group, call.name)
        if entry is None:
            outcome: Outcome = Hidden(call.name)
        elif entry.confirming is not None:
            return (yield from self._confirmed(view, entry, call, line))
        else:
            outcome = yield from _decide(view, entry, asked(entry, call), line, self._seal)
        name = call.name if entry is None else entry.name
        ident = outcome.task.ident if isinstance(outcome, Begun) else None
        yield Audit(tool_call(view.principal, name, call.surface, outcome, ident))
        return outcome

    def _confirmed(self, view: View, entry: Entry, call: Call, line: Line | None) -> Steps[Outcome]:
        """Decide a call that a person confirms, or by which one does; its audit line says which it was."""
        slip = Slip()
        outcome = yield from _decide(view, entry, asked(entry, call), line, self._seal, slip)
        ident = outcome.task.ident if isinstance(outcome, Begun) else None
        yield Audit(with_slip(tool_call(view.principal, entry.name, call.surface, outcome, ident), slip))
        return outcome

    def still(self, view: View, tool: str) -> Hidden | ScopeDenied | PolicyError | None:
        """Return why a caller may no longer have to do with a tool it called: 1. visibility  2. scope."""
        entry = view.find(tool, "agent")
        return Hidden(tool) if entry is None else unscoped(view, entry)

    def read(self, view: View, uri: str, line: Line | None = None) -> Steps[Outcome]:
        """Decide a reading as ``invoke`` decides a call; the variables of a template are its arguments."""
        found = view.resource(uri)  # 1
        if found is None:
            outcome: Outcome = Hidden(uri)
        else:
            outcome = yield from _decide(view, found[0], Asked(found[1]), line)
        yield Audit(resource_read(view.principal, uri, outcome))
        return outcome

    def permitted(self, view: View, entry: Entry, arguments: Mapping[str, Json]) -> Steps[bool]:
        """Decide whether a call would be permitted now, up to its handler. Asking is no event."""
        return view.holds(entry) and (yield from _permitted(view, entry, Asked(arguments)))

    def readable(self, view: View, uri: str) -> Steps[bool]:
        """Decide whether a reading would be permitted now, up to its handler. Asking is no event."""
        found = view.resource(uri)  # 1
        return found is not None and (yield from _permitted(view, found[0], Asked(found[1])))

    def render(
        self, view: View, name: str, arguments: Mapping[str, Json], line: Line | None = None
    ) -> Steps[Outcome]:
        """Decide the rendering of a prompt as ``invoke`` decides a call."""
        entry = view.prompt(name)  # 1
        if entry is None:
            outcome: Outcome = Hidden(name)
        else:
            outcome = yield from _decide(view, entry, Asked(arguments), line)
        yield Audit(prompt_get(view.principal, name, outcome))
        return outcome

    def complete(self, view: View, entry: Entry | None, name: str, asked: Suggesting) -> Steps[Outcome]:
        """Decide a completion; the entry is one that ``view`` found, or ``None``.

        1. visibility  2. scope  3. policy, of the entry as a whole: one that reads arguments cannot be
        asked before there are any, and denies. The values are then the completer's, or none.
        """
        if entry is None:  # 1
            outcome: Outcome = Hidden(name)
        else:
            outcome = yield from _suggest(view, entry, asked)
        yield Audit(prompt_get(view.principal, name, outcome, completes=asked.argument))
        return outcome

    def noted(self, view: View, name: str, outcome: Outcome) -> Steps[Outcome]:
        """Audit a call that needs no gate: a tool that tells what the view holds."""
        yield Audit(tool_call(view.principal, name, "mcp", outcome))
        return outcome


@value
class Suggesting:
    """What a completion is asked for: the argument, its text so far, the arguments already given."""

    argument: str
    value: str
    given: Mapping[str, str]


@value
class _Loaded:
    """What a call acts on: its facts (``None``: no such resource) and its id."""

    facts: BaseModel | None
    id: str


def _decide(  # noqa: C901  (the gates in their one order, a branch each)
    view: View,
    entry: Entry,
    asked: Asked,
    line: Line | None,
    seal: Seal | None = None,
    slip: Slip | None = None,
) -> Steps[Outcome]:
    judge = view.judge
    # 2. scope, and whether the request is one for this entry
    refused = unscoped(view, entry) or (line.unfit(entry, asked.arguments) if line is not None else None)
    if refused is not None:
        return refused
    # 3. arguments
    parsed = _parsed(judge, entry, asked)
    if not isinstance(parsed, Parsed):
        return parsed
    # 4. admission: a call that is a retry is answered as it was, if its caller may still make it
    attempt: Attempt | None = None
    if asked.key is not None or entry.requires_key:
        admission = yield from admitted(view, entry, asked, parsed, seal)
        if not isinstance(admission, Attempt):
            return admission
        attempt = admission
    # 4. admission: a call that a person confirms waits for that
    approved: Confirmation | None = None
    if slip is not None:
        waits = yield from _waits(view, entry, asked, parsed, slip)
        if isinstance(waits, Confirmation):
            approved = waits
        elif waits is not None:
            return waits
    # 5. policy
    if entry.resource is not None and entry.resource.told:  # facts only for whom something could permit
        at_all = judge.admits(view.caller, entry)
        if not at_all.allow:
            return denied(judge, entry, at_all, missing=False)
    loaded = yield from _load(judge, entry, parsed.input, view.principal)
    if isinstance(loaded, (Failed, PolicyError)):
        return loaded
    missing = entry.resource is not None and loaded.facts is None
    decision = judge.permits(view.caller, entry, loaded.facts, loaded.id, parsed.context)
    if not decision.allow:
        return denied(judge, entry, decision, missing=missing, facts=loaded.facts)
    if missing:
        return failed("X_NOT_FOUND")
    kept: Kept | None = None
    if attempt is not None:
        judged = Judged(loaded.id, judge.facts(entry, loaded.facts, loaded.id))
        begun = yield from reserved(view, entry, attempt, judged, parsed.context)
        if not isinstance(begun, Kept):
            return begun
        kept = begun
    if approved is not None:
        running = yield from claimed(approved)
        if not isinstance(running, Confirmation):
            yield from _forgotten(kept)
            return running
        approved = running
    # 6. the handler, 7. its answer
    permit = Permit(entry, parsed.input, view.principal, loaded.facts, line)
    tasks = None if entry.task == "never" or line is None else line.tasks
    if tasks is None and kept is None and approved is None:
        return concluded(entry, (yield permit))
    return (yield from _run(view, permit, tasks, _Records(kept, approved, slip)))


@value
class _Records:
    """What keeps how a call ended: the record of its key, the confirmation it runs by."""

    kept: Kept | None
    approved: Confirmation | None
    slip: Slip | None


def _waits(
    view: View, entry: Entry, asked: Asked, parsed: Parsed, slip: Slip
) -> Steps[Confirmation | Outcome | None]:
    """Return the approved confirmation of a call, or why it does not run yet; nothing, if it needs none."""
    if isinstance(entry.confirming, Gated):
        return (yield from confirmed(view, entry, entry.confirming, asked, parsed, slip))
    noted(slip, parsed.input)
    return None


def _run(view: View, permit: Permit, tasks: TaskLine | None, records: _Records) -> Steps[Outcome]:
    """Run what is recorded, or becomes a task."""
    if tasks is not None:
        return (yield from _launched(view, permit, tasks, records))
    return (yield from _ended(records, permit.entry, (yield permit)))


def _forgotten(kept: Kept | None) -> Steps[None]:
    """Forget a keyed call that never ran: its retry may."""
    if kept is not None:
        yield Remember(kept, None)


def _permitted(view: View, entry: Entry, asked: Asked) -> Steps[bool]:
    judge = view.judge
    parsed = _parsed(judge, entry, asked)
    if unscoped(view, entry) is not None or not isinstance(parsed, Parsed):
        return False
    loaded = yield from _load(judge, entry, parsed.input, view.principal)
    if not isinstance(loaded, _Loaded) or (entry.resource is not None and loaded.facts is None):
        return False
    return judge.permits(view.caller, entry, loaded.facts, loaded.id, parsed.context).allow


def _parsed(judge: Judge, entry: Entry, asked: Asked) -> Parsed | InvalidArguments | Failed:
    try:
        given = entry.input.parse(asked.arguments)
        if isinstance(given, Invalid):
            return InvalidArguments(tuple(dict.fromkeys((*asked.issues, *given.issues))))
        if asked.issues:
            return InvalidArguments(asked.issues)
        return Parsed(given, judge.context(entry, given))
    except InputBroken:
        return failed("X_INTERNAL")
    except Unencodable as fault:
        return InvalidArguments((Issue(fault.path, fault.problem),))


def _ended(records: _Records, entry: Entry, answer: Answer) -> Steps[Outcome]:
    outcome = concluded(entry, answer)
    outcome = yield from remembered(records.kept, entry, answer, outcome)
    yield from spent(records.approved, answer, outcome)
    return outcome


def _launched(view: View, permit: Permit, tasks: TaskLine, records: _Records) -> Steps[Outcome]:
    """Let the handler run as a task; what comes of it then is kept and audited when it comes."""

    def finish(answer: Answer, ident: str) -> Steps[Outcome]:
        outcome = yield from _ended(records, permit.entry, answer)
        event = tool_call(view.principal, permit.entry.name, "mcp", outcome, ident)
        yield Audit(event if records.slip is None else with_slip(event, records.slip))
        return outcome

    answer = yield Launch(permit, tasks, owner_key(view.judge.server, view.principal), finish)
    launched = answer.value if isinstance(answer, Returned) else Ran(answer)
    match launched:
        case Begun():
            return launched
        case NoRoom():
            yield from _forgotten(records.kept)
            yield from unspent(records.approved)
            return failed("X_MCP_TASKS_FULL")
        case Ran(ended):
            return (yield from _ended(records, permit.entry, ended))
        case _:
            return failed("X_INTERNAL")


def _suggest(view: View, entry: Entry, asked: Suggesting) -> Steps[Outcome]:
    judge = view.judge
    refused = unscoped(view, entry)
    if refused is not None:
        return refused
    if entry.resource is not None:
        return Ok(b"[]")  # what it acts on is known once its arguments are
    decision = judge.permits(view.caller, entry, None, judge.server, NO_ARGUMENTS)
    if not decision.allow:
        return denied(judge, entry, decision, missing=False)
    completer = entry.completers.get(asked.argument)
    return (yield from _completed(view, entry, completer, asked)) if completer is not None else Ok(b"[]")


def _completed(view: View, entry: Entry, completer: Completer, asked: Suggesting) -> Steps[Outcome]:
    if completer.handler is None:
        return suggested([each for each in completer.values if each.startswith(asked.value)])
    given = Completing(value=asked.value, arguments=dict(asked.given))
    answer = yield Permit(entry, given, view.principal, None, None, completer.handler)
    if not isinstance(answer, Returned):
        return raised(answer)
    values = answer.value
    told = isinstance(values, list) and all(isinstance(each, str) for each in cast("list[object]", values))
    return suggested(cast("list[str]", values)) if told else failed("X_OUTPUT_INVALID")


def _load(
    judge: Judge, entry: Entry, given: BaseModel, principal: Principal
) -> Steps[_Loaded | Failed | PolicyError]:
    if entry.resource is None:
        return _Loaded(None, judge.server)
    # a loader may change what it gets; the handler gets what was judged
    answer = yield Load(entry.resource.loader, copied(given), principal)
    match answer:
        case Raised(error):
            return edge_denied(error) or failed("X_INTERNAL")  # no word of it: no policy was asked yet
        case Returned(None):
            return _Loaded(None, "")
        case Returned(facts):
            return _identified(facts, entry.resource.model)
        case _:
            assert_never(answer)


def _identified(facts: object, model: type[BaseModel]) -> _Loaded | Failed:
    ident = getattr(facts, "id", None)
    if not (isinstance(facts, model) and isinstance(ident, str)):
        return failed("X_INTERNAL")
    try:
        return _Loaded(copied(facts), ident)  # a row that others share may change meanwhile
    except Exception:  # noqa: BLE001  (a row of the application's may refuse to be copied in any way)
        return failed("X_INTERNAL")
