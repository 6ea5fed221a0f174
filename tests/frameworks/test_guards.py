"""Guards before views of FastAPI, Flask and Django: what the app's own path answers, the view answers."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from ..conformance.environment import ROOT
from .running import program

SITES: Final = ("fastapi", "flask", "django", "django over asgi")
VIEWS: Final = ("plain", "later")
# Who calls, and what comes of it: the status and the code of a refusal, or nothing.
PUBLISHED: Final[dict[str, dict[str, tuple[int, str] | None]]] = {
    "ed": {
        "mine": None,
        "theirs": (403, "X_FORBIDDEN"),
        "printed": (403, "X_POST_PRINTED"),
        "missing": (403, "X_FORBIDDEN"),
    },
    "human": {"mine": None, "theirs": (403, "X_FORBIDDEN"), "printed": (403, "X_POST_PRINTED")},
    "reader": {"mine": (403, "X_FORBIDDEN"), "missing": (403, "X_FORBIDDEN")},
    "scopeless": {"mine": (403, "X_MCP_SCOPE_DENIED"), "missing": (403, "X_MCP_SCOPE_DENIED")},
    "nobody": {"mine": (404, "X_ROUTE_NOT_FOUND"), "missing": (404, "X_ROUTE_NOT_FOUND")},
    "stranger": {"mine": (401, "X_UNAUTHENTICATED")},
    "": {"mine": (401, "X_UNAUTHENTICATED")},
}
PRICED: Final[dict[str, tuple[int, str] | None]] = {
    "5": None,
    "500": (403, "X_FORBIDDEN"),
    "x": (422, "X_INPUT_INVALID"),
}
CLOSED: Final = ("scopeless", "nobody", "stranger", "")
IDS: Final = {"ed": "ed", "human": "hu"}
# What each host answers where its own code raises, and nobody may put anything in its place.
GONE: Final = {"fastapi": 410, "flask": 410, "django": 404, "django over asgi": 404}
REFUSED: Final = {"fastapi": 418, "flask": 418, "django": 403, "django over asgi": 403}
ANSWER: Final = ("status", "headers", "body")


@pytest.fixture(scope="session")
def told() -> Any:
    """What came of every request: the program runs once, where the frameworks are installed."""
    return json.loads(program("tests.frameworks.guards.ask"))


def same(mine: dict[str, Any], own: dict[str, Any]) -> None:
    """Nothing ran, and the answer and the one line of audit are those of the app's own path."""
    assert mine["ran"] == []
    assert [mine[each] for each in ANSWER] == [own[each] for each in ANSWER]
    assert mine["headers"]["content-type"] == "application/problem+json"
    assert without_path(mine["events"]) == without_path(own["events"])


def without_path(events: list[Any]) -> list[Any]:
    """The events; of a caller who is nobody the path is where they asked, which differs."""
    return [[kind, {key: value for key, value in said.items() if key != "path"}] for kind, said in events]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize(("who", "post"), [(who, post) for who, each in PUBLISHED.items() for post in each])
def test_a_view_refuses_what_the_apps_own_path_refuses(
    told: Any, site: str, view: str, who: str, post: str
) -> None:
    mine, own, expected = (
        told[site][f"{view} {who} {post}"],
        told["api"][f"{who} {post}"],
        PUBLISHED[who][post],
    )
    assert len(mine["events"]) == 1
    if expected is not None:
        body = json.loads(mine["body"])
        assert (mine["status"], body["code"], body["status"]) == (expected[0], expected[1], expected[0])
        assert body["cause"]
        assert body["fix"]
        same(mine, own)
        return
    assert (mine["status"], own["status"]) == (200, 200)
    assert mine["ran"] == [f"{IDS[who]} {post}"]
    assert f"{IDS[who]} published {post}" in mine["body"]
    assert mine["events"] == own["events"]


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("amount", PRICED)
def test_a_policy_reads_the_arguments_that_a_view_gives(told: Any, site: str, amount: str) -> None:
    expected = PRICED[amount]
    mine = told[site][f"price ed {amount}"]
    own = told["api"][f"price ed {json.dumps(amount) if amount == 'x' else amount}"]
    if expected is None:
        assert (mine["status"], mine["ran"]) == (200, [f"price {amount}"])
        return
    assert (mine["status"], json.loads(mine["body"])["code"]) == expected
    same(mine, own)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("who", CLOSED)
def test_nothing_is_loaded_for_who_may_not_act_at_all(told: Any, site: str, view: str, who: str) -> None:
    """Not even what would make the host answer that there is no such row."""
    for post in ("mine", "missing", "gone"):
        assert told[site][f"{view} {who} {post}"] == told[site][f"{view} {who} mine"]
        assert told[site][f"{view} {who} {post}"]["loaded"] == []
    assert told[site][f"{view} ed mine"]["loaded"] == ["mine"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("site", SITES)
def test_what_the_host_raises_is_the_hosts_to_answer(told: Any, site: str, view: str) -> None:
    gone, refused, crash = (told[site][f"{view} ed {post}"] for post in ("gone", "refused-by-host", "crash"))
    assert (gone["status"], refused["status"], crash["status"]) == (GONE[site], REFUSED[site], 500)
    for each in (gone, refused, crash):
        assert each["headers"]["content-type"] != "application/problem+json"
        assert "X_" not in each["body"]
    assert gone["events"] == []  # nobody was asked
    assert [each["events"][0][1]["outcome"] for each in (refused, crash)] == ["ok", "ok"]


@pytest.mark.parametrize("site", SITES)
def test_the_host_may_say_itself_who_calls(told: Any, site: str) -> None:
    for who, posts in PUBLISHED.items():
        for post in posts.keys() - {"missing"}:
            mine, token = told[site][f"session {who} {post}"], told[site][f"plain {who} {post}"]
            if who == "stranger":
                continue  # a token that nobody knows is another thing than no session
            assert [mine[each] for each in (*ANSWER, "ran", "loaded")] == [
                token[each] for each in (*ANSWER, "ran", "loaded")
            ]
            assert without_address(mine["events"]) == without_address(token["events"])


def without_address(events: list[Any]) -> list[Any]:
    """The events; a guard that is told who calls knows no address."""
    return [[kind, said.get("outcome"), said.get("code"), said.get("reason")] for kind, said in events]


@pytest.mark.parametrize("site", SITES)
def test_a_session_is_read_as_the_apps_own_path_reads_it(told: Any, site: str) -> None:
    assert told[site]["cookie"]["ran"] == ["hu mine"]
    for case, status in (("cookie of a foreign page", 403), ("cookie beside a token", 401)):
        assert told[site][case]["status"] == status
        same(told[site][case], told["api"][case])


@pytest.mark.parametrize("site", SITES)
def test_an_allowance_is_spent_wherever_it_was_spent(told: Any, site: str) -> None:
    mine = told[site]["spent"]
    assert (mine["status"], json.loads(mine["body"])["code"]) == (429, "X_MCP_RATE_LIMITED")
    assert int(mine["headers"]["retry-after"]) > 0
    same(mine, told["api"]["spent"])


@pytest.mark.parametrize("site", SITES)
def test_a_view_without_a_guard_is_as_before(told: Any, site: str) -> None:
    mine = told[site]["open"]
    assert (mine["status"], mine["events"]) == (200, [])
    assert "open" in mine["body"]


def test_a_site_is_short() -> None:
    """The app's lines beside the host's: one that makes the guard, one for each view."""
    for name in ("fastapi", "flask", "django"):
        source = (ROOT / f"tests/frameworks/guards/{name}_site.py").read_text()
        made = [line for line in source.splitlines() if f"{name}_guard(" in line]
        assert len(made) == 2, "one guard by the app's callers, one by the host's"
