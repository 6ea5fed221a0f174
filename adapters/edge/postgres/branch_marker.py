"""What makes a database a branch: a line in its comment, made under a key, about this very database.

Opens nothing. A comment is a text that any owner of a database can write, that `pg_dumpall` carries to
other servers and that stays when a database is renamed: so the line is sealed over the server, the
database's oid and its name, and is worth nothing anywhere else.
"""

from __future__ import annotations

import hmac
import json
import re
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

_PREFIX: Final = "nonsuch branch v1 "
_SEAL: Final = re.compile("[0-9a-f]{64}")
_TEXTS: Final = ("name", "source", "created", "nonce", "seal")


@dataclass(frozen=True, slots=True)
class Place:
    """A database as its server knows it: nothing here comes from an address."""

    system: str
    oid: int
    database: str


@dataclass(frozen=True, slots=True)
class Marker:
    """What the line says: the branch's name as it was typed, what it was made from, when, and the seal."""

    name: str
    source: str
    source_oid: int
    created: str
    nonce: str
    seal: str = ""


def sealed(marker: Marker, place: Place, key: bytes) -> str:
    """Return the line that makes a place a branch."""
    held = asdict(marker) | {"seal": _seal(marker, place, key)}
    return _PREFIX + json.dumps(held)


def found(comment: str | None, place: Place, key: bytes) -> Marker | None:
    """Return what the comment of a database says of it, if this key made it for this very database."""
    marker = _read(comment or "")
    if marker is None or not hmac.compare_digest(marker.seal, _seal(marker, place, key)):
        return None
    return marker


def claims(comment: str | None) -> bool:
    """Whether a comment looks like the line of a branch; it proves nothing, and explains a refusal."""
    return (comment or "").startswith(_PREFIX)


def _seal(marker: Marker, place: Place, key: bytes) -> str:
    """INVARIANT: everything that the line says, and everything that tells this database from others."""
    bound = [_PREFIX, place.system, place.oid, place.database]
    said = [marker.name, marker.source, marker.source_oid, marker.created, marker.nonce]
    return hmac.digest(key, json.dumps([*bound, *said]).encode(), "sha256").hex()


def _read(comment: str) -> Marker | None:
    first, _, _ = comment.partition("\n")
    if not first.startswith(_PREFIX):
        return None
    try:
        held: Any = json.loads(first.removeprefix(_PREFIX))
    except (ValueError, RecursionError):
        return None
    return Marker(**cast("dict[str, Any]", held)) if _fits(held) else None


def _fits(held: object) -> bool:
    if not isinstance(held, dict):
        return False
    fields = cast("dict[str, object]", held)
    texts = [fields.get(each) for each in _TEXTS]
    whole = set(fields) == {*_TEXTS, "source_oid"} and type(fields["source_oid"]) is int
    return (
        whole and all(isinstance(each, str) for each in texts) and bool(_SEAL.fullmatch(str(fields["seal"])))
    )
