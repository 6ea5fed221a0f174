"""The keys of an audit chain, as an operator gives them: in the environment, or in a file that it names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...kernel.chain import ChainKeys
from ...kernel.errors import BootError, fault

KEYS: Final = "NONSUCH_AUDIT_KEYS"
KEYS_FILE: Final = "NONSUCH_AUDIT_KEYS_FILE"
_CODE: Final = "X_AUDIT_KEYS_INVALID"
_SECRET: Final = re.compile(r"(?:[0-9a-fA-F]{2}){32,}")


def audit_keys(file: Path | str | None = None) -> Mapping[str, bytes]:
    """Return keys by id, in the order of their use: the last one is the one that makes records.

    They stand as ``id:hex`` behind spaces, commas or line ends, in ``file``, else in the file that the
    environment names in ``NONSUCH_AUDIT_KEYS_FILE``, else in ``NONSUCH_AUDIT_KEYS``. The hex is of 32 random
    bytes or more (``openssl rand -hex 32``).

    Raises: BootError; it repeats no key.
    """
    named = file or os.environ.get(KEYS_FILE)
    if named:
        try:
            text, where = Path(named).read_text("utf-8"), f"`{named}`"
        except (OSError, ValueError) as refusal:
            cause = getattr(refusal, "strerror", None) or "it is no text"
            shown = "the file that was named" if _SECRET.search(str(named)) else f"`{named}`"
            raise BootError([fault(_CODE, f"{shown} holds no keys: {cause}")]) from None
    elif KEYS in os.environ:
        text, where = os.environ[KEYS], f"`{KEYS}`"
    else:
        cause = f"neither `{KEYS_FILE}` nor `{KEYS}` is in the environment"
        raise BootError([fault(_CODE, cause)])
    return _parsed(text, where)


def _parsed(text: str, where: str) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    for place, each in enumerate(re.split(r"[\s,]+", text.strip()), 1):
        name, _, secret = each.partition(":")
        if not _SECRET.fullmatch(secret):  # never repeated: it may be a key without an id
            raise BootError([fault(_CODE, f"key {place} in {where} is not written as `id:hex`")])
        if name in found:
            raise BootError([fault(_CODE, f"key {place} in {where} has the id of an earlier one")])
        found[name] = bytes.fromhex(secret)
    return checked_keys(found, where).held


def checked_keys(held: Mapping[str, bytes], where: str = "`keys`") -> ChainKeys:
    """Return keys that a chain can use. Raises: BootError."""
    try:
        return ChainKeys(held)
    except ValueError as refusal:
        raise BootError([fault(_CODE, f"{where}: {refusal}")]) from None
