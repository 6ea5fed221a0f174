"""Walks a plan with the OAuth client of MCP SDK 1 or 2, whichever is installed.

A session's token is the name that its client registers under.
"""
# The checkers see the names of SDK 2, which is installed where they run.
# mypy: ignore-errors
# pyright: basic, reportAttributeAccessIssue=false, reportMissingImports=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportCallIssue=false, reportOptionalCall=false

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import mcp
from client_walk import run, take
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

try:
    from httpx2 import AsyncClient
    from mcp.shared.auth import AuthorizationCodeResult
except ImportError:
    from httpx import AsyncClient

    AuthorizationCodeResult = None

CALLBACK = "http://127.0.0.1:1/callback"


class Memory:
    """Keeps what the provider stores."""

    def __init__(self) -> None:
        self._tokens: Any = None
        self._client: Any = None

    async def get_tokens(self) -> Any:
        """Return the tokens."""
        return self._tokens

    async def set_tokens(self, tokens: Any) -> None:
        """Keep the tokens."""
        self._tokens = tokens

    async def get_client_info(self) -> Any:
        """Return the registration."""
        return self._client

    async def set_client_info(self, client_info: Any) -> None:
        """Keep the registration."""
        self._client = client_info


def provider(url: str, name: str) -> OAuthClientProvider:
    """Return a provider whose browser follows the redirect at once."""
    callback: dict[str, str] = {}

    async def redirect(address: str) -> None:
        callback.update(await asyncio.to_thread(redirected, address))

    async def called_back() -> Any:
        if AuthorizationCodeResult is None:
            return callback["code"], callback["state"]
        return AuthorizationCodeResult(**callback)

    metadata = OAuthClientMetadata(
        client_name=name, redirect_uris=[CALLBACK], token_endpoint_auth_method="none"
    )
    return OAuthClientProvider(url, metadata, Memory(), redirect, called_back)


def redirected(address: str) -> dict[str, str]:
    """Return what the authorization server says to the callback."""
    parts = urlsplit(address)
    connection = HTTPConnection(parts.netloc)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answered = connection.getresponse()
    body, location = answered.read(), answered.headers["location"]
    if location is None or not location.startswith(CALLBACK):
        raise RuntimeError(body.decode())
    return dict(parse_qsl(urlsplit(location).query))


@asynccontextmanager
async def connect(url: str, token: str, era: str) -> AsyncGenerator[Any]:
    """Open one session."""
    async with AsyncClient(
        auth=provider(url, token), timeout=60, trust_env=False, follow_redirects=True
    ) as http:
        transport = streamable_http_client(url, http_client=http)
        if hasattr(mcp, "Client"):
            async with mcp.Client(transport, mode=era) as client:
                yield client
        else:
            async with transport as (read, write, _), mcp.ClientSession(read, write) as client:
                await client.initialize()
                yield client


run(connect, take)
