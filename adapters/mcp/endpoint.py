"""One MCP endpoint over one kernel, and one request to it. Values that every method shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pydantic_core import to_json

from ...kernel.declare import Icon
from ...kernel.errors import ErrorAudience, Refusal, refused
from ...kernel.gates import Kernel
from ...kernel.meta import catalog_of
from ...kernel.meta_text import MetaResource
from ...kernel.model import Principal
from ...kernel.seal import Seal
from ...kernel.strict_json import Json
from ...kernel.values import value
from ...kernel.view import View
from ..door import Door
from ..wire import Head, Reply
from . import envelope
from .describe import Listing, constant_tools, picture
from .envelope import Id, Message
from .exchange import Exchange
from .oauth import Protected
from .paging import Pages
from .revisions import INVALID_PARAMS, MODERN

MAX_URIS: Final = 1_000
TTL_MS: Final = 0
CACHE: Final = b',"ttlMs":%d,"cacheScope":"private"' % TTL_MS
INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
Instructions = str | Callable[[View], str | None] | None


@dataclass(frozen=True, slots=True)
class About:
    """What a server says of itself, the same to every caller."""

    name: str
    version: str
    title: str | None = None
    website_url: str | None = None
    icons: tuple[Icon, ...] = ()

    def info(self) -> dict[str, object]:
        """Return the server's ``Implementation``."""
        told: dict[str, object] = {"name": self.name, "version": self.version}
        if self.title is not None:
            told["title"] = self.title
        if self.website_url is not None:
            told["websiteUrl"] = self.website_url
        if self.icons:
            told["icons"] = [picture(each) for each in self.icons]
        return told


@dataclass(frozen=True, slots=True, eq=False)
class McpServer:
    """One MCP endpoint over one kernel.

    ``subscriptions`` is of how many resources one stream tells, or one connection where there are any.
    """

    kernel: Kernel
    about: About
    door: Door
    seal: Seal
    instructions: Instructions = None
    page_size: int | None = None
    protected: Protected | None = None
    subscriptions: int = MAX_URIS
    listing: Listing = field(default_factory=lambda: Listing(constant_tools()))
    pages: Pages = field(init=False)
    meta: bytes = field(init=False)

    def __post_init__(self) -> None:
        stamp = b',"_meta":{"%b":%b}' % (INFO_KEY.encode(), to_json(self.about.info()))
        object.__setattr__(self, "meta", stamp)
        object.__setattr__(self, "pages", Pages(self.seal, self.page_size))

    @property
    def audience(self) -> ErrorAudience:
        """Whose fix an error tells."""
        return self.door.audience

    def catalog(self, caller: Principal) -> tuple[MetaResource, ...] | None:
        """Return what the constant surface serves to a caller; ``None`` for a caller of the flat one."""
        return catalog_of(self.kernel.view_for(caller))


_PARAMETERS_FIX: Final = "correct the parameter that the cause names, and send the request again"
_COMPLETE: Final = b',"resultType":"complete"'


@value
class Request:
    """One request of a known caller.

    ``streams`` says whether messages can precede its answer, ``meters`` whether it is counted.
    """

    server: McpServer
    head: Head
    message: Message
    id: Id
    who: Principal
    streams: bool
    meters: bool = False

    @property
    def modern(self) -> bool:
        """Whether it speaks the newest revision."""
        return self.message.revision is MODERN

    def view(self) -> View:
        """Return what the caller may see."""
        return self.server.kernel.view_for(self.who)

    def exchange(self) -> Exchange:
        """Return the line to the client."""
        return Exchange(self.head, self.message, self.who, streams=self.streams)

    def tail(self) -> bytes:
        """Return the members that every complete result of a revision ends with."""
        return _COMPLETE + self.server.meta if self.modern else b""

    def cached(self) -> bytes:
        """Return the tail of a result that a client may keep: for this caller alone, and never for long."""
        return CACHE + _COMPLETE + self.server.meta if self.modern else b""

    def error(self, code: int, message: str, data: Json = None, *, status: int = 200) -> Reply:
        """Return a JSON-RPC error."""
        return envelope.error(self.id, self.message.revision, code, message, data, status=status)

    def refused(self, code: str, number: int) -> Reply:
        """Return a refusal in the standard words of a code."""
        told = refused(code, self.server.audience)
        return envelope.refusal(self.id, self.message.revision, number, told)

    def stale(self) -> Reply:
        """Return the refusal of a ``requestState`` that is none of this request's."""
        cause = "`requestState` is none that this server gave for this very request within the last hour"
        return self.malformed(cause, "send the request again without `requestState`")

    def malformed(self, cause: str, fix: str = _PARAMETERS_FIX) -> Reply:
        """Return the refusal of parameters that have the wrong shape, whatever they name."""
        told = Refusal("X_MCP_PROTOCOL", cause, fix)
        return envelope.refusal(self.id, self.message.revision, INVALID_PARAMS, told)
