"""The mutants of gates and wires: a kernel or an adapter with one promise broken, as edits of the source.

Numbers with an M are those of the list of leaks that a suite must see; the others are ours. Runs nothing.
"""

from __future__ import annotations

from typing import Final

from .mutant import Mutant
from .mutant import mutant as _mutant
from .rewrite import PolicyEdit

_INVOKE: Final = "kernel.gates:Kernel.invoke"
_DECIDE: Final = "kernel.gates:_decide"
_CALL: Final = "adapters.mcp.tools:call"
_POST: Final = "adapters.http.invoke:_served"
_ASK: Final = "kernel.judge:Judge._ask"
_JUDGE: Final = "kernel.judge:Judge._decide"
_ALL: Final = "kernel.judge:Judge._all"
_CEDAR: Final = "kernel.cedar:_decision"
_MISS: Final = "outcome: Outcome = Hidden(call.name)"
_REPLY: Final = "return answer(request, asked.name, entry, outcome)"
_ANSWER: Final = _REPLY.removeprefix("return ")
_SECRET: Final = 'entry is None and request.server.kernel.catalog.declares(asked.name, "mcp")'
_FOUND: Final = "entry = view.find(call.name, call.surface)"
_KNOWN: Final = (
    "(lambda known: known[0] if known else None)([each for each in self.catalog.entries "
    'if call.name == (each.path if call.surface == "http" else each.name)])'
)


MUTANTS: Final = (
    # hidden is absent
    _mutant(
        "M01",
        "a hidden tool is forbidden, an absent one unknown",
        (
            _INVOKE,
            _MISS,
            f'{_MISS} if not self.catalog.declares(call.name, call.surface) else failed("X_FORBIDDEN")',
        ),
    ),
    _mutant(
        "M02",
        "a hidden tool has another message",
        (_CALL, _REPLY, _REPLY.replace("asked.name", f'asked.name + (" " if {_SECRET} else "")')),
    ),
    _mutant(
        "M03",
        "a hidden tool's error has data",
        (
            _CALL,
            _REPLY,
            f"reply = {_ANSWER}\n    return Reply(reply.status, "
            f"""reply.body.replace(b'"error":{{', b'"error":{{"data":1,') if {_SECRET} else reply.body)""",
        ),
    ),
    _mutant(
        "M04",
        "a hidden tool has another HTTP status",
        (
            _CALL,
            _REPLY,
            f"reply = {_ANSWER}\n"
            f"    return Reply(403 if {_SECRET} else reply.status, reply.body, reply.headers)",
        ),
    ),
    _mutant(
        "M07",
        "arguments are judged before visibility",
        (
            _INVOKE,
            _MISS,
            f"known = {_KNOWN}\n            given = known.input.parse(call.arguments) if known else None\n"
            "            outcome: Outcome = Hidden(call.name)\n"
            "            if isinstance(given, Invalid):\n"
            "                outcome = InvalidArguments(given.issues)",
        ),
    ),
    _mutant(
        "M08",
        "scope is judged before visibility",
        (
            _INVOKE,
            _MISS,
            f"known = {_KNOWN}\n            short = known and known.scope and not "
            "self.judge.presents(view.caller, known.scope).allow\n"
            "            outcome: Outcome = ScopeDenied(known.scope) if short else Hidden(call.name)",
        ),
    ),
    _mutant(
        "M18",
        "a resource of hidden tools alone is listed empty",
        (
            "kernel.view:Viewer._build",
            "groups = _grouped(tools if meta else {})",
            "groups = dict.fromkeys(self._catalog.groups, {}) | _grouped(tools) if meta else {}",
        ),
        first="a hidden group is absent",
    ),
    _mutant(
        "M19",
        "a resource of hidden tools alone is described as no unknown name",
        (
            "adapters.mcp.meta:told",
            "_described(view, name, given)",
            "_described(view, name, tuple(each for each in given if each in view.table.groups "
            "or each not in request.server.kernel.catalog.groups))",
        ),
        first="a hidden group is absent",
    ),
    _mutant(
        "M20",
        "the right pair of a hidden tool and its resource is forbidden, any other unknown",
        (
            _INVOKE,
            _MISS,
            f"{_MISS} if (call.group, call.name) not in {{(each.group, each.name) for each in "
            'self.catalog.entries if each.group} else ScopeDenied("vault")',
        ),
        first="a hidden group is absent",
    ),
    _mutant(
        "M21",
        "an action is run whatever resource it is asked of",
        (
            "kernel.view:View.grouped",
            "return self.table.groups.get(group, _NO_TOOLS).get(name)",
            "return next((held[name] for held in self.table.groups.values() if name in held), None)",
        ),
        first="manage is the flat call",
    ),
    _mutant(
        "M22",
        "a name is found whatever its case",
        (
            "kernel.view:View.find",
            ".get(name)",
            ".get({each.lower(): each for each in (*self.table.paths, *self.table.tools)}"
            ".get(name.lower(), name))",
        ),
    ),
    _mutant(
        "M33",
        "a name is found in compatibility form",
        (
            "kernel.view:View.find",
            ".get(name)",
            '.get(__import__("unicodedata").normalize("NFKC", name))',
        ),
    ),
    _mutant(
        "M37",
        "one catalog is kept for all callers",
        (
            "kernel.view:Viewer._look",
            "self._table(self.judge.visible(caller))",
            'self.__dict__.setdefault("kept", self._table(self.judge.visible(caller)))',
        ),
    ),
    _mutant(
        "M38",
        "a predicate that raises is an internal error",
        ("kernel.judge:_admits", "return False", "raise"),
    ),
    _mutant(
        "M46",
        "what is visible is remembered by id, past a revoke",
        (
            "kernel.view:Viewer._look",
            "self.judge.visible(caller)",
            'self.__dict__.setdefault("kept", {})'
            ".setdefault(caller.principal.id, self.judge.visible(caller))",
        ),
    ),
    _mutant(
        "M48",
        "a hidden path knows its methods",
        (
            "adapters.http.invoke:_answered",
            "if route is not None and not route.answers(head.method):",
            "known = [each for each in server.kernel.catalog.entries if each.path == asked.path]\n"
            "    if route is None and known and not server.routes[known[0]].answers(head.method):\n"
            "        return Reply(405, headers=(server.routes[known[0]].allow,))\n"
            "    if route is not None and not route.answers(head.method):",
        ),
    ),
    _mutant(
        "early-404",
        "an absent path is unknown before anybody is authenticated",
        (
            _POST,
            "who = yield from",
            "if not server.kernel.catalog.declares(head.path.removeprefix(server.prefix), 'http'):\n"
            "        return _unknown(server)\n    who = yield from",
        ),
    ),
    _mutant(
        "body-of-hidden",
        "the body of an absent path is never read",
        (
            _POST,
            "if isinstance(sent, Reply):",
            "if not server.kernel.catalog.declares(head.path.removeprefix(server.prefix), 'http'):\n"
            "        return _unknown(server)\n    if isinstance(sent, Reply):",
        ),
    ),
    _mutant(
        "http-unfiltered",
        "HTTP asks nobody whether the path is visible",
        (
            "adapters.http.invoke:_asked",
            'view.find(path, "http") if inside else None',
            "next((each for each in server.kernel.catalog.entries if each.path == path), None)",
        ),
    ),
    _mutant(
        "fallback",
        "a view that misses falls back to the catalog",
        (_INVOKE, _FOUND, f"{_FOUND} or {_KNOWN}"),
    ),
    _mutant(
        "second-look",
        "a name that misses is looked up once more, in all tools",
        (
            _INVOKE,
            _MISS,
            f"known = {_KNOWN}\n            known and hash(known)\n            {_MISS}",
        ),
    ),
    _mutant(
        "asks-for-known",
        "Cedar is asked about registered names only",
        (
            _INVOKE,
            _MISS,
            f"known = {_KNOWN}\n"
            '            known and self.judge.permits(view.caller, known, None, "", "{}")\n'
            f"            {_MISS}",
        ),
    ),
    # an agent never exceeds its human
    _mutant(
        "agent-alone-sees",
        "visibility and scope ask the agent only",
        (_ALL, "parties(caller.principal)", "parties(caller.principal)[:1]"),
    ),
    _mutant(
        "agent-alone-acts",
        "policy asks the agent only",
        (_ASK, "parties(caller.principal)", "parties(caller.principal)[:1]"),
    ),
    _mutant(
        "human-alone-acts",
        "policy asks the human only",
        (_ASK, "parties(caller.principal)", "parties(caller.principal)[-1:]"),
    ),
    _mutant(
        "either-sees",
        "one of the two parties is enough to see",
        (_ALL, "if not decision.allow:", "if decision.allow:"),
    ),
    # one judge, failing closed
    _mutant(
        "M42",
        "whatever is not Deny is Allow, and a request that cannot be judged has no error",
        (_CEDAR, 'return Decision(False, errors=("<request>",))', "pass"),
        (_CEDAR, "if errors:", "if errors and decision.name != 'NoDecision':"),
        (_CEDAR, "decision is cedarpy.Decision.Allow", "decision is not cedarpy.Decision.Deny"),
    ),
    _mutant("M43", "errors of policies are ignored", (_CEDAR, "if errors:", "if False:")),
    _mutant(
        "M44",
        "the policy is asked about the raw arguments, not the typed input",
        (
            "kernel.gates:_parsed",
            "judge.context(entry, given)",
            '__import__("json").dumps({"args": dict(asked.arguments)})',
        ),
    ),
    _mutant(
        "no-context",
        "the policy is asked without arguments",
        ("kernel.judge:Judge.context", "encode_fields(fields, input)", "{}"),
    ),
    _mutant(
        "scope-prefix",
        "a scope is presented by its prefix",
        (
            "kernel.judge:Judge._presents",
            "return self._all(",
            "if any(scope.startswith(each) for each in caller.principal.scopes or ()):\n"
            "            return Decision(True)\n        return self._all(",
        ),
    ),
    _mutant(
        "scope-skipped",
        "no scope is asked for",
        ("kernel.denials:unscoped", "if entry.scope is None:", "if True:"),
    ),
    Mutant(
        "session-less",
        "a scope is presented by any set of scopes",
        (PolicyEdit("principal has scopes && principal.scopes.contains(resource)", "principal has scopes"),),
    ),
    _mutant(
        "arguments-last",
        "arguments are judged before scope",
        (
            _DECIDE,
            "refused = unscoped(view, entry)",
            "early = entry.input.parse(asked.arguments)\n    if isinstance(early, Invalid):\n"
            "        return InvalidArguments(early.issues)\n    refused = unscoped(view, entry)",
        ),
    ),
    _mutant(
        "missing-is-told",
        "a missing row is not found, for everyone",
        (
            _DECIDE,
            "if not decision.allow:",
            'if missing:\n        return failed("X_NOT_FOUND")\n    if not decision.allow:',
        ),
    ),
    _mutant(
        "missing-runs",
        "a missing row is no reason not to run",
        (_DECIDE, "if missing:", "if False:"),
    ),
    _mutant(
        "truthy",
        "a predicate admits by any truth",
        ("kernel.judge:_admits", "ask(party) is True", "bool(ask(party))"),
    ),
    _mutant(
        "forbids-lost",
        "a slice holds no forbid",
        (
            "kernel.policies:Index.slice",
            "for policy in self._by_head.get(head, ())",
            "for policy in self._by_head.get(head, ()) if policy.permit",
        ),
    ),
    _mutant(
        "roles-lost",
        "a slice holds no policy about a role",
        (
            "kernel.policies:Index.slice",
            "{ANYONE, *principals}",
            '{ANYONE, *(each for each in principals if each[0] != "Role")}',
        ),
    ),
    _mutant(
        "empty-allows",
        "a tool about which no policy speaks is allowed",
        (
            _JUDGE,
            "if not decision.allow:",
            "if not gate.index.policies:\n                decision = Decision(True)\n"
            "            if not decision.allow:",
        ),
    ),
    _mutant(
        "policy-skipped",
        "a denial of policy is a note",
        (_DECIDE, "if not decision.allow:", "if decision.errors:"),
    ),
    _mutant(
        "error-is-denial",
        "a policy that errs is audited as a plain denial",
        ("kernel.denials:denied", "if decision.errors and not missing and not of_people:", "if False:"),
    ),
    _mutant(
        "unaudited",
        "a hidden call is not audited",
        (
            _INVOKE,
            "yield Audit(",
            "if not isinstance(outcome, Hidden):\n            yield Audit(",
        ),
    ),
)
