"""A client that opens addresses for its person is led to where a call is confirmed, and decides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult
from mcp_types.methods import validate_server_result

from nonsuch.kernel.audit import ToolCall
from nonsuch.kernel.model import Ok, Unconfirmed

from ..edge.test_stdio import connected
from ..http.bank import ANN, BOT, Bank, served
from .live import LEGACY, MODERN, Json, Live, play, request

WHERE = "https://bank.example/desk/{id}"
OPENS: Json = {"elicitation": {"url": {}}}
KNOWS: list[Json] = [{}, {"elicitation": {}}, {"elicitation": {"form": {}}}, {"sampling": {}}]
INFO = "io.modelcontextprotocol/serverInfo"
SENT: Json = {"to": "bob", "amount": 2}


def call(
    revision: str = MODERN, can: Mapping[str, Any] = OPENS, **more: Any
) -> tuple[list[tuple[str, str]], bytes]:
    return request(revision, "tools/call", "bot", capabilities=can, name="transfer", arguments=SENT, **more)


def words(told: Json) -> str:
    """What a result says that is an error."""
    assert told["isError"] is True
    text: str = told["content"][0]["text"]
    return text


def waiting(bank: Bank) -> str:
    """The id of what waits, by the audit."""
    last = [each for each in bank.heard if isinstance(each, ToolCall)][-1]
    assert last.confirmation is not None
    return last.confirmation


def test_the_newest_revision_asks_the_client_to_open_the_place_of_decision() -> None:
    async def scene() -> None:
        bank = Bank(where=WHERE)
        told = await Live(bank.app).result(call())
        ident = waiting(bank)
        assert told == {
            "resultType": "input_required",
            "inputRequests": {
                f"confirmation {ident}": {
                    "method": "elicitation/create",
                    "params": {
                        "mode": "url",
                        "message": f"A person has to confirm this call. Confirmation {ident}",
                        "url": f"https://bank.example/desk/{ident}",
                    },
                }
            },
            "_meta": {
                "io.modelcontextprotocol/serverInfo": {"name": "bank", "title": "Bank & Sons", "version": "0"}
            },
        }
        validate_server_result("tools/call", MODERN, told)

    play(scene())


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_what_the_client_answers_decides_nothing(action: str) -> None:
    async def scene() -> None:
        bank = Bank(where=WHERE)
        live = Live(bank.app)
        await live.result(call())
        again = await live.result(call(inputResponses={"confirmation": {"action": action}}))
        assert words(again).startswith("X_MCP_CONFIRMATION_PENDING: ")
        assert bank.ran == []

    play(scene())


@pytest.mark.parametrize("can", KNOWS, ids=str)
def test_a_client_that_opens_nothing_is_told_in_words(can: Mapping[str, Any]) -> None:
    async def scene() -> None:
        bank = Bank(where=WHERE)
        told = words(await Live(bank.app).result(call(can=can)))
        assert f"let a person decide it at https://bank.example/desk/{waiting(bank)}, then" in told

    play(scene())


@pytest.mark.parametrize("where", [None, "the desk", "javascript:alert(1)//{id}"])
def test_what_is_no_address_is_told_in_words(where: str | None) -> None:
    async def scene() -> None:
        assert words(await Live(Bank(where=where).app).result(call())).startswith(
            "X_MCP_CONFIRMATION_PENDING"
        )

    play(scene())


@pytest.mark.parametrize("revision", LEGACY)
def test_over_http_the_older_revisions_say_nothing_of_a_client_and_are_told_in_words(revision: str) -> None:
    async def scene() -> None:
        told = await Live(Bank(where=WHERE).app).result(call(revision))
        assert words(told).startswith("X_MCP_CONFIRMATION_PENDING")

    play(scene())


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("can", [OPENS, *KNOWS], ids=str)
def test_a_connection_remembers_what_its_client_opens(revision: str, can: Mapping[str, Any]) -> None:
    async def scene() -> None:
        bank = Bank(where=WHERE)
        async with connected(bank.app, BOT) as peer:
            await peer.initialize(revision, **can)
            params = {"name": "transfer", "arguments": SENT}
            told = await peer.ask({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
        if can is not OPENS or revision != LEGACY[-1]:
            assert words(told["result"]).startswith("X_MCP_CONFIRMATION_PENDING")
            return
        error, ident = told["error"], waiting(bank)
        assert (error["code"], error["data"]["code"]) == (-32042, "X_MCP_CONFIRMATION_PENDING")
        assert error["data"]["elicitations"] == [
            {
                "mode": "url",
                "elicitationId": ident,
                "url": f"https://bank.example/desk/{ident}",
                "message": f"A person has to confirm this call. Confirmation {ident}",
            }
        ]

    play(scene())


def test_a_real_client_opens_the_place_and_its_call_goes_on() -> None:
    bank = Bank(where=WHERE)
    opened: list[str] = []

    async def asked(context: object, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestURLParams)
        opened.append(params.url)
        ident = params.url.rpartition("/")[2]
        sent: Json = {"id": ident, "decision": "approve", "arguments": SENT}
        told = await bank.running.invoke(ANN, "decideConfirmation", sent, "http")
        assert isinstance(told, Ok)
        return ElicitResult(action="accept")

    async def scene(url: str) -> Any:
        async with (
            httpx2.AsyncClient(headers={"Authorization": "Bearer bot"}, trust_env=False) as http,
            mcp.Client(
                streamable_http_client(f"{url}/mcp", http_client=http),
                mode=MODERN,
                elicitation_callback=asked,
            ) as client,
        ):
            return await client.call_tool("transfer", SENT)

    with served(bank) as url:
        result = asyncio.run(scene(url))
    assert (result.is_error, result.structured_content) == (False, {"to": "bob"})
    assert len(opened) == 1
    assert [each.to for each in bank.ran] == ["bob"]
    assert isinstance(bank.call(SENT), Unconfirmed)  # one approval, one run
