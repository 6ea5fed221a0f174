"""Migrations: in branches only, each file whole or not at all, and nothing beyond the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import LiteralString

import pytest
from psycopg.conninfo import make_conninfo

from nonsuch.adapters.edge.postgres.branch_load import Contents
from nonsuch.adapters.edge.postgres.migrate import Migrated, migrate
from nonsuch.adapters.edge.postgres.migration_files import pending, read_migrations
from nonsuch.adapters.edge.postgres.refused import DatabaseRefused
from nonsuch.adapters.edge.postgres.sql_file import MAX_BYTES, read_file

from .branching import KEY, Row, Shop, files, served, shop_on


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    with served() as dsn:
        yield dsn


@pytest.fixture
def shop(server: str) -> Generator[Shop]:
    with shop_on(server) as made:
        yield made


@pytest.fixture
def branch(shop: Shop) -> str:
    return shop.branch("feat", Contents(full=True)).database


def tables(shop: Shop, database: str) -> set[str]:
    asked = "select relname::text from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
    return {name for (name,) in shop.ask(asked, database=database)}


BEFORE = {"orders", "countries"}


# Where.


def not_a_branch(shop: Shop, database: str, key: bytes = KEY) -> str:
    """See that nothing runs there; return why."""
    with pytest.raises(DatabaseRefused) as refusal:
        migrate(shop.at(database), key, files("create table touched (x int)"))
    assert refusal.value.code == "X_MCP_NOT_BRANCH_DB"
    assert not {"touched", "nonsuch_migrations"} & tables(shop, database)
    return refusal.value.cause


@pytest.mark.parametrize("database", ["postgres", "template1"])
def test_a_database_of_the_server_is_no_branch(shop: Shop, database: str) -> None:
    assert not_a_branch(shop, database) == f"the database `{database}` is not a branch"


def test_the_source_is_no_branch(shop: Shop, branch: str) -> None:
    not_a_branch(shop, shop.name)


def test_the_name_of_a_branch_makes_none(shop: Shop) -> None:
    for name in (f"{shop.name}_branch_feat", f"{shop.name}_branch_x_cdc4799e", "nonsuch_new_1_a_b"):
        shop.do("create database {}", name)
        not_a_branch(shop, name)


def test_an_address_that_says_so_makes_none(shop: Shop, branch: str) -> None:
    """What counts is where the connection stands, not what its address, user or application is called."""
    named = {"application_name": branch, "options": f"-c my.database={branch} -c search_path={branch}"}
    with pytest.raises(DatabaseRefused, match="X_MCP_NOT_BRANCH_DB"):
        migrate(shop.at(shop.name, **named), KEY, files("create table touched (x int)"))


FORGED = "says that it is a branch, but not under this key, or of another database or name"


def test_the_comment_of_a_branch_makes_no_other_database_one(shop: Shop, branch: str) -> None:
    shop.write(shop.name, shop.comment(branch))
    assert not_a_branch(shop, shop.name) == f"the database `{shop.name}` {FORGED}"
    assert shop.ls() == ["feat"]


def test_a_renamed_branch_is_none(shop: Shop, branch: str) -> None:
    shop.do("alter database {} rename to {}", branch, f"{shop.name}_production")
    not_a_branch(shop, f"{shop.name}_production")
    assert shop.ls() == []


def test_what_takes_the_name_and_the_comment_of_a_branch_is_none(shop: Shop, branch: str) -> None:
    comment = shop.comment(branch)
    shop.do("drop database {}", branch)
    shop.do("create database {}", branch)
    shop.write(branch, comment)
    not_a_branch(shop, branch)


def test_a_copy_of_a_branch_is_none(shop: Shop, branch: str) -> None:
    copy = f"{shop.name}_copy"
    shop.do("create database {} template {}", copy, branch)
    not_a_branch(shop, copy)
    shop.write(copy, shop.comment(branch))
    not_a_branch(shop, copy)


def test_a_comment_that_was_made_up_makes_none(shop: Shop, branch: str) -> None:
    """Also one that names the right oids: who writes it lacks the key."""
    ((oid,),) = shop.ask("select oid::bigint from pg_database where datname = current_database()")
    ((theirs,),) = shop.ask("select oid::bigint from pg_database where datname = %s", branch)
    for comment in (
        "nonsuch branch v1 {}",
        shop.comment(branch).replace(str(oid), str(theirs)),
        shop.comment(branch).replace('"seal": "', '"seal": "0')[:-3] + '"}',
        shop.comment(branch).replace('"seal": "', '"seal": "\\ud800'),
    ):
        shop.write(shop.name, comment)
        not_a_branch(shop, shop.name)


def test_a_branch_of_another_key_is_none(shop: Shop, branch: str) -> None:
    assert not_a_branch(shop, branch, KEY + b"!") == f"the database `{branch}` {FORGED}"


def test_a_branch_whose_marker_is_gone_is_none(shop: Shop, branch: str) -> None:
    shop.write(branch, "")
    not_a_branch(shop, branch)


def test_functions_of_a_database_cannot_answer_for_the_server(shop: Shop, branch: str) -> None:
    """The source shadows what is asked, in a schema that its search path puts first."""
    shop.ask("create schema lies")
    theirs = (
        "select max(datname::text)::name from pg_catalog.pg_database where datname::text like '%branch_feat'"
    )
    shop.ask(f"create function lies.current_database() returns name return ({theirs})")
    shop.do("alter database {} set search_path to lies, public, pg_catalog", shop.name)
    not_a_branch(shop, shop.name)
    assert shop.ls() == ["feat"]


# What runs.


def test_files_run_in_order_and_once(shop: Shop, branch: str) -> None:
    texts = ("create table m (x int)", "alter table m add y int", "insert into m values (1, 2)")
    done = shop.migrate(branch, *texts)
    assert done == Migrated(branch, "feat", False, ("1.sql", "2.sql", "3.sql"), (), None, superuser=True)
    assert shop.migrate(branch, *texts).applied == ()
    assert shop.migrate(branch, *texts, "drop table m").applied == ("4.sql",)
    assert shop.ask("select name from nonsuch_migrations order by 1", database=branch) == [
        ("1.sql",),
        ("2.sql",),
        ("3.sql",),
        ("4.sql",),
    ]


def test_an_owner_who_is_no_superuser_migrates(shop: Shop, branch: str) -> None:
    done = shop.migrate(branch, "create table m (x int)", user=shop.name)
    assert (done.applied, done.superuser) == (("1.sql",), False)


def test_a_file_that_fails_leaves_nothing_of_it_and_all_before_it(shop: Shop, branch: str) -> None:
    texts = ("create table a (x int)", "create table b (x int);\nselct 1", "create table c (x int)")
    done = shop.migrate(branch, *texts)
    assert (done.applied, done.pending) == (("1.sql",), ("2.sql", "3.sql"))
    assert done.failed is not None
    assert done.failed.cause == '`2.sql:2:1`: syntax error at or near "selct"'
    assert done.failed.state == "42601"
    assert tables(shop, branch) == {*BEFORE, "a", "nonsuch_migrations"}
    again = shop.migrate(branch, texts[0], "create table b (x int)", texts[2])
    assert (again.applied, again.pending, again.failed) == (("2.sql", "3.sql"), (), None)


def test_a_dry_run_runs_every_file_and_keeps_nothing(shop: Shop, branch: str) -> None:
    texts = ("create table a (x int)", "insert into a values (1)", "alter table a add y int not null")
    done = shop.migrate(branch, *texts, dry_run=True)
    assert (done.applied, done.pending) == (("1.sql", "2.sql"), ("3.sql",))
    assert done.failed is not None
    assert done.failed.cause == '`3.sql`: column "y" of relation "a" contains null values'
    assert tables(shop, branch) == BEFORE
    done = shop.migrate(branch, *texts[:2], dry_run=True)
    assert (done.applied, done.pending, done.failed) == (("1.sql", "2.sql"), ("1.sql", "2.sql"), None)
    assert tables(shop, branch) == BEFORE
    assert shop.migrate(branch, *texts[:2]).applied == ("1.sql", "2.sql")


def test_a_word_for_what_a_server_says_of_rows_is_left_out(shop: Shop, branch: str) -> None:
    done = shop.migrate(branch, "create table u (card text unique); insert into u values ('4111'), ('4111')")
    assert done.failed is not None
    assert "4111" not in f"{done.failed.cause} {done.failed.fix}"


ENDS = [
    "commit",
    "COMMIT AND CHAIN",
    "end",
    "rollback",
    "abort",
    "begin",
    "start transaction",
    "savepoint x",
    "prepare transaction 'x'",
    "/* x */ commit /* x */",
    "do $$ begin commit; end $$",
    "do $$ begin execute 'commit'; end $$",
    "create procedure p() language plpgsql as 'begin commit; end'; call p()",
    "create procedure q() language plpgsql as 'begin rollback; end'; call q()",
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("dry_run", [False, True])
def test_no_file_ends_its_transaction(shop: Shop, branch: str, end: str, dry_run: bool) -> None:
    done = shop.migrate(branch, f"create table a (x int);\n{end};\ncreate table b (x int)", dry_run=dry_run)
    assert done.failed is not None
    assert done.failed.state in ("0A000", "2D000")
    assert "each file is one transaction" in done.failed.fix
    assert tables(shop, branch) == BEFORE


OUTSIDE = [
    "vacuum",
    "create index concurrently i on orders (card)",
    "create database other",
    "alter system reset all",
]


@pytest.mark.parametrize("text", OUTSIDE)
def test_what_cannot_be_taken_back_is_refused(shop: Shop, branch: str, text: str) -> None:
    done = shop.migrate(branch, text)
    assert done.failed is not None
    assert done.failed.state == "25001"
    assert tables(shop, branch) == BEFORE


MAKES = "language plpgsql as $$ begin create role {other}; return null; end $$"
SHARED = [
    "create role {other}",
    "do $$ begin execute 'create role {other}'; end $$",
    "do $$ begin create role {other}; raise exception 'x'; exception when others then null; end $$",
    "alter role {shop} superuser",
    "alter role {shop} set work_mem to '5MB'",
    "alter role {shop} password 'x'",
    "alter role {shop} in database {shop} set work_mem to '5MB'",
    "grant pg_read_all_data to {shop}",
    "grant set on parameter work_mem to {shop}",
    "comment on database {shop} is 'x'",
    "comment on role {shop} is 'x'",
    "alter database {shop} set work_mem to '5MB'",
    "alter database {shop} connection limit 1",
    "alter database {shop} rename to {other}",
    "alter database {shop} owner to postgres",
    "grant all on database {shop} to public",
    "alter database {branch} set work_mem to '5MB'",
    "create subscription s connection 'host=/nowhere' publication p with (connect = false)",
    "create function f() returns void language sql as 'comment on database {shop} is ''x'''; select f()",
    "create function t() returns trigger {makes};"
    "create trigger late after insert on public.nonsuch_migrations for each row execute function t()",
    "create function t() returns trigger {makes};"
    "create constraint trigger late after insert on public.nonsuch_migrations deferrable initially deferred"
    " for each row execute function t()",
    "create function t() returns trigger {makes};"
    "create constraint trigger late after insert on orders deferrable initially deferred"
    " for each row execute function t(); insert into orders values (8)",
]


def _named(text: str, shop: Shop, branch: str) -> str:
    text = text.replace("{makes}", MAKES)
    return text.format(shop=shop.name, branch=branch, other=f"{shop.name}_other")


@pytest.mark.parametrize("text", SHARED)
def test_nothing_changes_beyond_the_database(shop: Shop, branch: str, text: str) -> None:
    before = shared(shop)
    done = shop.migrate(branch, _named(text, shop, branch))
    assert done.failed is not None
    assert done.failed.said.startswith("it changes what all databases of the server share")
    assert shared(shop) == before
    assert tables(shop, branch) == BEFORE
    assert shop.migrate(branch, "create table fine (x int)").applied == ("1.sql",)


WHAT_IS_SHARED: list[LiteralString] = [
    "select * from pg_authid order by oid",
    "select * from pg_auth_members order by oid",
    "select * from pg_database order by oid",
    "select * from pg_db_role_setting order by setdatabase, setrole",
    "select * from pg_shdescription order by objoid",
    "select * from pg_parameter_acl order by oid",
    "select * from pg_subscription order by oid",
]


def shared(shop: Shop) -> list[list[Row]]:
    """What databases share, as the server's own tables have it."""
    return [shop.ask(text) for text in WHAT_IS_SHARED]


def test_where_changes_are_not_counted_nothing_runs(shop: Shop, branch: str) -> None:
    for text in ("set track_counts to off", "set local track_counts to off; create table a (x int)"):
        done = shop.migrate(branch, text)
        assert done.failed is not None
        assert done.failed.fix == "set `track_counts` to on"
        assert tables(shop, branch) == BEFORE


def test_where_a_database_says_not_to_count_nothing_runs(shop: Shop) -> None:
    shop.do("alter database {} set track_counts to off", shop.name)
    branch = shop.branch("feat").database
    done = shop.migrate(branch, "create table a (x int)")
    assert done.failed is not None
    assert done.failed.fix == "set `track_counts` to on"
    assert tables(shop, branch) == BEFORE


def test_objects_of_the_database_may_change_and_be_given(shop: Shop, branch: str) -> None:
    """What is recorded of them beside the catalogue of all databases is no change beyond."""
    text = f"""
    create table t (x int); grant select on t to {shop.name}; alter table t owner to {shop.name};
    create extension hstore; create schema s authorization {shop.name}; comment on table t is 'x';
    create publication p for table t; alter default privileges grant select on tables to {shop.name};
    set local work_mem to '5MB'; create function g() returns int language plpgsql as 'begin return 1; end';
    """
    assert shop.migrate(branch, text).failed is None


LEFT = {
    "search_path": "set search_path to nowhere",
    "role": "set role {shop}",
    "session_authorization": "set session authorization {shop}",
    "work_mem": "set work_mem to '77MB'",
}


@pytest.mark.parametrize("name", LEFT)
def test_no_file_leaves_a_setting_to_the_next(shop: Shop, branch: str, name: str) -> None:
    told = f"create table told as select current_setting('{name}')::text as held"
    shop.migrate(branch, told)
    before = shop.ask("select held from told", database=branch)
    done = shop.migrate(branch, told, LEFT[name].format(shop=shop.name), "drop table public.told", told)
    assert done.failed is None
    assert shop.ask("select held from told", database=branch) == before


def test_no_file_leaves_a_lock_or_a_temporary_table_to_the_next(shop: Shop, branch: str) -> None:
    held = "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
    done = shop.migrate(
        branch,
        "select pg_advisory_lock(7); create temp table shadow (x int)",
        f"create table held as {held}; create temp table shadow (x int)",
    )
    assert done.failed is None
    assert shop.ask("select * from held", database=branch) == [(1,)]  # that of the run itself


def test_a_file_that_makes_its_transaction_read_only_fails(shop: Shop, branch: str) -> None:
    done = shop.migrate(branch, "create table a (x int); set transaction read only")
    assert done.failed is not None
    assert done.failed.state == "25006"
    assert tables(shop, branch) == BEFORE


def test_a_file_that_takes_the_history_away_fails(shop: Shop, branch: str) -> None:
    done = shop.migrate(branch, "drop table public.nonsuch_migrations")
    assert done.failed is not None
    assert done.failed.state == "42P01"


def test_deferred_constraints_fail_with_their_file(shop: Shop, branch: str) -> None:
    text = "create table r (o int references orders deferrable initially deferred); insert into r values (99)"
    done = shop.migrate(branch, text)
    assert done.failed is not None
    assert (done.failed.file, done.failed.state) == ("1.sql", "23503")
    assert tables(shop, branch) == BEFORE


def test_a_statement_that_takes_too_long_fails(shop: Shop, branch: str) -> None:
    done = migrate(shop.at(branch), KEY, files("create table a (x int)", "select pg_sleep(60)"), seconds=1)
    assert done.failed is not None
    assert (done.applied, done.failed.state) == (("1.sql",), "57014")


def test_a_connection_that_is_lost_is_told(shop: Shop, branch: str) -> None:
    done = shop.migrate(branch, "create table a (x int)", "select pg_terminate_backend(pg_backend_pid())")
    assert done.failed is not None
    assert done.applied == ("1.sql",)
    assert shop.migrate(branch, "create table a (x int)").applied == ()


def test_texts_of_every_sort_arrive_as_they_are(shop: Shop, branch: str) -> None:
    text = (
        "create table odd as select 'it''s \\ % %s {} $1 $$ é 日' as held, E'\\\\ \\n' as more,"
        " $x$'$x$ as third;\n-- end"
    )
    assert shop.migrate(branch, text, "", "-- nothing").failed is None
    assert shop.ask("select * from odd", database=branch) == [("it's \\ % %s {} $1 $$ é 日", "\\ \n", "'")]


def test_a_database_of_odd_settings_is_migrated(shop: Shop) -> None:
    shop.do("alter database {} set standard_conforming_strings to off", shop.name)
    shop.do("alter database {} set client_encoding to 'LATIN1'", shop.name)
    shop.do("alter database {} set search_path to ''", shop.name)
    shop.do("alter database {} set default_transaction_isolation to 'serializable'", shop.name)
    branch = shop.branch("feat").database
    done = shop.migrate(branch, "create table public.odd as select '日' as held, 'a\\\\b' as more")
    assert done.failed is None
    assert shop.ask("select held, more from public.odd", database=branch) == [("日", "a\\b")]


# Files.


def written(directory: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (directory / f"{name}.sql").write_text(text)
    return directory


def test_files_are_ordered_by_their_numbers(tmp_path: Path) -> None:
    for name in ("10_c.sql", "9-b.sql", "0001.sql", "README.md", "11_é.sql"):
        (tmp_path / name).write_text(name)
    with pytest.raises(DatabaseRefused, match="11_é"):
        read_migrations(tmp_path)
    (tmp_path / "11_é.sql").unlink()
    assert [each.name for each in read_migrations(tmp_path)] == ["0001.sql", "9-b.sql", "10_c.sql"]


@pytest.mark.parametrize(
    "name", ["a.sql", "_1.sql", "1 a.sql", "1a.sql", "a_1.sql", "x.SQL", "1_a.sql.sql.SQL", "١_a.sql"]
)
def test_a_file_that_is_no_migration_is_refused_and_not_passed_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(DatabaseRefused) as refusal:
        read_migrations(tmp_path)
    assert refusal.value.cause == f"`{name}` is no name of a migration"


def test_two_files_of_one_number_are_refused(tmp_path: Path) -> None:
    (tmp_path / "1_a.sql").write_text("")
    (tmp_path / "01_b.sql").write_text("")
    with pytest.raises(DatabaseRefused, match="have one number"):
        read_migrations(tmp_path)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (b"\xff", "is no UTF-8 from byte 0 on"),
        (b"a\0b", "holds a NUL"),
        (b" " * (MAX_BYTES + 1), "is larger than"),
    ],
)
def test_a_file_that_cannot_be_read_whole_is_refused(tmp_path: Path, held: bytes, said: str) -> None:
    (tmp_path / "1.sql").write_bytes(held)
    with pytest.raises(DatabaseRefused) as refusal:
        read_migrations(tmp_path)
    assert said in refusal.value.cause


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatabaseRefused, match="X_DB_SQL_FILE"):
        read_migrations(tmp_path / "none")
    with pytest.raises(DatabaseRefused, match="cannot be read"):
        read_file(tmp_path)


def test_a_mark_of_order_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_bytes(b"\xef\xbb\xbfselect 1")
    assert read_file(tmp_path / "1.sql").text == "select 1"


def differs(texts: tuple[str, ...], **applied: str) -> str:
    with pytest.raises(DatabaseRefused) as refusal:
        pending(files(*texts), {f"{name[1:]}.sql": digest for name, digest in applied.items()})
    assert refusal.value.code == "X_DB_MIGRATIONS_DIFFER"
    return refusal.value.cause


def test_what_ran_must_be_what_the_directory_begins_with() -> None:
    one, two, three = files("a", "b", "c")
    assert [each.name for each in pending((one, two, three), {"1.sql": one.digest})] == ["2.sql", "3.sql"]
    assert differs(("changed", "b"), _1=one.digest) == "`1.sql` was changed since it ran here"
    assert (
        differs(("a",), _1=one.digest, _2=two.digest)
        == "`2.sql` ran here, and the directory has no such file"
    )
    assert differs(("a", "b", "c"), _1=one.digest, _3=three.digest) == (
        "`2.sql` comes before a migration that ran here already"
    )


def test_how_lines_end_is_no_change() -> None:
    (unix,), (dos,) = files("a\nb"), files("a\r\nb")
    assert unix.digest == dos.digest
    assert files("a\n b")[0].digest != unix.digest


def test_a_changed_file_is_refused_on_the_server(shop: Shop, branch: str) -> None:
    shop.migrate(branch, "create table a (x int)")
    with pytest.raises(DatabaseRefused, match="X_DB_MIGRATIONS_DIFFER"):
        shop.migrate(branch, "create table a (y int)", "create table b (x int)")
    assert "b" not in tables(shop, branch)


# The server.


def test_a_server_that_does_not_answer_is_told() -> None:
    with pytest.raises(DatabaseRefused, match="X_DB_UNREACHABLE"):
        migrate("postgresql://me:hush@127.0.0.1:1/x", KEY, ())


def test_a_role_that_may_make_no_table_is_told(shop: Shop, branch: str) -> None:
    shop.ask("create role guest login")
    try:
        with pytest.raises(DatabaseRefused, match="permission denied for schema public"):
            migrate(make_conninfo(shop.at(branch), user="guest"), KEY, files("select 1"))
    finally:
        shop.ask("drop role guest")


def test_a_branch_is_seen_as_one_for_each_file_anew(shop: Shop, branch: str) -> None:
    """Whoever takes the marker away stops a run that is under way."""
    done = list[object]()

    def run() -> None:
        try:
            done.append(shop.migrate(branch, "select pg_sleep(1)", "create table late (x int)"))
        except DatabaseRefused as refusal:
            done.append(refusal.code)

    thread = threading.Thread(target=run)
    thread.start()
    while not shop.ask("select 1 from pg_stat_activity where query like 'do %'"):
        time.sleep(0.02)
    shop.write(branch, "")
    thread.join()
    assert done == ["X_MCP_NOT_BRANCH_DB"]
    assert "late" not in tables(shop, branch)
