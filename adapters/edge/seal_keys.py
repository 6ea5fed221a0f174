"""The master keys of an app, from a file or the environment; and a new one. Seals nothing."""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path
from typing import Final

from ...kernel.confirm_seal import KEY_BYTES, KeysRefused, SealKey, SealKeys

VARIABLE: Final = "NONSUCH_SEAL_KEYS"
FILE_VARIABLE: Final = "NONSUCH_SEAL_KEYS_FILE"


def seal_keys(path: Path | str | None = None) -> SealKeys:
    """Return the keys of a file; else of the one in NONSUCH_SEAL_KEYS_FILE, else those in NONSUCH_SEAL_KEYS.

    Each line of a file, and each part between commas of the variable, is ``id:base64 of 32 random bytes``.
    The first key seals; a key that was replaced stays behind it for as long as people may want to read what
    it sealed. Raises: KeysRefused, also where there are none.
    """
    where = path if path is not None else os.environ.get(FILE_VARIABLE)
    if where is not None:
        return SealKeys.read(_text(Path(where)))
    if VARIABLE in os.environ:
        return SealKeys.read(os.environ[VARIABLE])
    raise KeysRefused(f"neither {VARIABLE} nor {FILE_VARIABLE} is set")


def are_given() -> bool:
    """Whether the environment names keys."""
    return FILE_VARIABLE in os.environ or VARIABLE in os.environ


def new_seal_key(ident: str) -> str:
    """Return a new key as a line for ``seal_keys``. Raises: KeysRefused, for an id that is none."""
    key = SealKey(ident, secrets.token_bytes(KEY_BYTES))
    return f"{key.ident}:{base64.b64encode(key.key).decode()}"


def keys_of_this_process() -> SealKeys:
    """Return a key that nobody else has and that is gone with this process."""
    return SealKeys((SealKey("process", secrets.token_bytes(KEY_BYTES)),))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as refusal:
        raise KeysRefused(f"`{path}` cannot be read: {type(refusal).__name__}") from None
