"""Which functions do more than read: families by name, and what was reviewed one by one. A table.

The families are the second of two refusals. The first is the catalogue: a function is called only if
PostgreSQL says that it changes nothing, or if it stands in ``REVIEWED``. A wrong review cannot open a
family, and a name that is yet to come is refused with its family.
"""

from __future__ import annotations

import re
from typing import Final

# A star is any characters. Matched against the called name, whatever its schema.
_FAMILIES: Final = (
    ("advisory-lock", "pg_advisory_* pg_try_advisory_*"),
    ("sleep", "pg_sleep*"),
    ("sequence", "nextval* setval* currval* lastval*"),
    ("session", "set_config* setseed* set_limit*"),
    ("notify", "pg_notify*"),
    (
        "file",
        "pg_read_* pg_ls_* pg_stat_file* pg_file_* pg_logdir_* pg_current_logfile* pg_hba_* pg_ident_*"
        " pg_show_all_file_* pg_wal_summary_*",
    ),
    ("large-object", "lo_* loread* lowrite*"),
    ("remote", "dblink* postgres_fdw_* file_fdw_*"),
    (
        "server",
        "pg_cancel_* pg_terminate_* pg_reload_* pg_rotate_* pg_switch_* pg_promote* pg_wal_replay_*"
        " pg_backup_* pg_start_* pg_stop_* pg_log_* pg_stat_reset* pg_stat_force_*"
        " pg_stat_statements_reset* pg_restore_* pg_clear_*",
    ),
    (
        "replication",
        "pg_logical_* pg_create_* pg_drop_* pg_replication_* pg_copy_* pg_sync_* pg_show_replication_*",
    ),
    ("transaction-id", "txid_current pg_current_xact_id"),  # their namesakes with an ending only look
    ("snapshot", "pg_export_*"),
    ("catalog", "pg_import_* pg_nextoid* pg_extension_config_dump* binary_upgrade_*"),
    # pg_input_is_valid reads the name of a type from a string, and the type's checks may call anything
    ("sql-from-text", "*_to_xml* ts_stat* crosstab* connectby* xpath_table* pg_input_*"),
    ("index-upkeep", "brin_summarize_* brin_desummarize_* gin_clean_* pg_prewarm* autoprewarm_*"),
)

# Of overloaded functions: what the overload does that changes something.
_OVERLOADS: Final = {"ts_rewrite": "sql-from-text"}

# PostgreSQL calls these volatile: their answers change, and nothing else does.
_REVIEWED: Final = (
    (
        "time, chance, identifiers",
        "clock_timestamp timeofday random random_normal gen_random_uuid uuidv4 uuidv7 array_sample"
        " array_shuffle",
    ),
    (
        "sizes",
        "pg_database_size pg_indexes_size pg_relation_size pg_table_size pg_tablespace_size"
        " pg_total_relation_size",
    ),
    (
        "what the server is doing",
        "current_query pg_blocking_pids pg_safe_snapshot_blocking_pids pg_lock_status pg_get_wait_events"
        " pg_prepared_xact pg_notification_queue_usage pg_jit_available pg_is_in_recovery",
    ),
    (
        "how far the write-ahead log is",
        "pg_current_wal_lsn pg_current_wal_insert_lsn pg_current_wal_flush_lsn pg_last_wal_receive_lsn"
        " pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_is_wal_replay_paused"
        " pg_get_wal_replay_pause_state pg_get_wal_resource_managers pg_get_wal_summarizer_state",
    ),
    (
        "what became of a transaction",
        "txid_status pg_xact_status pg_xact_commit_timestamp pg_xact_commit_timestamp_origin"
        " pg_last_committed_xact pg_get_multixact_members",
    ),
    (
        "statistics: counters are read, none is reset",
        "pg_stat_get_io pg_stat_get_backend_io pg_stat_get_backend_wal pg_stat_get_recovery_prefetch"
        " pg_stat_have_stats pg_stat_get_xact_blocks_fetched pg_stat_get_xact_blocks_hit"
        " pg_stat_get_xact_function_calls pg_stat_get_xact_function_self_time"
        " pg_stat_get_xact_function_total_time pg_stat_get_xact_numscans pg_stat_get_xact_tuples_deleted"
        " pg_stat_get_xact_tuples_fetched pg_stat_get_xact_tuples_hot_updated"
        " pg_stat_get_xact_tuples_inserted pg_stat_get_xact_tuples_newpage_updated"
        " pg_stat_get_xact_tuples_returned pg_stat_get_xact_tuples_updated",
    ),
    (
        "what the catalogue holds",
        "pg_partition_tree pg_partition_ancestors pg_sequence_last_value pg_collation_actual_version"
        " pg_database_collation_actual_version",
    ),
)
REVIEWED: Final = frozenset(name for _, names in _REVIEWED for name in names.split())

# Extensions that bring types and what reads them: what is not volatile in them may be called.
TRUSTED: Final = frozenset(
    {"btree_gin", "btree_gist", "citext", "cube", "dict_int", "dict_xsyn", "earthdistance", "fuzzystrmatch"}
    | {"hstore", "intarray", "isn", "ltree", "pg_trgm", "seg", "unaccent", "vector"}
)

# Methods of TABLESAMPLE; a method is a function.
SAMPLINGS: Final = frozenset({"system", "bernoulli"})


def _pattern(words: str) -> str:
    return "|".join(re.escape(word).replace(r"\*", ".*") for word in words.split())


_NAMES: Final = re.compile(
    "|".join(f"(?P<f{place}>{_pattern(words)})" for place, (_, words) in enumerate(_FAMILIES)), re.DOTALL
)


def family_of(name: str) -> str | None:
    """Return the family of a called name, or nothing."""
    match = _NAMES.fullmatch(name.lower())
    return _FAMILIES[int(match.lastgroup[1:])][0] if match is not None and match.lastgroup else None


def family_of_overload(name: str) -> str:
    """Return the family of a function that the catalogue calls volatile."""
    return _OVERLOADS.get(name, "volatile")
