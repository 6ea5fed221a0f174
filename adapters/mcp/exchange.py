"""One MCP request seen as a line to its client: what its handler may say and ask, in which spelling.

Made for a request once its shape is known, before anything of the catalog is. Sends nothing itself.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Final, cast

from pydantic_core import to_json

from ...kernel.asks import LEVELS, Ask, Capability, ElicitUrl, Given, Logged, Progress
from ...kernel.catalog import Entry
from ...kernel.line import TaskLine
from ...kernel.model import Principal, Unfit, owner_key
from ...kernel.seal import MAX_SEALED_CHARS, Seal
from ...kernel.strict_json import Json, JsonRefused, loads
from ..wire import Head
from . import asking, mirror
from .answers import Answers
from .envelope import CAPABILITIES_KEY, LOG_LEVEL_KEY, TASKS_KEY, Message
from .revisions import LATEST_LEGACY, MODERN

STATE_SECONDS: Final = 3_600
NEEDS_TASKS: Final = f"extensions.{TASKS_KEY}"
_PURPOSE: Final = "nonsuch request state"


class RoundTooLong(Exception):
    """A round has more to remember than comes back."""


class Exchange:
    """A line (``kernel/line.py``) over one message.

    In revision 2026-07-28 the client says in each request what it can be asked, and asking ends the
    round. In the older ones that is said once in ``initialize``: a connection remembers it, a server
    without sessions does not, and there a question is sent wherever a stream can carry it.
    ``mirrored``: the schema of the called tool was published to the caller, with the headers it asks for.
    """

    __slots__ = (
        "_answers",
        "_done",
        "_head",
        "_message",
        "_modern",
        "_streams",
        "_who",
        "mirrored",
        "state",
        "tasks",
    )

    def __init__(self, head: Head, message: Message, who: Principal, *, streams: bool) -> None:
        self._head, self._message, self._who, self._streams = head, message, who, streams
        self._modern = message.revision is MODERN
        self._done = float("-inf")
        self._answers: Answers | None = None
        self.state: Json = None
        self.mirrored = True
        self.tasks: TaskLine | None = None

    @property
    def ends_with_client(self) -> bool:
        """Whether a client that leaves stops its request (2026-07-28, transports: it must)."""
        return self._modern

    @property
    def keeps_tasks(self) -> bool:
        """Whether the client says, in this request, that it may be answered with a task."""
        extensions = _capabilities(self._message).get("extensions")
        return self._modern and isinstance(extensions, dict) and isinstance(extensions.get(TASKS_KEY), dict)

    @property
    def opens_addresses(self) -> bool:
        """Whether the client said that it shows its person an address; a guess is none."""
        return (self._modern or self._head.connection is not None) and self.can("elicitation.url")

    # what comes before the arguments

    def unfit(self, entry: Entry, arguments: Mapping[str, Json]) -> Unfit | None:
        """Return what this request lacks: mirrored headers that agree, capabilities that the tool needs."""
        if not self._modern:
            return None
        mirrored = self.mirrored and self._head.connection is None
        cause = mirror.mismatch(entry, arguments, self._head.headers) if mirrored else None
        if cause is not None:
            return Unfit(cause)
        lacking: tuple[str, ...] = tuple(each for each in entry.needs if not self.can(each))
        if entry.task == "required" and not self.keeps_tasks:
            lacking = (*lacking, NEEDS_TASKS)
        return Unfit("the client does not declare what this tool asks of it", lacking) if lacking else None

    # what a handler says

    def progress(self, said: Progress) -> bytes | None:
        """Return a progress notification with the client's own token, if it sent one; always a step on."""
        token = _meta(self._message).get("progressToken")
        if not self._streams or isinstance(token, bool) or not isinstance(token, (str, int)):
            return None
        if not self._done < said.done < math.inf:  # what is no number is no step on
            return None
        self._done = said.done
        params: dict[str, Json] = {"progressToken": token, "progress": said.done}
        if said.total is not None and -math.inf < said.total < math.inf:  # also of whole numbers of any size
            params["total"] = said.total
        if said.message is not None:
            params["message"] = said.message
        return notification("notifications/progress", params)

    def log(self, said: Logged) -> bytes | None:
        """Return a log notification, where the client wants messages of this level."""
        known = self._head.connection
        past = "debug" if known is None else known.level
        wanted = _meta(self._message).get(LOG_LEVEL_KEY) if self._modern else past
        if not self._streams or wanted not in LEVELS or LEVELS.index(said.level) < LEVELS.index(wanted):
            return None
        params: dict[str, Json] = {"level": said.level, "data": said.data}
        if said.logger is not None:
            params["logger"] = said.logger
        return notification("notifications/message", params)

    # what a handler asks

    def can(self, capability: Capability) -> bool:
        """Whether the client can be asked this."""
        known = self._head.connection
        if not self._modern and known is None:
            old = self._message.revision is not LATEST_LEGACY
            return self._streams and not (old and capability == "elicitation.url")
        kind, _, mode = capability.partition(".")
        declared = _capabilities(self._message) if self._modern or known is None else known.capabilities
        held = declared.get(kind)
        if not isinstance(held, dict):
            return False
        return mode in held if mode else kind != "elicitation" or "form" in held or not held

    def ask(self, ident: str, ask: Ask) -> bytes | None:
        """Return the question as a request of its own; in 2026-07-28 there is no such request."""
        if self._modern:
            return None
        asked = asking.request_of(ask)
        params = asked.get("params")
        if isinstance(ask, ElicitUrl) and isinstance(params, dict):
            params["elicitationId"] = ident  # of 2025-11-25 alone
        return to_json({"jsonrpc": "2.0", "id": ident, **asked}, inf_nan_mode="null")

    def answered(self, asks: Mapping[str, Ask]) -> Mapping[str, Given] | None:
        """Return the answers to a question, if an earlier round or this one brought them all."""
        if self._answers is None:
            self._answers = Answers((), self._message.params.get("inputResponses"))
        return self._answers.take(asks)

    def understood(self, ask: Ask, answer: Json) -> Given | None:
        """Return a client's answer as a value."""
        return asking.given(ask, answer)

    # what a round leaves for the next

    def reopen(self, seal: Seal) -> bool:
        """Take up the state of an earlier round. False: this server gave none such for this request."""
        text = self._message.params.get("requestState")
        if not self._modern or text is None:
            return True
        payload = seal.unseal(_PURPOSE, self._bound(), text) if isinstance(text, str) else None
        if payload is None:
            return False
        held = cast("dict[str, Json]", loads(payload))
        earlier = cast("list[dict[str, Json]]", held.get("answers", []))
        self._answers = Answers(earlier, self._message.params.get("inputResponses"))
        self.state = held["state"]
        return cast(float, held["until"]) >= self._head.received

    def suspend(self, seal: Seal, state: Json) -> str | None:
        """Return what the next round must find, sealed to its caller, its request and an hour.

        That is the ``state`` that the handler gave now; without one it is what this round found and the
        answers so far, so that the next run comes to where this one stopped. Nothing, where there is none.

        Raises: ValueError, for what could not come back; RoundTooLong.
        """
        held: dict[str, Json] = {"state": state}
        if state is None:
            taken = [] if self._answers is None else self._answers.taken
            if self.state is None and not taken:
                return None
            held = {"state": self.state, "answers": taken}
        payload = to_json({**held, "until": self._head.received + STATE_SECONDS})
        sealed = seal.seal(_PURPOSE, self._bound(), payload)
        if len(sealed) > MAX_SEALED_CHARS:
            raise RoundTooLong
        if not _readable(payload):
            raise ValueError("the state of a round must come back as it went")
        return sealed

    def _bound(self) -> bytes:
        params = self._message.params
        asked = [params.get("name"), params.get("uri"), params.get("arguments")]
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        return f"{owner_key('', self._who)} {self._message.method} {digest}".encode()


def notification(method: str, params: Mapping[str, Json]) -> bytes:
    """Return a notification as bytes."""
    return to_json({"jsonrpc": "2.0", "method": method, "params": dict(params)}, inf_nan_mode="null")


def _readable(payload: bytes) -> bool:
    try:
        loads(payload)
    except JsonRefused:
        return False
    return True


def _meta(message: Message) -> dict[str, Json]:
    meta = message.params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _capabilities(message: Message) -> dict[str, Json]:
    held = _meta(message).get(CAPABILITIES_KEY)
    return held if isinstance(held, dict) else {}
