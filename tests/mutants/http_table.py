"""The mutants of HTTP, of idempotency keys and of guards: a surface that tells more, or runs more than once.

Numbers with an M are those of the list of leaks that a suite must see; the others are ours. Runs nothing.
"""

from __future__ import annotations

from typing import Final

from .mutant import mutant

HTTP: Final = "http tells nothing"
KEYS: Final = "keyed calls, walked"
HIDDEN_KEYS: Final = "keys of hidden actions"
INPUTS: Final = "one input, two inputs"
FLAT: Final = "query strings"
METHODS: Final = "methods"
SESSIONS: Final = "sessions"
GUARDS: Final = "guards"
STORE: Final = "a store in memory"
ATOMIC: Final = "atomic calls"
_INVOKE: Final = "kernel.gates:Kernel.invoke"
_MISS: Final = "outcome: Outcome = Hidden(call.name)"
_AGAIN: Final = "kernel.replay:_again"
_KNOWN: Final = (
    "next((each for each in self.catalog.entries if call.name == "
    '(each.path if call.surface == "http" else each.name)), None)'
)

HTTP_MUTANTS: Final = (
    mutant(
        "M10",
        "a keyed call of a hidden action leaves a record",
        ("kernel.idempotency:attempt_of", "[owner, entry.name, key]", "[owner, key]"),
        (
            _INVOKE,
            _MISS,
            f"{_MISS}\n            if call.key and {_KNOWN} is not None:\n"
            "                held = [owner_key(view.judge.server, view.principal), call.key]\n"
            "                slot = __import__('hashlib').sha256(__import__('json').dumps(held).encode())\n"
            "                ask = __import__('nonsuch.kernel.steps', fromlist=['Reserve']).Reserve\n"
            "                yield ask(slot.hexdigest(), 'hidden', b'[]')",
        ),
        first=HIDDEN_KEYS,
    ),
    mutant(
        "reserved-hidden",
        "a hidden action that takes no key says so (the kind of M13)",
        (
            _INVOKE,
            _MISS,
            f"known = {_KNOWN}\n            {_MISS}\n"
            "            if known is not None and (issues := asked(known, call).issues):\n"
            "                outcome = InvalidArguments(issues)",
        ),
        first=HTTP,
    ),
    mutant(
        "M16",
        "the OpenAPI document is of all paths",
        ("adapters.http.openapi:Documents._encoded", "table.paths.values()", "list(self._routes)"),
        first=HTTP,
    ),
    mutant(
        "openapi-security",
        "the OpenAPI document says of security what it does not say to others",
        (
            "adapters.http.openapi:_security",
            "return [{name: []} for name in _schemes(described)]",
            "return [{name: [str(described)]} for name in _schemes(described)]",
        ),
        first="documents",
    ),
    mutant(
        "openapi-for-nobody",
        "the OpenAPI document needs no caller",
        (
            "adapters.http.invoke:_served",
            "who = yield from",
            "if head.path == server.prefix + OPENAPI:\n        return Reply(200)\n    who = yield from",
        ),
        first="documents",
    ),
    mutant(
        "M31",
        "all callers share one space of keys",
        ("kernel.idempotency:attempt_of", "[owner, entry.name, key]", "[entry.name, key]"),
        first=KEYS,
    ),
    mutant(
        "keys-of-all-actions",
        "all actions share one space of keys",
        ("kernel.idempotency:attempt_of", "[owner, entry.name, key]", "[owner, key]"),
        first=KEYS,
    ),
    mutant(
        "replay-unjudged",
        "a retry is answered without a policy",
        (_AGAIN, "if not decision.allow:", "if False:"),
        first=KEYS,
    ),
    mutant(
        "replay-of-any-input",
        "a key answers whatever input comes with it",
        (_AGAIN, "kept.digest not in one.digests", "False"),
        first=KEYS,
    ),
    mutant(
        "replay-in-progress",
        "a call that has not ended is run again",
        ("kernel.replay:_recalled", "case Returned(None):", "case Returned(Kept(outcome=None) | None):"),
        ("kernel.replay:reserved", "kept if ours", "kept if ours or kept.outcome is None"),
        first="steps of keyed calls",
    ),
    mutant(
        "failures-forgotten",
        "a failure is run again",
        ("kernel.replay:remembered", "isinstance(outcome, (Ok, Failed))", "isinstance(outcome, Ok)"),
        first=KEYS,
    ),
    mutant(
        "interrupted-runs-again",
        "an interrupted call is forgotten",
        (
            "kernel.replay:remembered",
            "elif not isinstance(answer, Raised) or isinstance(answer.error, Exception):",
            "elif isinstance(answer, Raised) and not isinstance(answer.error, Exception):\n"
            "        yield Remember(kept, None)\n    else:",
        ),
        first="steps of keyed calls",
    ),
    mutant(
        "denied-is-recorded",
        "a call is recorded before it is judged",
        (
            "kernel.replay:admitted",
            "return attempt if known is None else known",
            "if known is None:\n        yield Reserve(attempt.slot, attempt.digests[0], b'[]')\n"
            "    return attempt if known is None else known",
        ),
        first=KEYS,
    ),
    mutant(
        "key-not-required",
        "an action that requires a key runs without one",
        (
            "kernel.gates:_decide",
            "if asked.key is not None or entry.requires_key:",
            "if asked.key is not None:",
        ),
        first="steps of keyed calls",
    ),
    mutant(
        "unrecorded",
        "a keyed call runs where nothing can be recorded",
        (
            "kernel.replay:_recalled",
            'case _:\n            return failed("X_IDEMPOTENCY_STORE_FAILED")',
            "case _:\n            return None",
        ),
        first="steps of keyed calls",
    ),
    mutant(
        "unsent-is-sent",
        "a default that was sent is one that was not",
        ("kernel.idempotency:_members", " & value.__pydantic_fields_set__", ""),
        first=INPUTS,
    ),
    mutant(
        "types-merged",
        "values of two types are one",
        ("kernel.idempotency:_plain", "[kind.__name__, repr(value)]", "repr(value)"),
        first=INPUTS,
    ),
    mutant(
        "strange-is-nothing",
        "a value of an unknown type is no part of the input",
        ("kernel.idempotency:canonical", "if strange:", "if False:"),
        first=INPUTS,
    ),
    mutant(
        "unkeyed-digest",
        "whoever reads the store can guess at inputs",
        (
            "kernel.seal:Seal.digests",
            "return tuple(_tag(key, purpose, bound, payload).hex() for key in self._keys)",
            "return (hashlib.sha256(payload).hexdigest(),)",
        ),
        first=INPUTS,
    ),
    mutant(
        "memory-two-winners",
        "two that begin at once both do",
        (
            "adapters.edge.idempotency:MemoryIdempotencyStore.begin",
            "held is not None and kept.begun < held.expires",
            "False",
        ),
        first=STORE,
    ),
    mutant(
        "memory-never-expires",
        "a record outlives its time",
        ("adapters.edge.idempotency:MemoryIdempotencyStore.find", "now < held.expires", "True"),
        first=STORE,
    ),
    mutant(
        "late-ends-others",
        "who ends late ends the record of whoever came after",
        (
            "adapters.edge.idempotency:MemoryIdempotencyStore.end",
            "self._kept.get(kept.slot) == replace(kept, outcome=None)",
            "True",
        ),
        first=STORE,
    ),
    mutant(
        "full-forgets",
        "a full store forgets what it keeps",
        ("adapters.edge.idempotency:MemoryIdempotencyStore.begin", "raise StoreFull", "self._kept.clear()"),
        first=STORE,
    ),
    mutant(
        "atomic-not-committed",
        "an atomic call that was not committed is a success",
        ("kernel.replay:remembered", "if entry.atomic and not isinstance(told, Returned):", "if False:"),
        first=ATOMIC,
    ),
    mutant(
        "atomic-stays-open",
        "what a stopped handler did waits for somebody to commit it",
        ("adapters.edge.idempotency:IdempotencyBook.within", "self.store.forget(kept)", "asyncio.sleep(0)"),
        first=ATOMIC,
    ),
    # HTTP
    mutant(
        "get-runs-anything",
        "every method runs what is at a path",
        (
            "adapters.http.routes:Route.answers",
            '("GET" if method == "HEAD" else method) in self.methods',
            "True",
        ),
        first=METHODS,
    ),
    mutant(
        "kept-by-anybody",
        "what a GET answers may be kept between",
        ("adapters.http.invoke:serve", 'if head.method not in ("GET", "HEAD"):', "if True:"),
        first=METHODS,
    ),
    mutant(
        "query-beside-body",
        "a query string beside a body is not looked at",
        ("adapters.http.invoke:_sent", "if head.query:", "if False:"),
        first=METHODS,
    ),
    mutant(
        "hidden-options",
        "OPTIONS knows the paths of everybody",
        (
            "adapters.http.invoke:_answered",
            "if route is not None and not route.answers(head.method):",
            "known = [each for each in server.routes if each.path == asked.path]\n"
            '    if known and head.method == "OPTIONS":\n        return Reply(204)\n'
            "    if route is not None and not route.answers(head.method):",
        ),
        first=HTTP,
    ),
    mutant(
        "hidden-query",
        "a query string is read by the shapes of whatever is at its path",
        (
            "adapters.http.invoke:_answered",
            "call = Call(",
            "hidden = next((each for each in server.routes if each.path == asked.path), None)\n"
            "    if hidden is not None and asked.entry is None and head.query:\n"
            '        return problem(422, refused("X_INPUT_INVALID"))\n    call = Call(',
        ),
        first=HTTP,
    ),
    mutant(
        "integers-leniently",
        "a number may be spelled in other ways",
        ("adapters.http.flat:_scalar", "_INTEGER.fullmatch(text)", "text.strip().lstrip('+').isdecimal()"),
        first=FLAT,
    ),
    mutant(
        "last-one-wins",
        "of a key that comes twice the last one counts",
        ("adapters.http.flat:Shape.read", "values[0] if len(values) == 1 else", "values[-1] if values else"),
        first=FLAT,
    ),
    mutant(
        "booleans-leniently",
        "a truth may be spelled in other ways",
        (
            "adapters.http.flat:_scalar",
            'text in ("true", "false")',
            'text.lower() in ("true", "false", "1", "0")',
        ),
        first=FLAT,
    ),
    mutant(
        "bytes-replaced",
        "bytes that are no UTF-8 are read as something",
        ("adapters.http.flat:_text", '"surrogateescape"', '"replace"'),
        first=FLAT,
    ),
    mutant(
        "session-beside-token",
        "a token of another kind falls back on a session",
        ("adapters.http.session:session_of", '"authorization" in head.headers or ', ""),
        first=SESSIONS,
    ),
    mutant(
        "cookie-twice",
        "of a cookie that comes twice one counts",
        ("adapters.http.session:cookies_of", "times[name] == 1", "times[name] >= 1"),
        first=SESSIONS,
    ),
    mutant(
        "key-twice",
        "a key that comes twice is a key",
        ("adapters.http.invoke:key_of", 'return said if _BARE.fullmatch(said) else ""', "return said"),
        first=SESSIONS,
    ),
    # guards
    mutant(
        "guard-unseen",
        "a guard asks nobody whether its action is visible",
        ("kernel.guarded:_decided", "if not view.holds(entry):", "if False:"),
        first=GUARDS,
    ),
    mutant(
        "guard-unscoped",
        "a guard asks for no scope",
        ("kernel.guarded:_decided", "if refused is not None:", "if False:"),
        first=GUARDS,
    ),
    mutant(
        "guard-blind",
        "a guard lets a policy read no arguments where none were given",
        ("kernel.guarded:_context", 'PolicyError(("<arguments>",)) if judge.gate(entry).fields else', ""),
        first=GUARDS,
    ),
    mutant(
        "guard-any-facts",
        "a guard judges whatever it is given",
        ("kernel.guarded:_judged", "isinstance(facts, kind.model) and", ""),
        first=GUARDS,
    ),
    mutant(
        "guard-unaudited",
        "a guard's decision is not audited",
        ("kernel.guarded:guarded", "yield Audit(", "if outcome is None:\n        yield Audit("),
        first=GUARDS,
    ),
    mutant(
        "guard-loads-first",
        "a guard loads a resource for who may not act at all",
        (
            "adapters.edge.guards:Guard.closed",
            "if view is None or stops_early(view, self.entry) else None",
            "if view is None else None",
        ),
        first=GUARDS,
    ),
    mutant(
        "guard-lets-nobody-pass",
        "a guard lets a view run that it refused",
        ("adapters.edge.guards:Guard._asked", "self.check(who, resource, arguments) or", ""),
        first=GUARDS,
    ),
)
