"""`subscriptions/listen`: one stream that tells its caller what changed of what this caller is served."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp_types.methods import parse_server_notification, validate_server_result
from pydantic import BaseModel

from nonsuch import Agent, App, Human, Principal, prompt, resource, tool
from nonsuch.adapters.edge import run
from nonsuch.adapters.mcp.endpoint import MAX_URIS

from .live import LEGACY, MODERN, Json, Live, Stream, play, request
from .stage import CALLERS, ROLES, stage

KEY = "io.modelcontextprotocol/subscriptionId"
ALL: Json = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
TOOLS, PROMPTS, RESOURCES = (
    f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")
)
UPDATED = "notifications/resources/updated"
PARTS = ("tool", "prompt", "resource", "template")
SECRET = "a:resource"


class Ident(BaseModel):
    id: str


def words() -> str:
    return "words"


def by_id(input: Ident) -> str:
    return input.id


class Board:
    """An app whose every part can be shown and hidden while it runs, to all or to one caller."""

    def __init__(self, **given: Any) -> None:
        self.shown: frozenset[str] = frozenset()
        self.tokens: dict[str, Principal] = dict(CALLERS)
        self.app: App = stage(
            tools={
                "always": tool("A", words, policy="a:b"),
                "tool": tool("T", words, policy="a:b", visible_to=self._if("tool")),
            },
            prompts=[prompt(words, description="P", name="prompt", visible_to=self._if("prompt"))],
            resources=[
                resource("a:always", "always", "A", words),
                resource(SECRET, "resource", "R", words, visible_to=self._if("resource")),
                resource("b:{id}", "template", "T", by_id, visible_to=self._if("template")),
                resource("a:role", "role", "R", words, visible_to=["r"]),
                resource("a:scoped", "scoped", "S", words, scope="s"),
            ],
            resolve_token=self._resolve,
            **given,
        )
        self.live = Live(self.app)

    def _resolve(self, token: str) -> Principal | None:
        return self.tokens.get(token)

    def _if(self, name: str) -> Callable[[Principal], bool]:
        def seen(who: Principal) -> bool:
            return name in self.shown or f"{name} for {who.id}" in self.shown

        return seen

    def show(self, *names: str) -> None:
        """Show these and nothing else; the app says that lists may differ."""
        self.shown = frozenset(names)
        self.app.notify.lists_changed()

    async def listen(self, caller: str = "t", ident: object = 1, **wanted: Any) -> Stream:
        """A stream whose acknowledgement was read."""
        sent = request(MODERN, "subscriptions/listen", caller, ident=ident, notifications=wanted)
        stream = self.live.open(sent)
        acknowledged = await stream.message()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["_meta"] == {KEY: ident}
        return stream


async def heard(stream: Stream) -> list[tuple[str, Json]]:
    """What came until now."""
    await asyncio.sleep(0.02)
    told: list[tuple[str, Json]] = []
    while len(stream.messages()) > stream.read:
        message = await stream.message()
        parse_server_notification(message["method"], MODERN, message["params"])
        assert "id" not in message
        told.append((message["method"], message["params"]))
    return told


async def methods(stream: Stream) -> list[str]:
    return [method for method, _ in await heard(stream)]


# how it begins and ends


WANTED: tuple[tuple[Json, Json], ...] = (
    ({}, {}),
    (ALL, ALL),
    ({"toolsListChanged": True}, {"toolsListChanged": True}),
    ({"toolsListChanged": False, "promptsListChanged": True}, {"promptsListChanged": True}),
    ({"resourceSubscriptions": []}, {}),
    ({"resourceSubscriptions": ["a:always"]}, {"resourceSubscriptions": ["a:always"]}),
    ({"resourceSubscriptions": [SECRET]}, {"resourceSubscriptions": [SECRET]}),
    ({"resourceSubscriptions": ["no:thing", ""]}, {"resourceSubscriptions": ["no:thing", ""]}),
    ({"x.example/other": True, "toolsListChanged": True}, {"toolsListChanged": True}),
)


@pytest.mark.parametrize(("wanted", "told"), WANTED, ids=str)
def test_the_first_message_acknowledges_what_is_listened_for(wanted: Json, told: Json) -> None:
    """A URI is echoed as it was sent, whoever may see it."""

    async def scene() -> None:
        board = Board()
        stream = board.live.open(request(MODERN, "subscriptions/listen", notifications=wanted, ident="s"))
        message = await stream.message()
        assert message == {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": {KEY: "s"}, "notifications": told},
        }
        parse_server_notification(message["method"], MODERN, message["params"])
        assert stream.streams
        await stream.silence()
        board.app.notify.close()
        await stream.rest()

    play(scene())


@pytest.mark.parametrize("ident", [0, 1, -7, "", "s", 2**53], ids=repr)
def test_a_server_that_stops_ends_the_stream_with_a_result(ident: object) -> None:
    async def scene() -> None:
        board = Board()
        stream = await board.listen(ident=ident, **ALL)
        board.app.notify.close()
        (last,) = await stream.rest()
        info = {"name": "stage", "version": "0"}
        meta = {KEY: ident, "io.modelcontextprotocol/serverInfo": info}
        assert last == {"jsonrpc": "2.0", "id": ident, "result": {"resultType": "complete", "_meta": meta}}
        validate_server_result("subscriptions/listen", MODERN, last["result"])
        late = board.live.open(request(MODERN, "subscriptions/listen", notifications=ALL))
        assert [each.get("method", "result") for each in await late.rest()] == [
            "notifications/subscriptions/acknowledged",
            "result",
        ]

    play(scene())


def test_a_client_that_leaves_ends_its_stream_and_no_other() -> None:
    async def scene() -> None:
        board = Board()
        one, other = await board.listen(**ALL), await board.listen(**ALL)
        await asyncio.sleep(0.1)
        await one.leave()
        board.show("tool")
        assert await methods(other) == [TOOLS]
        assert one.messages()[one.read :] == []
        board.app.notify.close()
        await other.rest()

    play(scene())


@pytest.mark.parametrize("revision", LEGACY)
def test_the_older_revisions_have_no_such_method(revision: str) -> None:
    async def scene() -> None:
        (told,) = await Board().live.ask(request(revision, "subscriptions/listen", notifications=ALL))
        assert (told["error"]["code"], told["error"]["message"]) == (-32601, "method not found")
        assert told["error"]["data"]["fix"] == f"call a method that revision {revision} has"

    play(scene())


@pytest.mark.parametrize(("size", "taken"), [(MAX_URIS, True), (MAX_URIS + 1, False)])
def test_a_stream_listens_for_a_bounded_number_of_resources(size: int, taken: bool) -> None:
    async def scene() -> None:
        board = Board()
        uris = [f"a:{at}" for at in range(size)]
        stream = board.live.open(
            request(MODERN, "subscriptions/listen", notifications={"resourceSubscriptions": uris})
        )
        assert ("method" in await stream.message()) is taken
        board.app.notify.close()
        await stream.rest()

    play(scene())


# lists


@pytest.mark.parametrize(
    ("part", "method"),
    [("tool", TOOLS), ("prompt", PROMPTS), ("resource", RESOURCES), ("template", RESOURCES)],
)
def test_a_change_of_a_list_is_told_by_its_own_message(part: str, method: str) -> None:
    async def scene() -> None:
        board = Board()
        stream = await board.listen(ident="s", **ALL)
        board.show(part)
        assert await heard(stream) == [(method, {"_meta": {KEY: "s"}})]
        board.show(part)
        assert await heard(stream) == []
        board.show()
        assert await methods(stream) == [method]
        board.app.notify.close()
        await stream.rest()

    play(scene())


def test_only_what_is_listened_for_is_told() -> None:
    async def scene() -> None:
        board = Board()
        streams = {
            (): await board.listen(),
            (TOOLS,): await board.listen(toolsListChanged=True),
            (PROMPTS,): await board.listen(promptsListChanged=True, toolsListChanged=False),
            (TOOLS, PROMPTS, RESOURCES): await board.listen(**ALL),
        }
        board.show(*PARTS)
        for told, stream in streams.items():
            assert await methods(stream) == list(told)
        board.app.notify.close()
        for stream in streams.values():
            await stream.rest()

    play(scene())


def test_a_change_that_a_caller_does_not_see_is_none() -> None:
    """MCP 2026-07-28: what a list holds depends on who asks, and so does whether it changed."""

    async def scene() -> None:
        board = Board()
        streams = {each: await board.listen(each, **ALL) for each in ("t", "other")}
        board.show(*(f"{part} for b" for part in PARTS))
        assert await methods(streams["t"]) == []
        assert await methods(streams["other"]) == [TOOLS, PROMPTS, RESOURCES]
        board.show(*(f"{part} for a" for part in PARTS))
        for stream in streams.values():
            assert await methods(stream) == [TOOLS, PROMPTS, RESOURCES]
        board.app.notify.close()
        for stream in streams.values():
            await stream.rest()

    play(scene())


def test_a_change_that_nobody_said_is_told_with_the_next_one() -> None:
    async def scene() -> None:
        board = Board()
        stream = await board.listen(**ALL)
        board.shown = frozenset({"tool"})
        await stream.silence()
        board.app.notify.resource_updated("a:anything")
        assert await methods(stream) == [TOOLS]
        board.app.notify.close()
        await stream.rest()

    play(scene())


def test_many_changes_at_once_are_one() -> None:
    async def scene() -> None:
        board = Board()
        stream = await board.listen(**ALL, resourceSubscriptions=["a:always"])
        for _ in range(100):
            board.app.notify.resource_updated("a:always")
        board.show("tool")
        told = await methods(stream)
        assert sorted(told) == sorted({TOOLS, UPDATED})
        board.app.notify.close()
        await stream.rest()

    play(scene())


# resources


def test_an_update_is_told_to_who_listens_for_it_and_sees_it() -> None:
    async def scene() -> None:
        board = Board()
        board.show("resource for b", "template for b")
        uris = ["a:always", SECRET, "b:1", "no:thing"]
        streams = {
            each: await board.listen(each, ident=each, resourceSubscriptions=uris) for each in ("t", "other")
        }
        bystander = await board.listen(resourceSubscriptions=["a:other"])
        for uri in (SECRET, "b:1", "b:2", "no:thing", "a:other"):
            board.app.notify.resource_updated(uri)
            await asyncio.sleep(0.01)
        assert await heard(streams["t"]) == []
        assert await heard(streams["other"]) == [
            (UPDATED, {"_meta": {KEY: "other"}, "uri": uri}) for uri in (SECRET, "b:1")
        ]
        board.app.notify.resource_updated("a:always")
        for name, stream in streams.items():
            assert await heard(stream) == [(UPDATED, {"_meta": {KEY: name}, "uri": "a:always"})]
        assert await heard(bystander) == []
        board.app.notify.close()
        for stream in (*streams.values(), bystander):
            await stream.rest()

    play(scene())


def test_an_update_of_what_was_hidden_meanwhile_is_not_told() -> None:
    async def scene() -> None:
        board = Board()
        board.show("resource")
        stream = await board.listen(resourceSubscriptions=[SECRET])
        board.app.notify.resource_updated(SECRET)
        assert await methods(stream) == [UPDATED]
        board.show()
        board.app.notify.resource_updated(SECRET)
        assert await methods(stream) == []
        board.app.notify.close()
        await stream.rest()

    play(scene())


def test_an_update_is_told_to_who_may_read_it() -> None:
    async def scene() -> None:
        board = Board()
        streams = {
            each: await board.listen(each, resourceSubscriptions=["a:scoped"]) for each in ("t", "same")
        }
        board.app.notify.resource_updated("a:scoped")
        assert {each: await methods(stream) for each, stream in streams.items()} == {
            "t": [],
            "same": [UPDATED],
        }
        board.app.notify.close()
        for stream in streams.values():
            await stream.rest()

    play(scene())


# the right to listen


def revoked(board: Board) -> None:
    del board.tokens["t"]


def anothers(board: Board) -> None:
    board.tokens["t"] = Agent("z", roles=ROLES)


def a_persons(board: Board) -> None:
    board.tokens["t"] = Human("a", roles=ROLES)


def for_a_person(board: Board) -> None:
    board.tokens["t"] = Human("ann", roles=ROLES).delegate("a")


def of_another_organisation(board: Board) -> None:
    board.tokens["t"] = CALLERS["else"]


@pytest.mark.parametrize("change", [revoked, anothers, a_persons, for_a_person, of_another_organisation])
def test_a_stream_does_not_outlive_the_right_of_its_caller(change: Callable[[Board], None]) -> None:
    """Whose token it is is asked again before anything is told; what changed meanwhile is then not told."""

    async def scene() -> None:
        board = Board()
        stream, other = (
            await board.listen(**ALL, resourceSubscriptions=["a:always"]),
            await board.listen("other", **ALL),
        )
        change(board)
        board.show("tool")
        board.app.notify.resource_updated("a:always")
        (last,) = await stream.rest()
        assert last["result"]["resultType"] == "complete"
        assert await methods(other) == [TOOLS]
        board.app.notify.close()
        await other.rest()

    play(scene())


def test_a_stream_of_a_revoked_token_ends_though_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its caller is asked for again at each sign of life: the slot is given back."""
    monkeypatch.setattr(run, "KEEP_ALIVE_SECONDS", 0.05)

    async def scene() -> None:
        board = Board()
        stream, other = await board.listen(**ALL), await board.listen("other", **ALL)
        await stream.more()
        revoked(board)
        (last,) = await stream.rest()
        assert last["result"]["resultType"] == "complete"
        await other.more()
        assert await methods(other) == []
        board.app.notify.close()
        await other.rest()

    play(scene())


def test_a_caller_who_lost_a_role_is_told_of_what_it_no_longer_sees() -> None:
    """Its own list became another, and that is no secret; what is in it is."""

    async def scene() -> None:
        board = Board()
        board.show("tool for a")
        stream = await board.listen(**ALL)
        board.tokens["t"] = Agent("a")
        board.show()
        assert await methods(stream) == [TOOLS, RESOURCES]
        board.app.notify.close()
        await stream.rest()

    play(scene())


def test_a_caller_who_lost_a_role_is_told_nothing_of_what_it_opened() -> None:
    async def scene() -> None:
        board = Board()
        stream = await board.listen(resourceSubscriptions=["a:role", "a:always"])
        board.app.notify.resource_updated("a:role")
        assert await methods(stream) == [UPDATED]
        board.tokens["t"] = Agent("a")
        board.app.notify.resource_updated("a:role")
        assert await methods(stream) == []
        board.app.notify.resource_updated("a:always")
        assert await methods(stream) == [UPDATED]
        board.app.notify.close()
        await stream.rest()

    play(scene())


def test_a_token_store_that_is_down_ends_the_stream() -> None:
    async def scene() -> None:
        board = Board()
        stream = await board.listen(**ALL)
        board.tokens = None  # type: ignore[assignment]  # the resolver raises from now on
        board.app.notify.lists_changed()
        assert len(await stream.rest()) == 1

    play(scene())


@pytest.mark.parametrize("caller", [None, "unknown"])
def test_nobody_listens_without_a_caller(caller: str | None) -> None:
    async def scene() -> None:
        headers, body = request(MODERN, "subscriptions/listen", caller or "", notifications=ALL)
        stream = Board().live.open((headers, body))
        (told,) = await stream.rest()
        assert stream.status == 401
        assert "error" in told

    play(scene())


# many


def test_many_listeners_each_hear_once() -> None:
    async def scene() -> None:
        board = Board()
        streams = [await board.listen(ident=at, **ALL) for at in range(60)]
        board.show("tool")
        for stream in streams:
            assert await methods(stream) == [TOOLS]
        board.app.notify.close()
        for at, stream in enumerate(streams):
            assert [each["id"] for each in await stream.rest()] == [at]

    play(scene())


def test_a_stream_that_was_left_waits_for_nothing() -> None:
    """Slots are given back: a thousand streams opened and dropped leave nothing behind."""

    async def scene() -> None:
        board = Board()
        for _ in range(20):
            streams = [await board.listen(**ALL) for _ in range(50)]
            await asyncio.sleep(0.06)
            for stream in streams:
                await stream.leave()
        assert vars(board.app.notify)["_waiting"] == {}

    play(scene())


def test_changes_may_be_said_from_any_thread() -> None:
    async def scene() -> None:
        board = Board()
        stream = await board.listen(resourceSubscriptions=["a:always"])
        await asyncio.gather(
            *(asyncio.to_thread(board.app.notify.resource_updated, "a:always") for _ in range(8))
        )
        assert set(await methods(stream)) == {UPDATED}
        board.app.notify.close()
        await stream.rest()

    play(scene())


def test_a_message_of_a_stream_is_json_on_one_line() -> None:
    async def scene() -> None:
        board = Board()
        uri = "a:\u2028\u2029\u0085"
        stream = board.live.open(
            request(MODERN, "subscriptions/listen", notifications={"resourceSubscriptions": [uri]})
        )
        assert (await stream.message())["params"]["notifications"] == {"resourceSubscriptions": [uri]}
        assert [
            json.loads(each[6:]) for each in stream.raw.decode().splitlines() if each.startswith("data: ")
        ]
        board.app.notify.close()
        await stream.rest()

    play(scene())


# a sign of life


async def first_comment(stream: Stream) -> float:
    """When the first sign of life came, after the first message."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while not stream.raw.endswith(b": \n\n"):
        await stream.more()
    return loop.time() - begun


def test_a_sign_of_life_comes_as_often_whatever_is_hidden_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that its listener does not see shows in no bytes, and not in when the others come."""
    monkeypatch.setattr(run, "KEEP_ALIVE_SECONDS", 0.3)

    async def scene() -> None:
        busy, calm = Board(), Board()
        streams = await busy.listen(**ALL), await calm.listen(**ALL)
        times = asyncio.gather(*map(first_comment, streams))
        for _ in range(5):
            await asyncio.sleep(0.04)
            busy.show("tool for b")
            busy.app.notify.resource_updated(SECRET)
        one, other = await times
        assert abs(one - other) < 0.1
        assert [each.messages()[each.read :] for each in streams] == [[], []]
        for board, stream in zip((busy, calm), streams, strict=True):
            board.app.notify.close()
            await stream.rest()

    play(scene())
