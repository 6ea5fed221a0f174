"""Several endpoints side by side: each its own server, the first owns the root, no path has two owners."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from nonsuch import Agent, App, BootError, Registry, asgi, can, define_app_mcp, expose, grant, oauth, wsgi

from ..adapters.edge.environs import asked

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
AGENT: Final = Agent("agent", roles={"member"})
LIST: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
HEADERS: Final = {
    "Host": "localhost",
    "Content-Type": "application/json",
    "Accept": "application/json",
    "MCP-Protocol-Version": "2025-11-25",
}
Answer = tuple[int, Any]
Ask = Callable[[Any, str, str, str | None, bytes], Answer]


@dataclass
class Street:
    """Builds endpoints, and keeps what happened to their lifespans."""

    seen: list[str] = field(default_factory=list[str])

    def endpoint(self, name: str, path: str = "/mcp", **given: Any) -> App:
        """Return an app whose one tool and one token are named after it."""

        @asynccontextmanager
        async def lifespan() -> AsyncGenerator[str]:
            self.seen.append(f"{name} entered")
            try:
                yield name
            finally:
                self.seen.append(f"{name} left")

        registry = Registry()

        def tool() -> str:
            return name

        tool.__name__ = f"{name}Tool"
        registry.query(policy=can("street:see"), mcp=expose("See"), path=f"{name}/tool")(tool)

        def resolve(token: str) -> Agent | None:
            return AGENT if token == f"{name}-token" else None

        settings: dict[str, Any] = {
            "include": "exposed",
            "grants": [grant("member", "any")],
            "resolve_token": resolve,
            "lifespan": lifespan,
            "path": path,
            "rate_limits": None,
        }
        return define_app_mcp(registry, name=name, **{**settings, **given})

    def two(self, **given: Any) -> list[App]:
        """Return two endpoints with one authorization server each."""
        return [
            self.endpoint("one", oauth=oauth(["https://one.example.com"])),
            self.endpoint("two", "/staff/mcp", oauth=oauth(["https://two.example.com"]), **given),
        ]


def over_asgi(apps: Any, method: str, path: str, token: str | None, body: bytes = b"") -> Answer:
    """Ask over ASGI."""
    application = asgi(apps)

    async def ask() -> Answer:
        transport = httpx.ASGITransport(application)
        async with (
            application.lifespan(),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            answer = await client.request(method, path, headers=_headers(token), content=body)
            return answer.status_code, _json(answer.content)

    return asyncio.run(ask())


def over_wsgi(apps: Any, method: str, path: str, token: str | None, body: bytes = b"") -> Answer:
    """Ask over WSGI."""
    application = wsgi(apps)
    try:
        answer = asked(application, method, path, _headers(token).items(), body)
    finally:
        application.close()
    return answer.status, _json(answer.body)


def _headers(token: str | None) -> Mapping[str, str]:
    return HEADERS if token is None else {**HEADERS, "Authorization": f"Bearer {token}"}


def _json(body: bytes) -> Any:
    return json.loads(body) if body else None


@pytest.fixture(params=[over_asgi, over_wsgi], ids=["asgi", "wsgi"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Both doors must answer alike."""
    door: Ask = request.param
    return door


@pytest.mark.parametrize(
    ("path", "token", "told"),
    [
        ("/mcp", "one-token", ["oneTool"]),
        ("/mcp/", "one-token", ["oneTool"]),
        ("/staff/mcp", "two-token", ["twoTool"]),
        ("/staff/mcp/", "two-token", ["twoTool"]),
        ("/mcp", "two-token", 401),
        ("/staff/mcp", "one-token", 401),
        ("/staff", "two-token", 401),
        ("/staff", "one-token", 404),
        ("/staff/mcp/mcp", "one-token", 404),
    ],
)
def test_each_endpoint_is_a_server_of_its_own(ask: Ask, path: str, token: str, told: Any) -> None:
    status, body = ask(Street().two(), "POST", path, token, LIST)
    names = [tool["name"] for tool in body["result"]["tools"]] if status == 200 else status
    assert names == told


@pytest.mark.parametrize(
    ("path", "issuer"),
    [
        (WELL_KNOWN, "one"),
        (f"{WELL_KNOWN}/mcp", "one"),
        (f"{WELL_KNOWN}/staff/mcp", "two"),
        (f"{WELL_KNOWN}/staff", None),
        (f"{WELL_KNOWN}/", None),
    ],
)
def test_the_first_endpoint_owns_the_root_document(ask: Ask, path: str, issuer: str | None) -> None:
    status, body = ask(Street().two(), "GET", path, None, b"")
    if issuer is None:
        assert (status, body["code"]) == (404, "X_ROUTE_NOT_FOUND")
    else:
        resource = {"one": "http://localhost/mcp", "two": "http://localhost/staff/mcp"}[issuer]
        assert (status, body["resource"], body["authorization_servers"]) == (
            200,
            resource,
            [f"https://{issuer}.example.com"],
        )


def test_the_root_document_is_nobodys_where_the_first_endpoint_has_none(ask: Ask) -> None:
    street = Street()
    apps = [street.endpoint("one"), street.two()[1]]
    assert ask(apps, "GET", WELL_KNOWN, None, b"")[0] == 404
    assert ask(apps, "GET", f"{WELL_KNOWN}/staff/mcp", None, b"")[0] == 200


def test_actions_over_http_are_the_first_endpoints(ask: Ask) -> None:
    apps = Street().two()
    assert ask(apps, "GET", "/api/one/tool", "one-token", b"") == (200, "one")
    assert ask(apps, "GET", "/api/two/tool", "one-token", b"")[0] == 404
    assert ask(apps, "GET", "/api/two/tool", "two-token", b"")[0] == 401


def test_one_app_and_a_list_of_it_answer_alike(ask: Ask) -> None:
    app = Street().two()[0]
    for request in (("POST", "/mcp", "one-token", LIST), ("GET", WELL_KNOWN, None, b"")):
        assert ask(app, *request) == ask([app], *request) == ask((app,), *request)


# at boot


@pytest.mark.parametrize("door", [asgi, wsgi])
@pytest.mark.parametrize("path", ["/mcp", "mcp", "/mcp/"])
def test_two_endpoints_on_one_path_do_not_boot(door: Any, path: str) -> None:
    street = Street()
    with pytest.raises(BootError) as told:
        door([street.endpoint("one"), street.endpoint("two", "/staff"), street.endpoint("three", path)])
    (fault,) = told.value.faults
    assert (fault.code, fault.cause) == ("X_MCP_PATH_DUPLICATE", "`one` and `three` are both at `/mcp`")


@pytest.mark.parametrize("door", [asgi, wsgi])
def test_every_endpoint_that_nobody_could_enter_is_told_at_once(door: Any) -> None:
    street = Street()
    apps = [street.endpoint(name, f"/{name}", resolve_token=None) for name in ("one", "two")]
    with pytest.raises(BootError) as told:
        door([*apps, street.endpoint("three")])
    assert [(fault.code, fault.cause) for fault in told.value.faults] == [
        ("X_MCP_APP_UNMOUNTED", "`one` has no `resolve_token`"),
        ("X_MCP_APP_UNMOUNTED", "`two` has no `resolve_token`"),
    ]


@pytest.mark.parametrize("door", [asgi, wsgi])
def test_no_endpoint_at_all_does_not_boot(door: Any) -> None:
    with pytest.raises(BootError, match="there is no app to serve"):
        door([])


# their lifespans


@pytest.mark.parametrize("over", [over_asgi, over_wsgi])
def test_lifespans_are_entered_in_order_and_left_in_the_other(over: Ask) -> None:
    street = Street()
    over(street.two(), "POST", "/staff/mcp", "two-token", LIST)
    assert street.seen == ["one entered", "two entered", "two left", "one left"]


def test_a_lifespan_that_fails_leaves_those_before_it() -> None:
    @asynccontextmanager
    async def failing() -> AsyncGenerator[None]:
        raise OSError("no database")
        yield

    street = Street()
    apps = street.two(lifespan=failing)
    with pytest.raises(OSError, match="no database"):
        over_asgi(apps, "POST", "/mcp", "one-token", LIST)
    assert over_wsgi(apps, "POST", "/mcp", "one-token", LIST)[0] == 503
    assert street.seen == ["one entered", "one left"] * 2


def test_subscriptions_of_every_endpoint_end_with_the_server() -> None:
    apps = Street().two()
    application = asgi(apps)

    async def serve() -> list[bool]:
        async with application.lifespan():
            return [app.notify.closed for app in apps]

    assert asyncio.run(serve()) == [False, False]
    assert [app.notify.closed for app in apps] == [True, True]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")
def test_a_hangup_reloads_the_policies_of_every_endpoint(tmp_path: Path) -> None:
    street = Street()
    apps = [street.endpoint(name, f"/{name}", policies_dir=tmp_path) for name in ("one", "two")]
    before = [app.kernel.judge for app in apps]

    async def serve() -> None:
        async with asgi(apps, reload="signal").lifespan():
            os.kill(os.getpid(), signal.SIGHUP)
            async with asyncio.timeout(10):
                while any(app.kernel.judge is old for app, old in zip(apps, before, strict=True)):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    asyncio.run(serve())
