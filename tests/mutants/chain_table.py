"""The mutants of the audit and its chain: records that bind too little, readers that let pass, silent losses.

Runs nothing.
"""

from __future__ import annotations

from typing import Final

from .mutant import mutant

CHAIN: Final = "chain: another program's"
ATTACKS: Final = "chain: attacks"
HEADS: Final = "chain: heads"
KEYS: Final = "chain: keys"
TORN: Final = "chain: torn lines"
WRITERS: Final = "chain: writers"
WRITTEN: Final = "chain: written"
OUTCOMES: Final = "audit: outcomes"
LINES: Final = "audit: lines"

_MAC: Final = "kernel.chain:_mac"
_BOUND: Final = "(_DOMAIN, before, seq.to_bytes(8), key.encode())"
_FORGED: Final = "kernel.chain_walk:Walk._forged"
_TAKE: Final = "kernel.chain_walk:Walk.take"
_TOLD: Final = "adapters.edge.audit:_declared"

CHAIN_MUTANTS: Final = (
    mutant(
        "seq-unbound",
        "a record's number is not in its MAC",
        (_MAC, _BOUND, _BOUND.replace("seq.to_bytes(8)", "bytes(8)")),
        first=CHAIN,
    ),
    mutant(
        "chain-unlinked",
        "the MAC before is not in a record's MAC",
        (_MAC, _BOUND, _BOUND.replace("before", "bytes(32)")),
        first=CHAIN,
    ),
    mutant(
        "key-unbound",
        "the id of the key is not in the MAC",
        (_MAC, _BOUND, _BOUND.replace("key.encode()", "b''")),
        first=CHAIN,
    ),
    mutant(
        "event-unbound",
        "of a long event only the beginning is in the MAC",
        (_MAC, 'event.encode("utf-8", "surrogatepass")', 'event[:16].encode("utf-8", "surrogatepass")'),
        first=CHAIN,
    ),
    mutant(
        "several-spellings",
        "a line is read that is not as a record is written",
        ("kernel.chain:record_of", "_LINE.fullmatch(line)", "_LINE.fullmatch(line.strip())"),
        first=ATTACKS,
    ),
    mutant(
        "mac-unread",
        "no MAC is compared",
        (_FORGED, "if not hmac.compare_digest(genuine.mac, record.mac)", "if genuine is None"),
        first=ATTACKS,
    ),
    mutant(
        "mac-begins",
        "two MACs are one if they begin alike",
        (_FORGED, "(genuine.mac, record.mac)", "(genuine.mac[:1], record.mac[:1])"),
        first=ATTACKS,
    ),
    mutant(
        "any-number",
        "records may be missing between two that are there",
        (
            "kernel.chain_walk:Walk._out_of_place",
            "if record.seq == due:",
            "if record.seq >= due:",
        ),
        first=ATTACKS,
    ),
    mutant(
        "junk-skipped",
        "what is no record is passed over",
        (_TAKE, "rest is not None and not rest.is_told_by(said)", "rest is None and said is NotImplemented"),
        first=ATTACKS,
    ),
    mutant(
        "last-line-lax",
        "a last line that is no record is torn, also if it was written to its end",
        ("kernel.chain_walk:Walk.unfinished", "self._rest.lines == 0", "self._rest.lines >= 0"),
        first=ATTACKS,
    ),
    mutant(
        "torn-by-length",
        "a torn line may be any other of its length",
        (
            "kernel.chain_walk:_Rest.is_told_by",
            "(self._length, self._digest.hexdigest())",
            '(self._length, told.get("sha256"))',
        ),
        first=TORN,
    ),
    mutant(
        "torn-removed",
        "a torn line may be taken away once it was told",
        (_TAKE, 'said["kind"] == "chain-torn"', 'said["kind"] == "no kind"'),
        first=TORN,
    ),
    mutant(
        "torn-not-told",
        "a writer goes on behind a torn line and does not tell of it",
        ("kernel.chain:joining", "if tail.rest is not None:", "if tail.rest is NotImplemented:"),
        first=TORN,
    ),
    mutant(
        "cut-unseen",
        "an end before a head that was kept is an end",
        ("kernel.chain_walk:Walk.end", "if kept > at:", "if kept < 0:"),
        first=HEADS,
    ),
    mutant(
        "rewritten-unseen",
        "another record at a head that was kept is a record",
        ("kernel.chain_walk:Walk._accepted", "!= {record.head}:", "== set():"),
        first=HEADS,
    ),
    mutant(
        "one-head-of-two",
        "of two heads of one record only the last is compared",
        (
            "kernel.chain_walk:Walk.__init__",
            "self._kept.setdefault(head.seq, set()).add(head)",
            "self._kept[head.seq] = {head}",
        ),
        first=HEADS,
    ),
    mutant(
        "any-key",
        "a key needs no record that lets it in",
        (_FORGED, "if self.keys and record.key not in self._let_in", "if record.key is None"),
        first=KEYS,
    ),
    mutant(
        "any-key-first",
        "a writer with a newer key does not let it in",
        ("kernel.chain:joining", "if before != newest:", "if before == NotImplemented:"),
        first=KEYS,
    ),
    mutant(
        "cut-told-unread",
        "what a writer says of missing records is not read",
        ("kernel.chain_walk:Walk._noted", '"kind": "chain-cut"', '"kind": "no kind"'),
        first=WRITERS,
    ),
    mutant(
        "unclosed-unseen",
        "a chain whose writers did not end is closed",
        ("kernel.chain_walk:Walk.end", "closed and (self.unended or not at)", "closed and not at"),
        first=WRITERS,
    ),
    mutant(
        "text-is-note",
        "a text of a caller is read as a note of the chain",
        (
            "kernel.chain:note_in",
            'if \'"kind":"chain-\' not in event:',
            "if (found := re.search('(chain-gap|chain-cut)', event)):\n"
            '        return {"kind": found[1], "lost": 1, "had": "x"}\n'
            '    if \'"kind":"chain-\' not in event:',
        ),
        first=WRITERS,
    ),
    mutant(
        "stale-tail",
        "a writer goes on where it ended, whatever others wrote since",
        ("adapters.edge.audit_file:FileLedger._tail", "if there and end == size:", "if there:"),
        first=WRITTEN,
    ),
    mutant(
        "loss-of-own-unseen",
        "a writer does not look whether its last record is still there",
        ("adapters.edge.audit_file:FileLedger._tail", "if not there:", "if last is None:"),
        first=WRITTEN,
    ),
    mutant(
        "torn-overwritten",
        "a writer goes on in the middle of a torn line",
        ("adapters.edge.audit_file:FileLedger.append", "if lines and not ended:", "if ended is None:"),
        first=WRITTEN,
    ),
    mutant(
        "written-twice",
        "what was written in part is written again",
        ("adapters.edge.audit_writing:Writing.write", "max(partly.count - self._before, 0)", "0"),
        first=WRITTEN,
    ),
    mutant(
        "dropped-at-fault",
        "what could not be written is forgotten",
        (
            "adapters.edge.audit_writing:Writing._failed",
            "self._failing = True",
            "self._failing = True\n        self.pending.clear()",
        ),
        first=WRITTEN,
    ),
    mutant(
        "lost-silently",
        "what finds no room is not counted",
        ("adapters.edge.audit_chain:AuditChain._squeeze", "self._lost += 1", "self._lost += 0"),
        first=WRITTEN,
    ),
    mutant(
        "gap-untold",
        "what was lost has no record",
        ("adapters.edge.audit_chain:AuditChain._tell_gap", "self._waiting.append(", "str("),
        first=WRITTEN,
    ),
    mutant(
        "gap-too-late",
        "what was lost last has no record until another event comes",
        ("adapters.edge.audit_chain:AuditChain._take", "if self._lost and not", "if not self._lost and not"),
        first=WRITTEN,
    ),
    mutant(
        "notified-unaudited",
        "a call without an id leaves no trace (T22)",
        ("adapters.mcp.server:_taken", "yield from unanswered(message, who)", "yield from ()"),
        first=OUTCOMES,
    ),
    mutant(
        "malformed-unaudited",
        "a call of no shape leaves no trace",
        (
            "adapters.mcp.metering:malformed",
            "yield from _unrun(request.message, request.who)",
            "yield from ()",
        ),
        first=OUTCOMES,
    ),
    mutant(
        "foreign-unaudited",
        "a request of a foreign host or page leaves no trace",
        ("adapters.door:foreign", "if told is not None:", "if False:"),
        first=OUTCOMES,
    ),
    mutant(
        "foreign-misnamed",
        "a foreign page is audited as a foreign host",
        ("adapters.door:foreign", "if door.admits_host(head) else", "if False else"),
        first=OUTCOMES,
    ),
    mutant(
        "unread-unaudited",
        "a call over HTTP that is not read leaves no trace",
        (
            "adapters.http.invoke:_unread",
            'yield Audit(malformed_call(asked.view.principal, name, "http", code))',
            "yield from ()",
        ),
        first=OUTCOMES,
    ),
    mutant(
        "not-ascii",
        "a line of the audit holds other letters as they are",
        (
            "adapters.edge.audit:line",
            'json.dumps(members, separators=(",", ":"))',
            'json.dumps(members, separators=(",", ":"), ensure_ascii=False)',
        ),
        first=LINES,
    ),
    mutant(
        "delete-kept",
        "the control character that JSON leaves is in a line",
        ("adapters.edge.audit:line", '.replace("\\x7f", "\\\\u007f")', ""),
        first=LINES,
    ),
    mutant(
        "uncut",
        "the argument of a completion is in its line, however long it is",
        (_TOLD, "named[:MAX_NAME_CHARS]", "named[:]"),
        first=LINES,
    ),
)
