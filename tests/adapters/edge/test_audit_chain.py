"""The chain as `on_audit=`: in no request's way, never silent about what was lost, one for all processes."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from nonsuch import BootError, Open, audit_keys, file_audit_chain
from nonsuch.adapters.edge import audit_chain, audit_writing
from nonsuch.adapters.edge.audit import line
from nonsuch.adapters.edge.audit_chain import AuditChain
from nonsuch.adapters.edge.audit_file import FileLedger, Made, NoChain, Partly, lines_of
from nonsuch.kernel.audit import AuthRefused, ToolCall
from nonsuch.kernel.chain import MAX_LINE_BYTES, ChainKeys, Head, Record, Tail, line_of, record_of
from nonsuch.kernel.chain_walk import Flaw, Walk
from nonsuch.kernel.errors import fault

from .chaining import KEYS, chain_at, event
from .post_office import CLERK, NOW, SENTINEL, VISITOR, World

Log = pytest.LogCaptureFixture
WRITER: Final = [sys.executable, str(Path(__file__).with_name("chaining.py"))]
ONE: Final = {"k1": KEYS["k1"]}
PATIENCE: Final = 20.0


def walked(path: Path, keys: Mapping[str, bytes] = KEYS, *, closed: bool = True) -> tuple[Walk, Flaw | None]:
    """Walk the chain in a file."""
    walk = Walk(ChainKeys(keys))
    for each in lines_of(path):
        flaw = walk.line(each)
        if flaw is not None:
            return walk, flaw
    return walk, walk.end(closed=closed)


def sound(path: Path, keys: Mapping[str, bytes] = KEYS) -> Walk:
    """The walk over a chain that is whole and closed."""
    walk, flaw = walked(path, keys)
    assert flaw is None
    assert not walk.unfinished
    return walk


def events_in(path: Path, *kinds: str) -> list[dict[str, Any]]:
    """The events of a chain, those of some kinds."""
    records = [record_of(each) for each in path.read_bytes().split(b"\n")]
    held = [json.loads(each.event) for each in records if each is not None]
    return [each for each in held if not kinds or each["kind"] in kinds]


def tools(path: Path) -> list[str]:
    """The tools in the events of calls, in their order."""
    return [each["tool"] for each in events_in(path, "tool-call")]


def complaints(caplog: Log) -> list[str]:
    """What was logged of the chain but heads."""
    return [each.getMessage() for each in caplog.records if each.levelno > logging.INFO]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_chain, "RETRY_SECONDS", 0.01)


def until(holds: Callable[[], bool]) -> None:
    """Wait for a thread."""
    ends = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.002)


# An app


async def _calls(app: Any) -> None:
    async with Open(app, lambda: NOW) as running:
        for who in (CLERK, VISITOR):
            await running.invoke(who, "send", {"to": SENTINEL})


def test_each_event_of_an_app_is_a_record_and_closing_the_app_closes_the_chain(path: Path) -> None:
    world = World()
    chain = file_audit_chain(path, ONE)

    def both(told: Any) -> None:
        world.events.append(told)
        chain(told)

    asyncio.run(_calls(world.app(on_audit=both)))
    chain.shut()
    first, *middle, last = [json.dumps(each, separators=(",", ":")) for each in events_in(path)]
    assert middle == [line(each, NOW) for each in world.events]
    assert [json.loads(each)["kind"] for each in (first, last)] == ["chain-opened", "chain-closed"]
    assert SENTINEL not in path.read_text()
    assert {each.at for each in world.events} == {NOW}

    asyncio.run(_calls(World().app(on_audit=chain)))
    assert [each["kind"] for each in events_in(path)] == 2 * [
        "chain-opened",
        "tool-call",
        "tool-call",
        "chain-closed",
    ]
    assert sound(path, ONE).head.seq == 8


def test_a_record_is_one_ascii_line_that_other_programs_read(path: Path) -> None:
    chain = file_audit_chain(path, ONE)
    chain(AuthRefused("no-token", 401, None, "/\u2028\x7f\n"))
    chain.shut()
    raw = path.read_bytes()
    assert raw.isascii()
    assert raw.count(b"\n") == len(raw.splitlines()) == 3
    assert events_in(path)[1]["path"] == "/\u2028\x7f\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_event_that_has_no_time_gets_the_chains(path: Path) -> None:
    chain = AuditChain(lambda: FileLedger(path), ChainKeys(ONE), clock=lambda: NOW)
    chain(event("a", 1))
    chain.shut()
    assert {each["at"] for each in events_in(path)} == {NOW.isoformat()}


# Never in the way


class Slow(FileLedger):
    """A disk that answers nobody until it is let."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.free, self.asked = threading.Event(), 0

    def append(self, made: Made) -> None:
        self.asked += 1
        assert self.free.wait(20)
        super().append(made)


def test_a_disk_that_does_not_answer_keeps_no_request_waiting(path: Path) -> None:
    slow = Slow(path)
    chain = AuditChain(lambda: slow, ChainKeys(ONE))
    started = time.monotonic()
    asyncio.run(asyncio.wait_for(_requests(chain, 200), 5))
    assert time.monotonic() - started < 5
    assert not path.exists() or path.stat().st_size == 0
    slow.free.set()
    chain.shut()
    assert len(tools(path)) == 200


async def _requests(chain: AuditChain, count: int) -> None:
    app = World().app(on_audit=chain.__call__)  # closing the app then waits for no disk
    async with Open(app) as running:
        for _ in range(count):
            await running.invoke(CLERK, "send", {"to": "x"})


def test_what_finds_no_room_is_told_in_its_place_to_the_number(path: Path, caplog: Log) -> None:
    slow = Slow(path)
    chain = AuditChain(lambda: slow, ChainKeys(ONE), room=3)
    chain(event("first", 0))
    until(lambda: slow.asked == 1)
    for number in range(10):
        chain(event("more", number))
    slow.free.set()
    until(lambda: path.exists() and len(tools(path)) >= 4)
    chain(event("last", 0))
    chain.shut()
    held = events_in(path, "tool-call", "chain-gap")
    assert [each.get("tool", each.get("lost")) for each in held] == [
        "first-0",
        "more-0",
        "more-1",
        "more-2",
        7,
        "last-0",
    ]
    walk = sound(path, ONE)
    assert (walk.gaps, walk.lost) == (1, 7)
    assert complaints(caplog) == ["audit chain: no room, events are lost until there is"]


def test_what_was_lost_last_is_told_without_another_event(path: Path) -> None:
    slow = Slow(path)
    chain = AuditChain(lambda: slow, ChainKeys(ONE), room=1)
    chain(event("first", 0))
    until(lambda: slow.asked == 1)
    for number in range(3):
        chain(event("more", number))
    slow.free.set()
    until(lambda: path.exists() and bool(events_in(path, "chain-gap")))
    chain.shut()
    assert [each.get("lost") for each in events_in(path)][-2:] == [2, None]
    assert sound(path, ONE).lost == 2


def test_of_many_threads_nothing_is_lost_uncounted(path: Path) -> None:
    chain = AuditChain(lambda: FileLedger(path), ChainKeys(ONE), room=50)

    def many(name: str) -> None:
        for number in range(2_000):
            chain(event(name, number))

    threads = [threading.Thread(target=many, args=(str(each),)) for each in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    chain.shut()
    assert len(tools(path)) + sound(path, ONE).lost == 8_000
    assert len(set(tools(path))) == len(tools(path))


def test_an_event_that_cannot_be_written_is_told_as_lost(path: Path, caplog: Log) -> None:
    chain = file_audit_chain(path, ONE)
    for told in (ToolCall("a" * MAX_LINE_BYTES, "ok", "mcp", "a", "agent"), object(), event("b", 0)):
        chain(told)  # type: ignore[arg-type]  # whatever comes
    chain.shut()
    assert [each["kind"] for each in events_in(path)][1:-1] == ["chain-gap", "chain-gap", "tool-call"]
    assert sound(path, ONE).lost == 2
    assert complaints(caplog) == ["audit chain: an event has no line: AttributeError"]


# Faults


class Failing(FileLedger):
    """A disk that fails as often as it is told to."""

    def __init__(self, path: Path, faults: Sequence[Exception]) -> None:
        super().__init__(path)
        self.faults = list(faults)

    def append(self, made: Made) -> None:
        if self.faults:
            raise self.faults.pop(0)
        super().append(made)


def test_a_fault_is_logged_once_and_what_was_to_be_written_is_tried_again(path: Path, caplog: Log) -> None:
    faults = [OSError(errno.ENOSPC, "No space left on device", SENTINEL)] * 3 + [ValueError(SENTINEL)]
    failing = Failing(path, faults)
    chain = AuditChain(lambda: failing, ChainKeys(ONE))
    for number in range(5):
        chain(event("a", number))
        time.sleep(0.01)
    until(lambda: path.exists() and len(tools(path)) == 5)
    chain.shut()
    assert tools(path) == [f"a-{number}" for number in range(5)]
    assert complaints(caplog) == [
        "audit chain: not written: No space left on device",
        "audit chain: written again",
    ]
    assert SENTINEL not in caplog.text


def test_what_cannot_be_written_until_the_end_is_said(path: Path, caplog: Log) -> None:
    failing = Failing(path, [ValueError(SENTINEL)] * 10_000)
    chain = AuditChain(lambda: failing, ChainKeys(ONE))
    chain(event("a", 0))
    chain.shut()
    assert complaints(caplog) == [
        "audit chain: not written: ValueError",
        "audit chain: 3 records were never written",
    ]


def test_a_disk_that_is_full_in_the_middle_of_a_line_repeats_nothing_and_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write of the system takes some bytes, and every third one fails."""
    write, count = os.write, 0

    def some(held: int, data: Any) -> int:
        nonlocal count
        count += 1
        if count % 3 == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(held, bytes(data)[: rng.randint(1, 400)])

    rng = random.Random(7)  # noqa: S311
    chain = file_audit_chain(path, ONE)
    monkeypatch.setattr(os, "write", some)
    for number in range(40):
        chain(event("a", number))
        time.sleep(0.0005)
    until(lambda: tools(path)[-1:] == ["a-39"])
    monkeypatch.undo()
    chain.shut()
    assert tools(path) == [f"a-{number}" for number in range(40)]
    assert sound(path, ONE).torn > 3


def test_a_disk_that_writes_and_does_not_confirm_repeats_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unconfirmed(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    chain = file_audit_chain(path, ONE)
    monkeypatch.setattr(os, "fsync", unconfirmed)
    chain(event("a", 0))
    until(lambda: path.exists() and len(tools(path)) == 1)
    time.sleep(0.05)
    monkeypatch.undo()
    chain(event("a", 1))
    chain.shut()
    assert tools(path) == ["a-0", "a-1"]
    sound(path, ONE)


def test_a_thread_that_ends_by_a_bug_is_followed_by_another(path: Path, caplog: Log) -> None:
    clock = iter([False, True])

    def broken() -> datetime:
        if next(clock, False):
            raise ZeroDivisionError(SENTINEL)
        return NOW

    chain = AuditChain(lambda: FileLedger(path), ChainKeys(ONE), clock=broken)
    chain(event("a", 0))
    until(lambda: bool(complaints(caplog)))
    chain(event("a", 1))
    chain.shut()
    assert tools(path) == ["a-0", "a-1"]
    assert complaints(caplog) == ["audit chain: the thread that writes it ended: ZeroDivisionError"]


# What is there already


def written(path: Path, count: int, keys: Mapping[str, bytes] = ONE, name: str = "a") -> None:
    chain = chain_at("file", str(path), keys)
    for number in range(count):
        chain(event(name, number))
    chain.shut()


def test_a_chain_goes_on_over_processes_and_keys(path: Path) -> None:
    written(path, 2)
    written(path, 2)
    written(path, 2, KEYS)
    written(path, 2, {"k2": KEYS["k2"]})
    walk = sound(path)
    assert walk.keys == {"k1": 1, "k2": 10}
    assert tools(path) == ["a-0", "a-1"] * 4
    assert [each["next"] for each in events_in(path, "chain-key")] == ["k2"]


def test_a_process_without_the_key_before_says_so_and_writes_nothing(path: Path, caplog: Log) -> None:
    written(path, 1)
    before = path.read_bytes()
    written(path, 1, {"k2": KEYS["k2"]})
    assert path.read_bytes() == before
    assert complaints(caplog)[0] == (
        "audit chain: not written: the chain goes on under the key `k1`, which this process was not given"
    )


def test_while_some_processes_have_the_next_key_none_stops(path: Path) -> None:
    old, new = chain_at("file", str(path), ONE), chain_at("file", str(path), KEYS)
    for number in range(6):
        (old, new)[number % 2](event("a", number))
        until(lambda: path.exists() and len(tools(path)) == number + 1)  # noqa: B023
    old.shut()
    new.shut()
    assert tools(path) == [f"a-{number}" for number in range(6)]
    sound(path)


@pytest.mark.parametrize("cut", [1, 2, 30, 70, 150])
def test_a_line_that_a_crash_tore_is_kept_and_told(path: Path, cut: int) -> None:
    written(path, 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    walk, flaw = walked(path, closed=False)
    assert flaw is None
    assert walk.unfinished is (cut > 1)
    written(path, 1, name="b")
    walk = sound(path) if cut == 1 else walked(path, closed=False)[0]
    assert walk.torn == (cut > 1)
    assert path.read_bytes().startswith(whole[:-cut])
    assert tools(path) == ["a-0", "a-1", "b-0"]


def test_the_first_line_of_all_can_be_torn_too(path: Path) -> None:
    path.write_bytes(b'{"seq":1,"key":"k1","ev')
    written(path, 1)
    walk = sound(path)
    assert (walk.torn, tools(path)) == (1, ["a-0"])


@pytest.mark.parametrize(
    "held", [b"PASSWORD=hunter2", b"a\nb\n", b"\n", b"x" * 100_000, b'{"seq":2,"key":"k1"']
)
def test_nothing_is_appended_to_what_is_no_chain(path: Path, held: bytes, caplog: Log) -> None:
    path.write_bytes(held)
    written(path, 1)
    assert path.read_bytes() == held
    assert (
        complaints(caplog)[0] == "audit chain: not written: the file holds something else than an audit chain"
    )


def test_the_end_of_a_long_chain_is_found(path: Path) -> None:
    long = [ToolCall("x" * size, "ok", "mcp", "a", "agent") for size in (200_000, 60_000, 1, 70_000)]
    chain = file_audit_chain(path, ONE)
    for each in long:
        chain(each)
    chain.shut()
    written(path, 1, name="b")
    path.write_bytes(path.read_bytes()[:-20])
    chain = file_audit_chain(path, ONE)
    for each in long:
        chain(each)
    chain.shut()
    walk, flaw = walked(path, closed=False)
    assert (flaw, walk.torn, len(tools(path))) == (None, 1, 9)


def test_too_much_that_is_no_record_is_left_alone(path: Path) -> None:
    written(path, 1)
    with path.open("ab") as file:
        file.write(b"x" * (MAX_LINE_BYTES + 1))
    with pytest.raises(NoChain):
        FileLedger(path).append(lambda tail: [])


# Cut while it is written


def test_a_writer_that_finds_its_records_gone_writes_that_down(path: Path, caplog: Log) -> None:
    chain = file_audit_chain(path, ONE)
    for number in range(5):
        chain(event("a", number))
    until(lambda: path.exists() and len(tools(path)) == 5)
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    chain(event("b", 0))
    chain.shut()
    had = json.loads(whole.splitlines()[-1])
    _, flaw = walked(path)
    assert flaw is not None
    assert (flaw.fault.code, flaw.record) == ("X_AUDIT_CUT", 4)
    assert events_in(path)[3]["had"] == f"{had['seq']}:{had['mac']}"
    assert complaints(caplog) == [
        f"audit chain: records that were written are gone: {had['seq']}:{had['mac']} was the last"
    ]


@pytest.mark.parametrize(
    "how", ["deleted", "emptied", "replaced by an earlier copy", "its last record changed"]
)
def test_so_does_one_whose_file_is_another(path: Path, how: str) -> None:
    chain = file_audit_chain(path, ONE)
    chain(event("a", 0))
    until(lambda: path.exists() and len(tools(path)) == 1)
    early = path.read_bytes()
    chain(event("a", 1))
    until(lambda: len(tools(path)) == 2)
    match how:
        case "deleted":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")
        case "its last record changed":
            path.write_bytes(path.read_bytes().replace(b"a-1", b"a-7"))
        case _:
            path.write_bytes(early)
    chain(event("a", 2))
    chain.shut()
    _, flaw = walked(path)
    assert flaw is not None
    assert flaw.fault.code == ("X_AUDIT_CHANGED" if "changed" in how else "X_AUDIT_CUT")


# Several processes


def started(path: Path, count: int, *names: str) -> list[subprocess.Popen[str]]:
    """Processes that are ready to append."""
    writers = [
        subprocess.Popen(
            [*WRITER, "file", str(path), str(count), each],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for each in names
    ]
    for each in writers:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    return writers


def test_four_processes_append_to_one_chain(path: Path) -> None:
    writers = started(path, 1_000, *"abcd")
    assert [said[0] for said in [each.communicate("go\n", timeout=60) for each in writers]] == ["done\n"] * 4
    walk = sound(path)
    assert walk.head.seq == 4 * 1_002
    for name in "abcd":
        assert [each for each in tools(path) if each[0] == name] == [
            f"{name}-{number}" for number in range(1_000)
        ]


def test_both_sides_of_a_fork_write_what_they_took_and_nothing_twice(path: Path) -> None:
    (writer,) = started(path, 300, "fork")
    assert writer.communicate("go\n", timeout=60)[0] == "done\n"
    walk = sound(path)
    assert sorted(tools(path)) == sorted(
        ["fork-0", *(f"{side}-{number}" for side in ("parent", "child") for number in range(1, 300))]
    )
    assert not walk.unended


def test_a_chain_whose_writers_are_killed_at_any_moment_is_whole(path: Path) -> None:
    """Rounds of two; what a process wrote before it was killed is a beginning of what it took."""
    rng = random.Random(11)  # noqa: S311
    for number in range(60 if os.environ.get("NONSUCH_PROFILE") == "review" else 5):
        writers = started(path, 0, f"{number}x", f"{number}y")
        for each in writers:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        time.sleep(rng.random() * 0.2)
        for each in writers:
            each.kill()
            each.communicate()
        _, flaw = walked(path, closed=False) if path.exists() else (None, None)
        assert flaw is None
    written(path, 1, KEYS, name="last")
    walk, flaw = walked(path, closed=False)
    assert (flaw, walk.unfinished, tools(path)[-1]) == (None, False, "last-0")
    held: dict[str, list[str]] = {}
    for told in tools(path):
        held.setdefault(told.partition("-")[0], []).append(told)
    assert len(held) > 4
    assert all(has == [f"{name}-{number}" for number in range(len(has))] for name, has in held.items())


def test_a_reader_never_sees_a_line_that_is_being_written(path: Path) -> None:
    (writer,) = started(path, 0, "a")
    assert writer.stdin is not None
    writer.stdin.write("go\n")
    writer.stdin.flush()
    until(path.exists)
    for _ in range(30):
        walk, flaw = walked(path, closed=False)
        assert (flaw, walk.unfinished) == (None, False)
    writer.kill()
    writer.communicate()


# Heads


def test_heads_go_to_the_log_and_to_their_file_and_stand_for_the_chain(
    path: Path, tmp_path: Path, caplog: Log
) -> None:
    heads = tmp_path / "heads"
    chain = file_audit_chain(path, ONE, heads=heads)
    with caplog.at_level(logging.INFO, "nonsuch.audit-chain"):
        chain(event("a", 0))
        until(lambda: heads.exists())
        for number in range(1, 5):
            chain(event("a", number))
        chain.shut()
    kept = heads.read_text().splitlines()
    records = [json.loads(each) for each in path.read_bytes().splitlines()]
    assert len(kept) == 2
    assert kept[-1] == f"7:{records[-1]['mac']}"
    assert kept[0] in [f"{each['seq']}:{each['mac']}" for each in records]
    assert [each.getMessage() for each in caplog.records] == [f"audit chain: head {each}" for each in kept]


def test_a_head_is_told_when_it_is_due_also_if_nothing_comes(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_writing, "HEAD_SECONDS", 0.2)
    heads = tmp_path / "heads"
    chain = file_audit_chain(path, ONE, heads=heads)
    chain(event("a", 0))
    until(lambda: heads.exists())
    chain(event("a", 1))
    until(lambda: len(tools(path)) == 2)
    until(lambda: heads.read_text().count("\n") == 2)
    assert heads.read_text().splitlines()[-1] == f"3:{json.loads(path.read_bytes().splitlines()[-1])['mac']}"
    chain.shut()


def test_heads_that_cannot_be_kept_stop_nothing(path: Path, tmp_path: Path, caplog: Log) -> None:
    chain = file_audit_chain(path, ONE, heads=tmp_path)
    chain(event("a", 0))
    chain.shut()
    assert sound(path).head.seq == 3
    assert complaints(caplog) == ["audit chain: a head is not kept: Is a directory"] * len(complaints(caplog))


# What is refused at boot


def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "gone" / "audit.jsonl"):
        with pytest.raises(BootError) as caught:
            file_audit_chain(place, ONE)
        assert caught.value == BootError([fault("X_AUDIT_UNREADABLE", f"there can be no file `{place}`")])


@pytest.mark.parametrize(
    ("keys", "cause"),
    [
        ({}, "`keys`: a chain needs a key"),
        ({"k1": b"short"}, "`keys`: the key `k1` has fewer than 32 bytes"),
    ],
)
def test_keys_that_are_none_are_refused(path: Path, keys: Mapping[str, bytes], cause: str) -> None:
    with pytest.raises(BootError) as caught:
        file_audit_chain(path, keys)
    assert caught.value == BootError([fault("X_AUDIT_KEYS_INVALID", cause)])
    assert not path.exists()


HEX: Final = "ab" * 32


@pytest.mark.parametrize(
    "text", [f"k1:{HEX}\nk2:{HEX.upper()}ff\n", f" k1:{HEX} , k2:{HEX}ff", f"k1:{HEX},\r\nk2:{HEX}FF"]
)
def test_keys_are_read_in_their_order(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NONSUCH_AUDIT_KEYS", text)
    (tmp_path / "keys").write_bytes(text.encode())
    expected = [("k1", bytes.fromhex(HEX)), ("k2", bytes.fromhex(HEX + "ff"))]
    assert list(audit_keys().items()) == expected
    assert list(audit_keys(tmp_path / "keys").items()) == expected
    monkeypatch.setenv("NONSUCH_AUDIT_KEYS", "k9:" + HEX)
    monkeypatch.setenv("NONSUCH_AUDIT_KEYS_FILE", str(tmp_path / "keys"))
    assert list(audit_keys().items()) == expected


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "key 1 in `NONSUCH_AUDIT_KEYS` is not written as `id:hex`"),
        (f"k1:{HEX} {HEX}", "key 2 in `NONSUCH_AUDIT_KEYS` is not written as `id:hex`"),
        (f"k1:{HEX[:-2]}", "key 1 in `NONSUCH_AUDIT_KEYS` is not written as `id:hex`"),
        (f"k1:{HEX[:-1]}", "key 1 in `NONSUCH_AUDIT_KEYS` is not written as `id:hex`"),
        (f"k1:{HEX} k1:{HEX}", "key 2 in `NONSUCH_AUDIT_KEYS` has the id of an earlier one"),
        (f"k/1:{HEX}", "`NONSUCH_AUDIT_KEYS`: `k/1` is no id of a key: use 1 to 64 of A-Z a-z 0-9 _ . -"),
    ],
)
def test_keys_that_cannot_be_read_are_named_by_their_place(
    text: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NONSUCH_AUDIT_KEYS", text)
    with pytest.raises(BootError) as caught:
        audit_keys()
    assert caught.value == BootError([fault("X_AUDIT_KEYS_INVALID", cause)])
    assert HEX[:-2] not in str(caught.value)


def test_without_keys_there_is_no_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NONSUCH_AUDIT_KEYS", raising=False)
    with pytest.raises(
        BootError, match="neither `NONSUCH_AUDIT_KEYS_FILE` nor `NONSUCH_AUDIT_KEYS` is in the environment"
    ):
        audit_keys()
    with pytest.raises(BootError, match="holds no keys: No such file or directory"):
        audit_keys(tmp_path / "gone")


# The file


def test_what_was_partly_written_is_told_to_the_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [Record(number, "k1", "{}", bytes(32)) for number in range(1, 6)]
    lines = [line_of(each) for each in records]
    write = os.write
    for room in range(sum(map(len, lines))):
        path.unlink(missing_ok=True)
        left = [room]

        def some(held: int, data: Any, left: list[int] = left) -> int:
            if not left[0]:
                raise OSError(errno.ENOSPC, "full")
            done = write(held, bytes(data)[: left[0]])
            left[0] -= done
            return done

        monkeypatch.setattr(os, "write", some)
        with pytest.raises((Partly, OSError)) as caught:
            FileLedger(path).append(lambda tail: records)
        monkeypatch.setattr(os, "write", write)
        count = caught.value.count if isinstance(caught.value, Partly) else 0
        whole = [record_of(each) for each in path.read_bytes().split(b"\n")]
        assert count == sum(each is not None for each in whole)
    FileLedger(path).append(_tailed)


def _tailed(tail: Tail) -> list[Record]:
    assert tail == Tail(Head(5, bytes(32)), "k1")
    return []


def test_the_clock_of_a_chain_is_utc() -> None:
    assert audit_writing.utc_now().tzinfo is UTC
