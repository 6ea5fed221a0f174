"""Attacks on `db.query` and `db.migrate` that a review found to run: each is refused, and runs nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from nonsuch.adapters.edge.postgres.branch_load import Contents
from nonsuch.adapters.edge.postgres.readonly import Asked, ReadOnly
from nonsuch.adapters.edge.postgres.refused import DatabaseRefused
from nonsuch.kernel.sql_facts import SqlFacts
from nonsuch.kernel.sql_verdict import CODE

from ..adapters.edge.branching import shop_on
from ..adapters.edge.readonly_lab import GUARD, Lab, laboratory, ran

# Every function here says that it ran.
TRAPS: Final = """
CREATE FUNCTION ran(anyelement) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'IT RAN'; END $$;
CREATE DOMAIN small AS int CHECK (VALUE < 3 OR ran(VALUE));
CREATE DOMAIN small_list AS int[] CHECK (ran(VALUE));
CREATE TABLE smalls (id int, d small); INSERT INTO smalls VALUES (1, 2);
CREATE TYPE holder AS (a small);
CREATE TABLE holders (c holder); INSERT INTO holders VALUES (ROW(1));

CREATE TYPE mood AS ENUM ('low', 'high');
CREATE FUNCTION of_mood(mood) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'IT RAN'; END $$;
CREATE CAST (mood AS int) WITH FUNCTION of_mood(mood) AS IMPLICIT;
CREATE TABLE moods (m mood); INSERT INTO moods VALUES ('low');
CREATE FUNCTION of_truth(boolean) RETURNS smallint LANGUAGE plpgsql AS $$ BEGIN RAISE 'IT RAN'; END $$;
CREATE CAST (boolean AS smallint) WITH FUNCTION of_truth(boolean);
CREATE FUNCTION of_text(text) RETURNS date LANGUAGE plpgsql AS $$ BEGIN RAISE 'IT RAN'; END $$;
CREATE CAST (text AS date) WITH FUNCTION of_text(text) AS IMPLICIT;
CREATE TABLE castable (id int); INSERT INTO castable VALUES (1);
CREATE FUNCTION of_row(castable) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'IT RAN'; END $$;
CREATE CAST (castable AS int) WITH FUNCTION of_row(castable);

CREATE TYPE size AS ENUM ('s', 'm');
CREATE TABLE sizes (k size); INSERT INTO sizes VALUES ('s'); CREATE TABLE ranks (k int);
INSERT INTO ranks VALUES (1);
CREATE FUNCTION compared(size, int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'IT RAN'; END $$;
CREATE OPERATOR >= (LEFTARG = size, RIGHTARG = int, FUNCTION = compared);
CREATE OPERATOR <= (LEFTARG = size, RIGHTARG = int, FUNCTION = compared);
CREATE OPERATOR < (LEFTARG = size, RIGHTARG = int, FUNCTION = compared);
CREATE OPERATOR > (LEFTARG = size, RIGHTARG = int, FUNCTION = compared);
CREATE OPERATOR = (LEFTARG = size, RIGHTARG = int, FUNCTION = compared);

CREATE TABLE guarded (id int); INSERT INTO guarded VALUES (1); ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON guarded USING (ran(id));
CREATE VIEW through WITH (security_invoker) AS SELECT * FROM guarded;

CREATE TABLE whole (id int) PARTITION BY RANGE (id);
CREATE TABLE piece PARTITION OF whole FOR VALUES FROM (0) TO (10); INSERT INTO whole VALUES (1);
CREATE FUNCTION of_whole(whole) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'IT RAN'; END $$;
CREATE DOMAIN checked_whole AS whole;
CREATE FUNCTION of_checked(checked_whole) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'IT RAN'; END $$;
"""
# What looks the same and only reads.
HONEST: Final = """
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE state AS ENUM ('new', 'paid');
CREATE TABLE bills (id int, n positive, s state, tags hstore, at vector(3));
INSERT INTO bills VALUES (1, 2, 'new', 'a=>1', '[1,2,3]');
CREATE FUNCTION tenant() RETURNS int LANGUAGE sql STABLE AS $$ SELECT 1 $$;
CREATE TABLE rented (id int, tenant_id int); INSERT INTO rented VALUES (5, 1), (6, 2);
ALTER TABLE rented ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON rented USING (tenant_id = tenant());
CREATE FUNCTION only_true(boolean) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 1::bigint $$;
CREATE CAST (boolean AS bigint) WITH FUNCTION only_true(boolean);
"""
ATTACKS: Final = [
    # a row-level policy runs for whoever reads
    "SELECT * FROM guarded",
    "SELECT * FROM through",
    # a cast of the database's own, from what no text names
    "SELECT m::int FROM moods",
    "SELECT m + 1 FROM moods",
    "SELECT int4larger(m, 1) FROM moods",
    "SELECT true::smallint",
    "SELECT CAST(true AS int2)",
    "SELECT isfinite(concat('2026-01-01'))",
    "SELECT c::int FROM castable c",
    # a check of a column's type, without a name of the type
    "SELECT json_populate_record(s, '{\"d\": 7}') FROM smalls s",
    "SELECT (jsonb_populate_recordset(s, '[{\"d\": 7}]')).d FROM smalls s",
    "SELECT jsonb_populate_record_valid(s, '{\"d\": 7}') FROM smalls s",
    "SELECT json_populate_record(c, '{\"a\": 7}') FROM holders",
    "SELECT array_append(ARRAY[d], '7') FROM smalls",
    "SELECT array_replace(ARRAY[d], d, '7') FROM smalls",
    "SELECT lag(d, 1, '7') OVER () FROM smalls",
    # and before anything is run, when the server reads the literal
    "SELECT coalesce(s, '(1,7)') FROM smalls s",
    "SELECT CASE WHEN id = 2 THEN s ELSE '(1,7)' END FROM smalls s",
    "SELECT s FROM smalls s UNION ALL SELECT '(1,7)'",
    "SELECT * FROM smalls s WHERE s IN ('(1,7)', '(1,8)')",
    "SELECT '(7)'::holder",
    # an operator that the text does not name
    "SELECT k BETWEEN 1 AND 2 FROM sizes",
    "SELECT k NOT BETWEEN 1 AND 2 FROM sizes",
    "SELECT k BETWEEN SYMMETRIC 1 AND 2 FROM sizes",
    "SELECT CASE k WHEN 1 THEN 2 END FROM sizes",
    "SELECT k IN (SELECT k FROM ranks) FROM sizes",
    "SELECT k NOT IN (SELECT 1) FROM sizes",
    # a function behind the name of what is no relation of that type
    "WITH x AS (SELECT 1 AS a) SELECT x.ran FROM x",
    "SELECT s.ran FROM (SELECT 1 AS a) s",
    "SELECT v.ran FROM (VALUES (1)) v",
    "SELECT t.ran FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a int PATH '$')) t",
    "SELECT j.ran FROM ((SELECT 1 AS a) x CROSS JOIN (SELECT 2 AS b) y) j",
    "SELECT c.ran FROM pg_catalog.pg_class c",
    "SELECT s.of_whole FROM (SELECT 1 AS id) s",
    "SELECT x.of_whole FROM (VALUES (1)) x(id)",
    "SELECT p.of_whole FROM piece p",
    "SELECT public.piece.of_whole FROM piece",
    "SELECT w.of_checked FROM whole w",
]
READS: Final = [
    "SELECT b.id, n, s, at FROM bills b WHERE n = '2' AND s = 'new'",
    "SELECT coalesce(b, '(1,2,new,,)') FROM bills b",
    "SELECT json_populate_record(b, '{\"n\": 7}') FROM bills b",
    "SELECT x.id FROM (SELECT id FROM bills) x JOIN bills USING (id)",
    "SELECT CASE id WHEN 1 THEN 'one' END FROM bills WHERE id IN (SELECT 1) AND id BETWEEN 0 AND 2",
    "SELECT tags -> 'a' FROM bills",
    "SELECT id FROM rented",
    "SELECT relname FROM pg_class c WHERE c.relname = 'bills'",
]


@pytest.fixture(scope="module")
def honest() -> Iterator[Lab]:
    with laboratory() as made:
        _made(made, HONEST)
        yield made


@pytest.fixture(scope="module")
def trapped() -> Iterator[Lab]:
    with laboratory() as made:
        _made(made, TRAPS)
        yield made


def _made(lab: Lab, text: str) -> None:
    with lab.admin() as connection:
        connection.execute(text.encode())
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO agent_login")


@pytest.mark.parametrize("text", ATTACKS)
def test_what_runs_code_without_naming_it_is_refused(trapped: Lab, text: str) -> None:
    with pytest.raises(DatabaseRefused) as caught:
        trapped.ask(text, live=GUARD)
    assert caught.value.code == CODE, caught.value.cause


@pytest.mark.parametrize("text", ATTACKS)
def test_each_of_them_runs_code_where_nobody_looks(trapped: Lab, text: str) -> None:
    """Or the test above would not tell anything."""
    with pytest.raises(DatabaseRefused) as caught:
        trapped.ask(text, facts=SqlFacts(("select",)))
    assert "IT RAN" in caught.value.cause


@pytest.mark.parametrize("text", READS)
def test_what_looks_like_them_and_only_reads_is_answered(honest: Lab, text: str) -> None:
    assert honest.ask(text, live=GUARD).rows


def test_a_policy_holds_for_the_rows(honest: Lab) -> None:
    assert honest.ask("SELECT id FROM rented", live=GUARD).rows == [[5]]


def test_a_cast_in_plain_sql_reads(honest: Lab) -> None:
    assert honest.ask("SELECT CAST(true AS bigint)", live=GUARD).rows == [[1]]


# What others asked.


@pytest.mark.parametrize(
    "text",
    [
        "SELECT statement FROM pg_prepared_statements",
        "SELECT * FROM pg_catalog.pg_prepared_statement()",
        "SELECT (pg_prepared_statement()).statement",
        "TABLE nonsuch_idempotency",
        "SELECT count(*) FROM public.nonsuch_audit",
        "SELECT 1 FROM nonsuch_confirmations",
        "SELECT 1 FROM nonsuch_tasks",
    ],
)
def test_what_others_asked_and_were_answered_is_not_read(text: str) -> None:
    verdict = GUARD.judge(text).verdict
    assert (verdict.allow, verdict.family) == (False, "credentials")


# What is told of a role.


def test_a_role_that_may_maintain_a_table_is_not_told_as_one_that_only_reads(honest: Lab) -> None:
    with honest.admin() as connection:
        connection.execute("CREATE ROLE keeper LOGIN; GRANT SELECT ON bills TO keeper")
        assert "role:login" in honest.ask("SELECT 1", "keeper").guards
        connection.execute("GRANT MAINTAIN ON bills TO keeper")
    assert "role:login" not in honest.ask("SELECT 1", "keeper").guards


# What no timeout ends.

ENDLESS: Final = "SELECT strpos(repeat('a', 400000), 'b' || repeat('a', 200000))"  # some half a minute of it


def test_of_queries_that_the_server_cannot_stop_there_are_only_a_few(honest: Lab) -> None:
    """A loop in one call of a built-in function looks at no signal: each such query costs a processor."""

    async def asked() -> list[Any]:
        limits: dict[str, Any] = {"seconds": 0.5, "connect_seconds": 0.5, "connections": 1}
        database = ReadOnly(honest.of("agent_login"), **limits)
        endless, short = (Asked(each, GUARD.judge(each).facts) for each in (ENDLESS, "SELECT 1"))
        try:
            first = await _code(database, endless)
            second, begun = await _code(database, endless), time.monotonic()
            while (last := await _code(database, short)) == "X_DB_BUSY" and time.monotonic() < begun + 120:
                time.sleep(1)  # noqa: ASYNC251  (nothing else is on this loop)
            return [first, second, last]
        finally:
            await database.close()

    assert ran(asked()) == ["X_DB_UNREACHABLE", "X_DB_BUSY", None]


async def _code(database: ReadOnly, asked: Asked) -> str | None:
    try:
        await database.query(asked)
    except DatabaseRefused as refusal:
        return refusal.code
    return None


# What a migration puts off.

LATE: Final = """
create table later (x int);
create function beyond() returns trigger language plpgsql as $$
begin comment on database {shop} is 'taken'; return null; end $$;
create constraint trigger late after insert on later deferrable initially deferred
for each row execute function beyond();
create function put_off() returns trigger language plpgsql as $$
begin set constraints all deferred; insert into public.later values (1); return null; end $$;
create trigger recorded after insert on public.nonsuch_migrations for each row execute function put_off();
"""


def test_a_trigger_that_is_put_off_until_the_end_changes_nothing_beyond_the_database(honest: Lab) -> None:
    with shop_on(honest.address) as shop:
        database = shop.branch("feat", Contents(full=True)).database
        done = shop.migrate(database, LATE.format(shop=shop.name))
        assert done.failed is not None
        assert "read-only transaction" in done.failed.said
        assert shop.comment(shop.name) == "None"
        assert shop.migrate(database, "create table fine (x int)").applied == ("1.sql",)
