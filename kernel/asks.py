"""What a handler says to its client and asks of it, and what a client answers: values, in no spelling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, assert_never

from pydantic import BaseModel

from .content import Message
from .strict_json import Json

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: Final[tuple[Level, ...]] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
Capability = Literal["elicitation", "elicitation.url", "sampling", "roots"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a request is: ``done`` of ``total`` (unknown when ``None``), in units of the handler's own."""

    done: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Logged:
    """One log message for the client, never for the server's own log."""

    level: Level
    data: Json
    logger: str | None = None


@dataclass(frozen=True, slots=True)
class Elicit:
    """Ask the person at the client for a form.

    ``schema`` is a model with plain fields (text, numbers, booleans, choices), or such a JSON Schema.
    """

    message: str
    schema: type[BaseModel] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ElicitUrl:
    """Ask the person at the client to visit an address, for what no client should see."""

    message: str
    url: str


@dataclass(frozen=True, slots=True)
class Sample:
    """Ask the client's model for one message. ``max_tokens`` bounds it."""

    messages: Sequence[Message]
    max_tokens: int
    system_prompt: str | None = None
    temperature: float | None = None
    stop_sequences: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ListRoots:
    """Ask the client which directories it works on."""


Ask = Elicit | ElicitUrl | Sample | ListRoots


@dataclass(frozen=True, slots=True)
class Elicited:
    """The person's answer; ``content`` satisfies the schema asked for when the action is ``accept``."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class Sampled:
    """The model's message: its role, its content blocks as the client sent them, the model's name."""

    role: str
    content: Json
    model: str


@dataclass(frozen=True, slots=True)
class Root:
    """One directory of the client's."""

    uri: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Roots:
    """The client's directories."""

    roots: tuple[Root, ...]


Given = Elicited | Sampled | Roots


def needed(ask: Ask) -> Capability:
    """Return what a client must be able to do to be asked this."""
    match ask:
        case Elicit():
            return "elicitation"
        case ElicitUrl():
            return "elicitation.url"
        case Sample():
            return "sampling"
        case ListRoots():
            return "roots"
        case _:
            assert_never(ask)


class Incapable(BaseException):
    """Ends a handler that asks what its client did not declare it can be asked."""

    def __init__(self, needs: tuple[Capability, ...]) -> None:
        self.needs = needs
        super().__init__(*needs)


class RoundEnded(BaseException):
    """Ends a handler that needs its client's answers first; the client's next round runs it again.

    Not an ``Exception``, so that a handler which catches those does not catch this.
    """

    def __init__(self, asks: Mapping[str, Ask], state: Json = None) -> None:
        self.asks, self.state = dict(asks), state
        super().__init__(", ".join(asks))
