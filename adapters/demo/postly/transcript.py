"""A tour of the running server with the official Python MCP client, as three callers; every step is asserted.

Reads the database beside the server to show what changed. Knows nothing of the kernel.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from ...edge.extras import require
from . import queries
from .db import Db, back_to_draft
from .tokens import Tokens

if TYPE_CHECKING:
    from mcp import Client

DRAFT: Final = "post-2"
PUBLISHED: Final = "post-1"
FOREIGN: Final = "post-9"
ABSENT: Final = "post-0"
REFUND: Final = {"orderId": "order-2", "amountMinor": 1}
_ORG: Final = "acme"
_AUDIT_SECONDS: Final = 5.0


class TourFailed(Exception):
    """Something did not come out as it must."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client was told: a protocol error, or a result that may be an error for the model."""

    code: int | None
    text: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_error: bool = False

    def without(self, name: str) -> Answer:
        """Return the same answer with a name taken out, to compare it with another's."""
        return Answer(self.code, self.text.replace(name, "<name>"), self.data, self.is_error)


class AuditTail(logging.Handler):
    """Keeps the audit lines that pass while the tour runs."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        self.lines.append(record.getMessage())


async def tour(url: str, tokens: Tokens, db: Db) -> None:
    """Print the tour. Raises `TourFailed` at the first outcome that is not the expected one."""
    await back_to_draft(db, _ORG, DRAFT)
    with _audited() as tail:
        async with (
            _connected(url, tokens.by_person["vera"]) as vera,
            _connected(url, tokens.by_person["eli"]) as eli,
            _connected(url, tokens.by_person["edda"]) as edda,
        ):
            print(f"postly at {url}, MCP {edda.protocol_version}, PostgreSQL {await _version(db)}")
            failure = await _walked((vera, eli, edda), db, url, tokens)
        if failure is not None:
            raise failure
        await _audit(tail)


async def _walked(
    clients: tuple[Client, Client, Client], db: Db, url: str, tokens: Tokens
) -> TourFailed | None:
    """Return a failure instead of raising it: the client's task groups would wrap it."""
    vera, eli, edda = clients
    try:
        await _lists(vera, eli, edda)
        await _hidden(vera)
        await _scope(eli, db)
        await _policy(edda, db)
        await _tenants(edda)
        await _success(edda, db)
        await _confirmation(url, edda, tokens.of_people["ada"])
    except TourFailed as failure:
        return failure
    return None


# The steps.


async def _lists(vera: Client, eli: Client, edda: Client) -> None:
    _title("1. tools/list: each caller has a catalog of their own")
    editor = ["getPost", "listOrders", "listPosts", "publishPost", "refundOrder"]
    _same("vera's tools", await _tools("vera, viewer", vera), ["getPost", "listPosts"])
    _same("eli's tools", await _tools("eli, editor whose token lacks posts:write", eli), editor)
    _same("edda's tools", await _tools("edda, editor with posts:write", edda), editor)


async def _hidden(vera: Client) -> None:
    _title("2. hidden is absent: vera calls a tool of editors, then one that nobody has")
    hidden = await _call(vera, "publishPost", {"postId": DRAFT})
    absent = await _call(vera, "noSuchTool", {"postId": DRAFT})
    _same("the answer for a hidden tool", hidden.without("publishPost"), absent.without("noSuchTool"))
    _true("a protocol error without data", hidden.code in (-32601, -32602) and not hidden.data)


async def _scope(eli: Client, db: Db) -> None:
    _title("3. scope: eli sees publishPost, his token may not use it")
    refused = await _call(eli, "publishPost", {"postId": DRAFT})
    _same("the error code", refused.code, -32600)
    _same("the code", refused.data.get("code"), "X_MCP_SCOPE_DENIED")
    _same("the scope", refused.data.get("scope"), "posts:write")
    _true("a fix that names the scope", "posts:write" in str(refused.data.get("fix")))
    _same("the row", await _row(db, DRAFT), "draft")


async def _policy(edda: Client, db: Db) -> None:
    _title("4. policy: edda publishes a post that is published already")
    before = await _row(db, PUBLISHED)
    refused = await _call(edda, "publishPost", {"postId": PUBLISHED})
    _refused(refused, "the post is published already", "choose a draft")
    _same("the row", await _row(db, PUBLISHED), before)


async def _tenants(edda: Client) -> None:
    _title("5. another organisation's post and no post are one answer")
    foreign = await _call(edda, "publishPost", {"postId": FOREIGN})
    absent = await _call(edda, "publishPost", {"postId": ABSENT})
    _refused(foreign, "", "")
    _same("the answer for a foreign row", foreign.without(FOREIGN), absent.without(ABSENT))


async def _success(edda: Client, db: Db) -> None:
    _title("6. success: edda publishes her draft")
    _same("the row before", await _row(db, DRAFT), "draft")
    done = await _call(edda, "publishPost", {"postId": DRAFT})
    _same("the outcome", (done.code, done.is_error), (None, False))
    _true("the row after", (await _row(db, DRAFT)).startswith("published at "))


async def _confirmation(url: str, edda: Client, ada: str) -> None:
    _title("7. confirmation: edda's refund waits until ada, a person, has approved it over HTTP")
    waits = await _call(edda, "refundOrder", REFUND)
    _true("a result that names the confirmation", waits.text.startswith("X_MCP_CONFIRMATION_PENDING: "))
    ident = waits.text.partition("confirmation `")[2].partition("`")[0]
    viewed = await _decide(url, ada, {"id": ident, "decision": "view"})
    _same("the arguments that ada sees", viewed.get("arguments"), REFUND)
    approval = {"id": ident, "decision": "approve", "arguments": viewed.get("arguments")}
    _same("the decision", (await _decide(url, ada, approval)).get("status"), "approved")
    done = await _call(edda, "refundOrder", REFUND)
    _same("the outcome", (done.code, done.is_error), (None, False))


async def _decide(url: str, token: str, sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """Post to the action by which people decide, and print what came of it."""
    import httpx2

    print(f"   ada: POST /api/decideConfirmation, decision {sent['decision']}")
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http:
        answer = await http.post(f"{url.removesuffix('/mcp')}/api/decideConfirmation", json=dict(sent))
    found = cast("Mapping[str, Any]", answer.json())
    print(f"   -> {found.get('status')}: {found.get('tool')} {json.dumps(found.get('arguments'))}")
    return found


_OUTCOMES: Final = [
    ("vera-agent", "publishPost", "hidden"),
    ("vera-agent", "noSuchTool", "hidden"),
    ("eli-agent", "publishPost", "scope-denied"),
    ("edda-agent", "publishPost", "policy-denied"),
    ("edda-agent", "publishPost", "policy-denied"),
    ("edda-agent", "publishPost", "policy-denied"),
    ("edda-agent", "publishPost", "ok"),
    ("edda-agent", "refundOrder", "unconfirmed"),
    ("ada", "decideConfirmation", "ok"),
    ("ada", "decideConfirmation", "ok"),
    ("edda-agent", "refundOrder", "ok"),
]


async def _audit(tail: AuditTail) -> None:
    _title("8. the audit lines of these calls, for the operator only")
    await _until(lambda: len(_calls(tail.lines)) >= len(_OUTCOMES))
    found = _calls(tail.lines)
    for line, _ in found:
        print(f"   {line}")
    told = [(event.get("caller"), event.get("tool"), event.get("outcome")) for _, event in found]
    _same("the audited outcomes", told, _OUTCOMES)
    _true("no argument in the audit", not any(DRAFT in line for line, _ in found))


def _calls(lines: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
    read = [(line, cast("Mapping[str, Any]", json.loads(line))) for line in lines]
    return [(line, event) for line, event in read if event.get("kind") == "tool-call"]


# The client.


@asynccontextmanager
async def _connected(url: str, token: str) -> AsyncGenerator[Client]:
    require("mcp", "mcp>=2.3,<3")
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def _tools(who: str, client: Client) -> list[str]:
    names = sorted(tool.name for tool in (await client.list_tools()).tools)
    print(f"   {who}: {', '.join(names)}")
    return names


async def _call(client: Client, name: str, arguments: dict[str, Any]) -> Answer:
    """Call a tool and print what the client was told."""
    print(f"   {name} {json.dumps(arguments)}")
    answer = await _asked(client, name, arguments)
    head = str(answer.code) if answer.code is not None else "isError" if answer.is_error else "ok"
    for line in f"{head} {answer.text}".splitlines():
        print(f"   -> {line}")
    if answer.data:
        print(f"   -> code {answer.data.get('code')}, scope {answer.data.get('scope')}")
        print(f"   -> fix: {answer.data.get('fix')}")
    return answer


async def _asked(client: Client, name: str, arguments: dict[str, Any]) -> Answer:
    from mcp import MCPError
    from mcp.types import TextContent

    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        return Answer(error.code, error.message, cast("Mapping[str, Any]", error.data or {}))
    text = "\n".join(each.text for each in result.content if isinstance(each, TextContent))
    return Answer(None, text, is_error=result.is_error)


# The database and the audit, seen from outside the server.


async def _row(db: Db, post: str) -> str:
    """Print and return the state of a post's row."""
    row = await queries.post(db, _ORG, post)
    if row is None:
        state = "absent"
    else:
        state = row.status if row.publishedAt is None else f"published at {row.publishedAt.isoformat()}"
    print(f"   {post} in the database: {state}")
    return state


async def _version(db: Db) -> str:
    async with db.transaction() as connection:
        number = connection.info.server_version
    return f"{number // 10_000}.{number % 10_000}"


@contextmanager
def _audited() -> Generator[AuditTail]:
    log, tail = logging.getLogger("nonsuch.audit"), AuditTail()
    level = log.level
    log.addHandler(tail)
    log.setLevel(logging.INFO)
    try:
        yield tail
    finally:
        log.removeHandler(tail)
        log.setLevel(level)


async def _until(done: Callable[[], bool]) -> None:
    """Wait a little: an event is audited after its answer has left."""
    end = asyncio.get_running_loop().time() + _AUDIT_SECONDS
    while not done() and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110  a log has no event
        await asyncio.sleep(0.01)


# What must hold.


def _title(text: str) -> None:
    print(f"\n{text}")


def _refused(answer: Answer, cause: str, fix: str) -> None:
    _true("a result that the model reads as an error", answer.code is None and answer.is_error)
    _true(
        "the code X_FORBIDDEN with its cause",
        answer.text.startswith("X_FORBIDDEN: ") and cause in answer.text,
    )
    _true("a fix", f"\nfix: {fix}" in answer.text)


def _same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise TourFailed(f"{what}: expected {expected!r}, found {found!r}")


def _true(what: str, holds: bool) -> None:
    if not holds:
        raise TourFailed(f"{what}: missing")
