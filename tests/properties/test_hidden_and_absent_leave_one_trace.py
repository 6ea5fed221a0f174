"""Hidden and absent leave one trace: the very sequence of calls, Python's and C's, is the same for both.

What runs alike takes alike; how long it takes is measured elsewhere. Also counts what an accepted call costs.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from types import FrameType

import pytest

from ..rules import Content
from ..world import MODERN, REVISIONS, Request, World, call, http
from . import two_contents as contents
from .hidden_content import CONTENT, HIDDEN_CONTENT_NAMES
from .two_worlds import ARGUMENTS, HIDDEN, HIDDEN_NAMES, VISIBLE, Two, absent

BAR = 200
WARM = 3
Trace = list[tuple[str, str]]
Given = tuple[Mapping[str, object], ...]


def trace(world: World, request: Request) -> Trace:
    """Every call that one request makes, warm."""
    for _ in range(WARM):
        world.send(request)
    seen: Trace = []

    def note(frame: FrameType, event: str, what: object) -> None:
        if event == "call":
            seen.append((frame.f_code.co_filename, frame.f_code.co_qualname))
        elif event == "c_call":
            seen.append((frame.f_code.co_filename, str(getattr(what, "__qualname__", what))))

    before = sys.getprofile()
    gc.disable()  # a collection calls whatever hangs in gc.callbacks
    sys.setprofile(note)
    try:
        world.send(request)
    finally:
        sys.setprofile(before)
        gc.enable()
    return seen


def two() -> Two:
    """All tools and all content, visible and hidden, under scopes."""
    return Two([tool.name for tool in VISIBLE], (*HIDDEN_NAMES, *HIDDEN_CONTENT_NAMES), scoped=True)


def differs(one: Trace, other: Trace) -> str:
    """Where two traces part."""
    parted = [(left, right) for left, right in zip(one, other, strict=False) if left != right]
    return f"{len(one)} and {len(other)} calls; first difference {parted[:1]}"


def same_trace(world: World, hidden: Request, none: Request) -> None:
    one, other = trace(world, hidden), trace(world, none)
    assert one == other, differs(one, other)


def over_mcp(names: tuple[str, ...], tokens: tuple[str, ...], arguments: Given) -> None:
    """Hidden against absent by every revision."""
    world = two().a
    for token in tokens:
        for revision in REVISIONS:
            for name in names:
                for given in arguments:
                    hidden = call(token, revision, name, given)
                    same_trace(world, hidden, call(token, revision, absent(name), given))


def over_http(names: tuple[str, ...], tokens: tuple[str, ...], arguments: Given) -> None:
    """Hidden against absent by path."""
    world = two().a
    paths = [tool.path for tool in HIDDEN if tool.name in names and tool.path]
    for token in tokens:
        for path in paths:
            for given in arguments:
                same_trace(world, http(token, path, given), http(token, absent(path), given))
            for method in ("GET", "OPTIONS"):
                same_trace(world, http(token, path, b"", method), http(token, absent(path), b"", method))


def over_content(names: tuple[str, ...], tokens: tuple[str, ...]) -> None:
    """Hidden content against absent, in every revision: readings, prompts, completions."""
    world = two().a
    for token in tokens:
        for each in (CONTENT[name] for name in names):
            for revision in REVISIONS:
                for ask in asked(each):
                    same_trace(world, ask(token, revision, named(each)), ask(token, revision, nothing(each)))


def named(each: Content) -> str:
    return each.name if each.kind == "prompt" else each.uri


def nothing(each: Content) -> str:
    """A name or URI of the same length and form that no world declares."""
    held = named(each)
    if each.kind == "prompt":
        return absent(held)
    path, brace, rest = held.partition("{")
    return path[:6] + "".join("y" if char.isalnum() else char for char in path[6:]) + brace + rest


Asked = Callable[[str, str, str], Request]


def asked(each: Content) -> tuple[Asked, ...]:
    """What can be asked of content by its name."""
    if each.kind == "prompt":
        return (
            lambda token, revision, name: contents.getting(token, revision, name, {"id": "ann"}),
            lambda token, revision, name: contents.getting(token, revision, name, {}),
            lambda token, revision, name: contents.completing(token, revision, "prompt", name, "a"),
        )
    return (
        lambda token, revision, uri: contents.reading(token, revision, uri.replace("{id}", "d1")),
        lambda token, revision, uri: contents.completing(token, revision, "template", uri, "d"),
    )


SHAPES = (ARGUMENTS[0], ARGUMENTS[3], ARGUMENTS[4], ARGUMENTS[7])
TOKENS = ("edit", "none", "over")


def test_a_hidden_and_an_absent_tool_make_the_same_calls() -> None:
    over_mcp(HIDDEN_NAMES, TOKENS, SHAPES)


def test_a_hidden_and_an_absent_path_make_the_same_calls() -> None:
    over_http(HIDDEN_NAMES, (*TOKENS, "view"), SHAPES)


def test_hidden_and_absent_content_makes_the_same_calls() -> None:
    over_content(HIDDEN_CONTENT_NAMES, TOKENS)


ROW = {"id": "d1", "amount": 1}
ACCEPTED: dict[str, tuple[Request, int]] = {
    "a tool, 2025-06-18": (call("edit", REVISIONS[0], "listDocs", {}), 309),
    "a tool, 2025-11-25": (call("edit", REVISIONS[1], "listDocs", {}), 309),
    "a tool, 2026-07-28": (call("edit", MODERN, "listDocs", {}), 344),
    "a tool with facts and a policy over an argument": (call("edit", MODERN, "writeDoc", ROW), 485),
    "a path": (http("edit", "docs/list", {}), 267),
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_an_accepted_call_costs_no_more_calls_than_it_did(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ratchet: lower the ceilings when the count falls; `BAR` is where they have to arrive."""
    request, ceiling = ACCEPTED[what]
    made = accepted(request)
    with capsys.disabled():
        report(what, made)
    assert len(made) <= ceiling


def accepted(request: Request) -> Trace:
    """The calls of a request that is accepted, without those of the test's own server and handler."""
    world = two().a
    answer = world.send(request)
    assert answer.status == 200
    assert b"isError" not in answer.body
    return [each for each in trace(world, request) if not each[0].endswith("tests/world.py")]


def report(what: str, made: Trace) -> None:
    """Print the count and what is called most."""
    most = ", ".join(f"{name} {count}" for (_, name), count in Counter(made).most_common(4))
    print(f"\n{what}: {len(made)} calls, the bar is {BAR} ({most})")  # noqa: T201 - the count is what a reader wants to see
