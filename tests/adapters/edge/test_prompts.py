"""Prompts that are files: their slots and what they say of themselves, read at the start and every time."""

from __future__ import annotations

import asyncio
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from nonsuch import Agent, App, BootError, Registry, define_app_mcp, prompt
from nonsuch.adapters.edge.prompts import MAX_BYTES
from nonsuch.adapters.edge.run import Edge, Running, run
from nonsuch.kernel.catalog import Entry
from nonsuch.kernel.model import Failed, InvalidArguments, Ok, Outcome

CALLER = Agent("a")


class Tone(Enum):
    KIND = "kind"


class Slots(BaseModel):
    topic: str
    tone: Tone = Tone.KIND
    note: str | None = None


def app_of(path: Path, **given: Any) -> App:
    given.setdefault("description", "d")
    return define_app_mcp(Registry(), name="x", prompts=[prompt(path, **given)])


def entry_of(path: Path, **given: Any) -> Entry:
    (entry,) = app_of(path, **given).kernel.catalog.entries
    return entry


def written(at: Path, text: str | bytes, name: str = "say.v1.md") -> Path:
    path = at / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rendered(app: App, name: str = "say", **arguments: str) -> Outcome:
    edge = Edge(Running(app))
    kernel = app.kernel
    return asyncio.run(run(kernel.render(kernel.view_for(CALLER), name, dict(arguments)), edge))


def text_of(app: App, **arguments: str) -> str:
    outcome = rendered(app, **arguments)
    assert isinstance(outcome, Ok), outcome
    assert isinstance(outcome.value, str)
    return outcome.value


def fault_of(path: Path, **given: Any) -> str:
    with pytest.raises(BootError) as told:
        app_of(path, **given)
    (fault,) = told.value.faults
    assert (fault.code, fault.fix) == ("X_DECLARATION_INVALID", "give the path of a prompt in UTF-8")
    head = f"the prompt `{path}` cannot be used: "
    assert fault.cause.startswith(head)
    return fault.cause.removeprefix(head)


def test_every_slot_is_a_required_argument(tmp_path: Path) -> None:
    app = app_of(written(tmp_path, "{{a}} {{ b }} {{a}} { c } {{ d d }} {{}} {{1}} {{{e}}}"))
    (entry,) = app.kernel.catalog.entries
    assert entry.input.document["required"] == ["a", "b", "e"]
    assert text_of(app, a="1", b="2", e="3") == "1 2 1 { c } {{ d d }} {{}} {{1}} {3}"
    for arguments in ({"a": "1", "b": "2"}, {"a": "1", "b": "2", "e": "3", "f": "4"}, {}):
        assert isinstance(rendered(app, **arguments), InvalidArguments)


def test_a_file_without_slots_takes_nothing(tmp_path: Path) -> None:
    app = app_of(written(tmp_path, "Say it."))
    assert text_of(app) == "Say it."
    assert isinstance(rendered(app, a="1"), InvalidArguments)


@pytest.mark.parametrize("value", ["{{b}}", "{{a}}", "\\1 \\g<0>", "---\nx: 1\n---\n", "\u2028\x00", ""])
def test_an_argument_is_words_whatever_it_spells(tmp_path: Path, value: str) -> None:
    assert text_of(app_of(written(tmp_path, "<{{a}}|{{b}}>")), a=value, b="b") == f"<{value}|b>"


@pytest.mark.parametrize(
    ("file", "name"), [("say.v1.md", "say"), ("say", "say"), ("say.md", "say"), ("s-a_y.1.2.txt", "s-a_y")]
)
def test_the_name_is_the_files_up_to_its_first_dot(tmp_path: Path, file: str, name: str) -> None:
    assert entry_of(written(tmp_path, "x", file)).shown == name
    assert entry_of(written(tmp_path, "x", file), name="own").shown == "own"


def test_an_input_of_its_own_says_what_the_slots_are(tmp_path: Path) -> None:
    app = app_of(written(tmp_path, "{{topic}}/{{tone}}/{{note}}"), input=Slots)
    assert text_of(app, topic="x") == "x/kind/"
    assert text_of(app, topic="x", tone="kind", note="n") == "x/kind/n"
    assert isinstance(rendered(app, topic="x", tone="harsh"), InvalidArguments)
    assert (
        fault_of(written(tmp_path, "{{topic}} {{other}}"), input=Slots)
        == "its slot `other` is no declared argument"
    )


FRONT = """---
title: Say it
description: How to say it
version: 3
arguments:
  - name: topic
    description: What about
  - name: tone
    required: false
  - name: unused
    required: false
---
Say {{topic}} in a {{tone}} tone, {{more}}.
"""


def test_a_file_says_of_itself_what_it_is(tmp_path: Path) -> None:
    app = app_of(written(tmp_path, FRONT), description="")
    (entry,) = app.kernel.catalog.entries
    assert (entry.title, entry.description) == ("Say it", "How to say it")
    properties = entry.input.document["properties"]
    assert {name: held.get("description") for name, held in properties.items()} == {
        "topic": "What about",
        "tone": None,
        "unused": None,
        "more": None,
    }
    assert entry.input.document["required"] == ["topic", "more"]
    assert text_of(app, topic="x", more="y") == "Say x in a  tone, y.\n"
    assert text_of(app, topic="x", more="y", tone="kind", unused="z") == "Say x in a kind tone, y.\n"


def test_the_declaration_is_believed_before_the_file(tmp_path: Path) -> None:
    entry = entry_of(written(tmp_path, FRONT), description="Own words", title="Own")
    assert (entry.title, entry.description) == ("Own", "Own words")


@pytest.mark.parametrize(
    ("text", "rendered_as"),
    [
        ("---\n---\nx", "x"),
        ("---\r\ntitle: T\r\n---\r\nx", "x"),
        ("--- \n# nothing\n---\t\nx", "x"),
        ("x\n---\ny\n---\nz", "x\n---\ny\n---\nz"),
        (" ---\n---\nx", " ---\n---\nx"),
        ("---\ntitle: T\nx", "---\ntitle: T\nx"),
        ("---", "---"),
    ],
)
def test_what_stands_before_the_text_is_between_two_lines(
    tmp_path: Path, text: str, rendered_as: str
) -> None:
    assert text_of(app_of(written(tmp_path, text))) == rendered_as


@pytest.mark.parametrize(
    "front",
    [
        "a: [",
        "- a",
        "7",
        "title: [x]",
        "arguments: x",
        "arguments:\n- x",
        "arguments:\n- name: a\n  type: int",
        "!!python/object:os.system {}",
    ],
)
def test_what_stands_before_the_text_must_be_readable(tmp_path: Path, front: str) -> None:
    assert fault_of(written(tmp_path, f"---\n{front}\n---\nx")).startswith("what stands before its text")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert fault_of(tmp_path / "nothing.md") == "No such file or directory"
    assert fault_of(tmp_path, name="say") == "Is a directory"
    assert fault_of(written(tmp_path, b"\xff")) == "it is not UTF-8"
    assert fault_of(written(tmp_path, "x" * (MAX_BYTES + 1))) == f"it has more than {MAX_BYTES} bytes"
    assert text_of(app_of(written(tmp_path, "x" * MAX_BYTES))) == "x" * MAX_BYTES


def test_every_fault_of_every_file_is_told_at_once(tmp_path: Path) -> None:
    prompts = [prompt(tmp_path / name, description="d") for name in ("a.md", "b.md")]
    with pytest.raises(BootError) as told:
        define_app_mcp(Registry(), name="x", prompts=prompts)
    assert len(told.value.faults) == 2


def test_a_changed_text_is_served_from_the_next_request_on(tmp_path: Path) -> None:
    path = written(tmp_path, "one {{a}} {{b}}")
    app = app_of(path)
    path.write_text("two {{b}}")
    assert text_of(app, a="1", b="2") == "two 2"


@pytest.mark.parametrize("change", ["gone", "another slot", "no UTF-8", "too large", "no front"])
def test_a_file_that_no_longer_fits_is_told_to_its_caller_in_our_words(tmp_path: Path, change: str) -> None:
    path = written(tmp_path, "one {{a}}")
    app = app_of(path)
    texts = {
        "another slot": b"two {{other}}",
        "no UTF-8": b"\xff",
        "too large": b"x" * (MAX_BYTES + 1),
        "no front": b"---\na: [\n---\nx",
    }
    path.unlink() if change == "gone" else path.write_bytes(texts[change])
    outcome = rendered(app, a="1")
    assert isinstance(outcome, Failed)
    assert outcome.code == "X_PROMPT_CHANGED"
    assert str(path) not in outcome.cause + outcome.fix + outcome.caller_fix
