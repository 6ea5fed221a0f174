"""The protected resource's metadata (RFC 9728), and the challenges that lead to it.

Says which authorization servers issue tokens for this endpoint; issues and checks none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from pydantic_core import to_json

from ...kernel.catalog import Catalog
from ...kernel.declare import EVERYONE
from ...kernel.errors import Fault, fault
from ...kernel.model import NO_SCOPE
from ..door import preflight
from ..wire import Head, Reply

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_URL: Final = re.compile(r"[!#-;=?-\[\]_a-z~]+")  # RFC 3986 2: no other character stands in an address


@dataclass(frozen=True, slots=True)
class OAuth:
    """Where tokens for this endpoint come from.

    ``resource`` is the endpoint's address exactly as its users type it; without one it is the request's
    own origin, the prefix that the app is mounted under, and the endpoint's path. ``scopes_supported`` is
    derived unless given: the scopes of tools that everybody sees, because the document is read without a
    token. ``metadata_url`` is where the document can be read from outside, if not where it is looked for.
    """

    authorization_servers: tuple[str, ...]
    resource: str | None = None
    scopes_supported: tuple[str, ...] | None = None
    name: str | None = None
    documentation: str | None = None
    metadata_url: str | None = None


def oauth(
    authorization_servers: str | Iterable[str],
    *,
    resource: str | None = None,
    scopes_supported: Iterable[str] | None = None,
    name: str | None = None,
    documentation: str | None = None,
    metadata_url: str | None = None,
) -> OAuth:
    """Return the declaration for ``define_app_mcp(oauth=...)``: one issuer or several, and the rest of it.

    Under a prefix of another application the document is below that prefix, where every challenge points.
    A client that reads no challenge looks at the root of the host. It finds the document there if the other
    application mounts this one a second time, and ``resource`` says what the prefix is::

        api.mount("/agents", mcp)
        api.mount("/.well-known/oauth-protected-resource", mcp)
    """
    issuers = (authorization_servers,) if isinstance(authorization_servers, str) else authorization_servers
    listed = None if scopes_supported is None else tuple(scopes_supported)
    return OAuth(tuple(issuers), resource, listed, name, documentation, metadata_url)


def faults(declared: OAuth, catalog: Catalog) -> Iterator[Fault]:
    """Yield what is wrong with a declaration."""
    if not declared.authorization_servers:
        yield _invalid("no authorization server is named")
    for issuer in declared.authorization_servers:
        if not _plain(issuer):
            yield _invalid(f"the issuer `{issuer[:120]}` is no https address without query and fragment")
    for what, url in (("resource", declared.resource), ("metadata URL", declared.metadata_url)):
        if url is not None and not _plain(url):
            yield _invalid(f"the {what} `{url[:120]}` is no https address without query and fragment")
    for scope in declared.scopes_supported or ():
        if scope not in catalog.scopes:
            yield _invalid(f"`scopes_supported` names `{scope[:120]}`, which no tool needs")


def _invalid(cause: str) -> Fault:
    return fault("X_MCP_OAUTH_INVALID", cause)


def _plain(url: str) -> bool:
    """Whether an address can name an issuer (RFC 8414 2) or a resource (RFC 9728 1.2)."""
    return secure(url) and "?" not in url and "#" not in url


def secure(url: str) -> bool:
    """Whether an address is https, or http on this machine (RFC 9728 1.2; OAuth 2.1 1.5)."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    if not parts.hostname or "@" in parts.netloc or not _URL.fullmatch(url):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def public_scopes(catalog: Catalog) -> tuple[str, ...]:
    """Return the scopes of tools that everybody sees: those of hidden tools must not show."""
    shown = (each for each in catalog.entries if each.exposed and each.audience == EVERYONE)
    return tuple(sorted({each.scope for each in shown if each.scope not in (None, NO_SCOPE)}))


@dataclass(frozen=True, slots=True)
class Protected:
    """One endpoint's declaration, with what its catalog adds and where it is mounted."""

    declared: OAuth
    scopes: tuple[str, ...]
    path: str

    @property
    def place(self) -> str:
        """The path of the resource as clients insert it (RFC 9728 3.1); nothing at the root of a host."""
        declared = self.declared.resource
        path = self.path if declared is None else urlsplit(declared).path
        return "" if path == "/" else path

    def serves(self, head: Head, *, root: bool) -> bool:
        """Whether a path is the document's: the path-inserted ones, and the root's for the first endpoint.

        It is also there by the path of the mount, where a proxy in front adds one of its own, and at the
        root of the host, where the application around us mounts us there and the resource says what it is.
        """
        if self._names(head.path, root=root):
            return True
        inserted = bool(head.prefix) and self.declared.resource is not None
        return inserted and self._names(f"{head.prefix}{head.path}".removesuffix("/"), root=root)

    def _names(self, path: str, *, root: bool) -> bool:
        if path == WELL_KNOWN:
            return root or not self.place
        if not path.startswith(WELL_KNOWN):
            return False
        asked = path.removeprefix(WELL_KNOWN).removesuffix("/")
        return asked in {each.removesuffix("/") for each in (self.place, self.path)}

    def document(self, head: Head) -> Reply:
        """Answer a GET of the document (RFC 9728 2 and 3.2), or a browser that asks before it gets it."""
        if head.method == "OPTIONS" and "access-control-request-method" in head.headers:
            return preflight(head, "GET")
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
        path = f"{_quoted(head.prefix)}{self.path}"
        return self.declared.resource or origin_of(head) + (path.removesuffix("/") or "/")

    def pointer(self, head: Head) -> dict[str, str]:
        """Return what a challenge to a caller without a token says: what to ask for, and of whom."""
        scopes = {"scope": " ".join(self.scopes)} if self.scopes else {}
        return {**scopes, "resource_metadata": self.metadata_url(head)}

    def metadata_url(self, head: Head) -> str:
        """Return where the document is, for a challenge (RFC 9728 5.1, which lets it be anywhere).

        Under a prefix it is below it: a request for the root of the host need not come to us.
        """
        if self.declared.metadata_url is not None:
            return self.declared.metadata_url
        declared, prefix = self.declared.resource, _quoted(head.prefix)
        base = origin_of(head) if declared is None else "{0.scheme}://{0.netloc}".format(urlsplit(declared))
        below = "" if self.path == "/" else self.path
        if prefix and (declared is None or self.place.removesuffix("/") == f"{prefix}{below}"):
            return f"{base}{prefix}{WELL_KNOWN}{below}"
        return f"{base}{WELL_KNOWN}{self.place}"


def protected(declared: OAuth, catalog: Catalog, path: str) -> Protected:
    """Return an endpoint's declaration with what its catalog adds."""
    scopes = public_scopes(catalog) if declared.scopes_supported is None else declared.scopes_supported
    return Protected(declared, scopes, "/" + path.strip("/"))


def _quoted(prefix: str) -> str:
    """Return a decoded path as it stands in an address (RFC 3986 3.3)."""
    return quote(prefix, safe="/:@!$&'()*+,;=~")


def origin_of(head: Head) -> str:
    """Return the public origin of a request: its scheme as the host resolved it, and its ``Host``."""
    return f"{head.scheme}://{head.headers.get('host', '')}"
