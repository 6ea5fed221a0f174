"""Whether a role only reads: asked of the server as that role, and answered by its catalogue.

Sends nothing. A role counts with every role that it may become, and with what everybody may do.
"""

from __future__ import annotations

from typing import Final, LiteralString

ROLE: Final = "nonsuch_readonly"

# Predefined roles that read, or look; every other one can do more.
_LOOKS: Final = (
    "'pg_read_all_data', 'pg_read_all_settings', 'pg_read_all_stats', 'pg_stat_scan_tables', 'pg_monitor'"
)
_THEIRS: Final = "('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)"

# What current_user could do besides reading, in words; null where there is nothing.
BESIDES_READING: Final[LiteralString] = f"""
WITH held AS MATERIALIZED (
  SELECT r.* FROM pg_catalog.pg_roles r WHERE pg_has_role(current_user, r.oid, 'MEMBER')),
relations AS MATERIALIZED (
  SELECT c.* FROM pg_catalog.pg_class c WHERE c.relnamespace NOT IN {_THEIRS})
SELECT CASE
  WHEN EXISTS (SELECT FROM held WHERE rolsuper) THEN 'is a superuser'
  WHEN EXISTS (SELECT FROM held WHERE rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)
    THEN 'has attributes such as CREATEROLE or BYPASSRLS'
  WHEN EXISTS (SELECT FROM held WHERE oid < 16384 AND rolname LIKE 'pg\\_%' AND rolname NOT IN ({_LOOKS}))
    THEN 'is a member of a predefined role that does more than read'
  WHEN EXISTS (SELECT FROM relations c, held h WHERE c.relowner = h.oid) THEN 'owns a relation'
  WHEN EXISTS (SELECT FROM relations c, held h WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND (has_table_privilege(h.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')
        OR has_any_column_privilege(h.oid, c.oid, 'INSERT, UPDATE')))
    THEN 'may write to a table'
  WHEN EXISTS (SELECT FROM relations c, aclexplode(c.relacl) a
      WHERE a.privilege_type = 'MAINTAIN' AND (a.grantee = 0 OR a.grantee IN (SELECT oid FROM held)))
    THEN 'may maintain a table'
  WHEN EXISTS (SELECT FROM relations c, held h
      WHERE CASE WHEN c.relkind = 'S' THEN has_sequence_privilege(h.oid, c.oid, 'USAGE, UPDATE') END)
    THEN 'may use a sequence'
  WHEN EXISTS (SELECT FROM pg_catalog.pg_namespace n, held h
      WHERE has_schema_privilege(h.oid, n.oid, 'CREATE'))
    THEN 'may create in a schema'
  WHEN EXISTS (SELECT FROM held h WHERE has_database_privilege(h.oid, current_database(), 'CREATE'))
    THEN 'may create schemas'
END
"""  # noqa: S608  (constants of ours)

# The functions that current_user may execute, by name.
EXECUTABLE: Final[LiteralString] = """
SELECT DISTINCT p.proname FROM pg_catalog.pg_proc p
WHERE has_function_privilege(p.oid, 'EXECUTE') AND p.prokind IN ('f', 'w')
"""

MAY_BECOME: Final[LiteralString] = """
SELECT pg_has_role(r.oid, 'MEMBER')::text FROM pg_catalog.pg_roles r WHERE r.rolname = $1
"""
