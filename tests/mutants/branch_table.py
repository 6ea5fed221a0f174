"""The mutants of branches and migrations: markers, clones, locks, transactions. Runs nothing."""

from __future__ import annotations

from typing import Final

from .mutant import mutant

_AT: Final = "adapters.edge.postgres"
_SEAL: Final = f"{_AT}.branch_marker:_seal"
_SHAPED: Final = f"{_AT}.branch_shape:Shape.statements"
_MAKE: Final = f"{_AT}.branches:_make"
_ENTERED: Final = f"{_AT}.migrate:_entered"
_PERFORM: Final = f"{_AT}.migrate:_perform"
_PLACE: Final = "place.system, place.oid, place.database"

_OF_MARKERS: Final = (
    mutant(
        "branch-unsealed",
        "any line that is well formed makes a branch",
        (
            f"{_AT}.branch_marker:found",
            "marker is None or not hmac.compare_digest(marker.seal, _seal(marker, place, key))",
            "marker is None",
        ),
        first="branches: markers",
    ),
    mutant(
        "branch-moved-server",
        "a line is worth something on another server",
        (_SEAL, _PLACE, "place.oid, place.database"),
        first="branches: markers",
    ),
    mutant(
        "branch-moved-oid",
        "a line is worth something on what took the name of a branch",
        (_SEAL, _PLACE, "place.system, place.database"),
        first="branches: markers",
    ),
    mutant(
        "branch-renamed",
        "a branch that was renamed, to production for one, stays one",
        (_SEAL, _PLACE, "place.system, place.oid"),
        first="branches: markers",
    ),
    mutant(
        "branch-words-unsealed",
        "what a line says can be changed",
        (_SEAL, "*bound, *said", "*bound"),
        first="branches: markers",
    ),
    mutant(
        "branch-words-joined",
        "text can move from one field of a line to the next",
        (_SEAL, "json.dumps([*bound, *said])", '"".join(map(str, [*bound, *said]))'),
        first="branches: markers",
    ),
    mutant(
        "branch-one-key",
        "every key is as good as the right one",
        (_SEAL, "hmac.digest(key,", 'hmac.digest(b"k",'),
        first="branches: markers",
    ),
    mutant(
        "branch-by-name",
        "a database is a branch by its name",
        (
            f"{_AT}.standing:Standing.branch",
            "return found(self.comment, self.place, key)",
            "return found(self.comment, self.place, key) or (\n"
            '            Marker("x", "x", 0, "", "") if "_branch_" in self.place.database else None\n'
            "        )",
        ),
        first="migrations: where",
    ),
)
_OF_BRANCHES: Final = (
    mutant(
        "branch-name-collides",
        "two names have one database",
        (f"{_AT}.branch_names:_told_apart", "return name if plain else", "return slug if True else"),
        first="branches: names",
    ),
    mutant(
        "branch-name-cut",
        "a name is longer than PostgreSQL keeps",
        (f"{_AT}.branch_names:database_of", "if size > MAX_BYTES:", "if len(database) > MAX_BYTES:"),
        first="branches: names",
    ),
    mutant(
        "branch-public",
        "everybody may enter a branch whose source is closed to them",
        (_SHAPED, "from public, {}", "from {}"),
        (_MAKE, 'sql_of("revoke all on database {} from public", fresh)', 'sql_of("select 1")'),
        first="branches: width",
    ),
    mutant(
        "branch-grant-option",
        "who is granted something may grant it on, or may not any more",
        (_SHAPED, '" with grant option" if grantable else ""', '""'),
        first="branches: width",
    ),
    mutant(
        "branch-unlimited",
        "a branch takes any number of connections",
        (_SHAPED, "sql.Literal(self.limit)", "sql.Literal(-1)"),
        first="branches: width",
    ),
    mutant(
        "branch-path-of-one",
        "a search path of several schemas becomes one of a long name",
        (f"{_AT}.branch_shape:_setting", "_names(value) if name.lower() in _LISTS else [value]", "[value]"),
        first="branches: width",
    ),
    mutant(
        "branch-open-early",
        "everybody can enter the clone before it is closed to them",
        (_MAKE, 'sql_of("revoke all on database {} from public", fresh)', 'sql_of("select 1")'),
        first="branches: killed",
    ),
    mutant(
        "branch-made-open",
        "a clone is open from its first moment",
        (f"{_AT}.branches:_creation", "allow_connections false", "allow_connections true"),
        first="branches: killed",
    ),
    mutant(
        "branch-in-pieces",
        "a branch gets its name, its marker and its doors one after the other",
        (f"{_AT}.branches:_finish", "with source.session.transaction():", "if True:"),
        first="branches: killed",
    ),
    mutant(
        "branch-alone-not",
        "several make branches of one source at once",
        (f"{_AT}.branch_source:alone", "if held:", "if True:"),
        first="branches: at once",
    ),
    mutant(
        "branch-of-any-source",
        "branches of other sources are listed, and dropped",
        (
            f"{_AT}.branch_source:branches_of",
            "marker is not None and marker.source_oid == source.place.oid",
            "marker is not None",
        ),
        first="branches: listed and dropped",
    ),
    mutant(
        "branch-reclaimed-by-name",
        "what only looks unfinished is dropped",
        (
            f"{_AT}.branch_source:_reclaim",
            "hmac.compare_digest(match[3], _proof(source, match[2]))",
            "True",
        ),
        first="branches: listed and dropped",
    ),
    mutant(
        "branch-never-reclaimed",
        "what a killed process left stays for ever",
        (f"{_AT}.branch_source:alone", "_reclaim(source)", "pass"),
        first="branches: killed",
    ),
    mutant(
        "branch-keeps-passwords",
        "a branch reaches other servers by the passwords of its source",
        (f"{_AT}.branch_load:_forget_passwords", "connection.execute(_MAPPINGS).fetchall()", "[]"),
        first="branches: contents",
    ),
    mutant(
        "branch-taken-from-nobody",
        "what another role takes from everybody is left out of a branch",
        (f"{_AT}.branch_load:_others", "if takes", "if False"),
        first="branches: defaults",
    ),
    mutant(
        "branch-without-history",
        "a schema comes without the migrations that it has seen",
        (f"{_AT}.branch_load:_load", "[*_histories(reading), *asked]", "asked"),
        first="branches: contents",
    ),
)
_OF_MIGRATIONS: Final = (
    mutant(
        "migrate-trusting",
        "the functions of a database answer for the server",
        (_ENTERED, "_plain(session)", "pass"),
        first="migrations: where",
    ),
    mutant(
        "migrate-text-as-it-is",
        "a file can end its transaction",
        (f"{_AT}.sql_file:run_file", "connection.execute(block)", "connection.execute(file.text.encode())"),
        first="migrations: no end",
    ),
    mutant(
        "migrate-beyond",
        "a file may change roles and other databases",
        (_PERFORM, "if before is None or after != before:", "if before is None:"),
        first="migrations: beyond",
    ),
    mutant(
        "migrate-uncounted",
        "where the server does not count, anything goes",
        (_PERFORM, "if before is None or after != before:", "if after != before:"),
        first="migrations: beyond",
    ),
    mutant(
        "migrate-deferred",
        "what a file defers runs after it was looked over",
        (_PERFORM, '"set constraints all immediate"', '"select 1"'),
        first="migrations: beyond",
    ),
    mutant(
        "migrate-beside",
        "two runs go on in one database",
        (_ENTERED, "if not alone:", "if False:"),
        first="migrations: at once",
    ),
    mutant(
        "migrate-dry-stays",
        "a dry run leaves what it did",
        (f"{_AT}.migrate:_tried", "force_rollback=True", "force_rollback=False"),
        first="migrations: whole files",
    ),
    mutant(
        "migrate-left",
        "a file leaves settings, locks and tables to the next",
        (f"{_AT}.migrate:_applied", 'session.execute("discard all")', "pass"),
        first="migrations: left to the next",
    ),
    mutant(
        "migrate-changed",
        "a file that was changed after it ran counts as the same",
        (f"{_AT}.migration_files:_differences", "files[name].digest != digest", "False"),
        first="migrations: known",
    ),
    mutant(
        "migrate-unjudged",
        "no policy of ours is about `db.migrate`",
        ("kernel.compile:tool_policies", "if name in served", "if name not in served"),
        first="migrations: judged",
    ),
    mutant(
        "migrate-told-a-branch",
        "the policy is told that every database is a branch",
        (f"{_AT}.migrate_tool:described", "branch=marker is not None", "branch=True"),
        first="migrations: judged",
    ),
)
BRANCH_MUTANTS: Final = (*_OF_MARKERS, *_OF_BRANCHES, *_OF_MIGRATIONS)
