"""Attacks on what a person confirms: approved unseen, begun too often, hidden from view, or too much."""

from __future__ import annotations

import asyncio
import io
from typing import Any, Final

import pytest
from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from nonsuch import Agent, Human, Open, confirmations_for
from nonsuch.adapters.cli import confirmations as command
from nonsuch.adapters.edge.confirmations import NOBODYS, MemoryConfirmationStore
from nonsuch.adapters.edge.run import Running
from nonsuch.adapters.http.inbox_page import MAX_BYTES
from nonsuch.adapters.http.plain_text import MAX_MARKS, Piece, alphabets, pieces, segments
from nonsuch.kernel.confirmation import IDENT
from nonsuch.kernel.confirmed import ROUNDS
from nonsuch.kernel.model import Unconfirmed
from nonsuch.kernel.strict_json import Json, Limits

from ..adapters.edge.shop import BOSS, CALL, NOON, TTL, Shop, approve, call, code_of
from ..adapters.edge.test_confirming import within
from ..adapters.edge.test_confirming_served import ident_in, text
from ..adapters.http import bank as bank_module
from ..adapters.http.bank import Bank
from ..adapters.http.test_inbox import form, get, post
from ..adapters.mcp.live import MODERN, Live, play, request

PENDING: Final = "X_MCP_CONFIRMATION_PENDING"
FAILED: Final = "X_MCP_CONFIRMATION_STORE_FAILED"
HELPLESS: Final = Human("hal", org="acme")
ASKABLE: Final[dict[str, Any]] = {"elicitation": {"url": {}, "form": {}}}
FORMS: Final[dict[str, Any]] = {"elicitation": {"form": {}}}
FLOOD: Final = Agent("flood", roles={"teller"}, org="acme", scopes={"bank"})


class Deep(BaseModel):
    to: str
    note: Any = None


def nested(depth: int) -> Json:
    value: Json = 0
    for _ in range(depth):
        value = [value]
    return value


# approved unseen


@pytest.mark.parametrize(
    "pair",
    [
        ("\u00e9", "e\u0301"),
        ("K", "\u212a"),
        ("\uac01", "\u1100\u1161\u11a8"),
        ("\uac01", "\uac00\u11a8"),
        ("\u1e69", "s\u0307\u0323"),
        ("\u00e9\u0334", "e\u0334\u0301"),
        ("\u8c48", "\uf900"),
    ],
    ids=ascii,
)
def test_two_keys_that_look_alike_are_shown_apart(pair: tuple[str, str]) -> None:
    """Canonically equivalent texts (UAX 15) are drawn alike, and a handler tells them apart."""
    one, other = (pieces(f"pay{each}ee") for each in pair)
    assert one == (Piece(f"pay{pair[0]}ee"),) or any(each.name for each in one)
    assert any(each.name for each in other)


def test_marks_that_pile_up_over_other_lines_are_named() -> None:
    shown = pieces("z" + "\u0335" * 40)
    assert shown[0] == Piece("z" + "\u0335" * MAX_MARKS)
    assert [each.text for each in shown[1:]] == ["U+0335"] * (40 - MAX_MARKS)


def test_a_line_end_before_a_word_is_no_letter_of_it() -> None:
    """A warning that is often wrong is not read."""
    assert alphabets("a\nМосква\tи") == ()
    assert alphabets("a\nМoсква") == ("CYRILLIC", "LATIN")


def test_no_argument_is_out_of_sight_above_the_button() -> None:
    """Nothing scrolls in a box of its own: whoever comes to the button has passed every argument."""
    told = get(Bank(), "/style.css").body.decode()
    (box,) = [line for line in told.splitlines() if line.startswith("pre {")]
    assert "height" not in box
    assert "overflow:" not in box
    assert "pre bdi { background: var(--string); }" in told


def printed(value: Json) -> str:
    console = Console(file=io.StringIO(), markup=False, emoji=False, highlight=False, width=40)
    told: dict[str, Any] = {"id": "i", "arguments": value}
    command._show(console, told)  # pyright: ignore[reportPrivateUsage]  # what a terminal is sent
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_string_from_right_to_left_draws_nothing_along_in_a_terminal() -> None:
    shown = printed({"\u05d0": "\u0627", "plain": "\u0661"})
    assert '\u2068"\u05d0"\u2069: \u2068"\u0627"\u2069' in shown
    assert '"plain": \u2068"\u0661"\u2069' in shown


def test_no_argument_speaks_to_the_terminal() -> None:
    shown = printed({"a": "\x1b[2J\x9b2J\x7f\x85\u202e\u2066\u2028"})
    assert all(each == "\n" or each.isprintable() for each in shown)


def test_a_string_stands_out_from_what_imitates_its_end() -> None:
    part = segments("a\u2033, \u2033amount\u2033: 1")
    text: Text = command._plain(part)  # pyright: ignore[reportPrivateUsage]  # as above
    assert {str(each.style) for each in text.spans} == {"cyan"}


def test_what_a_client_says_of_an_address_answers_no_question_of_the_handler() -> None:
    """The client shows its person the address; its `accept` must not agree to what the handler asks next."""

    async def scene() -> None:
        shop = Shop(confirming={"where": "https://shop.example/{id}"})
        live, can = Live(shop.app()), ASKABLE

        def sent(**more: Any) -> tuple[list[tuple[str, str]], bytes]:
            return request(
                MODERN, "tools/call", "ag", capabilities=can, name="asks", arguments=dict(CALL), **more
            )

        first, second = [(await live.result(sent()))["inputRequests"] for _ in range(2)]
        assert first == second
        (key,) = first
        assert first[key]["params"]["url"].endswith(key.split()[-1])
        assert IDENT.fullmatch(key.split()[-1])

    play(scene())


# run with less than one approval each


def test_one_approval_is_no_licence_to_begin_for_ever() -> None:
    """A handler runs up to its question in every round; a client that never answers has it run again."""
    shop = Shop()
    live, can = Live(shop.app()), FORMS

    async def scene() -> None:
        sent = request(MODERN, "tools/call", "ag", capabilities=can, name="asks", arguments=dict(CALL))
        told = await live.result(sent)
        async with Open(live.app, shop.clock) as running:
            await approve(running, ident_in(text(told)))
            for _ in range(ROUNDS):
                assert (await live.result(sent))["inputRequests"].keys() == {"sure"}
            assert ident_in(text(await live.result(sent))) != ident_in(text(told))

    play(scene())
    assert shop.ran == ["asks"] * ROUNDS


# too much


def test_a_page_shows_what_is_long_or_says_that_it_does_not() -> None:
    bank = Bank()
    ident = bank.ask(to="bob", note="n" * (MAX_BYTES - 100))
    assert post(bank, ident, form(get(bank, f"/{ident}"))).status == 303
    for note in ("n" * MAX_BYTES, "n" * 1_048_000, "\u00ad" * 400_000):
        ident = bank.ask(to="bob", note=note)
        shown = get(bank, f"/{ident}")
        assert (shown.status, b"cannot be approved here" in shown.body) == (200, True)
        assert b'value="approve"' not in shown.body
        assert len(shown.body) < 4_000
        assert post(bank, ident, {"decision": "reject"}).status == 303


def test_arguments_as_deep_as_a_body_may_be_are_shown_and_approved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bank_module, "Transfer", Deep)
    bank = Bank()
    ident = bank.ask(to="bob", note=nested(Limits().max_depth - 1))
    assert post(bank, ident, form(get(bank, f"/{ident}"))).status == 303


def test_the_memory_of_what_waits_is_bounded_by_its_bytes() -> None:
    store = MemoryConfirmationStore(max_bytes=3_000)
    shop = Shop(store)

    async def using(running: Running) -> None:
        for amount in range(2):
            code_of(await call(running, sent={**CALL, "amount": amount, "note": "n" * 1_000}))
        assert code_of(await call(running, sent={**CALL, "note": "n" * 1_000})) == FAILED
        assert code_of(await call(running, sent={**CALL, "note": "n" * 100})) == PENDING
        shop.now = NOON + TTL
        assert code_of(await call(running, sent={**CALL, "note": "n" * 2_000})) == PENDING
        assert code_of(await call(running, sent={**CALL, "note": "n" * 2_001})) == FAILED

    within(shop, using)


# hidden from view


def test_nobody_fills_the_page_alone() -> None:
    bank = Bank()
    first = bank.ask(to="ann", note="the one that matters")
    bank.later(1)

    async def flood() -> None:
        for amount in range(100):
            outcome = await bank.running.invoke(FLOOD, "transfer", {"to": "x", "amount": amount})
            assert isinstance(outcome, Unconfirmed)

    asyncio.run(flood())
    page = get(bank).body
    assert first.encode() in page
    assert page.count(b"<li>") == 100


def test_no_row_is_judged_for_a_person_whom_nothing_permits() -> None:
    reads: list[str] = []

    class Counting(MemoryConfirmationStore):
        async def read(self, ident: str, *, sealed: bool = False) -> Any:
            reads.append(ident)
            return await super().read(ident, sealed=sealed)

    async def using(running: Running) -> None:
        for amount in range(20):
            await call(running, sent={**CALL, "amount": amount})
        assert await confirmations_for(running, HELPLESS) == []
        assert reads == []
        assert len(await confirmations_for(running, BOSS)) == 20

    within(Shop(Counting()), using)


def test_nobody_can_ask_for_the_row_that_stands_in_for_none() -> None:
    assert IDENT.fullmatch(NOBODYS.ident) is None
