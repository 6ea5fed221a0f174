"""The mutants of confirmations: something runs unconfirmed, twice or too late, or somebody else decides.

Numbers with an M are those of the list of leaks that a suite must see; the others are ours. Runs nothing.
"""

from __future__ import annotations

from typing import Final

from .mutant import Mutant, mutant
from .rewrite import PolicyEdit

CALLS: Final = "confirmed calls"
TIMES: Final = "confirmed in time"
WHO: Final = "who confirms"
KEYS: Final = "confirmed by keys of today"
DIGEST: Final = "one digest, two digests"
TABLE: Final = "the table of confirmations"
STORE: Final = "confirmations in memory"
HIDDEN: Final = "hidden gated tools are absent, walked"
_INVOKE: Final = "kernel.gates:Kernel.invoke"
_DECIDE: Final = "kernel.gates:_decide"
_MISS: Final = "outcome: Outcome = Hidden(call.name)"
_MOVED: Final = "kernel.confirmation:moved"
_PRINT: Final = "kernel.confirmation:Gated.fingerprint"
_SPENT: Final = "kernel.confirmed:spent"
_DESK: Final = "adapters.edge.confirming:Desk"

CONFIRM_MUTANTS: Final = (
    mutant(
        "M09",
        "a confirmation is asked for a hidden tool",
        (
            _INVOKE,
            _MISS,
            "known = next((each for each in self.catalog.entries if each.name == call.name), None)\n"
            "            if known is not None and hasattr(known.confirming, 'ttl'):\n"
            "                return (yield from self._confirmed(view, known, call, line))\n"
            f"            {_MISS}",
        ),
        first=HIDDEN,
    ),
    mutant(
        "confirm-plain-digest",
        "the digest of a call is made without a key",
        (
            _PRINT,
            "self.keys.fingerprint(FINGERPRINT_PURPOSE, len(call).to_bytes(4) + call + canonical)",
            "__import__('hashlib').sha256(call + canonical).hexdigest()",
        ),
        first=KEYS,
    ),
    mutant(
        "confirm-digest-of-what-was-sent",
        "the digest is made before validation",
        (
            "kernel.confirmed:fingerprint",
            "canonical(given, dict(sent))",
            "json.dumps(dict(sent), sort_keys=True).encode()".replace("json", "__import__('json')"),
        ),
        first=DIGEST,
    ),
    mutant(
        "confirm-digest-without-schema",
        "a call under another schema is the same call",
        (_PRINT, "[owner, tool, self.schema]", "[owner, tool]"),
        first=KEYS,
    ),
    mutant(
        "confirm-anybodys-call",
        "one caller's approval is another's",
        ("kernel.confirmed:_asking", "owner = owner_key(server, who)", "owner = server"),
        first=CALLS,
    ),
    mutant(
        "confirm-approve-blind",
        "an approval needs no arguments",
        (
            f"{_DESK}._same",
            "entry = self._gates[row.server].get(row.tool)",
            "if sent is None:\n            return\n        entry = self._gates[row.server].get(row.tool)",
        ),
        first=CALLS,
    ),
    mutant(
        "confirm-approve-anything",
        "an approval carries any arguments",
        (f"{_DESK}._same", "if carried(gated, row, entry, sent) != row.fingerprint:", "if not gated:"),
        first=CALLS,
    ),
    mutant(
        "confirm-swapped-after-view",
        "an approval is of a call that the tool would take, whichever",
        (
            f"{_DESK}._same",
            "carried(gated, row, entry, sent) != row.fingerprint",
            "carried(gated, row, entry, sent) is None",
        ),
        first=CALLS,
    ),
    mutant(
        "confirm-agent-admitted",
        "an agent decides under a policy that permits everything",
        ("kernel.compile:_action", 'people = "Human" if', 'people = "Agent, Human" if'),
        first=WHO,
    ),
    mutant(
        "confirm-decided-late",
        "a person decides when it has lapsed",
        (_MOVED, "at >= row.lapses", "at > row.lapses"),
        first=TIMES,
    ),
    mutant(
        "confirm-used-late",
        "an approval is used when it has lapsed",
        ("kernel.confirmation:Confirmation.status_at", "at < self.lapses", "at <= self.lapses"),
        first=TABLE,
    ),
    mutant(
        "confirm-run-lapses-early",
        "a run lapses when its confirmation does",
        (
            "kernel.confirmation:Confirmation.lapses",
            'if self.status == "running" else self.expires',
            'if self.status == "none" else self.expires',
        ),
        first=TABLE,
    ),
    mutant(
        "confirm-told-twice",
        "an outcome is told without being taken",
        (
            "kernel.confirmed:_once",
            "return told if isinstance(answer.value, Confirmation) else None",
            "return told",
        ),
        first=CALLS,
    ),
    mutant(
        "confirm-told-for-ever",
        "a rejection is told again and again",
        ("kernel.confirmed:_came", 'return (yield from _once(row, "refused", told))', "return told"),
        first=CALLS,
    ),
    mutant(
        "confirm-not-taken",
        "a call runs without taking its approval",
        (
            _DECIDE,
            "    if approved is not None:\n",
            "    if approved is view:\n",
        ),
        first=CALLS,
    ),
    mutant(
        "confirm-run-given-back",
        "an approval is good for a run after the run",
        (_SPENT, 'yield MoveConfirmation(row, "ran")', 'yield MoveConfirmation(row, "approved")'),
        first=CALLS,
    ),
    mutant(
        "confirm-not-over-http",
        "over HTTP nothing waits",
        (
            _INVOKE,
            "elif entry.confirming is not None:",
            'elif entry.confirming is not None and call.surface != "http":',
        ),
        first=CALLS,
    ),
    mutant(
        "confirm-not-with-a-key",
        "a call with an idempotency key does not wait",
        (_DECIDE, "    if slip is not None:\n", "    if slip is not None and attempt is None:\n"),
        first=CALLS,
    ),
    mutant(
        "confirm-asked-by-anybody",
        "a caller whom nothing permits asks people",
        ("kernel.confirmed:confirmed", "if not admission.allow:", "if not view:"),
        first=WHO,
    ),
    mutant(
        "confirm-asked-for-a-forbidden",
        "what a permit asks of the caller is not asked before people are",
        ("kernel.judge:Judge._admits", "if not (decision.allow or decision.errors):", "if not gate:"),
        first=WHO,
    ),
    mutant(
        "confirm-another-apps",
        "the rows of another app are decided here",
        (f"{_DESK}._read", "row.server in self._gates", "row.server"),
        first=WHO,
    ),
    mutant(
        "confirm-unknown-is-nobodys",
        "an id that is not there is asked about as of no organisation",
        (f"{_DESK}.facts", 'org=row.org or ""', 'org="" if row is NOBODYS else row.org or ""'),
        first=WHO,
    ),
    Mutant(
        "confirm-any-organisation",
        "people of another organisation view and decide",
        (PolicyEdit("then resource.org == principal.org", "then true"),),
        WHO,
    ),
    Mutant(
        "confirm-view-any-organisation",
        "people of another organisation view, and cannot decide",
        (
            PolicyEdit(
                "unless { if principal",
                'unless { if context.args.decision == "view" then true else if principal',
            ),
        ),
        WHO,
    ),
    Mutant(
        "confirm-none-is-any",
        "what was asked for no organisation anybody decides",
        (
            PolicyEdit(
                "then resource.org == principal.org", 'then [principal.org, ""].contains(resource.org)'
            ),
        ),
        WHO,
    ),
    mutant(
        "confirm-unbound",
        "the sealed arguments of one row open in another",
        (
            "kernel.confirmation:Confirmation.bound",
            "[self.ident, self.server, self.owner, self.tool, self.fingerprint]",
            "[]",
        ),
        first=TABLE,
    ),
    mutant(
        "confirm-lost-decision-counts",
        "who decided second is told that it counts",
        (
            f"{_DESK}.decide",
            "if decided is None or not await self._swapped(decided):",
            "if decided is None or await self._swapped(decided) is None:",
        ),
        first=CALLS,
    ),
    mutant(
        "confirm-store-forgets-versions",
        "a change takes the place of any version",
        (
            "adapters.edge.confirmations:MemoryConfirmationStore.swap",
            "held.version != row.version - 1",
            "held.version < 0",
        ),
        first=STORE,
    ),
    mutant(
        "confirm-one-too-many",
        "one caller has one more call wait than may",
        ("adapters.edge.confirmations:MemoryConfirmationStore.open", "waiting >= limit", "waiting > limit"),
        first=STORE,
    ),
    mutant(
        "confirm-rejection-is-no-denial",
        "a rejection is audited as if it still waited",
        (
            "kernel.audit:_classified",
            '"policy-denied" if code == REJECTED else "unconfirmed"',
            '"unconfirmed"',
        ),
        first=CALLS,
    ),
    mutant(
        "confirm-audit-without-id",
        "no line says which confirmation it was about",
        ("kernel.audit:with_slip", "confirmation=slip.confirmation", "confirmation=None"),
        first=CALLS,
    ),
)
