"""What is asked of a mutant of the inbox: its tests, without a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from nonsuch.adapters.edge import inboxes

from ..adapters.http import test_inbox as pages
from ..adapters.http import test_plain_text as plain
from ..adapters.http.bank import Bank
from ..adapters.mcp import test_deciding as deciding
from .inbox_table import LED, PAGES, SEEN

_OTHERS: Final[tuple[dict[str, str], ...]] = (
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "same-origin", "origin": "https://evil.example"},
    {"sec-fetch-site": "cross-site"},
    {"origin": f"http://{pages.HOST}.evil.example"},
    {},
)


def _pages() -> Iterator[None]:
    inboxes._draw.cache_clear()  # pyright: ignore[reportPrivateUsage]  # what is kept was made by the code before
    for headers in _OTHERS:
        pages.test_no_other_page_decides(Bank(), dict(headers))
        yield
    for test in (
        pages.test_what_waits_is_listed_shown_approved_and_run_once,
        pages.test_what_has_lapsed_offers_no_decision,
        pages.test_a_form_of_other_arguments_approves_nothing,
        pages.test_nobody_and_no_agent_comes_in,
        pages.test_a_foreign_host_is_answered_nothing,
        pages.test_nothing_of_a_caller_is_markup,
        pages.test_every_page_is_kept_by_nobody_and_runs_nothing,
    ):
        test(Bank())
        yield


def _seen() -> Iterator[None]:
    for char in "\u202e\u200b\u3164\ufe0f":
        plain.test_a_character_that_shows_nothing_is_named(char)
        yield
    plain.test_each_string_stands_apart()
    yield


def _led() -> Iterator[None]:
    deciding.test_what_the_client_answers_decides_nothing("accept")
    yield
    for where in ("the desk", "javascript:alert(1)//{id}"):
        deciding.test_what_is_no_address_is_told_in_words(where)
        yield
    for can in deciding.KNOWS:
        deciding.test_a_client_that_opens_nothing_is_told_in_words(can)
        yield


INBOX_PROPERTIES: Final[tuple[tuple[str, Callable[[], Iterator[None]]], ...]] = (
    (PAGES, _pages),
    (SEEN, _seen),
    (LED, _led),
)
