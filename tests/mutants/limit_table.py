"""The mutants of rates and addresses: a meter that tells what is hidden, or that counts the wrong thing.

Numbers with an M are those of the list of leaks that a suite must see. Runs nothing.
"""

from __future__ import annotations

from typing import Final

from .mutant import mutant

FIRST: Final = "limits tell nothing, walked"
DOORS: Final = "a door is what it says"
_CALL: Final = "adapters.mcp.tools:call"
_METERED: Final = "adapters.meters:metered"
_CLASS: Final = "adapters.meters:class_of"
_HELD: Final = "adapters.authentication:_held"
_REFUSE: Final = "adapters.authentication:_refuse"
_COUNT: Final = "refused = yield from limited(request, class_of(entry), asked.name, seen=entry is not None)"
_KEY: Final = "key_of(door.server, kind, who)"
_ANY: Final = (
    "next((each for each in request.server.kernel.catalog.entries if each.exposed "
    "and each.name == asked.name), None)"
)

LIMIT_MUTANTS: Final = (
    mutant(
        "M05",
        "a hidden tool that reads is billed as a read",
        (_CALL, _COUNT, _COUNT.replace("class_of(entry)", f"class_of(entry or {_ANY})")),
        first=FIRST,
    ),
    mutant(
        "M06",
        "a call of a hidden tool is not counted",
        (_CALL, _COUNT, f"refused = None if entry is None and {_ANY} is not None else ({_COUNT[10:]})"),
        first=FIRST,
    ),
    mutant(
        "M30",
        "all callers of one tool share an allowance",
        (
            "adapters.mcp.metering:limited",
            "metered(request.server.door, kind, request.who)",
            "metered(request.server.door, kind, request.who if tool is None else "
            "type(request.who)((tool.strip() or 'x')[:99].encode('ascii', 'replace').decode()))",
        ),
        first=FIRST,
    ),
    mutant(
        "one-allowance",
        "all callers share an allowance",
        (_METERED, _KEY, "kind"),
        first=FIRST,
    ),
    mutant(
        "class-lost",
        "reads and writes are one allowance",
        (_METERED, _KEY, 'key_of(door.server, "read", who)'),
        first=FIRST,
    ),
    mutant(
        "absent-is-cheap",
        "what a caller does not see is a read",
        (_CLASS, "entry is not None and not entry.destructive", "entry is None or not entry.destructive"),
        first=FIRST,
    ),
    mutant(
        "write-is-cheap",
        "whatever a caller sees is a read",
        (_CLASS, "entry is not None and not entry.destructive", "entry is not None"),
        first=FIRST,
    ),
    mutant(
        "notified-free",
        "the notification form costs nothing",
        (
            "adapters.mcp.server:_taken",
            "if meters else None",
            "if meters and isinstance(message, Response) else None",
        ),
        first=FIRST,
    ),
    mutant(
        "one-address",
        "all addresses share an allowance of failures",
        (_HELD, "address_key(door.server, head.address)", 'address_key(door.server, "")'),
        (_REFUSE, "address_key(door.server, head.address)", 'address_key(door.server, "")'),
        first=FIRST,
    ),
    mutant(
        "counted-before",
        "an address is charged before anybody knows whether its token is good",
        (
            _HELD,
            "TakeToken(key, door.rates.unauthenticated, 0)",
            "TakeToken(key, door.rates.unauthenticated)",
        ),
        first=FIRST,
    ),
    mutant(
        "failures-free",
        "no failure counts against an address",
        (_REFUSE, "status != 503", "status == 503"),
        first=FIRST,
    ),
    mutant(
        "asking-counts",
        "who asks without a token is counted as somebody who guessed one",
        (_REFUSE, "if tried and door.rates", "if door.rates"),
        first=FIRST,
    ),
    mutant(
        "waits-anyhow",
        "a refusal says how many requests the caller's class lets through",
        (
            "adapters.meters:Spent.headers",
            "str(self.retry_after)",
            'str(self.retry_after + (self.code == "X_MCP_RATE_LIMITED"))',
        ),
        first=FIRST,
    ),
    mutant(
        "scopes-of-all",
        "the metadata names the scopes of tools that not everybody sees",
        ("adapters.mcp.oauth:public_scopes", "each.exposed and each.audience == EVERYONE", "each.exposed"),
        first=FIRST,
    ),
    # who stands before a door
    mutant(
        "token-of-any-sign",
        "whatever stands behind the scheme is a token",
        (
            "adapters.authentication:bearer",
            '_BEARER.fullmatch(header or "")',
            're.fullmatch("bearer +(.+)", header or "", re.IGNORECASE)',
        ),
        first=DOORS,
    ),
    mutant(
        "one-client-one-caller",
        "all people who use one client are one caller",
        ("adapters.edge.tokens.claims:agent_of", "None if subject == ident else", "None if subject else"),
        first=DOORS,
    ),
    mutant(
        "prefix-forgotten",
        "a challenge points to the root of the host, which is somebody else's",
        ("adapters.mcp.oauth:Protected.metadata_url", "if prefix and (", "if not prefix and ("),
        first=DOORS,
    ),
    mutant(
        "prefix-unsaid",
        "the resource is named without the prefix that its clients type",
        ("adapters.mcp.oauth:Protected.resource", 'f"{_quoted(head.prefix)}{self.path}"', "self.path"),
        first=DOORS,
    ),
    mutant(
        "any-cookie-fails",
        "a visitor with any cookie is one who guessed a session",
        (
            "adapters.http.session:shown",
            "cookie in asked.facts.cookies",
            "bool(asked.facts.cookies)",
        ),
        first=DOORS,
    ),
    mutant(
        "sessions-free",
        "guessing at sessions is not counted",
        ("adapters.http.session:shown", "cookie in asked.facts.cookies", "False"),
        first=DOORS,
    ),
    mutant(
        "opaque-origins",
        "the origin of every sandboxed frame may be listed",
        (
            "adapters.edge.admitted:admitted_faults",
            "not _ORIGIN.fullmatch(origin)",
            '(origin != "null" and not _ORIGIN.fullmatch(origin))',
        ),
        first=DOORS,
    ),
    mutant(
        "addresses-as-they-come",
        "an address of IPv4 begins anew in each way that IPv6 has to write it",
        ("kernel.meter:_network", "inside = _inside(parsed)", "inside = None"),
        first=DOORS,
    ),
)
