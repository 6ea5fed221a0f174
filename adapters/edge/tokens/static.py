"""Tokens from a file that holds their digests only: whoever reads the file can use none of them."""

from __future__ import annotations

import hmac
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ....kernel.errors import BootError, Fault, fault
from ....kernel.model import Agent, Human, Principal, PrincipalInvalid
from .remembered import digest

TOKEN_BYTES: Final = 32


class Person(BaseModel):
    """Somebody for whom an agent acts."""

    model_config = ConfigDict(extra="forbid")

    id: str
    roles: frozenset[str] = frozenset()
    org: str | None = None


class Line(BaseModel):
    """One token of the file."""

    model_config = ConfigDict(extra="forbid")

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    id: str
    kind: Literal["agent", "human"] = "agent"
    roles: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    org: str | None = None
    acts_for: Person | None = None


class File(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid")

    token: list[Line] = []


class StaticTokens:
    """A resolver for ``resolve_token=``: TOML with a ``[[token]]`` each.

    ``sha256`` (64 hex digits), ``id``, ``kind`` (``agent`` unless ``human``), ``roles``, ``scopes``, ``org``,
    and for an agent ``acts_for = {id, roles, org}``.
    """

    def __init__(self, path: Path | str) -> None:
        """Raises: BootError, with every fault of the file."""
        self._path = Path(path)
        self._known = _read(self._path)

    def reload(self) -> None:
        """Read the file again; the old tokens stay if it has a fault.

        Raises: BootError.
        """
        self._known = _read(self._path)

    def __call__(self, token: str) -> Principal | None:
        """Return whose token it is. What is compared are digests, in a time that tells nothing of them."""
        asked = digest(token)
        found = self._known.get(asked)
        return found[1] if found is not None and hmac.compare_digest(found[0], asked) else None

    def __repr__(self) -> str:
        return f"StaticTokens({str(self._path)!r}, {len(self._known)} tokens)"


def new_token() -> tuple[str, str]:
    """Return a fresh token and the ``sha256`` to write into the file. The token is shown once, here."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    return token, digest(token).hex()


_Known = Mapping[bytes, tuple[bytes, Principal]]


def _read(path: Path) -> _Known:
    try:
        held = File.model_validate(tomllib.loads(path.read_text("utf-8")))
    except OSError as refusal:
        raise BootError([_invalid(path, refusal.strerror or "it cannot be read")]) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as refusal:
        raise BootError([_invalid(path, str(refusal).splitlines()[0])]) from None
    except ValidationError as refusal:
        raise BootError([_invalid(path, told) for told in _problems(refusal)]) from None
    return _principals(path, held)


def _problems(refusal: ValidationError) -> list[str]:
    """Return what is wrong, and never what stands there: that can be a token."""
    return [f"{'.'.join(str(step) for step in each['loc'])}: {each['msg']}" for each in refusal.errors()]


def _principals(path: Path, held: File) -> _Known:
    known: dict[bytes, tuple[bytes, Principal]] = {}
    faults: list[Fault] = []
    for number, line in enumerate(held.token):
        key = bytes.fromhex(line.sha256)
        if key in known:
            faults.append(_invalid(path, f"token.{number}: the digest is another token's too"))
        try:
            known[key] = (key, principal_of(line))
        except PrincipalInvalid as refusal:
            faults.append(_invalid(path, f"token.{number}: {refusal}"))
    if faults:
        raise BootError(faults)
    return known


def principal_of(line: Line) -> Principal:
    """Return the caller of a line. Raises: PrincipalInvalid."""
    if line.kind == "human":
        if line.acts_for is not None:
            raise PrincipalInvalid("a human acts for nobody else")
        return Human(line.id, roles=line.roles, org=line.org, scopes=line.scopes)
    person = line.acts_for
    behind = None if person is None else Human(person.id, roles=person.roles, org=person.org)
    return Agent(line.id, roles=line.roles, org=line.org, scopes=line.scopes, acts_for=behind)


def _invalid(path: Path, cause: str) -> Fault:
    fix = "write each token as `[[token]]` with `sha256`, `id`, `roles` and `scopes`"
    return fault("X_TOKENS_INVALID", f"the tokens of `{path.name}` cannot be used: {cause}", fix)
