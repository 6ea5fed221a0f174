"""`nonsuch db branch create|ls|drop` and `nonsuch db migrate`: documents, words, statuses, both servers."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from nonsuch.adapters.cli.main import main
from nonsuch.adapters.edge.embedded import embedded_postgres

DATABASE = "postgres_branch_feat_new_6c9112fc"


@dataclass(frozen=True, slots=True)
class Told:
    """What a command answered."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)

    @property
    def data(self) -> Any:
        """What a command about branches has under it, if it was carried out."""
        return self.document["data"]

    @property
    def code(self) -> str:
        """The code of a refusal."""
        assert self.status == 2
        assert self.err.startswith(
            f"{self.document['error']['code']}: {self.document['error']['cause']}\nfix: "
        )
        return str(self.document["error"]["code"])


@dataclass(frozen=True, slots=True)
class Project:
    """A directory with migrations and a seed, and the command line in it."""

    home: Path
    server: tuple[str, ...]
    capture: pytest.CaptureFixture[str]

    def run(self, *arguments: str, where: tuple[str, ...] | None = None) -> Told:
        """Run a command of `nonsuch db`."""
        status = main(["db", *arguments, *(self.server if where is None else where)])
        told = self.capture.readouterr()
        return Told(status, told.out, told.err)

    def json(self, *arguments: str, where: tuple[str, ...] | None = None) -> Told:
        """Run a command for its document."""
        return self.run(*arguments, "--json", where=where)

    @contextmanager
    def entered(self, database: str) -> Generator[psycopg.Connection[tuple[Any, ...]]]:
        """A session in a database of the server."""
        if self.server[0] == "--database":
            with psycopg.connect(self.server[1], dbname=database) as connection:
                yield connection
        else:
            with (
                embedded_postgres(Path(self.server[1])) as dsn,
                psycopg.connect(dsn, dbname=database) as inside,
            ):
                yield inside


@pytest.fixture(scope="module")
def dsn() -> Generator[str]:
    with embedded_postgres() as address:
        yield address


@pytest.fixture(params=["server", "embedded"])
def project(
    request: pytest.FixtureRequest,
    dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Generator[Project]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("DATABASE_URL", "NONSUCH_BRANCH_KEY", "PORT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "1_a.sql").write_text("create table a (x int)")
    if request.param == "embedded":
        with embedded_postgres(tmp_path / "data"):
            yield Project(tmp_path, ("--data", str(tmp_path / "data")), capsys)
        return
    project = Project(tmp_path, ("--database", dsn), capsys)
    yield project
    for branch in project.json("branch", "ls").data["branches"]:
        project.run("branch", "drop", branch["name"])
    project.capture.readouterr()


def test_a_branch_is_made_listed_migrated_and_dropped(project: Project) -> None:
    (project.home / "seed.sql").write_text("create table seeded as select 7 as n")
    (project.home / "pyproject.toml").write_text('[tool.nonsuch.db]\nseeds = ["seed.sql"]\n')
    made = project.json("branch", "create", "feat-new")
    assert (made.status, made.err) == (0, "")
    data = made.data
    assert (data["name"], data["database"], data["source"]) == ("feat-new", DATABASE, "postgres")
    assert data["preview"] == "http://feat-new.localhost:8000"
    assert data["url"].startswith(f"postgresql://postgres@/{DATABASE}?host=")
    with project.entered(DATABASE) as session:
        assert session.execute("select n from seeded").fetchall() == [(7,)]

    listed = project.json("branch", "ls").data["branches"]
    assert [{**each, "bytes": None, "url": None} for each in listed] == [{**data, "bytes": None, "url": None}]
    assert listed[0]["bytes"] > 1024 * 1024

    tried = project.json("migrate", "--branch", "feat-new", "--dry-run")
    assert (tried.status, tried.document["applied"], tried.document["pending"]) == (
        0,
        ["1_a.sql"],
        ["1_a.sql"],
    )
    done = project.json("migrate", "--branch", "feat-new")
    assert done.status == 0
    assert done.document == {
        "database": DATABASE,
        "branch": "feat-new",
        "dryRun": False,
        "applied": ["1_a.sql"],
        "pending": [],
        "superuser": True,
        "failed": None,
    }
    gone = project.json("branch", "drop", "feat-new")
    assert (gone.status, gone.data) == (0, {"name": "feat-new", "database": DATABASE})
    assert project.json("branch", "ls").data == {"branches": []}


def test_an_embedded_server_is_started_for_a_command(project: Project) -> None:
    where = ("--data", str(project.home / "other"))
    assert project.json("branch", "create", "feat-new", where=where).status == 0
    assert [each["name"] for each in project.json("branch", "ls", where=where).data["branches"]] == [
        "feat-new"
    ]
    inside = (*where, "--database", DATABASE)
    assert project.json("migrate", where=inside).document["applied"] == ["1_a.sql"]


def test_the_same_is_told_to_people(project: Project) -> None:
    made = project.run("branch", "create", "feat-new", "--port", "3000")
    assert made.status == 0
    assert [line.split()[0] for line in made.out.splitlines()] == [
        "branch",
        "database",
        "made",
        "address",
        "preview",
    ]
    assert made.out.rstrip().endswith("http://feat-new.localhost:3000")
    assert DATABASE in project.run("branch", "ls").out
    done = project.run("migrate", "--branch", "feat-new")
    assert done.out == (
        "applied 1_a.sql\nthey ran as a superuser, whom no database confines: prefer its owner\n"
        f"feat-new ({DATABASE}): up to date\n"
    )
    tried = project.run("migrate", "--branch", "feat-new", "--dry-run")
    assert tried.out == f"feat-new ({DATABASE}): nothing was changed\n"
    gone = project.run("branch", "drop", "feat-new")
    assert gone.out == f"dropped the branch feat-new with its database {DATABASE}\n"
    assert project.run("branch", "ls").out == "no branches: make one with `nonsuch db branch create <name>`\n"


def test_a_migration_that_fails_is_an_answer_with_status_1(project: Project) -> None:
    project.run("branch", "create", "feat-new")
    (project.home / "migrations" / "2_b.sql").write_text("selct")
    (project.home / "migrations" / "3_c.sql").write_text("select 1")
    failed = project.json("migrate", "--branch", "feat-new")
    assert failed.status == 1
    assert (failed.document["applied"], failed.document["pending"]) == (["1_a.sql"], ["2_b.sql", "3_c.sql"])
    assert failed.document["failed"] == {
        "code": "X_DB_MIGRATION_FAILED",
        "file": "2_b.sql",
        "position": "1:1",
        "state": "42601",
        "cause": '`2_b.sql:1:1`: syntax error at or near "selct"',
        "fix": "correct the file, then run it again",
    }
    told = project.run("migrate", "--branch", "feat-new")
    assert told.status == 1
    assert told.out.endswith(f"feat-new ({DATABASE}): 2 pending\n")


def test_what_is_refused_has_status_2_and_its_code(project: Project) -> None:
    assert project.json("migrate").code == "X_MCP_NOT_BRANCH_DB"
    assert project.json("migrate", "--branch", "none").code == "X_DB_BRANCH_UNKNOWN"
    assert project.json("branch", "drop", "postgres").code == "X_DB_BRANCH_UNKNOWN"
    assert project.json("branch", "create", "x" * 60).code == "X_DB_BRANCH_NAME"
    assert project.json("branch", "create", "feat-new").status == 0
    assert project.json("branch", "create", "feat-new").code == "X_DB_BRANCH_EXISTS"
    assert project.json("branch", "create", "b", "--rows", "nowhere").code == "X_CLI_USAGE"
    assert project.json("branch", "create").code == "X_CLI_USAGE"
    (project.home / "bad.sql").write_text("selct")
    assert project.json("branch", "create", "b", "--seed", "bad.sql").code == "X_DB_SEED_FAILED"
    assert project.json("branch", "create", "b", "--seed", "none.sql").code == "X_DB_SQL_FILE"
    assert project.json("migrate", "--migrations", "none").code == "X_DB_SQL_FILE"
    with project.entered(DATABASE):
        assert project.json("branch", "drop", "feat-new").code == "X_DB_IN_USE"
    assert [each["name"] for each in project.json("branch", "ls").data["branches"]] == ["feat-new"]


def test_rows_are_copied_only_where_that_is_asked_for(project: Project) -> None:
    with project.entered("postgres") as session:
        session.execute("drop table if exists kept; create table kept as select 1 as x")
    counted = dict[str, int]()
    for name, options in {
        "a": (),
        "b": ("--schema-only",),
        "c": ("--rows", "kept"),
        "d": ("--full",),
    }.items():
        database = project.json("branch", "create", name, *options).data["database"]
        with project.entered(database) as session:
            ((counted[name],),) = session.execute("select count(*) from kept").fetchall()
    assert counted == {"a": 0, "b": 0, "c": 1, "d": 1}


def test_the_address_may_be_the_branch_itself(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.run("branch", "create", "feat-new")
    with project.entered(DATABASE) as session:
        address = f"{session.info.dsn}"
        monkeypatch.setenv("DATABASE_URL", address)
        assert project.json("migrate", where=()).document["applied"] == ["1_a.sql"]
        assert [each["name"] for each in project.json("branch", "ls", where=()).data["branches"]] == [
            "feat-new"
        ]


# Which database.


def test_without_a_database_there_is_nothing_to_do(project: Project) -> None:
    assert project.json("branch", "ls", where=()).code == "X_CLI_USAGE"
    assert project.json("migrate", where=()).code == "X_CLI_USAGE"


@pytest.mark.parametrize("address", ["postgresql://me:hush@127.0.0.1:1/x", "postgresql://me:hush@[/x"])
def test_a_server_that_does_not_answer_is_told_without_the_password(project: Project, address: str) -> None:
    for command in (("branch", "ls"), ("branch", "create", "a"), ("branch", "drop", "a"), ("migrate",)):
        told = project.json(*command, where=("--database", address))
        assert told.code == "X_DB_UNREACHABLE"
        assert "hush" not in told.out + told.err


def test_a_password_is_never_printed(project: Project, dsn: str) -> None:
    address = make_conninfo(dsn, password="hush", sslmode="disable")
    told = project.json("branch", "create", "feat-new", where=("--database", address))
    listed = project.run("branch", "ls", where=("--database", address))
    project.run("branch", "drop", "feat-new", where=("--database", address))
    assert told.status == 0
    assert "sslmode=disable" in told.data["url"]
    assert "hush" not in told.out + told.err + listed.out


@pytest.mark.parametrize(
    "text",
    [
        "[tool.nonsuch]\ndb = 1\n",
        "[tool.nonsuch.db]\nseeds = 1\n",
        "[tool.nonsuch.db]\nmigrations = []\n",
        "=",
    ],
)
def test_a_project_file_that_cannot_be_read_is_told(project: Project, text: str) -> None:
    (project.home / "pyproject.toml").write_text(text)
    assert project.json("branch", "create", "feat-new").code == "X_CLI_USAGE"


def test_the_project_says_where_migrations_are(project: Project) -> None:
    (project.home / "pyproject.toml").write_text('[tool.nonsuch.db]\nmigrations = "elsewhere"\n')
    (project.home / "elsewhere").mkdir()
    project.run("branch", "create", "feat-new")
    assert project.json("migrate", "--branch", "feat-new").document["applied"] == []
    assert project.json("migrate", "--branch", "feat-new", "--migrations", "migrations").document[
        "applied"
    ] == ["1_a.sql"]


def test_the_port_of_the_preview_is_the_one_of_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORT", "4321")
    assert project.json("branch", "create", "feat-new").data["preview"] == "http://feat-new.localhost:4321"
    monkeypatch.setenv("PORT", "unix:/x")
    assert project.json("branch", "ls").data["branches"][0]["preview"] == "http://feat-new.localhost:8000"
