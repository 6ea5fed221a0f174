"""Branches on a real server: as wide as their source, whole or absent, and dropped by what they are."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from nonsuch.adapters.edge.postgres import branch_load, branches, programs
from nonsuch.adapters.edge.postgres.branch_load import Contents
from nonsuch.adapters.edge.postgres.refused import DatabaseRefused
from nonsuch.adapters.edge.postgres.sql_file import FileFailed, SqlFile

from .branching import KEY, Shop, served, shop_on

FULL = Contents(full=True)


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    with served() as dsn:
        yield dsn


@pytest.fixture
def shop(server: str) -> Generator[Shop]:
    with shop_on(server) as made:
        yield made


def refused(shop: Shop, name: str, contents: Contents | None = None) -> DatabaseRefused:
    before = shop.databases()
    with pytest.raises(DatabaseRefused) as refusal:
        shop.branch(name, contents)
    assert shop.databases() == before
    return refusal.value


# What a branch holds.


def test_a_branch_has_the_schema_and_no_row(shop: Shop) -> None:
    made = shop.branch("feat")
    assert made.database == f"{shop.name}_branch_feat"
    assert shop.ask("select count(*) from orders", database=made.database) == [(0,)]
    assert shop.ask("select count(*) from countries", database=made.database) == [(0,)]


def test_a_branch_has_the_rows_that_were_asked_for_and_its_seeds(shop: Shop) -> None:
    seeds = (
        SqlFile("a.sql", "insert into orders values (7, 'made up')"),
        SqlFile("b.sql", "delete from countries"),
    )
    made = shop.branch("feat", Contents(tables=("countries",), seeds=seeds[:1]))
    assert shop.ask("select * from orders", database=made.database) == [(7, "made up")]
    assert shop.ask("select * from countries order by 1", database=made.database) == [("de",), ("fr",)]
    made = shop.branch("more", Contents(tables=("public.countries",), seeds=seeds))
    assert shop.ask("select * from countries", database=made.database) == []


def test_a_full_copy_has_every_row(shop: Shop) -> None:
    made = shop.branch("feat", FULL)
    assert shop.ask("select * from orders", database=made.database) == [(1, "a secret")]


def test_a_schema_comes_with_the_history_of_its_migrations(shop: Shop) -> None:
    shop.ask("create schema app")
    shop.ask("create table app.alembic_version as select 'f00' as version_num")
    shop.ask("create table nonsuch_migrations as select '1.sql' as name, 'd' as digest, now() as applied_at")
    made = shop.branch("feat")
    assert shop.ask("select * from app.alembic_version", database=made.database) == [("f00",)]
    assert shop.ask("select name from nonsuch_migrations", database=made.database) == [("1.sql",)]


def test_rows_are_copied_as_one_moment_had_them_generated_columns_included(shop: Shop) -> None:
    shop.ask('create table "odd Name" (a int, b int generated always as (a * 2) stored, "c d" text)')
    shop.ask('alter table "odd Name" drop column a cascade, add column e int default 5')
    shop.ask('insert into "odd Name" ("c d") values (E\'x\\ty\\\\z\'), (null)')
    made = shop.branch("feat", Contents(tables=('"odd Name"',)))
    asked = 'select * from "odd Name" order by 1'
    assert shop.ask(asked, database=made.database) == shop.ask(asked)


def test_objects_keep_owner_and_grants_where_the_schema_is_copied(shop: Shop) -> None:
    shop.do("create schema inside authorization {}", shop.name)
    shop.do("create table inside.t (x int); grant select on inside.t to public")
    shop.do("revoke usage on schema public from public")
    made = shop.branch("feat")
    asked = "select relowner::regrole::text, relacl::text from pg_class where relname = 't'"
    assert shop.ask(asked, database=made.database) == shop.ask(asked)
    asked = "select nspname, nspacl::text from pg_namespace where nspname in ('public', 'inside') order by 1"
    assert shop.ask(asked, database=made.database) == shop.ask(asked)


@pytest.mark.parametrize("contents", [Contents(), FULL], ids=["schema", "full"])
def test_a_branch_reaches_no_other_server_by_passwords_of_the_source(shop: Shop, contents: Contents) -> None:
    shop.ask("create extension postgres_fdw")
    shop.ask("create server far foreign data wrapper postgres_fdw")
    shop.do("create user mapping for {} server far options (password 'p')", shop.name)
    shop.ask("create user mapping for public server far options (password 'q')")
    made = shop.branch("feat", contents)
    assert shop.ask("select srvname from pg_foreign_server", database=made.database) == [("far",)]
    assert shop.ask("select * from pg_user_mappings", database=made.database) == []
    assert len(shop.ask("select * from pg_user_mappings")) == 2


def test_a_table_that_is_not_there_is_told_and_nothing_is_left(shop: Shop) -> None:
    told = refused(shop, "feat", Contents(tables=("nowhere",)))
    assert told.cause == "the source has no table `nowhere`"
    assert refused(shop, "feat", Contents(tables=("a.b.c.d",))).code == "X_DB_REFUSED"


def test_a_seed_that_fails_leaves_no_branch(shop: Shop) -> None:
    before = shop.databases()
    with pytest.raises(FileFailed) as failure:
        shop.branch("feat", Contents(seeds=(SqlFile("seed.sql", "insert into orders\nvalues (1, nope)"),)))
    assert failure.value.cause == '`seed.sql:2:12`: column "nope" does not exist'
    assert shop.databases() == before


# Who may enter it.


def shaped(shop: Shop) -> None:
    """Give a source everything that a new database does not have by itself."""
    shop.do("revoke all on database {} from public", shop.name)
    shop.do("grant connect on database {} to pg_monitor with grant option", shop.name)
    shop.do("grant create on database {} to pg_read_all_data", shop.name)
    shop.do("revoke temporary on database {} from {}", shop.name, shop.name)
    shop.do("alter database {} connection limit 17", shop.name)
    shop.do('alter database {} set search_path to public, "X y", "q""uote", "$user"', shop.name)
    shop.do("alter database {} set work_mem to '5MB'", shop.name)
    shop.do("alter database {} set my.setting to 'it''s, \\ \"odd\"'", shop.name)
    shop.do("alter role {} in database {} set default_transaction_read_only to on", shop.name, shop.name)
    shop.do("alter role {} in database {} set search_path to ''", shop.name, shop.name)


@pytest.mark.parametrize("contents", [Contents(), FULL], ids=["schema", "full"])
def test_a_branch_is_as_wide_as_its_source_and_no_wider(shop: Shop, contents: Contents) -> None:
    shaped(shop)
    made = shop.branch("feat", contents)
    assert shop.shape(made.database) == shop.shape(shop.name)


@pytest.mark.parametrize("contents", [Contents(), FULL], ids=["schema", "full"])
def test_a_source_that_nobody_restricted_is_copied_as_it_is(shop: Shop, contents: Contents) -> None:
    assert shop.shape(shop.branch("feat", contents).database) == shop.shape(shop.name)


def test_a_source_of_another_locale_is_followed(shop: Shop) -> None:
    latin, plain = f"{shop.name}_latin", f"{shop.name}_c"
    shop.do("create database {} template template0 encoding 'LATIN1' locale_provider libc locale 'C'", latin)
    shop.do("create database {} template template0 locale_provider builtin builtin_locale 'C'", plain)
    for source in (latin, plain):
        made = branches.create(shop.at(source), KEY, "x")
        assert shop.shape(made.database) == shop.shape(source)


def test_the_comment_of_the_source_stays_behind_the_marker(shop: Shop) -> None:
    shop.write(shop.name, "it's the \\ shop\nof two lines")
    first, _, rest = shop.comment(shop.branch("feat").database).partition("\n")
    assert first.startswith('nonsuch branch v1 {"name": "feat", ')
    assert rest == "it's the \\ shop\nof two lines"


def test_while_it_is_filled_only_its_owner_can_enter(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[tuple[set[str], list[tuple[object, ...]]]]()
    fill = branch_load.fill

    def watched(dsn: str, source: str, target: str, contents: Contents) -> None:
        grants = shop.shape(target)["grants"]
        seen.append((shop.unfinished(), [tuple(each) for each in grants]))
        with pytest.raises(psycopg.OperationalError, match="permission denied"):
            psycopg.connect(shop.at(target, user="guest"))
        fill(dsn, source, target, contents)

    monkeypatch.setattr(branches, "fill", watched)
    shop.ask("create role guest login")
    try:
        shop.branch("feat", FULL)
    finally:
        shop.ask("drop role guest")
    ((unfinished, grants),) = seen
    assert len(unfinished) == 1
    assert {grantee for grantee, _, _ in grants} == {shop.name}


def test_an_owner_who_is_no_superuser_has_branches_too(shop: Shop) -> None:
    shop.do("alter role {} createdb", shop.name)
    for contents in (Contents(), FULL):
        name = f"full-{contents.full}"
        made = branches.create(shop.at(user=shop.name), KEY, name, contents)
        assert shop.shape(made.database) == shop.shape(shop.name)
        assert branches.drop(shop.at(user=shop.name), KEY, name).database == made.database


def test_a_role_that_may_make_no_database_is_told(shop: Shop) -> None:
    before = shop.databases()
    with pytest.raises(DatabaseRefused) as refusal:
        branches.create(shop.at(user=shop.name), KEY, "feat")
    assert refusal.value.cause == f"`{shop.name}` cannot be branched: permission denied to create database"
    assert shop.databases() == before


def test_what_cannot_be_given_to_the_branch_leaves_none(shop: Shop) -> None:
    """The owner may not set what another role is given in its database, and a branch without is wider."""
    shop.do("alter role {} createdb", shop.name)
    shop.do("alter role postgres in database {} set statement_timeout to '1s'", shop.name)
    before = shop.databases()
    with pytest.raises(DatabaseRefused, match="X_DB_REFUSED"):
        branches.create(shop.at(user=shop.name), KEY, "feat")
    assert shop.databases() == before


# Names.


@pytest.mark.parametrize(
    "name",
    [
        '"; drop database postgres; --',
        "a'b",
        'a"b',
        "ünï",
        "日本",
        "a;b",
        "%s",
        "{}",
        "template0",
        "postgres",
        "$1",
    ],
)
def test_a_name_is_never_read_as_sql(shop: Shop, name: str) -> None:
    before = shop.databases()
    made = shop.branch(name)
    assert shop.databases() - before == {made.database}
    assert shop.ls() == [name]
    assert shop.drop(name).database == made.database
    assert shop.databases() == before


@pytest.mark.parametrize(
    "name", ['shop "quoted"', "shöp", "Shop", "shop%s{}", "shop'; drop table orders; --"]
)
def test_a_source_of_any_name_has_branches(server: str, name: str) -> None:
    with shop_on(server, name) as shop:
        shaped(shop)
        for contents in (Contents(tables=("countries",)), FULL):
            made = shop.branch(f"x-{contents.full}", contents)
            assert made.database.startswith(f"{name}_branch_x_")
            assert shop.shape(made.database) == shop.shape(name)
            assert shop.migrate(made.database, "create table m (x int)").applied == ("1.sql",)
            shop.drop(made.name)


def test_names_that_differ_in_case_are_two_branches(shop: Shop) -> None:
    for name in ("feat", "Feat", "FEAT", "feat-", "feat_", "feat."):
        shop.branch(name)
    assert sorted(shop.ls()) == sorted(["feat", "Feat", "FEAT", "feat-", "feat_", "feat."])
    shop.drop("Feat")
    assert sorted(shop.ls()) == sorted(["feat", "FEAT", "feat-", "feat_", "feat."])


def test_a_name_that_is_too_long_is_refused_and_never_cut(shop: Shop) -> None:
    longest = "x" * (63 - len(f"{shop.name}_branch_"))
    assert refused(shop, longest + "x").code == "X_DB_BRANCH_NAME"
    assert shop.branch(longest).database == f"{shop.name}_branch_{longest}"


def test_a_taken_name_is_refused(shop: Shop) -> None:
    shop.branch("feat")
    assert refused(shop, "feat").cause == "there is a branch `feat` already"
    shop.do("create database {}", f"{shop.name}_branch_two")
    told = refused(shop, "two")
    assert told.code == "X_DB_BRANCH_EXISTS"
    assert (
        told.cause
        == f"there is a database `{shop.name}_branch_two` already, and it is no branch of this source"
    )


def test_a_name_that_is_taken_meanwhile_is_refused_as_well(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, fill = f"{shop.name}_branch_feat", branch_load.fill

    def slow(dsn: str, source: str, target: str, contents: Contents) -> None:
        fill(dsn, source, target, contents)
        shop.do("create database {}", taken)

    monkeypatch.setattr(branches, "fill", slow)
    with pytest.raises(DatabaseRefused, match="X_DB_BRANCH_EXISTS"):
        shop.branch("feat")
    assert shop.comment(taken) == "None"
    assert shop.unfinished() == set()


@pytest.mark.parametrize("source", ["template1"])
def test_a_template_of_the_server_is_no_source(shop: Shop, source: str) -> None:
    with pytest.raises(DatabaseRefused) as refusal:
        branches.create(shop.at(source), KEY, "feat")
    assert refusal.value.cause == f"`{source}` belongs to the server: it is no source of branches"


# Listing and dropping.


def test_ls_shows_the_branches_of_one_source(server: str, shop: Shop) -> None:
    with shop_on(server) as other:
        made = shop.branch("feat")
        other.branch("theirs")
        (listed,) = branches.ls(shop.at(), KEY)
        assert (listed.name, listed.database, listed.source) == ("feat", made.database, shop.name)
        assert listed.size is not None
        assert other.ls() == ["theirs"]


def test_a_branch_speaks_of_its_source(shop: Shop) -> None:
    made = shop.branch("feat")
    assert [each.name for each in branches.ls(shop.at(made.database), KEY)] == ["feat"]
    second = branches.create(shop.at(made.database), KEY, "two")
    assert second.database == f"{shop.name}_branch_two"
    branches.drop(shop.at(made.database), KEY, "feat")
    assert shop.ls() == ["two"]


def test_a_source_may_be_renamed(shop: Shop) -> None:
    shop.branch("feat")
    renamed = f"{shop.name}_renamed"
    with psycopg.connect(shop.at("postgres"), autocommit=True) as connection:
        connection.execute(f'alter database {shop.name} rename to "{renamed}"'.encode())
    (listed,) = branches.ls(shop.at(renamed), KEY)
    assert (listed.name, listed.source) == ("feat", renamed)
    assert branches.drop(shop.at(renamed), KEY, "feat").database == f"{shop.name}_branch_feat"


@pytest.mark.parametrize("name", ["postgres", "template0", "template1", "", "feat%", "FEAT", "feat'", "*"])
def test_only_what_ls_shows_is_dropped(shop: Shop, name: str) -> None:
    made = shop.branch("feat")
    before = shop.databases()
    for asked in (name, shop.name, made.database):
        with pytest.raises(DatabaseRefused) as refusal:
            shop.drop(asked)
        assert refusal.value.code == "X_DB_BRANCH_UNKNOWN"
        assert refusal.value.fix == "name one that `nonsuch db branch ls` shows: `feat`"
    assert shop.databases() == before


def test_a_database_that_only_has_the_name_is_not_dropped(shop: Shop) -> None:
    shop.do("create database {}", f"{shop.name}_branch_feat")
    assert shop.ls() == []
    with pytest.raises(DatabaseRefused, match="X_DB_BRANCH_UNKNOWN"):
        shop.drop("feat")
    assert f"{shop.name}_branch_feat" in shop.databases()


def test_who_has_another_key_sees_and_drops_nothing(shop: Shop) -> None:
    shop.branch("feat")
    assert shop.ls(KEY + b"!") == []
    with pytest.raises(DatabaseRefused, match="X_DB_BRANCH_UNKNOWN"):
        branches.drop(shop.at(), KEY + b"!", "feat")
    assert shop.ls() == ["feat"]


def test_what_was_put_in_the_place_of_a_branch_is_not_dropped(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = shop.branch("feat")
    found = branches.chosen

    def late(listed: object, name: str) -> object:
        branch = found(listed, name)  # type: ignore[arg-type]  # handed on as it came
        shop.do("alter database {} rename to {}", made.database, f"{shop.name}_away")
        shop.do("create database {}", made.database)
        return branch

    monkeypatch.setattr(branches, "chosen", late)
    with pytest.raises(DatabaseRefused) as refusal:
        shop.drop("feat")
    assert refusal.value.cause == f"`{made.database}` is another database by now"
    assert {made.database, f"{shop.name}_away"} <= shop.databases()
    assert shop.unfinished() == set()


# Who is in the way.


def test_sessions_on_the_source_of_a_full_copy_are_named(shop: Shop) -> None:
    with psycopg.connect(shop.at(application_name="web one", user=shop.name)) as user:
        told = refused(shop, "feat", FULL)
        pid = user.info.backend_pid
    assert told.code == "X_DB_IN_USE"
    assert told.cause == (
        f"`{shop.name}` cannot be copied: `{shop.name}` is in use by {pid} ({shop.name}, web one, here)"
    )


def test_sessions_on_the_source_do_not_hinder_a_copy_of_its_schema(shop: Shop) -> None:
    with psycopg.connect(shop.at()) as user:
        user.execute("insert into orders values (9, 'not committed')")
        assert shop.branch("feat").name == "feat"


def test_sessions_on_a_branch_are_named_and_it_stays(shop: Shop) -> None:
    made = shop.branch("feat")
    with psycopg.connect(shop.at(made.database, application_name="a\x1b[2Jb")):
        with pytest.raises(DatabaseRefused, match=r"X_DB_IN_USE.*\(postgres, a\\x1b\[2Jb, here\)"):
            shop.drop("feat")
        assert shop.ls() == ["feat"]
        assert shop.unfinished() == set()


def test_an_address_of_nothing_is_told_without_its_password() -> None:
    for dsn in ("postgresql://me:hush@127.0.0.1:1/x", "postgresql://me:hush@[", "nonsense=hush"):
        with pytest.raises(DatabaseRefused) as refusal:
            branches.ls(dsn, KEY)
        assert refusal.value.code == "X_DB_UNREACHABLE"
        assert "hush" not in str(refusal.value)


# Large ones, and programs.


def test_a_hundred_megabytes_are_cloned(shop: Shop) -> None:
    shop.ask("create table large as select g, repeat(md5(g::text), 8) as x from generate_series(1, 350000) g")
    (size,) = shop.ask("select pg_database_size(current_database())")[0]
    assert size > 100 * 1024 * 1024
    started = time.monotonic()
    made = shop.branch("feat", FULL)
    taken = time.monotonic() - started
    asked = "select count(*), md5(string_agg(x, '' order by g)) from large"
    assert shop.ask(asked, database=made.database) == shop.ask(asked)
    assert taken < 60
    empty = shop.branch("empty")
    assert shop.ask("select pg_database_size(current_database())", database=empty.database)[0][0] < size / 5


def test_without_programs_that_fit_the_full_copy_is_the_way(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_candidates", lambda: iter([Path("/nowhere/pg_dump"), Path("/bin/sh")]))
    told = refused(shop, "feat")
    assert told.code == "X_DB_PROGRAM_MISSING"
    assert "--full" in told.fix
    assert shop.branch("feat", FULL).name == "feat"


@pytest.mark.parametrize(
    ("server", "installed", "chosen"),
    [
        (18, [15, 18, 19], 18),
        (17, [15, 19, 18], 18),
        (15, [18, 16], 16),
        (15, [18, 15, 14], 15),
        (16, [17, 18], None),
        (18, [17], None),
        (18, [], None),
    ],
)
def test_programs_are_those_of_the_server_or_the_next_that_it_understands(
    server: int, installed: list[int], chosen: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = [programs.Programs(Path(), Path(), major) for major in installed]
    monkeypatch.setattr(programs, "_installed", lambda: iter(there))
    assert chosen_for(server) == chosen


def chosen_for(server: int) -> int | None:
    """The version of the programs for a server; nothing, where none fit."""
    try:
        return programs.programs_for(server).major
    except DatabaseRefused:
        return None


def test_a_password_reaches_the_programs_by_their_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NONSUCH_BRANCH_KEY", "k" * 32)
    held = programs.environment("postgresql://me:hush@host:7/x?sslmode=require", "y")
    told = {
        name: held[name] for name in ("PGUSER", "PGPASSWORD", "PGHOST", "PGPORT", "PGDATABASE", "PGSSLMODE")
    }
    assert list(told.values()) == ["me", "hush", "host", "7", "y", "require"]
    assert "NONSUCH_BRANCH_KEY" not in held


def test_a_schema_that_cannot_be_copied_leaves_no_branch(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "LOAD", (*programs.LOAD, "--command=select nope"))
    told = refused(shop, "feat")
    assert told.code == "X_DB_REFUSED"
    assert "could not be loaded" in told.cause
    assert 'column "nope" does not exist' in told.cause
    monkeypatch.undo()
    monkeypatch.setattr(programs, "DUMP", (*programs.DUMP, "--table=nowhere"))
    assert "could not be read" in refused(shop, "feat").cause
