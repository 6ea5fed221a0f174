"""What leaves the server and comes back: text that only this key's holder can have made.

Keyed, not secret: whoever holds a sealed text can read it, nobody can change it. Knows no clock.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Final

TAG_BYTES: Final = 32
MAX_SEALED_CHARS: Final = 65_536


@dataclass(frozen=True, slots=True)
class Seal:
    """A key of at least 32 bytes, and what it makes. Every purpose has a key of its own.

    ``earlier`` keys make nothing any more, and what they made is still known.
    Raises: ValueError, for a shorter key.
    """

    key: bytes = field(repr=False)
    earlier: tuple[bytes, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if any(len(key) < TAG_BYTES for key in self._keys):
            raise ValueError(f"a key that seals has at least {TAG_BYTES} bytes")

    @property
    def _keys(self) -> tuple[bytes, ...]:
        return (self.key, *self.earlier)

    def of(self, server: str) -> Seal:
        """Return the key of one server: what another one sealed with this secret opens nothing there."""
        key, *earlier = (hmac.digest(each, server.encode(), "sha256") for each in self._keys)
        return Seal(key, tuple(earlier))

    def seal(self, purpose: str, bound: bytes, payload: bytes) -> str:
        """Return the payload with a tag over it and over what it is bound to (HMAC-SHA-256, RFC 2104)."""
        sealed = _tag(self.key, purpose, bound, payload) + payload
        return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()

    def unseal(self, purpose: str, bound: bytes, text: str) -> bytes | None:
        """Return the payload, or nothing if this key did not seal exactly this text for this purpose."""
        sealed = _decoded(text)
        if sealed is None or len(sealed) < TAG_BYTES:
            return None
        payload = sealed[TAG_BYTES:]
        tags = (_tag(key, purpose, bound, payload) for key in self._keys)
        genuine = any(hmac.compare_digest(tag, sealed[:TAG_BYTES]) for tag in tags)
        return payload if genuine else None

    def digests(self, purpose: str, bound: bytes, payload: bytes) -> tuple[str, ...]:
        """Return the keyed digest of a payload, and then those that earlier keys would have made."""
        return tuple(_tag(key, purpose, bound, payload).hex() for key in self._keys)


def _tag(key: bytes, purpose: str, bound: bytes, payload: bytes) -> bytes:
    own = hmac.digest(key, purpose.encode(), "sha256")
    return hmac.digest(own, hashlib.sha256(bound).digest() + payload, "sha256")


def _decoded(text: str) -> bytes | None:
    """Decode base64url without padding; a second spelling of the same bytes is refused (RFC 4648 3.5)."""
    if len(text) > MAX_SEALED_CHARS or not text.isascii():
        return None
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return raw if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == text else None
