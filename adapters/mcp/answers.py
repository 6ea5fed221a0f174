"""What a client answered in the rounds of one request: each answer serves one question, once.

Knows no request and no seal. A handler runs from its start in each round, so what earlier rounds were
answered comes again, and what this round brought answers the first question that it fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...kernel.asks import Ask, Given
from ...kernel.strict_json import Json
from . import asking


class Answers:
    """The answers of earlier rounds, in the order in which they were taken, and those of this one."""

    __slots__ = ("_fresh", "_held", "_lacking", "_left")

    def __init__(self, earlier: Sequence[dict[str, Json]], fresh: Json) -> None:
        self._held, self._left = list(earlier), list(earlier)
        self._fresh = fresh if isinstance(fresh, dict) else {}
        self._lacking: Mapping[str, Ask] = {}

    def take(self, asks: Mapping[str, Ask]) -> Mapping[str, Given] | None:
        """Return the answers to one question of the handler's, or nothing where one is lacking or is none.

        Two questions under one key are two: the second is not answered by what answered the first.
        """
        for at, earlier in enumerate(self._left):
            given = _fitting(asks, earlier) if earlier.keys() == asks.keys() else None
            if given is not None:
                del self._left[at]
                return given
        given = _fitting(asks, self._fresh)
        if given is None:
            self._lacking = asks
            return None
        self._held.append({key: self._fresh[key] for key in asks})
        self._fresh = {}
        return given

    @property
    def taken(self) -> list[Json]:
        """What the next round must find again.

        Of this round's answers also those to a question that this run did not come to: tasks of a handler
        that ask side by side may take turns at being first.
        """
        unread = self._fresh if self._fresh.keys().isdisjoint(self._lacking) else {}
        return [*self._held, unread] if unread else list(self._held)


def _fitting(asks: Mapping[str, Ask], answers: Mapping[str, Json]) -> Mapping[str, Given] | None:
    given = {key: asking.given(ask, answers.get(key)) for key, ask in asks.items()}
    known = {key: answer for key, answer in given.items() if answer is not None}
    return known if len(known) == len(asks) else None
