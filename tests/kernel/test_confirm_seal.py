"""Master keys: against HKDF, HMAC and AES-GCM written out, and against every change of what was sealed."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.kernel.confirm_seal import KeysRefused, SealKey, SealKeys

OLD, NEW = SealKey("2025", bytes(range(32))), SealKey("2026", bytes(range(32, 64)))
NONCE: Final = b"twelve bytes"
KEYS: Final = SealKeys((NEW, OLD))
TEXT: Final = base64.b64encode(bytes(range(32))).decode()


def hkdf(key: bytes, purpose: str) -> bytes:
    """RFC 5869 with SHA-256, no salt, 32 bytes: one block."""
    extracted = hmac.digest(bytes(32), key, "sha256")
    return hmac.digest(extracted, purpose.encode() + b"\x01", "sha256")


def test_a_sealed_payload_is_aes_gcm_under_a_key_of_its_purpose() -> None:
    head = b"\x01\x042026"
    expected = head + NONCE + AESGCM(hkdf(NEW.key, "p")).encrypt(NONCE, b"payload", head + b"bound")
    assert KEYS.seal("p", NONCE, b"bound", b"payload") == expected


def test_a_fingerprint_is_an_hmac_under_a_key_of_its_purpose() -> None:
    expected = hmac.new(hkdf(NEW.key, "p"), b"message", hashlib.sha256).hexdigest()
    assert KEYS.fingerprint("p", b"message") == f"2026:{expected}"


@given(
    payload=st.binary(max_size=200), bound=st.binary(max_size=50), nonce=st.binary(min_size=12, max_size=12)
)
def test_what_is_sealed_comes_back(payload: bytes, bound: bytes, nonce: bytes) -> None:
    sealed = KEYS.seal("p", nonce, bound, payload)
    assert KEYS.unseal("p", bound, sealed) == payload
    assert len(payload) < 8 or payload not in sealed[6 + len(nonce) :]


def test_no_changed_byte_and_no_part_opens() -> None:
    sealed = KEYS.seal("p", NONCE, b"bound", b"payload")
    for at in range(len(sealed)):
        for flip in (1, 0x80):
            changed = sealed[:at] + bytes([sealed[at] ^ flip]) + sealed[at + 1 :]
            assert KEYS.unseal("p", b"bound", changed) is None
        assert KEYS.unseal("p", b"bound", sealed[:at]) is None
    assert KEYS.unseal("p", b"bound", sealed + b"\0") is None
    assert KEYS.unseal("p", b"bound2", sealed) is None
    assert KEYS.unseal("q", b"bound", sealed) is None


def test_a_kept_key_opens_and_makes_nothing() -> None:
    before, gone = SealKeys((OLD,)), SealKeys((NEW,))
    sealed = before.seal("p", NONCE, b"", b"payload")
    assert KEYS.unseal("p", b"", sealed) == b"payload"
    assert gone.unseal("p", b"", sealed) is None
    assert KEYS.fingerprint("p", b"m") == gone.fingerprint("p", b"m") != before.fingerprint("p", b"m")


def test_another_key_under_the_same_id_opens_nothing() -> None:
    sealed = KEYS.seal("p", NONCE, b"", b"payload")
    assert SealKeys((SealKey("2026", bytes(32)),)).unseal("p", b"", sealed) is None


def test_keys_are_read_from_lines_and_from_parts() -> None:
    url_safe = base64.urlsafe_b64encode(bytes([251] * 32)).decode()
    held = SealKeys.read(f"# the newest first\nb:{url_safe}\n\n a:{TEXT}\n")
    assert [(each.ident, each.key) for each in held.keys] == [
        ("b", bytes([251] * 32)),
        ("a", bytes(range(32))),
    ]
    assert SealKeys.read(f"b:{url_safe},a:{TEXT}") == held


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is no key, or two have one id"),
        ("# a comment", "there is no key, or two have one id"),
        (f"a:{TEXT}\na:{TEXT}", "there is no key, or two have one id"),
        (TEXT, "key 1 is not `id:base64 of 32 bytes`"),
        (f"a:{TEXT}\nspaces in it:{TEXT}", "key 2 is not `id:base64 of 32 bytes`"),
        ("a:AAA", "key 1 is no base64"),
        ("a:AAAA", "the key `a` has 3 bytes, not 32"),
    ],
)
def test_keys_that_are_none_are_refused_without_a_word_of_them(text: str, told: str) -> None:
    with pytest.raises(KeysRefused) as caught:
        SealKeys.read(text)
    assert str(caught.value) == told


def test_nothing_shows_a_key() -> None:
    assert repr(KEYS) == "SealKeys(keys=(SealKey(ident='2026'), SealKey(ident='2025')))"


def test_an_id_that_is_none_is_refused() -> None:
    for ident in ("", "x" * 33, "a b", "a:b"):
        with pytest.raises(KeysRefused):
            SealKey(ident, bytes(32))
