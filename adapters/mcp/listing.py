"""The four lists: what the caller sees, page by page."""

from __future__ import annotations

from typing import Final

from pydantic_core import to_json

from ..wire import Reply
from .describe import Listed, array
from .endpoint import Request
from .envelope import result

_NO_CURSOR: Final = "`cursor` is none that this list gave to this caller"
_MEMBER: Final = {
    "tools": b"tools",
    "resources": b"resources",
    "resourceTemplates": b"resourceTemplates",
    "prompts": b"prompts",
}


def listed(request: Request, kind: Listed) -> Reply:
    """Return one page of a list."""
    server, table = request.server, request.view().table
    cursor = request.message.params.get("cursor")
    if cursor is None and server.page_size is None and "cursor" not in request.message.params:
        return result(request.id, _page(kind, server.listing.whole(table, kind), b"", request))
    members = server.listing.members(table, kind)
    null = cursor is None and "cursor" in request.message.params
    page = None if null else server.pages.page(request.who, kind, list(members), cursor)
    if page is None:
        return request.malformed(_NO_CURSOR, "ask for the list from its beginning, without `cursor`")
    more = b"" if page.cursor is None else b',"nextCursor":%b' % to_json(page.cursor)
    return result(request.id, _page(kind, array(members[name] for name in page.names), more, request))


def _page(kind: Listed, members: bytes, more: bytes, request: Request) -> bytes:
    return b'{"%b":%b%b%b}' % (_MEMBER[kind], members, more, request.cached())
