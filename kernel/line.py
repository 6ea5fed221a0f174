"""The line from a handler to the client of its request, as an adapter spells it. Sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .asks import Ask, Capability, Given, Logged, Progress
from .catalog import Entry
from .model import Outcome, Unfit
from .strict_json import Json
from .tasks import Ending


class TaskLine(Protocol):
    """How one call's wire spells the task that it may go on as."""

    def question(self, ask: Ask) -> Json:
        """Return a question as the client reads it in the task."""
        ...

    def understood(self, ask: Ask, answer: Json) -> Given | None:
        """Return a client's answer as a value, or nothing if it is none."""
        ...

    def ended(self, outcome: Outcome) -> Ending:
        """Return what the call itself would have been answered."""
        ...


class Line(Protocol):
    """How one request's wire spells what a handler says; made by an adapter, used by gates and edge."""

    @property
    def ends_with_client(self) -> bool:
        """Whether a client that leaves stops its request."""
        ...

    @property
    def state(self) -> Json:
        """What an earlier round of this request remembered."""
        ...

    @property
    def tasks(self) -> TaskLine | None:
        """How a task of this request is spelled; nothing, where its call cannot become one."""
        ...

    def unfit(self, entry: Entry, arguments: Mapping[str, Json]) -> Unfit | None:
        """Return what the request lacks to be one for this entry, before its arguments are judged."""
        ...

    def progress(self, said: Progress) -> bytes | None:
        """Return the message, or nothing if the client asked for none."""
        ...

    def log(self, said: Logged) -> bytes | None:
        """Return the message, or nothing if the client wants none of this level."""
        ...

    def ask(self, ident: str, ask: Ask) -> bytes | None:
        """Return a request of this id to the client, or nothing where asking ends the round."""
        ...

    def answered(self, asks: Mapping[str, Ask]) -> Mapping[str, Given] | None:
        """Return the answers to a question, if the rounds of this request brought them all.

        Asked once for each question of a run, in its order: an answer is given once.
        """
        ...

    def understood(self, ask: Ask, answer: Json) -> Given | None:
        """Return a client's answer as a value, or nothing if it is none."""
        ...

    def can(self, capability: Capability) -> bool:
        """Whether the client said that it can be asked this."""
        ...
