"""Facts that stand in the context of a decision, instead of a resource: what was made of the arguments.

A policy's loader that returns such a model is asked for them once something could permit the call, so what
they say, and what they cost, is nothing to a caller whom nothing permits. Knows no engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True, slots=True)
class Words:
    """Why a call is denied, in the words of its facts."""

    code: str
    cause: str
    fix: str


class Told(BaseModel):
    """What policies read of a call in ``context``, beside ``context.args``; the resource is the server.

    ``id`` names the facts and is not among them. Every field has a default. ``only`` is the one action that
    they are about, if there are policies that have to judge them.
    """

    model_config = ConfigDict(frozen=True)
    only: ClassVar[str | None] = None
    id: str = ""

    def words(self, policies: Sequence[Any]) -> Words | None:
        """Return why these policies deny, or nothing where their annotations say it."""
        del policies
        return None
