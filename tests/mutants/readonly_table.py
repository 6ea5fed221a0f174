"""The mutants of the layers of `db.query` and of the live catalogue. Runs nothing."""

from __future__ import annotations

from typing import Final

from .mutant import mutant

_AT: Final = "adapters.edge.postgres"
_VERIFIED: Final = f"{_AT}.readonly_session:Session._verified"
_OPENED: Final = f"{_AT}.readonly_session:opened"
_CAPPED: Final = f"{_AT}.readonly_caps:capped"
_TAKE: Final = f"{_AT}.readonly_caps:Rows.take"
_FITS: Final = f"{_AT}.readonly_caps:Rows._fits"
_ANSWER: Final = f"{_AT}.readonly:ReadOnly._answer"
_WEIGHS: Final = "kernel.sql_weigh:_Weigher"

_OF_SESSIONS: Final = (
    mutant(
        "layer-read-write",
        "a transaction that may write is taken for one that may not",
        (_VERIFIED, 'if read_only != "on":', "if False:"),
        first="layers: verified",
    ),
    mutant(
        "layer-unverified",
        "settings are not read back before a query",
        (_VERIFIED, "if tuple(held) != standing.settings:", "if False:"),
        first="layers: verified",
    ),
    mutant(
        "layer-unpinned",
        "a session whose settings cannot be pinned is used",
        (f"{_AT}.readonly_session:_pinned", "if not held.hold(settings):", "if False:"),
        first="layers: verified",
    ),
    mutant(
        "layer-tainted",
        "a connection on which something is left is kept",
        (
            f"{_AT}.readonly_session:Session._looked_at",
            "and left == nothing_left(self.plans.names)",
            "and left",
        ),
        first="layers: connections",
    ),
    mutant(
        "layer-kept-anyway",
        "a connection is kept whether it was looked at or not",
        (f"{_AT}.readonly_pool:Sessions.one", "if LEFT_CLEAN in session.guards:", "if True:"),
        first="layers: connections",
    ),
    mutant(
        "layer-for-ever",
        "what was found of a role holds for ever",
        (
            f"{_AT}.readonly_pool:Sessions._taken",
            "if not fresh and shelf.loop.time() - found.since < LIFE_SECONDS:",
            "if not fresh:",
        ),
        first="layers: connections",
    ),
    mutant(
        "layer-stale",
        "a connection that was ended is tried once more",
        (f"{_AT}.readonly:ReadOnly._query", "fresh=True", "fresh=False"),
        first="layers: connections",
    ),
    mutant(
        "layer-any-login",
        "every login is told as one that only reads",
        (_OPENED, "if await _besides_reading(wire, None) is None:", "if True:"),
        first="layers: told truly",
    ),
    mutant(
        "layer-any-role",
        "every role is told as one that only reads",
        (_OPENED, "if await _besides_reading(wire, role) is None:", "if True:"),
        first="layers: told truly",
    ),
    mutant(
        "layer-login-as-set",
        "a role that is set is told as a login",
        (_OPENED, "guards.add(SET)", "guards.add(LOGIN)"),
        first="layers: told truly",
    ),
    mutant(
        "layer-some-revoked",
        "functions are told as revoked where one of them is",
        (f"{_AT}.readonly_session:_harmless", "return all(", "return any("),
        first="layers: told truly",
    ),
    mutant(
        "layer-text-told",
        "a text that nobody read is told as read",
        (f"{_AT}.readonly:ReadOnly._standing", "{TEXT} if asked.judged else set[str]()", "{TEXT}"),
        first="layers: told truly",
    ),
    mutant(
        "layer-plan-limits",
        "a plan is told to have limits of rows and cells",
        (_ANSWER, "{BYTE_LIMIT} if explain else {ROW_LIMIT", "{ROW_LIMIT"),
        first="layers: told truly",
    ),
    mutant(
        "layer-not-required",
        "a layer that is required may be missing",
        (f"{_AT}.readonly:ReadOnly._lacking", "if not lacking:", "if True:"),
        first="layers: told truly",
    ),
)

_AGAIN: Final = f"{_AT}.readonly:ReadOnly._again"
_ENDED: Final = f"{_AT}.readonly_session:Session._ended"

_OF_PLANS: Final = (
    mutant(
        "again-unheld",
        "a planned query runs whatever the session is pinned to",
        (
            f"{_AT}.readonly_settings:Pins.prepared",
            "_STOPS.format(asked=asked)",
            '"($1::text[] IS NOT NULL)::text"',
        ),
        first="layers: again",
    ),
    mutant(
        "again-unverified",
        "of a planned query the server alone verifies the session",
        (_ENDED, "self._verified(_row(answer)[:-1])", "self.standing.verified"),
        first="layers: again",
    ),
    mutant(
        "again-other-columns",
        "rows of a planned query are read by the columns that it had",
        (_ENDED, "batch.same = columns_of(answer) == batch.rows.columns", "batch.same = True"),
        first="layers: again",
    ),
    mutant(
        "again-any-reading",
        "a plan stands for a text however it was read",
        (
            f"{_AT}.readonly:_asking",
            "asked.text, shown(asked.text, asked.facts), limit",
            'asked.text, "", limit',
        ),
        first="layers: again",
    ),
    mutant(
        "again-unasked",
        "of a planned query the live catalogue is not asked",
        (_AGAIN, "if plan is None or self._unasked(asked) is not None:", "if plan is None:"),
        first="layers: again",
    ),
    mutant(
        "again-not-required",
        "a layer that is required may be missing from a planned query",
        (_AGAIN, "if names is None or self._lacking(standing) is not None:", "if names is None:"),
        first="layers: again",
    ),
    mutant(
        "again-ended",
        "a planned query is lost with a connection that was ended",
        (_AGAIN, "if not session.is_there():", "if False:"),
        first="layers: again",
    ),
    mutant(
        "again-skipped",
        "what the server skipped behind a mistake counts as its answer",
        (_ENDED, "elif batch.error is not None:", "elif False:"),
        first="layers: again",
    ),
)

_OF_LIMITS: Final = (
    mutant(
        "limit-rows-silent",
        "rows beyond the limit are left out and not told",
        (_CAPPED, 'return f"SELECT {listed} LIMIT {rows + 1}"', 'return f"SELECT {listed} LIMIT {rows}"'),
        first="layers: limits",
    ),
    mutant(
        "limit-rows-open",
        "what is asked for is not taken into the ceiling",
        (f"{_AT}.readonly_caps:rows_of", "min(limit, MAX_ROWS)", "limit"),
        first="layers: limits",
    ),
    mutant(
        "limit-cells",
        "cells of any size are sent",
        (_CAPPED, "<= {limit} THEN", "<= 2000000000 THEN"),
        first="layers: limits",
    ),
    mutant(
        "limit-cells-silent",
        "a cell that is left out is not told",
        (_TAKE, 'self.cut.add("cells")', "pass"),
        first="layers: limits",
    ),
    mutant(
        "limit-bytes",
        "an answer may have any number of bytes",
        (_FITS, "self.bytes + size > MAX_BYTES", "False"),
        first="layers: limits",
    ),
    mutant(
        "limit-time-as-mistake",
        "a query that was stopped is told as a mistake in it",
        (f"{_AT}.readonly_words:of_server", "if error.state in _TIMEOUTS:", "if False:"),
        first="layers: limits",
    ),
)

_OF_CATALOGUES: Final = (
    mutant(
        "live-not-asked",
        "the live catalogue is not asked on the way to the rows",
        (
            f"{_AT}.readonly:ReadOnly._unasked",
            "return None if self._check is None or",
            "return None if True or",
        ),
        first="layers: live on the way",
    ),
    mutant(
        "live-remembered",
        "what the live catalogue said holds for ever",
        (
            f"{_AT}.readonly_live:LiveCheck._said",
            "0 <= now - known[0] < FRESH_SECONDS",
            "True",
        ),
        first="layers: live on the way",
    ),
    mutant(
        "live-foreign",
        "a foreign table reads like any other",
        (f"{_WEIGHS}._relations", "if there.foreign:", "if False:"),
        first="layers: live names",
    ),
    mutant(
        "live-views",
        "what a view selects is not read",
        (f"{_WEIGHS}._relations", "for text in there.texts", "for text in ()"),
        first="layers: live names",
    ),
    mutant(
        "live-bodies",
        "what a body does besides reading counts for nothing",
        (f"{_WEIGHS}._of_a_body", "if each.family not in _DEFERRED:", "if False:"),
        first="layers: live names",
    ),
    mutant(
        "live-labels",
        "IMMUTABLE is believed of a function in any language",
        (f"{_WEIGHS}._wrong_of", 'one.may or one.language != "sql"', "one.may"),
        first="layers: live names",
    ),
    mutant(
        "live-volatile",
        "a function in SQL may be volatile or a definer's",
        (f"{_WEIGHS}._wrong_of", 'one.may or one.language != "sql"', 'one.language != "sql"'),
        first="layers: live names",
    ),
    mutant(
        "live-extensions",
        "every extension is trusted",
        (f"{_WEIGHS}._wrong_of", "one.extension in TRUSTED and not one.may", "True"),
        first="layers: live names",
    ),
    mutant(
        "live-rows-as-columns",
        "behind the alias of a table a dot is never a call",
        ("kernel.sql_weigh:_of_rows", "for relation in facts.relations:", "for relation in ():"),
        first="layers: live names",
    ),
    mutant(
        "live-shadows",
        "a name that the system has means nothing else",
        (f"{_WEIGHS}._visible", "spelt[:-1] or self._own.path", "spelt[:-1]"),
        first="layers: live names",
    ),
)

_OF_TOOLS: Final = (
    mutant(
        "query-told-to-all",
        "a statement is read for whoever has the scope",
        ("kernel.gates:_decide", "if not at_all.allow:", "if False:"),
        first="layers: two worlds",
    ),
    mutant(
        "query-without-piece",
        "a refusal names no piece of the statement",
        ("kernel.denials:denied", "if words is not None:", "if False:"),
        first="layers: the tool",
    ),
    mutant(
        "query-any-name",
        "the tool may have a name that no policy speaks of",
        ("kernel.loader:_named", "if only not in (None, entry.name):", "if False:"),
        first="layers: the tool",
    ),
)

READONLY_MUTANTS: Final = (*_OF_SESSIONS, *_OF_PLANS, *_OF_LIMITS, *_OF_CATALOGUES, *_OF_TOOLS)
