"""What a seal opens is what it sealed, for the same purpose and the same bound, spelled the one way it was.

The oracle spells HMAC-SHA-256 by itself, from RFC 2104.
"""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.kernel.seal import MAX_SEALED_CHARS, Seal

KEY = bytes(range(32))
SEAL = Seal(KEY)
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def keyed(key: bytes, text: bytes) -> bytes:
    """HMAC-SHA-256, spelled out."""
    block = hashlib.sha256(key).digest() if len(key) > 64 else key
    block = block.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(each ^ 0x36 for each in block) + text).digest()
    return hashlib.sha256(bytes(each ^ 0x5C for each in block) + inner).digest()


def sealed(key: bytes, purpose: str, bound: bytes, payload: bytes) -> str:
    tag = keyed(keyed(key, purpose.encode()), hashlib.sha256(bound).digest() + payload)
    return base64.urlsafe_b64encode(tag + payload).decode().rstrip("=")


@given(st.binary(min_size=32, max_size=80), st.text(), st.binary(max_size=80), st.binary(max_size=200))
def test_a_sealed_text_is_the_tag_and_the_payload(
    key: bytes, purpose: str, bound: bytes, payload: bytes
) -> None:
    text = Seal(key).seal(purpose, bound, payload)
    assert text == sealed(key, purpose, bound, payload)
    assert Seal(key).unseal(purpose, bound, text) == payload


OTHERS: dict[str, tuple[bytes, str, bytes]] = {
    "another key": (KEY[::-1], "p", b"bound"),
    "a longer key that begins alike": (KEY + b"k", "p", b"bound"),
    "another purpose": (KEY, "q", b"bound"),
    "a purpose that begins alike": (KEY, "p ", b"bound"),
    "another bound": (KEY, "p", b"found"),
    "no bound": (KEY, "p", b""),
    "purpose and bound exchanged": (KEY, "bound", b"p"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_else_opens_it(name: str) -> None:
    key, purpose, bound = OTHERS[name]
    assert Seal(key).unseal(purpose, bound, SEAL.seal("p", b"bound", b"payload")) is None


def test_what_an_earlier_key_made_is_known_and_it_makes_nothing_any_more() -> None:
    old, new = Seal(KEY), Seal(KEY[::-1], (KEY, b"k" * 32))
    text = old.seal("p", b"bound", b"payload")
    assert new.unseal("p", b"bound", text) == b"payload"
    assert new.unseal("p", b"found", text) is None
    assert Seal(KEY[::-1]).unseal("p", b"bound", text) is None
    assert old.unseal("p", b"bound", new.seal("p", b"bound", b"payload")) is None
    assert new.seal("p", b"bound", b"payload") == sealed(KEY[::-1], "p", b"bound", b"payload")


def test_every_server_has_a_key_of_its_own() -> None:
    one, two = Seal(KEY, (KEY[::-1],)).of("one"), Seal(KEY, (KEY[::-1],)).of("two")
    assert one == Seal(keyed(KEY, b"one"), (keyed(KEY[::-1], b"one"),))
    assert two.unseal("p", b"bound", one.seal("p", b"bound", b"payload")) is None


@given(st.text(), st.binary(max_size=20), st.binary(max_size=20))
def test_a_digest_is_the_tag_by_each_key(purpose: str, bound: bytes, payload: bytes) -> None:
    text = hashlib.sha256(bound).digest() + payload
    tags = tuple(keyed(keyed(each, purpose.encode()), text).hex() for each in (KEY, KEY[::-1]))
    assert Seal(KEY, (KEY[::-1],)).digests(purpose, bound, payload) == tags


def test_what_it_is_bound_to_does_not_run_into_the_payload() -> None:
    """Whoever holds a text cannot move its payload's beginning into what it is bound to."""
    text = SEAL.seal("p", b"a", b"bc")
    tag = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))[:32]
    moved = base64.urlsafe_b64encode(tag + b"c").decode().rstrip("=")
    assert SEAL.unseal("p", b"ab", moved) is None
    assert SEAL.unseal("p", b"ab", text) is None


@pytest.mark.parametrize("payload", [b"", b"x", b"xy", b"xyz", b'{"state":null}'])
def test_every_character_counts(payload: bytes) -> None:
    text = SEAL.seal("p", b"bound", payload)
    for at in range(len(text)):
        for other in ("A" if text[at] != "A" else "B", LETTERS[(LETTERS.index(text[at]) + 1) % 64]):
            assert SEAL.unseal("p", b"bound", text[:at] + other + text[at + 1 :]) is None
        assert SEAL.unseal("p", b"bound", text[:at]) is None
        assert SEAL.unseal("p", b"bound", text[:at] + text[at + 1 :]) is None


def spellings(text: str) -> dict[str, str]:
    """Texts that a careless decoder reads as the same bytes."""
    stray = text[:-1] + LETTERS[LETTERS.index(text[-1]) ^ 1]
    return {
        "padded": text + "=",
        "padded too much": text + "====",
        "with bytes behind": text + "-TAMPERED",
        "with a line break": text + "\n",
        "with a line break inside": text[:9] + "\n" + text[9:],
        "with a blank before": " " + text,
        "with a mark that is no letter": text[:9] + "!" + text[9:],
        "with stray bits": stray,
        "with a letter beyond ASCII": text[:-1] + "\u00e9",
        "with half a surrogate pair": text + "\ud800",
        "in the other alphabet": text.replace("-", "+").replace("_", "/"),
        "in full width": "".join(chr(ord(each) + 0xFEE0) for each in text),
    }


@pytest.mark.parametrize("name", spellings("A" * 8))
def test_a_second_spelling_is_refused(name: str) -> None:
    text = next(
        text
        for text in (SEAL.seal("p", b"bound", bytes([at, at])) for at in range(256))
        if "-" in text and "_" in text and not text.endswith("A")
    )
    assert SEAL.unseal("p", b"bound", spellings(text)[name]) is None


@pytest.mark.parametrize("text", ["", "A", "AA", "AAA", "AAAA", "A" * 42, "A" * 43, "=" * 44, "\0" * 50])
def test_what_nobody_sealed_is_nothing(text: str) -> None:
    assert SEAL.unseal("p", b"bound", text) is None


def test_a_text_beyond_the_limit_is_not_read() -> None:
    most = MAX_SEALED_CHARS * 3 // 4 - 32
    fits, larger = (SEAL.seal("p", b"b", b"x" * size) for size in (most, most + 1))
    assert (len(fits), len(larger)) == (MAX_SEALED_CHARS, MAX_SEALED_CHARS + 2)
    assert SEAL.unseal("p", b"b", fits) == b"x" * most
    assert SEAL.unseal("p", b"b", larger) is None


@pytest.mark.parametrize("size", [0, 1, 31])
def test_a_short_key_seals_nothing(size: int) -> None:
    with pytest.raises(ValueError, match="a key that seals has at least 32 bytes"):
        Seal(b"k" * size)
    with pytest.raises(ValueError, match="a key that seals has at least 32 bytes"):
        Seal(KEY, (KEY, b"k" * size))


def test_a_seal_does_not_show_its_key() -> None:
    assert repr(SEAL) == "Seal()"
