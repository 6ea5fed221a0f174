"""The master keys of an app: what is sealed with them for one purpose, and the keyed digests they make.

Secret, unlike what ``seal.py`` makes: nobody reads a sealed payload without its key. Knows no clock and
draws no number: a nonce arrives as a value.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12  # NIST SP 800-38D 8.2.2: drawn at random, good for 2^32 payloads of one key
TAG_BYTES: Final = 16
KEY_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,32}")
_LINE: Final = re.compile(r"([A-Za-z0-9_.-]{1,32}):([A-Za-z0-9+/=_-]+)")
_FORM: Final = 1  # the first byte of what is sealed: how the rest is laid out


class KeysRefused(ValueError):
    """Keys that cannot be used; the message names the place and never a key."""


@dataclass(frozen=True, slots=True)
class SealKey:
    """One master key of 32 bytes, and the id that what it made is told by. Raises: KeysRefused."""

    ident: str
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not KEY_ID.fullmatch(self.ident):
            raise KeysRefused("the id of a key has 1 to 32 of the characters A-Z a-z 0-9 _ . -")
        if len(self.key) != KEY_BYTES:
            raise KeysRefused(f"the key `{self.ident}` has {len(self.key)} bytes, not {KEY_BYTES}")


@dataclass(frozen=True, slots=True)
class SealKeys:
    """The master keys: the first one makes what is made from now on, all of them open what they made.

    An id is never given to another key. Raises: KeysRefused, when there is no key or an id comes twice.
    """

    keys: tuple[SealKey, ...]

    def __post_init__(self) -> None:
        idents = [each.ident for each in self.keys]
        if not idents or len(set(idents)) < len(idents):
            raise KeysRefused("there is no key, or two have one id")

    @classmethod
    def read(cls, text: str) -> SealKeys:
        """Return the keys of a text: ``id:base64`` on each line or between commas, the newest first.

        Lines that begin with ``#`` are comments. Raises: KeysRefused.
        """
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        parts = (part.strip() for line in lines for part in line.split(","))
        return cls(tuple(_key(place, part) for place, part in enumerate(filter(None, parts), 1)))

    def fingerprint(self, purpose: str, message: bytes) -> str:
        """Return the keyed digest of a message (HMAC-SHA-256, RFC 2104), with the id of today's key."""
        newest = self.keys[0]
        return f"{newest.ident}:{hmac.digest(_derived(newest, purpose), message, 'sha256').hex()}"

    def seal(self, purpose: str, nonce: bytes, bound: bytes, payload: bytes) -> bytes:
        """Return the payload encrypted (AES-256-GCM) under today's key, bound to other bytes."""
        newest, ident = self.keys[0], self.keys[0].ident.encode()
        head = bytes((_FORM, len(ident))) + ident
        return head + nonce + _cipher(newest, purpose).encrypt(nonce, payload, head + bound)

    def unseal(self, purpose: str, bound: bytes, sealed: bytes) -> bytes | None:
        """Return the payload; nothing if no key that is kept sealed these very bytes for this purpose."""
        from cryptography.exceptions import InvalidTag

        head, nonce, rest = _parted(sealed)
        key = next((each for each in self.keys if each.ident.encode() == head[2:]), None)
        if key is None or head[:1] != bytes((_FORM,)) or len(rest) < TAG_BYTES:
            return None
        try:
            return _cipher(key, purpose).decrypt(nonce, rest, head + bound)
        except InvalidTag:
            return None


def _parted(sealed: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the head (form, length of the id, id), the nonce and the rest."""
    start = 2 + (sealed[1] if len(sealed) > 1 else 0)
    return sealed[:start], sealed[start : start + NONCE_BYTES], sealed[start + NONCE_BYTES :]


def _key(place: int, part: str) -> SealKey:
    found = _LINE.fullmatch(part)
    if found is None:
        raise KeysRefused(f"key {place} is not `id:base64 of {KEY_BYTES} bytes`")
    try:
        return SealKey(found[1], base64.b64decode(found[2], altchars=b"-_" if _safe(found[2]) else None))
    except binascii.Error:
        raise KeysRefused(f"key {place} is no base64") from None


def _safe(text: str) -> bool:
    return "-" in text or "_" in text


# Imported where they are used: an app that seals nothing does not load OpenSSL.


def _derived(key: SealKey, purpose: str) -> bytes:
    """Return the key of one purpose (HKDF-SHA-256, RFC 5869): what one makes says nothing of another."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), KEY_BYTES, salt=None, info=purpose.encode()).derive(key.key)


def _cipher(key: SealKey, purpose: str) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(_derived(key, purpose))
