"""Pages of a list: together they are the list, whatever their size; a cursor is its caller's, for its list.

The oracle cuts a sorted list by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.methods import validate_server_result
from pydantic import BaseModel

from nonsuch import Agent, App, Principal, prompt, resource, tool
from nonsuch.adapters.mcp.paging import Page, Pages
from nonsuch.kernel.seal import Seal

from .asking import result
from .live import REVISIONS, Json, request
from .stage import CALLERS, stage
from .wire import Request, sans_io

SECRET = b"s" * 32
METHODS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
NAMES = (*"Zab0-_.", "aa", "a.b", "a/b")


class Ident(BaseModel):
    id: str


def words() -> str:
    return "words"


def by_id(input: Ident) -> str:
    return input.id


def hall(size: int | None, names: Iterable[str] = NAMES, **given: Any) -> App:
    """An app with a list of each kind; half of the names are hidden from all but `other`."""
    held = list(enumerate(names))

    def only(at: int) -> Any:
        return for_other if at % 2 else None

    return stage(
        tools={name: tool("T", words, policy="a:b", visible_to=only(at)) for at, name in held},
        prompts=[prompt(words, description="P", name=name, visible_to=only(at)) for at, name in held],
        resources=[
            *(resource(f"a:{name}", name, "R", words, visible_to=only(at)) for at, name in held),
            *(
                resource(f"b:{name}/{{id}}", f"t-{name}", "T", by_id, visible_to=only(at))
                for at, name in held
            ),
        ],
        page_size=size,
        **{"secret": SECRET, **given},
    )


def for_other(who: Principal) -> bool:
    return who.id == "b"


def page(app: App, revision: str, method: str, caller: str = "t", **params: Any) -> Json:
    """One page."""
    headers, body = request(revision, method, caller, **params)
    told = result(sans_io(app, Request("POST", "/mcp", tuple(headers), body)))
    validate_server_result(method, revision, told)
    return told


def refused(app: App, revision: str, method: str, cursor: object, caller: str = "t") -> bool:
    """Whether a cursor is refused, with the one answer there is."""
    headers, body = request(revision, method, caller, cursor=cursor)
    answer = sans_io(app, Request("POST", "/mcp", tuple(headers), body))
    cause = "`cursor` is none that this list gave to this caller"
    fix = "ask for the list from its beginning, without `cursor`"
    error = {"code": -32602, "message": cause, "data": {"code": "X_MCP_PROTOCOL", "cause": cause, "fix": fix}}
    whole = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}, separators=(",", ":")).encode()
    assert (answer.body == whole) is (b'"error"' in answer.body)
    assert answer.status == 200
    return answer.body == whole


def pages(app: App, revision: str, method: str, caller: str = "t") -> list[list[str]]:
    """The names of each page, walked to the end."""
    told = page(app, revision, method, caller)
    found = [names_of(told, method)]
    while "nextCursor" in told:
        told = page(app, revision, method, caller, cursor=told["nextCursor"])
        found.append(names_of(told, method))
    return found


def names_of(told: Json, method: str) -> list[str]:
    return [each.get("uri", each.get("uriTemplate", each["name"])) for each in told[METHODS[method]]]


def expected(method: str, caller: str, size: int | None) -> list[list[str]]:
    shown = [name for at, name in enumerate(NAMES) if caller == "other" or not at % 2]
    spelled = {"resources/list": "a:{}", "resources/templates/list": "b:{}/{{id}}"}.get(method, "{}")
    whole = sorted(spelled.format(name) for name in shown)
    cut = size or len(whole)
    return [whole[at : at + cut] for at in range(0, len(whole), cut)]


@pytest.mark.parametrize("size", [None, *range(1, len(NAMES) + 2)])
def test_the_pages_together_are_the_list(size: int | None) -> None:
    app = hall(size)
    for revision in REVISIONS:
        for method in METHODS:
            for caller in ("t", "other"):
                assert pages(app, revision, method, caller) == expected(method, caller, size)


@pytest.mark.parametrize("size", [1, 3, len(NAMES)])
def test_what_is_hidden_shows_in_no_page_and_no_cursor(size: int) -> None:
    """An app in which the hidden names were never declared answers every page with the same bytes."""
    shown = {name: None for at, name in enumerate(NAMES) if not at % 2}
    bare = stage(
        tools={name: tool("T", words, policy="a:b") for name in shown},
        prompts=[prompt(words, description="P", name=name) for name in shown],
        resources=[
            *(resource(f"a:{name}", name, "R", words) for name in shown),
            *(resource(f"b:{name}/{{id}}", f"t-{name}", "T", by_id) for name in shown),
        ],
        page_size=size,
        secret=SECRET,
    )
    full = hall(size)
    for revision in REVISIONS:
        for method in METHODS:
            cursor: Json = {}
            while True:
                one, other = (page(each, revision, method, **cursor) for each in (full, bare))
                assert one == other
                if "nextCursor" not in one:
                    break
                cursor = {"cursor": one["nextCursor"]}


def test_the_last_page_has_no_cursor_even_when_it_is_full() -> None:
    assert "nextCursor" not in page(hall(len(NAMES)), REVISIONS[2], "tools/list", "other")
    assert "nextCursor" in page(hall(len(NAMES) - 1), REVISIONS[2], "tools/list", "other")
    assert page(stage(page_size=1, grants=[]), REVISIONS[2], "prompts/list")["prompts"] == []


# cursors


def first(app: App, method: str = "tools/list", caller: str = "t") -> str:
    cursor = page(app, REVISIONS[2], method, caller)["nextCursor"]
    assert isinstance(cursor, str)
    return cursor


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("size", [None, 2])
def test_a_cursor_that_nobody_gave_is_refused(revision: str, size: int | None) -> None:
    app = hall(size)
    made_up: list[Any] = [None, "", "0", "a", 0, 1, True, [], {}, "A" * 60, "=" * 8, "\u00e9"]
    for cursor in made_up:
        for method in METHODS:
            assert refused(app, revision, method, cursor)


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_character_of_a_cursor_counts(revision: str) -> None:
    app = hall(2)
    cursor = first(app)
    assert not refused(app, revision, "tools/list", cursor)
    for at in range(len(cursor)):
        assert refused(
            app, revision, "tools/list", cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        )
        assert refused(app, revision, "tools/list", cursor[:at])
    for more in ("=", "A", "-", "\n"):
        assert refused(app, revision, "tools/list", cursor + more)


def test_a_cursor_is_for_its_list() -> None:
    app = hall(2)
    for one in METHODS:
        cursor = first(app, one)
        assert [refused(app, REVISIONS[2], other, cursor) for other in METHODS] == [
            other != one for other in METHODS
        ]


def test_a_cursor_is_its_callers() -> None:
    app = hall(2)
    for owner in ("t", "other", "ann"):
        cursor = first(app, caller=owner)
        others = {"t", "other", "ann", "bob", "bot", "else"} - {owner}
        assert not refused(app, REVISIONS[2], "tools/list", cursor, owner)
        assert {each for each in others if refused(app, REVISIONS[2], "tools/list", cursor, each)} == others


def test_a_cursor_outlives_a_new_token_of_its_caller() -> None:
    app = hall(2)
    assert not refused(app, REVISIONS[2], "tools/list", first(app), "same")


def test_a_cursor_is_taken_by_every_process_of_the_same_secret() -> None:
    cursor = first(hall(2))
    assert not refused(hall(2), REVISIONS[2], "tools/list", cursor)
    assert refused(hall(2, secret=SECRET[::-1] + b"x"), REVISIONS[2], "tools/list", cursor)
    assert refused(hall(2, secret=None), REVISIONS[2], "tools/list", cursor)


def test_a_cursor_of_a_page_size_goes_on_in_another() -> None:
    """A cursor is where its page ended, and no number."""
    told = page(hall(3), REVISIONS[2], "tools/list", cursor=first(hall(2)))
    assert names_of(told, "tools/list") == expected("tools/list", "t", None)[0][2:5]


# a list that changes between two pages


@given(
    st.sets(st.text(st.characters(codec="utf-8"), max_size=3), max_size=9),
    st.lists(st.sets(st.text(st.characters(codec="utf-8"), max_size=3), max_size=2), max_size=9),
    st.integers(1, 4),
)
def test_what_stays_is_told_once_whatever_comes_and_goes(
    names: set[str], changes: list[set[str]], size: int
) -> None:
    cutter, who = Pages(Seal(SECRET), size), CALLERS["t"]
    stayed, told, cursor = set(names), list[str](), None
    for change in [*changes, *([set[str]()] * 12)]:
        cut = cutter.page(who, "tools", sorted(names), cursor)
        assert cut is not None
        told.extend(cut.names)
        cursor = cut.cursor
        if cursor is None:
            break
        names = names ^ change
        stayed &= names
    assert len(set(told)) == len(told)
    assert told == sorted(told)
    assert stayed <= set(told)


@pytest.mark.parametrize(
    ("size", "names", "cut"),
    [(None, [], Page([], None)), (2, [], Page([], None)), (None, ["a"], Page(["a"], None))],
)
def test_a_short_list_is_one_page(size: int | None, names: list[str], cut: Page) -> None:
    assert Pages(Seal(SECRET), size).page(Agent("a"), "tools", names, None) == cut


@pytest.mark.parametrize("cursor", [0, b"x", [], True, object()])
def test_a_cursor_is_text(cursor: object) -> None:
    assert Pages(Seal(SECRET), 2).page(Agent("a"), "tools", ["a", "b", "c"], cursor) is None
