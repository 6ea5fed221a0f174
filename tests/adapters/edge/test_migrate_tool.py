"""`db.migrate` as a tool: seen, scoped and judged as any other, and run where the server says it may."""

from __future__ import annotations

import logging
from collections.abc import Generator
from pathlib import Path

import pytest

from nonsuch import Agent, App, BootError, Human, OpenSync, Registry, can, define_app_mcp, grant, tool
from nonsuch.adapters.edge.postgres import migrate_tool
from nonsuch.adapters.edge.postgres.migrate_tool import db_migrate
from nonsuch.kernel.model import Failed, Hidden, Ok, Outcome, PolicyDenied, ScopeDenied

from .branching import KEY, Shop, served, shop_on

NAME = "db.migrate"
DEV = Agent("bot", roles=["dev"], scopes=["db:migrate"])


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    with served() as dsn:
        yield dsn


@pytest.fixture
def shop(server: str) -> Generator[Shop]:
    with shop_on(server) as made:
        yield made


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "1_a.sql").write_text("create table a (x int)")
    return folder


def app(dsn: str, files: Path, policies: Path | None = None, key: bytes | None = KEY) -> App:
    return define_app_mcp(
        Registry(),
        name="shop",
        tools={NAME: db_migrate(dsn, files, visible_to=["dev", "lead"], key=key)},
        scopes={"db:migrate": [NAME]},
        roles=["dev", "lead", "guest"],
        grants=[grant("dev", "db:migrate")],
        policies_dir=policies,
        resolve_token=lambda _token: None,
    )


def called(made: App, who: Agent | Human = DEV, **arguments: bool) -> Outcome:
    with OpenSync(made) as running:
        return running.invoke(who, NAME, arguments)


def made(shop: Shop, database: str) -> bool:
    return shop.ask("select to_regclass('a') is not null", database=database) == [(True,)]


def test_a_branch_is_migrated_and_told_as_it_was(shop: Shop, files: Path) -> None:
    branch = shop.branch("feat").database
    told = {"database": branch, "branch": "feat", "applied": ["1_a.sql"], "superuser": True}
    tried = called(app(shop.at(branch), files), dryRun=True)
    assert isinstance(tried, Ok)
    assert tried.value == {**told, "dryRun": True}
    assert not made(shop, branch)
    done = called(app(shop.at(branch), files))
    assert isinstance(done, Ok)
    assert done.value == {**told, "dryRun": False}
    assert made(shop, branch)
    again = called(app(shop.at(branch), files))
    assert isinstance(again, Ok)
    assert again.value == {**told, "applied": [], "dryRun": False}


def test_any_other_database_is_refused_by_the_policy(shop: Shop, files: Path) -> None:
    branch = shop.branch("feat").database
    shop.write(shop.name, shop.comment(branch))
    for database in (shop.name, "postgres"):
        refused = called(app(shop.at(database), files))
        assert isinstance(refused, PolicyDenied)
        assert (refused.code, refused.policies) == ("X_MCP_NOT_BRANCH_DB", ("nonsuch.migrate.branch",))
        assert refused.cause == "the database is not a branch"
    assert not made(shop, shop.name)


@pytest.mark.parametrize(
    "policy",
    [
        "permit (principal, action, resource);",
        'permit (principal, action == Action::"db.migrate", resource);',
        'permit (principal, action in Action::"any", resource) when { true };',
    ],
)
def test_no_policy_of_an_app_opens_another_database(
    shop: Shop, files: Path, tmp_path: Path, policy: str
) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "wide.cedar").write_text(f'@id("wide")\n{policy}')
    try:
        served = app(shop.at(), files, rules)
    except BootError:
        assert policy.startswith("permit (principal, action, resource)")
        return
    assert isinstance(called(served), PolicyDenied)


def test_an_app_narrows_where_its_migrations_run(shop: Shop, files: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    text = '@id("ours")\nforbid (principal, action == Action::"db.migrate", resource)\n'
    branch = shop.branch("feat").database
    for condition, allowed in (
        ("resource.superuser", False),
        (f'resource.source != "{shop.name}"', True),
        ('resource.name == "feat"', False),
        ("context.args.dryRun == false", False),
    ):
        (rules / "ours.cedar").write_text(f"{text}when {{ {condition} }};")
        outcome = called(app(shop.at(branch), files, rules), dryRun=False)
        assert isinstance(outcome, Ok) is allowed
        if not allowed:
            assert isinstance(outcome, PolicyDenied)
            assert outcome.policies == ("ours",)


def test_the_gates_come_in_their_order_and_before_the_database(files: Path) -> None:
    """The database of this app does not answer: who is refused before it is asked cannot tell."""
    served = app("postgresql://me:hush@127.0.0.1:1/x", files)
    assert called(served, Agent("bot", roles=["guest"], scopes=["db:migrate"])) == Hidden(NAME)
    assert called(served, Agent("bot", roles=["dev"])) == ScopeDenied("db:migrate")
    assert isinstance(called(served), Failed)


def test_who_lacks_the_permission_is_refused_on_a_branch_too(shop: Shop, files: Path) -> None:
    branch = shop.branch("feat").database
    refused = called(app(shop.at(branch), files), Agent("bot", roles=["lead"], scopes=["db:migrate"]))
    assert isinstance(refused, PolicyDenied)
    assert (refused.code, refused.policies) == ("X_FORBIDDEN", ())
    assert not made(shop, branch)


def test_an_agent_needs_what_its_person_needs(shop: Shop, files: Path) -> None:
    branch = shop.branch("feat").database
    for role, allowed in (("dev", True), ("lead", False)):
        bot = Human("ann", roles=[role]).delegate("bot", scopes=["db:migrate"])
        assert isinstance(called(app(shop.at(branch), files), bot, dryRun=True), Ok) is allowed


def test_a_file_that_fails_is_told_with_what_stays(shop: Shop, files: Path) -> None:
    branch = shop.branch("feat").database
    (files / "2_b.sql").write_text("create table b (x int);\nselct")
    outcome = called(app(shop.at(branch), files))
    cause = '`2_b.sql:2:1`: syntax error at or near "selct"; applied before it: 1_a.sql'
    fix = "correct the file, then run it again"
    assert outcome == Failed("X_DB_MIGRATION_FAILED", cause, fix, fix)
    assert made(shop, branch)


def test_a_directory_that_does_not_fit_is_told(shop: Shop, files: Path) -> None:
    branch = shop.branch("feat").database
    called(app(shop.at(branch), files))
    (files / "1_a.sql").write_text("create table a (y int)")
    outcome = called(app(shop.at(branch), files))
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.cause) == (
        "X_DB_MIGRATIONS_DIFFER",
        "`1_a.sql` was changed since it ran here",
    )
    (files / "x.sql").write_text("")
    outcome = called(app(shop.at(branch), files))
    assert isinstance(outcome, Failed)
    assert outcome.code == "X_DB_SQL_FILE"


@pytest.fixture
def no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NONSUCH_BRANCH_KEY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_without_a_key_no_database_is_a_branch(
    shop: Shop, files: Path, no_key: Path, caplog: pytest.LogCaptureFixture
) -> None:
    branch = shop.branch("feat").database
    with caplog.at_level(logging.WARNING, "nonsuch.migrate"):
        refused = called(app(shop.at(branch), files, key=None))
    assert isinstance(refused, PolicyDenied)
    assert refused.code == "X_MCP_NOT_BRANCH_DB"
    assert "no database is a branch here: there is no key" in caplog.text
    assert not no_key.exists()


def test_the_key_is_found_where_branches_are_made(
    shop: Shop, files: Path, no_key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch = shop.branch("feat").database
    served = app(shop.at(branch), files, key=None)
    monkeypatch.setenv("NONSUCH_BRANCH_KEY", KEY.decode())
    assert isinstance(called(served), Ok)


def test_the_run_looks_again_after_the_policy_was_asked(
    shop: Shop, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch = shop.branch("feat").database
    described = migrate_tool.described

    def late(dsn: str, key: bytes) -> migrate_tool.Database:
        held = described(dsn, key)
        shop.write(branch, "")
        return held

    monkeypatch.setattr(migrate_tool, "described", late)
    outcome = called(app(shop.at(branch), files))
    assert isinstance(outcome, Failed)
    assert outcome.code == "X_MCP_NOT_BRANCH_DB"
    assert not made(shop, branch)


def test_what_an_operator_has_to_know_is_logged_and_not_told(
    shop: Shop, files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    branch = shop.branch("feat").database
    shop.ask("create role guest login")
    try:
        outcome = called(app(shop.at(branch, user="guest"), files))
    finally:
        shop.ask("drop role guest")
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.cause) == ("X_DB_REFUSED", "the database server refused")
    assert "permission denied for schema public" in caplog.text


def test_a_tool_of_that_name_that_says_nothing_of_a_branch_does_not_boot() -> None:
    """The policy that we ship about it would have nothing to read."""

    def anything() -> str:
        return ""

    with pytest.raises(BootError) as refused:
        define_app_mcp(
            Registry(), name="x", tools={NAME: tool("x", anything, policy=can("db:migrate"))}, roles=["dev"]
        )
    (told,) = refused.value.faults
    assert (told.code, told.where) == ("X_DECLARATION_INVALID", "<db.migrate>")
    assert told.fix == "give it another name, or serve ours: `db_migrate(...)`"


def test_an_app_without_the_tool_has_no_policy_about_it() -> None:
    def anything() -> str:
        return ""

    served = define_app_mcp(Registry(), name="x", tools={"other": tool("x", anything, policy="any:do")})
    (entry,) = served.kernel.catalog.entries
    assert "nonsuch.migrate.branch" not in {
        each.id for each in served.kernel.judge.gate(entry).index.policies
    }
