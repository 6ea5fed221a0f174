"""Hosts and origins that are listed: what could never match, or would let any page in, is refused at boot."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nonsuch import BootError, Registry, define_app_mcp
from nonsuch.adapters.door import Door
from nonsuch.adapters.wire import Head

HOSTS = ("api.example", "API.example", "api.example:8000", "a_b.internal", "192.0.2.1:80", "[::1]:9000", "a")
ORIGINS = ("https://app.example", "http://10.0.0.1:3000", "app://obsidian.md", "chrome-extension://abcdef")
NO_HOSTS = ("", "*", "*.example", "https://api.example", "api.example/", "a b", ".example", "example.", "a:b")
NO_ORIGINS = (
    "",
    "*",
    "null",
    "app.example",
    "https://app.example/",
    "https://App.example",
    "https://*.example",
)


def faults(hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> list[str]:
    """What boot says of them."""
    try:
        define_app_mcp(Registry(), name="x", allowed_hosts=hosts, allowed_origins=origins)
    except BootError as refusal:
        return [each.cause for each in refusal.faults if each.code == "X_DECLARATION_INVALID"]
    return []


def test_what_clients_send_may_be_listed() -> None:
    assert faults(HOSTS, ORIGINS) == []


@pytest.mark.parametrize("host", NO_HOSTS)
def test_what_is_no_host_is_refused_at_boot(host: str) -> None:
    assert faults([host]) == [f"`allowed_hosts` lists `{host}`, which is no host"]


@pytest.mark.parametrize("origin", NO_ORIGINS)
def test_what_is_no_origin_is_refused_at_boot(origin: str) -> None:
    """`null` is the origin of every sandboxed frame, of files and of data."""
    assert faults([], [origin]) == [f"`allowed_origins` lists `{origin}`, which is no origin"]


def test_one_text_is_no_list_of_them() -> None:
    assert faults("api.example") != []
    assert faults([], "https://app.example") != []


@pytest.mark.parametrize(
    ("host", "admitted"),
    [
        ("api.example", True),
        ("API.EXAMPLE", True),
        ("Api.Example:443", True),
        ("other.example:8000", True),
        ("Other.Example:8000", True),
        ("other.example", False),
        ("other.example:8001", False),
        ("api.example.", False),
        ("api.example@other", False),
        ("user@api.example", False),
        ("api.example, api.example", False),
        ("x." * 300 + "api.example", False),
        ("api.example:" + "0" * 600 + "80", False),
    ],
)
def test_hosts_are_compared_without_regard_to_case(host: str, *, admitted: bool) -> None:
    app = define_app_mcp(Registry(), name="x", allowed_hosts=["Api.Example", "Other.example:8000"])
    assert (app.mcp.door.refuses(Head("POST", "/mcp", {"host": host})) is None) is admitted


@pytest.mark.parametrize("origin", ["null", "", "*", "http://localhost.evil.example", "http://localhost/"])
def test_an_opaque_origin_is_a_foreign_one(origin: str) -> None:
    head = Head("POST", "/mcp", {"host": "localhost", "origin": origin})
    assert Door().refuses(head) is not None
