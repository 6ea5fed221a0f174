"""The protected resource's metadata (RFC 9728), and the challenges that lead to it.

Says which authorization servers issue tokens for this endpoint; issues and checks none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from pydantic_core import to_json

from ...kernel.catalog import Catalog
from ...kernel.declare import EVERYONE
from ...kernel.errors import Fault, fault
from ..wire import Head, Reply

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class OAuth:
    """Where tokens for this endpoint come from.

    ``resource`` is the endpoint's address exactly as its users type it; without one it is the request's
    own origin and the endpoint's path. ``scopes_supported`` is derived unless given: the scopes of tools
    that everybody sees, because the document is read without a token.
    """

    authorization_servers: tuple[str, ...]
    resource: str | None = None
    scopes_supported: tuple[str, ...] | None = None
    name: str | None = None
    documentation: str | None = None


def oauth(
    authorization_servers: Iterable[str],
    *,
    resource: str | None = None,
    scopes_supported: Iterable[str] | None = None,
    name: str | None = None,
    documentation: str | None = None,
) -> OAuth:
    """Return the declaration for ``define_app_mcp(oauth=...)``."""
    listed = None if scopes_supported is None else tuple(scopes_supported)
    return OAuth(tuple(authorization_servers), resource, listed, name, documentation)


def faults(declared: OAuth, catalog: Catalog) -> Iterator[Fault]:
    """Yield what is wrong with a declaration."""
    if not declared.authorization_servers:
        yield _invalid("no authorization server is named")
    for issuer in declared.authorization_servers:
        if not secure(issuer) or urlsplit(issuer).query or urlsplit(issuer).fragment:
            yield _invalid(f"the issuer `{issuer[:120]}` is no https address")
    if declared.resource is not None and (
        not secure(declared.resource) or urlsplit(declared.resource).fragment
    ):
        yield _invalid(f"the resource `{declared.resource[:120]}` is no https address")
    for scope in declared.scopes_supported or ():
        if scope not in catalog.scopes:
            yield _invalid(f"`scopes_supported` names `{scope[:120]}`, which no tool needs")


def _invalid(cause: str) -> Fault:
    return fault("X_MCP_OAUTH_INVALID", cause)


def secure(url: str) -> bool:
    """Whether an address is https, or http on this machine (RFC 9728 1.2; OAuth 2.1 1.5)."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if not parts.hostname or parts.username is not None or not url.isascii() or not url.isprintable():
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def public_scopes(catalog: Catalog) -> tuple[str, ...]:
    """Return the scopes of tools that everybody sees: those of hidden tools must not show."""
    shown = (each for each in catalog.entries if each.exposed and each.audience == EVERYONE)
    return tuple(sorted({each.scope for each in shown if each.scope is not None}))


@dataclass(frozen=True, slots=True)
class Protected:
    """One endpoint's declaration, with what its catalog adds and where it is mounted."""

    declared: OAuth
    scopes: tuple[str, ...]
    path: str

    def serves(self, path: str, *, root: bool) -> bool:
        """Whether a path is the document's: the path-inserted one, and the root's for the first endpoint."""
        return path == WELL_KNOWN + self.path or (root and path == WELL_KNOWN)

    def document(self, head: Head) -> Reply:
        """Answer a GET of the document (RFC 9728 2 and 3.2)."""
        if head.method not in ("GET", "HEAD"):
            return Reply(405, headers=(("allow", "GET, HEAD"),))
        body: dict[str, object] = {
            "resource": self.resource(head),
            "authorization_servers": list(self.declared.authorization_servers),
            "bearer_methods_supported": ["header"],
        }
        if self.scopes:
            body["scopes_supported"] = list(self.scopes)
        if self.declared.name is not None:
            body["resource_name"] = self.declared.name
        if self.declared.documentation is not None:
            body["resource_documentation"] = self.declared.documentation
        return Reply(200, to_json(body), (("cache-control", "max-age=3600"),))

    def resource(self, head: Head) -> str:
        """Return the endpoint's address, character for character as it is typed."""
        return self.declared.resource or f"{origin_of(head)}{self.path}"

    def pointer(self, head: Head) -> dict[str, str]:
        """Return what a challenge to a caller without a token says: what to ask for, and of whom."""
        scopes = {"scope": " ".join(self.scopes)} if self.scopes else {}
        return {**scopes, "resource_metadata": self.metadata_url(head)}

    def metadata_url(self, head: Head) -> str:
        """Return where the document is, for a challenge (RFC 9728 5.1)."""
        declared = self.declared.resource
        base = origin_of(head) if declared is None else "{0.scheme}://{0.netloc}".format(urlsplit(declared))
        return f"{base}{WELL_KNOWN}{self.path}"


def protected(declared: OAuth, catalog: Catalog, path: str) -> Protected:
    """Return an endpoint's declaration with what its catalog adds."""
    scopes = public_scopes(catalog) if declared.scopes_supported is None else declared.scopes_supported
    return Protected(declared, scopes, "/" + path.strip("/"))


def origin_of(head: Head) -> str:
    """Return the public origin of a request: its scheme as the host resolved it, and its ``Host``."""
    return f"{head.scheme}://{head.headers.get('host', '')}"
