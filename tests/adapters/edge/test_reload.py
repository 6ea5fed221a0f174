"""Policies anew while the app runs: by a call, by SIGHUP, by watching; all of them or none."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from nonsuch import App, OpenSync, grant, postgres_grants, reload_policies
from nonsuch.adapters.edge import extras, reload
from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.extras import ExtraMissing
from nonsuch.adapters.edge.policies import fingerprint
from nonsuch.adapters.edge.postgres.grants import SQL_GRANTS_TABLE
from nonsuch.adapters.edge.reload import Reloaded, reloading
from nonsuch.kernel.declare import Grant
from nonsuch.kernel.errors import fault
from nonsuch.kernel.model import Call, Ok, PolicyDenied
from nonsuch.kernel.steps import Permit

from .post_office import CLERK, World

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 30
ANYTHING = '@id("clerks") permit (principal in Role::"clerk", action in Action::"letter:send", resource);\n'
NOTHING = '@id("nobody") forbid (principal, action in Action::"letter:send", resource);\n'
BROKEN = '@id("broken")\npermit (principal in Role::"clark", action in Action::"letter:send", resource);\n'
NEVER = '@id("never")\npermit (principal, action in Action::"letter:send", resource) when { false };\n'


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """A directory that lets clerks send."""
    directory = tmp_path / "policies"
    directory.mkdir()
    write(directory, ANYTHING)
    return directory


def write(directory: Path, text: str) -> None:
    """Replace the one policy file at once, as editors and deployments do."""
    fresh = directory / "own.new"
    fresh.write_text(text)
    fresh.rename(directory / "own.cedar")


def office(policies: Path | None, *sources: Callable[[], Iterable[Grant]], **given: Any) -> App:
    settings: dict[str, Any] = {"grants": (), "roles": ["clerk", "boss"], **given}
    return World().app(policies_dir=policies, grant_sources=sources, **settings)


def sends(app: App) -> bool:
    """Whether the clerk may send a letter now."""
    with OpenSync(app) as running:
        outcome = running.invoke(CLERK, "send", {"to": "x"})
    assert isinstance(outcome, (Ok, PolicyDenied))
    return isinstance(outcome, Ok)


# by a call


def test_another_set_of_policies_is_in_force_at_the_next_request(policies: Path) -> None:
    app = office(policies)
    assert sends(app)
    for text, expected in ((NOTHING, False), (ANYTHING + NOTHING, False), ("", False), (ANYTHING, True)):
        write(policies, text)
        assert reload_policies(app) == Reloaded((), ())
        assert sends(app) is expected


def test_one_running_app_forgets_what_it_permitted(policies: Path) -> None:
    """The same caller, the same tool, the same process: no memo outlives the set that filled it."""
    app = office(policies)
    with OpenSync(app) as running:
        told = list[str]()
        for text in (ANYTHING, "", ANYTHING):
            write(policies, text)
            reload_policies(app)
            told += [
                type(running.invoke(CLERK, name, {"to": "x"})).__name__ for name in ("send", "send_sync")
            ]
    assert told == ["Ok", "Ok", "PolicyDenied", "PolicyDenied", "Ok", "Ok"]


def test_a_request_under_way_keeps_the_policies_it_began_with(policies: Path) -> None:
    app = office(policies)
    view = app.kernel.view_for(CLERK)
    steps = app.kernel.invoke(view, Call("nothing", {}, "agent"))
    write(policies, NOTHING)
    reload_policies(app)
    assert isinstance(next(steps), Permit)
    later = app.kernel.invoke(app.kernel.view_for(CLERK), Call("nothing", {}, "agent"))
    assert not isinstance(next(later), Permit)


def test_a_broken_set_keeps_the_old_one_and_says_every_reason(
    policies: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = office(policies)
    judge = app.kernel.judge
    write(policies, BROKEN + "\nallow();")
    told = reload_policies(app)
    assert not told.taken
    assert [(each.code, each.where.rpartition(":")[0]) for each in told.faults] == [
        ("X_POLICY_SYNTAX", "own.cedar:4"),
        ("X_ROLE_UNKNOWN", "own.cedar:2"),
    ]
    assert caplog.messages == [f"policies kept as they were: {each}" for each in told.faults]
    assert {each.levelno for each in caplog.records} == {logging.ERROR}
    assert app.kernel.judge is judge
    assert sends(app)
    write(policies, NOTHING)
    assert reload_policies(app).taken
    assert not sends(app)


def test_a_directory_that_is_gone_keeps_the_old_set(policies: Path) -> None:
    app = office(policies)
    policies.rename(policies.with_name("away"))
    told = reload_policies(app)
    assert told == Reloaded((fault("X_POLICY_UNREADABLE", f"`{policies}` is no directory"),), ())
    assert sends(app)


def test_warnings_are_logged_and_kept_until_the_next_set(
    policies: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = office(policies)
    caplog.set_level(logging.INFO, "nonsuch.policies")
    write(policies, ANYTHING + NEVER)
    told = reload_policies(app)
    (warning,) = told.warnings
    assert (told.taken, warning.code, warning.where) == (True, "X_POLICY_NEVER_APPLIES", "own.cedar:3:63")
    assert app.kernel.warnings == told.warnings
    assert [(each.levelname, each.message) for each in caplog.records] == [
        ("WARNING", str(warning)),
        ("INFO", "policies reloaded"),
    ]
    write(policies, BROKEN)
    reload_policies(app)
    assert app.kernel.warnings == told.warnings
    write(policies, ANYTHING)
    assert reload_policies(app) == Reloaded((), ())
    assert app.kernel.warnings == ()


def test_reloads_from_many_threads_end_with_what_the_files_say(policies: Path) -> None:
    app = office(policies)
    write(policies, NOTHING)
    told: list[Reloaded] = []
    threads = [threading.Thread(target=lambda: told.append(reload_policies(app))) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE)
    assert told == [Reloaded((), ())] * 8
    assert not sends(app)


# sources of grants


def test_a_source_is_asked_again_at_each_reload() -> None:
    held = [grant("clerk", "letter:send")]
    app = office(None, lambda: held)
    told = [sends(app)]
    for now in ([], [grant("boss", "any")], [grant("clerk", "any")]):
        held[:] = now
        reload_policies(app)
        told.append(sends(app))
    assert told == [True, False, False, True]


def test_a_source_that_raises_keeps_the_old_set_and_tells_no_message() -> None:
    held: list[Exception] = []

    def directory() -> list[Grant]:
        if held:
            raise held[0]
        return [grant("clerk", "any")]

    app = office(None, directory)
    held.append(OSError("password=s3ntinel"))
    name = f"{test_a_source_that_raises_keeps_the_old_set_and_tells_no_message.__name__}.<locals>.directory"
    failed = fault("X_POLICY_SOURCE_FAILED", f"`{name}` raised OSError")
    assert reload_policies(app) == Reloaded((failed,), ())
    assert sends(app)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [(grant("clark", "any"), "X_ROLE_UNKNOWN"), (grant("clerk", "letter:sned"), "X_POLICY_ACTION_UNKNOWN")],
)
def test_a_grant_of_an_unknown_name_keeps_the_old_set(wrong: Grant, code: str) -> None:
    held = [grant("clerk", "any")]
    app = office(None, lambda: held)
    held.append(wrong)
    told = reload_policies(app)
    assert {(each.code, each.where) for each in told.faults} == {
        (code, f"<grant {wrong.role} {wrong.permission}>")
    }
    assert sends(app)


# a table of grants


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with embedded_postgres() as address:
        yield address


@contextmanager
def table(dsn: str, name: str = "nonsuch_grants") -> Generator[psycopg.Connection]:
    """The table of grants with one row; gone afterwards."""
    held = sql.Identifier(*name.split("."))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create schema if not exists access")
        connection.execute(SQL_GRANTS_TABLE.replace("nonsuch_grants", name).encode())
        connection.execute(sql.SQL("insert into {} values ('clerk', 'letter:send')").format(held))
        try:
            yield connection
        finally:
            connection.execute(sql.SQL("drop table if exists {}").format(held))


@pytest.mark.parametrize("name", ["nonsuch_grants", "access.grants"])
def test_rows_are_grants_and_their_absence_takes_them_away(dsn: str, name: str) -> None:
    with table(dsn, name) as connection:
        app = office(None, postgres_grants(dsn, name))
        told = [sends(app)]
        for change in ("delete from {}", "insert into {} values ('boss', 'any'), ('clerk', 'any')"):
            connection.execute(sql.SQL(change).format(sql.Identifier(*name.split("."))))
            assert reload_policies(app) == Reloaded((), ())
            told.append(sends(app))
    assert told == [True, False, True]


def test_a_table_that_is_gone_keeps_the_old_set(dsn: str) -> None:
    with table(dsn) as connection:
        app = office(None, postgres_grants(dsn))
        connection.execute("drop table nonsuch_grants")
        told = reload_policies(app)
    assert [each.code for each in told.faults] == ["X_POLICY_SOURCE_FAILED"]
    assert told.faults[0].cause.endswith(" raised UndefinedTable")
    assert sends(app)


def test_a_name_with_a_quote_is_a_name(dsn: str) -> None:
    """No row and no table name becomes SQL or Cedar text of its own."""
    with table(dsn) as connection:
        source = postgres_grants(dsn, 'nonsuch_grants"; drop table nonsuch_grants; --')
        with pytest.raises(psycopg.errors.UndefinedTable):
            source()
        row = ('clerk", action, resource); permit (principal, action, resource == Role::"', "any")
        connection.execute("insert into nonsuch_grants values (%s, %s)", row)
        held = [grant("clerk", "letter:send")]
        app = office(None, lambda: held)
        held[:] = postgres_grants(dsn)()
        assert held == [grant("clerk", "letter:send"), grant(*row)]
        assert {each.code for each in reload_policies(app).faults} == {"X_ROLE_UNKNOWN"}


@pytest.mark.parametrize("row", [("", "any"), ("clerk", ""), (None, "any"), ("clerk", "letter:send")])
def test_the_table_takes_no_empty_name_and_no_grant_twice(dsn: str, row: tuple[str | None, str]) -> None:
    with table(dsn) as connection, pytest.raises(psycopg.errors.IntegrityError):
        connection.execute("insert into nonsuch_grants values (%s, %s)", row)


def test_a_database_that_is_down_keeps_the_old_set(tmp_path: Path) -> None:
    with embedded_postgres(tmp_path / "data") as address, table(address):
        app = office(None, postgres_grants(address, timeout_seconds=1))
        assert sends(app)
    told = reload_policies(app)
    assert [each.code for each in told.faults] == ["X_POLICY_SOURCE_FAILED"]
    assert told.faults[0].cause.endswith(" raised OperationalError")
    assert sends(app)


def test_without_the_driver_a_table_is_refused_when_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(extras, "find_spec", nothing)
    with pytest.raises(ExtraMissing) as missing:
        postgres_grants("postgresql://nowhere")
    assert missing.value.fix == 'pip install "nonsuch[postgres]"'


# on SIGHUP

SERVED = """
import sys
from pathlib import Path
from nonsuch import Agent, Registry, asgi, can, define_app_mcp, expose
registry = Registry()
@registry.action(policy=can("bell:ring"), mcp=expose("Ring"))
def ring() -> str:
    return "rang"
app = asgi(
    define_app_mcp(
        registry,
        name="bell",
        include="exposed",
        roles=["clerk"],
        resolve_token=lambda token: Agent("a", roles={"clerk"}) if token == "t" else None,
        policies_dir=Path(__file__).parent / "policies",
        rate_limits=None,
    ),
    reload="signal",
)
"""
RINGERS = '@id("clerks") permit (principal in Role::"clerk", action in Action::"bell:ring", resource);\n'
WRONG = '@id("wrong")\npermit (principal in Role::"clark", action in Action::"bell:ring", resource);\n'


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def rings(port: int) -> int:
    """Ring the bell; return the status."""
    headers = {"Authorization": "Bearer t", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/ring", b"{}", headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310  (this machine's)
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code
    except urllib.error.URLError:
        return 0


def until(done: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_sighup_reads_the_policies_of_a_served_app_again(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    write(tmp_path / "policies", RINGERS)
    (tmp_path / "bell.py").write_text(SERVED)
    port, output = free_port(), tmp_path / "output"
    command = [sys.executable, "-m", "uvicorn", "bell:app", "--port", str(port), "--lifespan", "on"]
    with output.open("w") as said:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=said, stderr=subprocess.STDOUT)
        try:
            assert until(lambda: rings(port) != 0), output.read_text()
            told = [rings(port)]
            for text, status in (("// nobody\n", 403), (RINGERS, 200), ("", 403)):
                write(tmp_path / "policies", text)
                process.send_signal(signal.SIGHUP)
                assert until(lambda wanted=status: rings(port) == wanted), output.read_text()  # type: ignore[misc]
                told.append(rings(port))
            write(tmp_path / "policies", WRONG)
            process.send_signal(signal.SIGHUP)
            assert until(lambda: "kept as they were" in output.read_text()), output.read_text()
            told.append(rings(port))
            assert process.poll() is None
        finally:
            process.terminate()
            process.wait(PATIENCE)
    assert told == [200, 403, 200, 403, 403]
    assert "own.cedar:2:" in output.read_text()


def test_sighup_is_heard_in_process(policies: Path) -> None:
    app = office(policies)

    async def main() -> bool:
        async with reloading(app, "signal"):
            write(policies, NOTHING)
            judge = app.kernel.judge
            os.kill(os.getpid(), signal.SIGHUP)
            return await changes(lambda: app.kernel.judge is not judge)

    assert asyncio.run(main())
    assert not sends(app)


def test_the_handler_that_sighup_had_is_there_again(policies: Path) -> None:
    """``embedded_postgres`` stops its server on SIGHUP; serving an app inside of it must not end that."""
    heard: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, _frame: heard.append(number))

    async def main() -> None:
        async with reloading(office(policies), "signal"):
            pass

    try:
        asyncio.run(main())
        assert callable(signal.getsignal(signal.SIGHUP))  # or the next line ends the tests
        os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert heard == [signal.SIGHUP]


async def changes(done: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Wait until something holds, while the event loop goes on."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:  # noqa: ASYNC110  (a judge offers no event)
        await asyncio.sleep(0.01)
    return done()


# by watching


def test_a_change_of_a_file_is_seen_while_the_app_is_served(
    policies: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reload, "WATCH_SECONDS", 0.02)
    app = office(policies)
    told: list[bool] = []

    async def main() -> None:
        async with reloading(app, "watch"):
            await asyncio.sleep(0.1)
            for text in (NOTHING, ANYTHING + "// longer\n"):
                judge = app.kernel.judge
                write(policies, text)
                told.append(await changes(lambda held=judge: app.kernel.judge is not held))  # type: ignore[misc]
                told.append(await asyncio.to_thread(sends, app))
            write(policies, BROKEN)
            told.append(await changes(lambda: "kept as they were" in caplog.text))
            told.append(await asyncio.to_thread(sends, app))
            (policies / "own.cedar").unlink()
            judge = app.kernel.judge
            told.append(await changes(lambda: app.kernel.judge is not judge))
            told.append(await asyncio.to_thread(sends, app))

    asyncio.run(main())
    assert told == [True, False, True, True, True, True, True, False]


def test_nothing_is_read_again_while_nothing_changes(policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "WATCH_SECONDS", 0.01)
    app = office(policies)
    judge = app.kernel.judge

    async def main() -> None:
        async with reloading(app, "watch"):
            await asyncio.sleep(0.2)

    asyncio.run(main())
    assert app.kernel.judge is judge


def test_an_app_that_does_not_watch_sees_nothing(policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "WATCH_SECONDS", 0.01)
    app = office(policies)
    judge = app.kernel.judge

    async def main() -> None:
        async with reloading(app, None):
            write(policies, NOTHING)
            await asyncio.sleep(0.1)

    asyncio.run(main())
    assert app.kernel.judge is judge


def test_a_fingerprint_is_of_names_times_and_sizes(policies: Path) -> None:
    assert fingerprint(None) is None
    seen = [fingerprint(policies)]
    (policies / "below").mkdir()
    (policies / "below" / "more.cedar").write_text("// a")
    seen.append(fingerprint(policies))
    (policies / "below" / "more.cedar").write_text("// ab")
    seen.append(fingerprint(policies))
    os.utime(policies / "below" / "more.cedar", ns=(0, 1))
    seen.append(fingerprint(policies))
    (policies / "below" / "more.cedar").rename(policies / "below" / "other.cedar")
    seen.append(fingerprint(policies))
    assert len(set(seen)) == len(seen)
    assert fingerprint(policies) == seen[-1]


def test_a_file_that_goes_while_it_is_looked_at_is_a_change(policies: Path) -> None:
    before = fingerprint(policies)
    (policies / "gone.cedar").symlink_to(policies / "nowhere")
    assert fingerprint(policies) not in (before, None)
