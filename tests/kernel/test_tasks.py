"""Tasks: every history of one against a model written from the extension's text, and whose they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch import Agent, Human, Principal
from nonsuch.kernel.model import owner_key
from nonsuch.kernel.tasks import (
    IDENT,
    MAX_MESSAGE_CHARS,
    TRANSITIONS,
    Ending,
    Finished,
    Task,
    TaskLimits,
    Unfinished,
    answered,
    asked,
    begun,
    bounded,
    cancelled,
    ended,
    fingerprint,
    lapsed,
    noted,
    taken,
)

NOON: Final = datetime(2026, 7, 28, 12, tzinfo=UTC)
LIMITS: Final = TaskLimits(ttl_seconds=3_600, poll_seconds=2, lease_seconds=30)
KEYS: Final = ("a", "b", "c")


def new() -> Task:
    return begun("an-id-of-a-task", "owner", "slow", NOON, LIMITS)


# The model: a mutable record and the sentences of the specification, one after the other.


@dataclass
class Model:
    """A task as the text has it."""

    terminal: str | None = None
    asking: list[str] = field(default_factory=list[str])
    given: list[str] = field(default_factory=list[str])
    body: bytes = b""

    @property
    def status(self) -> str:
        """Input is required exactly while something is asked."""
        return self.terminal or ("input_required" if self.asking else "working")

    def step(self, what: Step) -> bool:
        """Do one thing, and say whether that changed anything."""
        if self.terminal:
            return False
        match what.kind:
            case "ask":
                self.asking += [key for key in what.keys if key not in self.asking]
                return bool(what.keys)
            case "answer":
                known = [key for key in what.keys if key in self.asking]
                self.asking = [key for key in self.asking if key not in known]
                self.given += [key for key in known if key not in self.given]
                return bool(known)
            case "take":
                held = [key for key in what.keys if key in self.given]
                self.given = [key for key in self.given if key not in held]
                return bool(held)
            case "note":
                return True
            case "complete" | "fail" | "cancel":
                self.terminal = {"complete": "completed", "fail": "failed", "cancel": "cancelled"}[what.kind]
                self.asking, self.given = [], []
                self.body = b"" if what.kind == "cancel" else b"body"
                return True


@dataclass(frozen=True)
class Step:
    """Something that happens to a task."""

    kind: Literal["ask", "answer", "take", "note", "complete", "fail", "cancel"]
    keys: tuple[str, ...] = ()


def happens(task: Task, what: Step, at: datetime) -> Task | None:
    match what.kind:
        case "ask":
            return asked(task, at, dict.fromkeys(what.keys, "question"))
        case "answer":
            return answered(task, at, dict.fromkeys(what.keys, "answer"))
        case "take":
            return taken(task, at, what.keys)
        case "note":
            return noted(task, at, "half way")
        case "complete":
            return ended(task, at, Ending("completed", b"body"))
        case "fail":
            return ended(task, at, Ending("failed", b"body"))
        case "cancel":
            return cancelled(task, at)


# ending is rare, or most histories would be short
STEPS: Final = st.lists(
    st.builds(
        Step,
        st.sampled_from(["ask", "answer", "take", "note"] * 4 + ["complete", "fail", "cancel"]),
        st.lists(st.sampled_from(KEYS), unique=True).map(tuple),
    ),
    max_size=20,
)


@given(STEPS)
def test_a_task_is_what_its_history_makes_of_it(history: Sequence[Step]) -> None:
    task, model, at = new(), Model(), NOON
    for what in history:
        at += timedelta(seconds=1)
        before, changed = task, happens(task, what, at)
        assert (changed is not None) == model.step(what), what
        task = changed or task
        assert task.version == before.version + (changed is not None)
        assert task.status == model.status
        assert (sorted(task.asks), sorted(task.answers)) == (sorted(model.asking), sorted(model.given))
        assert (task.body, task.finished) == (model.body, model.terminal is not None)
        assert NOON <= before.updated <= task.updated <= at
        assert [task.created, task.expires, task.lease, task.owner, task.tool] == [
            NOON,
            NOON + timedelta(hours=1),
            NOON + timedelta(seconds=30),
            "owner",
            "slow",
        ]


@given(STEPS)
def test_every_change_of_status_is_in_the_table(history: Sequence[Step]) -> None:
    task = new()
    for what in history:
        changed = happens(task, what, NOON)
        if changed is not None:
            assert changed.status in TRANSITIONS[task.status]
            task = changed


def test_the_table_is_the_diagram_of_the_extension() -> None:
    """working and input_required lead everywhere, the three others nowhere."""
    everywhere = {*get_args(Unfinished), *get_args(Finished)}
    assert everywhere == set(TRANSITIONS)
    assert {TRANSITIONS[each] == everywhere for each in get_args(Unfinished)} == {True}
    assert {TRANSITIONS[each] == set() for each in get_args(Finished)} == {True}


# Time


def test_a_task_of_a_silent_process_has_failed_when_its_lease_ran_out() -> None:
    task = new()
    assert lapsed(task, NOON + timedelta(seconds=29.999)) is None
    failed = lapsed(task, NOON + timedelta(seconds=30))
    assert failed is not None
    assert lapsed(task, NOON + timedelta(hours=1)) == failed
    assert (failed.status, failed.body, failed.updated) == ("failed", b"", NOON + timedelta(seconds=30))
    assert failed.message == "the server stopped before the work ended"
    assert lapsed(failed, NOON + timedelta(hours=2)) is None


def test_a_clock_that_was_set_back_takes_no_update_back() -> None:
    task = noted(new(), NOON + timedelta(seconds=9), "on")
    assert task is not None
    earlier = noted(task, NOON, "still on")
    assert earlier is not None
    assert earlier.updated == NOON + timedelta(seconds=9)


def test_what_a_client_reads_of_times_is_in_milliseconds() -> None:
    limits = TaskLimits(ttl_seconds=0.25, poll_seconds=0.0001)
    task = begun("an-id-of-a-task", "owner", "slow", NOON, limits)
    assert (task.ttl_ms, task.poll_ms) == (250, 1)


LIMITED: Final = ("ttl_seconds", "poll_seconds", "lease_seconds", "per_principal", "in_all", "result_bytes")


@pytest.mark.parametrize("limit", LIMITED)
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_a_limit_is_a_number_greater_than_nothing(limit: str, value: float) -> None:
    with pytest.raises(ValueError, match="every limit of tasks"):
        TaskLimits(**{limit: value})  # type: ignore[arg-type]  # what is refused


# Results


@given(st.binary(max_size=40), st.sampled_from(get_args(Finished)), st.integers(1, 40))
def test_a_task_keeps_a_result_of_as_many_bytes_as_may_be_or_nothing_of_it(
    body: bytes, status: Finished, most: int
) -> None:
    done = ended(new(), NOON, Ending(status, body, "how it went"))
    assert done is not None
    kept = bounded(done, TaskLimits(result_bytes=most))
    if len(body) <= most:
        assert kept == done
    else:
        told = "the work ended, and its result is larger than a task keeps"
        assert kept == replace(done, status="failed", body=b"", message=told)


def test_a_result_may_have_a_mebibyte_unless_said_otherwise() -> None:
    assert TaskLimits().result_bytes == 2**20


# Words and names


def test_a_message_is_short_and_can_be_sent() -> None:
    task = noted(new(), NOON, "\ud800" + "x" * 2 * MAX_MESSAGE_CHARS)
    assert task is not None
    assert task.message == "?" + "x" * (MAX_MESSAGE_CHARS - 1)


def test_a_fingerprint_is_not_an_id() -> None:
    ident = "Vhsjgrs1qfIkLWz06g56DgR9_d0TbQC6"
    assert IDENT.fullmatch(ident)
    assert len(fingerprint(ident)) == 16
    assert fingerprint(ident) not in ident
    assert fingerprint(ident) != fingerprint(ident + "x")


@pytest.mark.parametrize(
    "text", ["", "short", "x" * 65, "a" * 20 + "\n", "a" * 20 + "é", "\x00" * 20, "../" * 9]
)
def test_what_cannot_be_an_id_is_known_without_a_look(text: str) -> None:
    assert IDENT.fullmatch(text) is None


ANN, BOB = Human("ann", org="acme"), Human("bob", org="acme")
OWNERS: Final[list[tuple[str, Principal]]] = [
    ("desk", Agent("a")),
    ("shop", Agent("a")),
    ("desk", Human("a")),
    ("desk", Agent("b")),
    ("desk", Agent("a", org="acme")),
    ("desk", Agent("a", acts_for=ANN)),
    ("desk", Agent("a", acts_for=BOB)),
    ("desk", Agent("a", acts_for=Human("ann", org="globex"))),
    ("desk", ANN),
]


def test_everybody_else_is_another_owner() -> None:
    """Nor does one name that holds another's separators make two owners one."""
    keys = {owner_key(server, who) for server, who in OWNERS}
    assert len(keys) == len(OWNERS)
    assert owner_key('desk", "x', Agent("a")) != owner_key("desk", Agent('x", "a'))


def test_an_owner_stays_one_when_roles_and_scopes_change() -> None:
    before, after = Agent("a", roles=["x"], scopes=["y"], acts_for=ANN), Agent("a", acts_for=ANN)
    assert owner_key("desk", before) == owner_key("desk", after)
    assert "ann" not in owner_key("desk", after)
