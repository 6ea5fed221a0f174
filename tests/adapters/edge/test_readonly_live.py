"""The live catalogue: what names mean in one database, through views, bodies, casts and shadows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest
from psycopg import sql

from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.postgres.readonly_judge import judged_by
from nonsuch.adapters.edge.postgres.readonly_live import body
from nonsuch.adapters.edge.postgres.refused import DatabaseRefused
from nonsuch.adapters.edge.sql_guard import Guard
from nonsuch.kernel.sql_catalog import Own

from .readonly_lab import GUARD, Lab, laboratory, ran

MORE: Final = """
CREATE SCHEMA app;
CREATE FUNCTION app.twice(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT n * 2';
CREATE FUNCTION via_twice(n int) RETURNS int LANGUAGE sql STABLE
  AS 'SELECT app.twice(n) + customer_total(n)::int';
CREATE FUNCTION via_lock(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT lock_immutable(n)';
CREATE FUNCTION lies(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT pg_advisory_lock($1); SELECT $1';
CREATE FUNCTION hides(n bigint) RETURNS text LANGUAGE sql IMMUTABLE
  AS 'SELECT ($1).pg_advisory_lock::text';
CREATE FUNCTION standard(n int) RETURNS int LANGUAGE sql STABLE RETURN n + 1;
CREATE FUNCTION atomic(n int) RETURNS int LANGUAGE sql STABLE BEGIN ATOMIC SELECT n + 1; END;
CREATE FUNCTION atomic_two(n int) RETURNS int LANGUAGE sql STABLE BEGIN ATOMIC SELECT 1; SELECT n + 1; END;
CREATE FUNCTION default_moves(n bigint DEFAULT nextval('order_seq')) RETURNS bigint LANGUAGE sql STABLE
  RETURN n;
CREATE FUNCTION definer(n int) RETURNS int LANGUAGE sql STABLE SECURITY DEFINER RETURN n;
CREATE FUNCTION takes_locked(t locked_text) RETURNS int LANGUAGE sql IMMUTABLE RETURN 1;
CREATE FUNCTION anything(x anyelement) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN 1; END $$;
CREATE FUNCTION round(x text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN 1; END $$;
CREATE FUNCTION calls_itself(n int) RETURNS int LANGUAGE sql STABLE AS 'SELECT n';
CREATE OR REPLACE FUNCTION calls_itself(n int) RETURNS int LANGUAGE sql STABLE
  AS 'SELECT CASE WHEN n > 0 THEN calls_itself(n - 1) END';
CREATE FUNCTION of_dblink(n int) RETURNS int LANGUAGE sql IMMUTABLE RETURN n;
ALTER EXTENSION dblink ADD FUNCTION of_dblink(int);
CREATE FUNCTION of_hstore(n int) RETURNS int LANGUAGE sql IMMUTABLE RETURN n;
ALTER EXTENSION hstore ADD FUNCTION of_hstore(int);
CREATE AGGREGATE honest_sum(int) (SFUNC = int4pl, STYPE = int);
CREATE DOMAIN percent AS int CHECK (VALUE BETWEEN 0 AND 100);
CREATE DOMAIN deeper AS locked_text;
CREATE TYPE pair AS (a int, b percent);
CREATE TYPE bad_pair AS (a int, b locked_text);
CREATE TYPE mood AS ENUM ('low', 'high');
CREATE OPERATOR ### (LEFTARG = int, RIGHTARG = int, FUNCTION = int4pl);
CREATE OPERATOR && (LEFTARG = text, RIGHTARG = text, FUNCTION = op_lock_mood);
CREATE VIEW v_of_view AS SELECT n FROM v_next;
CREATE VIEW v_honest AS SELECT id, app.twice(id) AS twice FROM v_orders;
CREATE VIEW v_far AS SELECT id FROM far_orders;
CREATE TABLE parent (id int) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE child PARTITION OF parent FOR VALUES FROM (0) TO (10) SERVER loop_srv;
CREATE TABLE base (id int); CREATE TABLE near () INHERITS (base);
CREATE FOREIGN TABLE away () INHERITS (base) SERVER loop_srv;
CREATE TABLE odd (touch_row int, "q.r" int, id int);
CREATE VIEW "v.dotted" AS SELECT lock_immutable(1) AS x;
GRANT USAGE ON SCHEMA app TO PUBLIC; GRANT SELECT ON ALL TABLES IN SCHEMA public TO agent_login;
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with laboratory() as made:
        with made.admin() as connection:
            connection.execute(
                "CREATE FUNCTION op_lock_mood(a text, b text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE"
                " AS $$ BEGIN RETURN true; END $$"
            )
            connection.execute(MORE.encode())
        yield made


def judged(lab: Lab, *texts: str, asked: Guard = GUARD) -> list[tuple[bool, str]]:
    found = ran(judged_by(lab.of("agent_login"), asked, texts))
    return [(each.verdict.allow, each.verdict.cause or "") for each in found]


HONEST: Final = [
    "SELECT app.twice(2)",
    "SELECT via_twice(2)",
    "SELECT standard(1), atomic(1), calls_itself(2)",
    "SELECT honest_sum(id) FROM orders",
    "SELECT of_hstore(1)",
    "SELECT 5::percent, ARRAY[1]::percent[]",
    "SELECT (ROW(1, 2)::pair).a",
    "SELECT 'low'::mood, ARRAY['low']::mood[]",
    "SELECT 1 ### 2",
    "SELECT * FROM v_honest",
    "SELECT id FROM near",
    "SELECT o.touch_row, touch_row FROM odd o",
    'SELECT "q.r" FROM odd',
    "SELECT lower('X'), floor(-1.5)",
    "SELECT count(*) FROM mv_totals",
    "SELECT '[1,2,3]'::vector <-> '[1,2,4]'::vector, 'a' % 'b', 'a=>1'::hstore -> 'a'",
    "SELECT relname FROM pg_class, information_schema.tables LIMIT 1",
    "SELECT price_with_tax(total) FROM v_orders",
    "WITH v_next AS (SELECT 1 AS n) SELECT n FROM v_next",
]
HARMFUL: Final = {
    "SELECT via_lock(1)": "via_lock",
    "SELECT lies(1)": "lies",
    "SELECT hides(1)": "hides",
    "SELECT atomic_two(1)": "atomic_two",
    "SELECT default_moves()": "default_moves",
    "SELECT definer(1)": "definer",
    "SELECT of_dblink(1)": "of_dblink",
    "SELECT takes_locked('x')": "takes_locked",
    "SELECT anything(1)": "anything",
    "SELECT o.anything FROM orders o": "anything",
    "SELECT (1).anything": "anything",
    "SELECT x.anything FROM lower('a') x": "x.anything",
    "SELECT abs(-1)": "abs",  # public.abs(text) is another one, and the text does not tell which is meant
    "SELECT round('x'::text)": "round",
    "SELECT ROUND(1.5)": "round",
    "SELECT 'x'::deeper": "deeper",
    "SELECT 'x'::locked_text[]": "locked_text",
    "SELECT '(1,x)'::bad_pair": "bad_pair",
    "SELECT * FROM json_to_record('{}') AS r(a bad_pair)": "bad_pair",
    "SELECT 'a'::text && 'b'": "&&",
    "SELECT ARRAY[1] && ARRAY[2]": "&&",  # the text does not tell which of the two is meant
    "SELECT * FROM v_of_view": "v_of_view",
    'TABLE "v.dotted"': "v.dotted",
    "SELECT * FROM v_far": "v_far",
    "SELECT id FROM parent": "parent",
    "SELECT id FROM base": "base",
    "SELECT c.touch_row FROM customers c JOIN odd o ON true": "touch_row",
    "SELECT 1 WHERE EXISTS (SELECT FROM v_locks)": "v_locks",
    "SELECT * FROM pg_buffercache": "pg_buffercache",
}


def test_what_only_reads_is_accepted(lab: Lab) -> None:
    assert {text: told for text, told in zip(HONEST, judged(lab, *HONEST), strict=True) if not told[0]} == {}


@pytest.mark.parametrize("text", HARMFUL)
def test_what_may_do_more_is_refused_by_its_name(lab: Lab, text: str) -> None:
    ((allow, cause),) = judged(lab, text)
    assert not allow
    assert f"`{HARMFUL[text]}`" in cause, cause


def test_it_is_refused_on_the_way_to_the_rows_too(lab: Lab) -> None:
    with pytest.raises(DatabaseRefused, match="`v_of_view` does more than read: sequence") as caught:
        lab.ask("SELECT * FROM v_of_view", live=GUARD)
    assert caught.value.code == "X_MCP_QUERY_REJECTED"
    assert lab.ask("SELECT id FROM v_honest LIMIT 1", live=GUARD).rows == [[1]]


def test_what_an_app_lists_is_its_own_matter(lab: Lab) -> None:
    own = Own(
        ("public", "app"),
        functions=frozenset({"public.definer"}),
        operators=frozenset({"public.&&"}),
        types=frozenset({"public.locked_text"}),
        relations=frozenset({"public.far_orders", "public.v_next"}),
    )
    listed = Guard(GUARD.catalogue, GUARD.policies, own)
    texts = (
        "SELECT definer(1)",
        "SELECT 'x'::locked_text && 'y'",
        "TABLE far_orders",
        "TABLE v_next",
        "SELECT twice(1)",
    )
    assert [allow for allow, _ in judged(lab, *texts, asked=listed)] == [True] * len(texts)
    assert judged(lab, "SELECT twice(1)")[0][0] is False


def test_a_view_that_changes_is_looked_at_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from nonsuch.adapters.edge.postgres import readonly_live
    from nonsuch.adapters.edge.postgres.readonly import Asked, ReadOnly
    from nonsuch.adapters.edge.postgres.readonly_live import LiveCheck

    text = "SELECT x FROM changing"
    facts = GUARD.judge(text).facts

    async def asked(database: ReadOnly) -> bool:
        try:
            await database.query(Asked(text, facts))
        except DatabaseRefused:
            return False
        return True

    async def told() -> list[bool]:
        database = ReadOnly(lab.of("postgres"), role=None, check=LiveCheck(GUARD))
        with lab.admin() as connection:
            connection.execute("CREATE OR REPLACE VIEW changing AS SELECT 1 AS x")
            found = [await asked(database)]
            connection.execute("CREATE OR REPLACE VIEW changing AS SELECT lock_immutable(1) AS x")
        monkeypatch.setattr(readonly_live, "FRESH_SECONDS", 0.0)
        found.append(await asked(database))
        await database.close()
        return found

    assert ran(told()) == [True, False]


def test_a_chain_of_views_is_followed_to_an_end(lab: Lab) -> None:
    with lab.admin() as connection:
        connection.execute("CREATE VIEW deep_0 AS SELECT id FROM orders")
        for each in range(1, 13):
            connection.execute(f"CREATE VIEW deep_{each} AS TABLE deep_{each - 1}".encode())
    found = judged(lab, "TABLE deep_3", "TABLE deep_12")
    assert [allow for allow, _ in found] == [True, False]
    assert "goes through more views and functions than are followed" in found[1][1]


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ("SELECT 1", "SELECT 1"),
        ("RETURN (n + 1)", "SELECT (n + 1)"),
        ("BEGIN ATOMIC\n SELECT 1;\nEND", "SELECT 1;"),
    ],
)
def test_a_body_is_read_as_the_select_that_it_is(stored: str, read: str) -> None:
    assert body(stored) == read


def test_a_database_that_cannot_be_asked_is_told() -> None:
    with pytest.raises(DatabaseRefused) as caught:
        ran(judged_by("host=127.0.0.1 port=1", GUARD, ["SELECT 1"]))
    assert caught.value.code == "X_DB_UNREACHABLE"


# Every function of the server.

SAMPLES: Final = {
    "int2": "1",
    "int4": "1",
    "int8": "1",
    "float4": "0.1",
    "float8": "0.1",
    "numeric": "1",
    "text": "'a'",
    "varchar": "'a'",
    "bpchar": "'a'",
    "name": "'orders'",
    "bool": "true",
    "oid": "'orders'::regclass::oid",
    "regclass": "'orders'",
    "date": "'2026-01-01'",
    "time": "'10:00'",
    "timetz": "'10:00'",
    "bytea": "'\\x00'",
    "timestamp": "'2026-01-01'",
    "timestamptz": "'2026-01-01'",
    "interval": "'0.2 s'",
    "json": "'{}'",
    "jsonb": "'{}'",
    "jsonpath": "'$'",
    "uuid": "'00000000-0000-0000-0000-000000000000'",
    "inet": "'10.0.0.1'",
    "cidr": "'10.0.0.0/8'",
    "macaddr": "'00:00:00:00:00:00'",
    "tsvector": "'a'",
    "tsquery": "'a'",
    "xid": "'1'",
    "xid8": "'1'",
    "pg_lsn": "'0/0'",
    "tid": "'(0,1)'",
    "char": "'a'",
    "point": "'(0,0)'",
    "box": "'(0,0),(1,1)'",
    "money": "'1'",
    "bit": "'1'",
    "varbit": "'1'",
    "int4range": "'[1,2)'",
    "regproc": "'now'",
    "regtype": "'int4'",
    "anyelement": "1",
    "anyarray": "ARRAY[1]",
    "any": "1",
    "_text": "ARRAY['a']",
    "_int4": "ARRAY[1]",
    "_oid": "ARRAY[1::oid]",
    "regnamespace": "'public'",
    "regrole": "'postgres'",
    "regconfig": "'simple'",
    "txid_snapshot": "'1:1:'",
    "pg_snapshot": "'1:1:'",
    "xml": "NULL",
    "refcursor": "'c'",
    "internal": "NULL",
}  # a value of each type
EFFECTS: Final = """
SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
  pg_current_xact_id_if_assigned()::text, (SELECT count(*) FROM pg_prepared_statements),
  (SELECT count(*) FROM pg_listening_channels()), (SELECT count(*) FROM pg_cursors),
  (SELECT string_agg(name || setting, ',' ORDER BY name) FROM pg_settings WHERE source = 'session'),
  (SELECT count(*) FROM pg_prepared_xacts), (SELECT count(*) FROM pg_replication_slots),
  (SELECT last_value FROM order_seq), (SELECT count(*) FROM pg_largeobject_metadata),
  (SELECT count(*) FROM pg_replication_origin)
"""


def test_no_function_that_is_accepted_has_an_effect() -> None:
    """Every overload of the server and all its extensions, called as a superuser: what had one is refused."""
    with embedded_postgres() as address, psycopg.connect(address, autocommit=True) as connection:
        connection.prepare_threshold = None
        connection.execute("CREATE TABLE orders (id int); CREATE SEQUENCE order_seq")
        _install_everything(connection)
        calls = _calls(connection)
        accepted = [text for text in calls if GUARD.judge(text).verdict.allow]
        ran_, guilty = _swept(connection, accepted)
    assert guilty == []
    assert len(calls) > 3_000
    assert ran_ > 1_500
    refused = {*calls} - {*accepted}
    for name in (
        "pg_sleep",
        "pg_advisory_lock",
        "set_config",
        "txid_current",
        "nextval",
        "setseed",
        "lo_get",
    ):
        assert any(f".{name}(" in text for text in refused), name


def _install_everything(connection: psycopg.Connection[Any]) -> None:
    available = "SELECT name FROM pg_available_extensions ORDER BY name"
    for (name,) in connection.execute(available).fetchall():
        statement = sql.SQL("CREATE EXTENSION IF NOT EXISTS {} CASCADE")
        connection.execute(statement.format(sql.Identifier(name)))


def _calls(connection: psycopg.Connection[Any]) -> list[str]:
    rows = connection.execute(
        "SELECT quote_ident(n.nspname) || '.' || quote_ident(p.proname), ARRAY(SELECT t.typname || '|' ||"
        " format_type(t.oid, NULL) FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY a(o, i)"
        " JOIN pg_type t ON t.oid = a.o ORDER BY a.i), p.prokind FROM pg_proc p"
        " JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.prokind IN ('f', 'a')"
        " AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype) ORDER BY 1"
    ).fetchall()
    return [f"SELECT {name}({', '.join(map(_sample, types))})" for name, types, _ in rows]


def _sample(type_: str) -> str:
    short, _, full = type_.partition("|")
    given = SAMPLES.get(short, "NULL")
    return given if short.startswith("any") or short == "internal" else f"{given}::{full}"


def _swept(connection: psycopg.Connection[Any], texts: list[str]) -> tuple[int, list[str]]:
    import time

    ran_, guilty = 0, list[str]()
    connection.execute("SET statement_timeout = '3s'")
    connection.execute("BEGIN READ ONLY")
    before = connection.execute(EFFECTS).fetchone()
    connection.execute("ROLLBACK")
    for text in texts:
        connection.execute("BEGIN READ ONLY")
        began, failed = time.perf_counter(), False
        try:
            connection.execute(text.encode())
        except psycopg.Error:
            failed = True
        slow = time.perf_counter() - began > 1
        after = before if failed else connection.execute(EFFECTS).fetchone()
        connection.execute("ROLLBACK")
        ran_ += not failed
        if after != before or slow:
            guilty.append(f"{text}: {set(after or ()) ^ set(before or ())}")
        before = after
    return ran_, guilty
