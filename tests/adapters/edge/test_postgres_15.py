"""PostgreSQL 15: the corpus over every layer it has, the role, branches and migrations."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Final

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from nonsuch.adapters.edge.postgres.branch_load import Contents
from nonsuch.adapters.edge.postgres.programs import programs_for
from nonsuch.adapters.edge.postgres.readonly import GUARDS, Asked, ReadOnly
from nonsuch.adapters.edge.postgres.readonly_grant import Wish, grant_readonly
from nonsuch.adapters.edge.postgres.readonly_judge import judged_by
from nonsuch.adapters.edge.postgres.readonly_live import LiveCheck
from nonsuch.adapters.edge.postgres.refused import DatabaseRefused
from nonsuch.adapters.edge.sql_guard import Judged

from ...kernel.queries import corpus
from .branching import Shop, shop_on
from .elder import postgres_15
from .readonly_lab import DATABASE, GUARD, VECTORS, Lab, ran

ROWS: Final = corpus()
REVIEWED: Final = json.loads((VECTORS / "reviewed.json").read_text("utf-8"))
# What later servers can, and the one extension that the package lacks.
YOUNGER: Final = {
    "B093": 'unrecognized EXPLAIN option "memory"',
    "B116": "function any_value(text) does not exist",
    "B125": 'syntax error at or near "COLUMNS"',
    "B134": 'syntax error at or near "JSON"',
    "B142": 'column "embedding" does not exist',
    "B145": 'column "embedding" does not exist',
    "B246": "function uuidv7() does not exist",
    "B248": "function random(integer, integer) does not exist",
}
LACKING: Final = {"transaction-timeout", "role:set", "execute-revoked"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_15() as address:
        yield address


@pytest.fixture(scope="module")
def lab(server: str) -> Lab:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}".encode())
    made = Lab(make_conninfo(server, dbname=DATABASE))
    with made.admin() as connection:
        connection.execute(_elder((VECTORS / "schema.sql").read_text("utf-8")).encode())
    return made


def _elder(schema: str) -> str:
    """The schema without vectors, and without options of memberships, which 15 does not know."""
    for gone in (
        "CREATE EXTENSION IF NOT EXISTS vector;",
        ", embedding vector(3)",
        ", ('['||i||','||i%3||',1]')::vector",
    ):
        assert gone in schema
        schema = schema.replace(gone, "")
    return re.sub(r" WITH INHERIT \w+(, SET \w+)?", "", schema.replace("body,embedding)", "body)"))


@pytest.fixture(scope="module")
def told(lab: Lab) -> dict[str, Judged]:
    found = asyncio.run(judged_by(lab.of("agent_login"), GUARD, [each.text for each in ROWS]))
    return {row.id: each for row, each in zip(ROWS, found, strict=True)}


def test_every_attack_is_refused_and_no_more_reads_than_on_the_server_that_ships(
    told: dict[str, Judged],
) -> None:
    assert [each.id for each in ROWS if each.verdict == "refuse" and told[each.id].verdict.allow] == []
    reads = (each.id for each in ROWS if each.verdict == "accept" and each.firm)
    refused = {each for each in reads if not told[each].verdict.allow}
    assert refused == REVIEWED["accepts that are refused with a database"].keys()


def test_every_read_that_15_knows_runs_through_the_layers_it_has(lab: Lab, told: dict[str, Judged]) -> None:
    failed, stood = ran(_ran(lab, told))
    assert {
        each: cause.partition(": ")[2].partition(" at 1:")[0] for each, cause in failed.items()
    } == YOUNGER
    every = {*GUARDS} - LACKING
    assert stood == {frozenset(every), frozenset(every - {"row-limit", "cell-limit"})}


async def _ran(lab: Lab, told: dict[str, Judged]) -> tuple[dict[str, str], set[frozenset[str]]]:
    database = ReadOnly(lab.of("agent_login"), seconds=20, check=LiveCheck(GUARD))
    failed: dict[str, str] = {}
    stood: set[frozenset[str]] = set()
    try:
        for row in ROWS:
            if row.verdict != "accept" or not told[row.id].verdict.allow:
                continue
            try:
                found = await database.query(Asked(row.text, told[row.id].facts))
                stood.add(frozenset(found.guards))
            except DatabaseRefused as refusal:
                failed[row.id] = refusal.cause
    finally:
        await database.close()
    return failed, stood


def test_what_runs_text_as_a_query_is_refused_where_the_server_can(lab: Lab) -> None:
    """The server that ships has no libxml: here these would read what the role may not."""
    with lab.admin() as connection:
        assert "<table" in str(
            connection.execute("SELECT query_to_xml('TABLE products', true, false, '')").fetchone()
        )
    for text in (
        "SELECT query_to_xml('SELECT note FROM secret_notes', true, false, '')",
        "SELECT table_to_xml('secret_notes', true, false, '')",
        "SELECT database_to_xml(true, false, '')",
    ):
        assert not GUARD.judge(text).verdict.allow


def test_a_role_that_only_reads_is_made_and_made_again(lab: Lab) -> None:
    with lab.admin() as connection:
        for _ in range(2):
            granted = grant_readonly(connection, Wish(role="reads_15"))
            assert granted.whole, granted


def _copied(shop: Shop) -> tuple[Contents, ...]:
    """A copy of the schema, where this machine has the programs of a server of that age."""
    try:
        programs_for(15)
    except DatabaseRefused:
        with pytest.raises(DatabaseRefused) as refusal:
            shop.branch("feat")
        assert refusal.value.code == "X_DB_PROGRAM_MISSING"
        return ()
    return (Contents(),)


def test_branches_and_migrations(server: str) -> None:
    with shop_on(server, "elder shop") as shop:
        for contents in (Contents(full=True), *_copied(shop)):
            made = shop.branch("feat", contents)
            done = shop.migrate(made.database, "create table fresh (id int)")
            assert done.failed is None
            assert shop.ask("select count(*) from fresh", database=made.database) == [(0,)]
            shop.drop("feat")
        with pytest.raises(DatabaseRefused) as refusal:
            shop.migrate(shop.name, "create table fresh (id int)")
        assert refusal.value.code == "X_MCP_NOT_BRANCH_DB"
