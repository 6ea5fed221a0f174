"""Names as they stand in a statement -> what they name: full names, and whether it is known to only read.

Knows no tree. What neither the catalogue nor the app lists is unlisted, whatever it may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from .sql_catalog import BUILT_IN, Answer, Catalogue, Kind, Own
from .sql_facts import full_name
from .sql_families import family_of, family_of_overload

Spelt = tuple[str, ...]  # a name with the schema that the text gives it, if any
_SPREAD: Final = "unnest"  # in FROM the grammar itself makes one call for each argument of it


def _schema(names: Spelt) -> str:
    """Return what stands before the last part: a schema, nothing, or what no schema is called."""
    return ".".join(names[:-1])


@dataclass(frozen=True, slots=True)
class Resolver:
    """What names mean on one server to one app."""

    catalogue: Catalogue
    own: Own

    def full(self, kind: Kind, names: Spelt) -> Spelt:
        """Return the full names that a name may have: what the catalogue has is found first."""
        found_first = not _schema(names) and self.catalogue.built_in.has(kind, names[-1])
        return (full_name(BUILT_IN, *names),) if found_first else self.own.full(names)

    def relation(self, names: Spelt) -> Spelt:
        """Return the full names of a relation; one that is named as the system's are may be a newer one."""
        found = self.full("relations", names)
        newer = (full_name(BUILT_IN, *names),) if not _schema(names) and names[-1].startswith("pg_") else ()
        return tuple(dict.fromkeys((*newer, *found)))

    def call(self, names: Spelt, arguments: int | None) -> str | None:
        """Return the family of a called function, or nothing if it only reads."""
        family = family_of(names[-1])
        if family is not None:
            return family
        spread = names[-1] == _SPREAD and not _schema(names) and (arguments or 0) > 1
        answer = self._answer(names, 1 if spread else arguments)
        if answer == "reads" or self.own.has("functions", names):
            return None
        if answer == "volatile":
            return family_of_overload(names[-1])
        is_cast = arguments == 1 and self.lists("types", names)  # `uuid('...')` is `'...'::uuid`
        return None if is_cast else "unlisted-function"

    def _answer(self, names: Spelt, arguments: int | None) -> Answer:
        schema = self.catalogue.schemas.get(_schema(names) or BUILT_IN)
        answer: Answer = "unknown" if schema is None else schema.call(names[-1], arguments)
        if answer != "unknown" or not self.own.finds(names):
            return answer
        if names[-1] in self.catalogue.untrusted:
            return "volatile"
        return self.catalogue.trusted.call(names[-1], arguments)

    def behind_dot(self, name: str) -> str | None:
        """Return the family of ``name`` in ``(x).name``, or nothing: it may be a function or a field.

        A name that no server brings is a field, or a function of the app's own.
        """
        family = family_of(name)
        if family is not None:
            return family
        known = (self.catalogue.built_in, self.catalogue.trusted)
        harmful = name in self.catalogue.untrusted or any(each.call(name, 1) == "volatile" for each in known)
        return family_of_overload(name) if harmful else None

    def knows(self, name: str) -> bool:
        """Whether some function of that name is known."""
        known = (self.catalogue.built_in, self.catalogue.trusted)
        return (
            family_of(name) is not None
            or name in self.catalogue.untrusted
            or any(each.has("functions", name) for each in known)
        )

    def lists(self, kind: Literal["operators", "types"], names: Spelt) -> bool:
        """Whether an operator or a type is known to call nothing that may change something."""
        schema = self.catalogue.schemas.get(_schema(names) or BUILT_IN)
        if schema is not None and schema.has(kind, names[-1]):
            return True
        trusted = self.own.finds(names) and self.catalogue.trusted.has(kind, names[-1])
        return trusted or self.own.has(kind, names)
