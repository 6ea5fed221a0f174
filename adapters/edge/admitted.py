"""What may be listed as a host or an origin: what a client really sends, and nothing that admits anybody."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ...kernel.errors import Fault, fault

# A name, an IPv4 address, or an IPv6 address in brackets; perhaps a port (RFC 9110 7.2). No pattern.
_HOST: Final = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
# As browsers write it (RFC 6454 6.2): no path, no capitals. Opaque origins, `null`, are anybody's.
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s*]+")


def listed(hosts: Iterable[str]) -> frozenset[str]:
    """Return hosts as they are compared: without regard to case (RFC 9110 4.2.3)."""
    return frozenset(each.lower() for each in hosts)


def admitted_faults(hosts: Iterable[str], origins: Iterable[str]) -> Iterator[Fault]:
    """Yield what is listed and could never match, or would admit any page."""
    for host in hosts:
        if not _HOST.fullmatch(host.lower()):
            cause = f"`allowed_hosts` lists `{host[:120]}`, which is no host"
            yield fault("X_DECLARATION_INVALID", cause, "list names as `Host` has them: `api.example`")
    for origin in origins:
        if not _ORIGIN.fullmatch(origin) or origin != origin.lower():
            cause = f"`allowed_origins` lists `{origin[:120]}`, which is no origin"
            yield fault(
                "X_DECLARATION_INVALID", cause, "list origins as browsers send them: `https://app.example`"
            )
