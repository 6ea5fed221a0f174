"""The protected resource: its declaration, its document in both places, the challenges that lead to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any, Final

import pytest

from nonsuch import (
    Agent,
    App,
    BootError,
    Human,
    OAuth,
    Principal,
    Registry,
    asgi,
    can,
    define_app_mcp,
    expose,
    grant,
    oauth,
    resource,
    wsgi,
)
from nonsuch.adapters.mcp.oauth import secure
from nonsuch.kernel.audit import AuthRefused, Event

from ..edge.environs import asked
from .live import REVISIONS, request
from .wire import Answer, Request, in_process

ISSUER: Final = "https://login.example"
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
HOST: Final = ("host", "localhost:8000")
CALLERS: Final[dict[str, Principal]] = {
    "full": Agent("a", roles={"r"}, scopes={"open", "write", "staff"}),
    "poor": Agent("a", roles={"r"}, scopes={"open"}),
    "none": Agent("a", roles={"r"}),
    "staff": Agent("s", roles={"r", "staff"}),
    "person": Human("ann", roles={"r"}),
}


async def nothing() -> str:
    return "nothing"


def boot(declared: OAuth | None = None, **given: Any) -> App:
    """An app with a tool that everybody sees, one for staff, and an action that is no tool."""
    registry = Registry()

    async def look() -> str:
        return "looked"

    async def write() -> str:
        return "wrote"

    async def hidden() -> str:
        return "hidden"

    async def internal() -> str:
        return "internal"

    registry.query(policy=can("a:b"), mcp=expose("L"), single=True)(look)
    registry.action(policy=can("a:b"), mcp=expose("W", visible_to=["r"]))(write)
    registry.action(policy=can("a:b"), mcp=expose("H", visible_to=["staff"]))(hidden)
    registry.action(policy=can("a:b"))(internal)
    settings: dict[str, Any] = {
        "name": "oauth",
        "include": "exposed",
        "scopes": {"open": ["look"], "write": ["write"], "staff": ["hidden"]},
        "resources": [
            resource("x:open", "o", "O", nothing, scope="papers"),
            resource("x:hidden", "h", "H", nothing, scope="vault", visible_to=["staff"]),
        ],
        "grants": [grant("r", "any")],
        "resolve_token": CALLERS.get,
        "rate_limits": None,
        "oauth": oauth([ISSUER]) if declared is None else declared,
        **given,
    }
    return define_app_mcp(registry, **settings)


def get(app: App, path: str, method: str = "GET", *headers: tuple[str, str]) -> Answer:
    return in_process(app, Request(method, path, (HOST, *headers)))


def document(app: App, path: str = WELL_KNOWN) -> Any:
    answer = get(app, path)
    assert (answer.status, dict(answer.headers)["content-type"]) == (200, "application/json")
    return json.loads(answer.body)


# The declaration

RIGHT: Final = (
    "https://login.example",
    "https://login.example/",
    "https://login.example:8443/realms/app",
    "http://localhost:9000",
    "http://127.0.0.1",
    "http://[::1]:9000/x",
    "https://xn--bcher-kva.example/%20~a",
)
WRONG: Final = (
    "",
    "login.example",
    "http://login.example",
    "http://localhost.example",
    "http://127.0.0.1.example",
    "http://[::2]/",
    "HTTPX://login.example",
    "ftp://localhost",
    "https://",
    "https:///path",
    "https:login.example",
    "//login.example",
    "javascript://localhost/%0aalert(1)",
    "https://user@login.example",
    "https://user:word@login.example",
    "https://@login.example",
    "https://login.example:99999",
    "https://login.example:port",
    "https://[::1",
    "https://login.example/a b",
    'https://login.example/"',
    "https://login.example\\x",
    "https://login.example/\u00fc",
    "https://b\u00fccher.example",
    "https://login.example/\r\nx: y",
    "https://login.example/\x00",
    " https://login.example",
    "https://login.example ",
)
UNPLAIN: Final = (
    "https://login.example?",
    "https://login.example?x=y",
    "https://login.example#",
    "https://login.example/#x",
)


@pytest.mark.parametrize("url", RIGHT)
def test_an_address_with_tls_or_on_this_machine_is_taken(url: str) -> None:
    assert secure(url)
    app = boot(oauth([url], resource=url))
    assert document(app)["authorization_servers"] == [url]
    assert document(app)["resource"] == url


def faults(declared: OAuth) -> list[tuple[str, str]]:
    with pytest.raises(BootError) as raised:
        boot(declared)
    return [(each.code, each.cause) for each in raised.value.faults]


@pytest.mark.parametrize("url", [*WRONG, *UNPLAIN])
def test_any_other_address_is_refused_at_boot(url: str) -> None:
    told = "is no https address without query and fragment"
    assert faults(oauth([ISSUER, url], resource=url)) == [
        ("X_MCP_OAUTH_INVALID", f"the issuer `{url[:120]}` {told}"),
        ("X_MCP_OAUTH_INVALID", f"the resource `{url[:120]}` {told}"),
    ]
    assert secure(url) is (url in UNPLAIN)


def test_every_fault_is_said_at_once_and_no_issuer_is_one() -> None:
    assert faults(oauth([], resource="x", scopes_supported=["open", "opne", "internal"])) == [
        ("X_MCP_OAUTH_INVALID", "no authorization server is named"),
        ("X_MCP_OAUTH_INVALID", "the resource `x` is no https address without query and fragment"),
        ("X_MCP_OAUTH_INVALID", "`scopes_supported` names `opne`, which no tool needs"),
        ("X_MCP_OAUTH_INVALID", "`scopes_supported` names `internal`, which no tool needs"),
    ]


def test_one_issuer_may_be_given_alone() -> None:
    assert oauth(ISSUER) == oauth([ISSUER]) == OAuth((ISSUER,))


# The document


def test_the_document_says_where_tokens_come_from_and_no_more() -> None:
    answer = get(boot(), WELL_KNOWN)
    assert json.loads(answer.body) == {
        "resource": "http://localhost:8000/mcp",
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["open"],
    }
    assert answer.headers == {
        ("content-type", "application/json"),
        ("content-length", str(len(answer.body))),
        ("cache-control", "max-age=3600"),
    }


def test_only_scopes_of_tools_that_everybody_sees_are_published() -> None:
    """Any other would say that there is something of that name."""
    body = get(boot(), WELL_KNOWN).body
    for name in ("staff", "vault", "papers", "write", "hidden"):
        assert name.encode() not in body


def test_scopes_that_are_declared_are_published_as_they_are() -> None:
    assert document(boot(oauth([ISSUER], scopes_supported=["write", "open"])))["scopes_supported"] == [
        "write",
        "open",
    ]
    assert "scopes_supported" not in document(boot(oauth([ISSUER], scopes_supported=[])))


def test_without_scopes_none_are_published() -> None:
    assert "scopes_supported" not in document(boot(scopes=None, resources=[]))


def test_a_name_and_a_documentation_are_told() -> None:
    told = document(
        boot(oauth([ISSUER, "https://b.example"], name="Posts", documentation="https://docs.example"))
    )
    assert (told["resource_name"], told["resource_documentation"]) == ("Posts", "https://docs.example")
    assert told["authorization_servers"] == [ISSUER, "https://b.example"]


PLACES: dict[str, tuple[str, str | None, str, list[str]]] = {
    # mount, resource, metadata, other paths where the document is
    "undeclared": ("/mcp", None, f"http://localhost:8000{WELL_KNOWN}/mcp", [f"{WELL_KNOWN}/mcp/"]),
    "as mounted": ("/mcp", "https://api.example/mcp", f"https://api.example{WELL_KNOWN}/mcp", []),
    "with a slash": (
        "/mcp",
        "https://api.example/mcp/",
        f"https://api.example{WELL_KNOWN}/mcp/",
        [f"{WELL_KNOWN}/mcp"],
    ),
    "behind a prefix": (
        "/mcp",
        "https://api.example/agents/mcp",
        f"https://api.example{WELL_KNOWN}/agents/mcp",
        [f"{WELL_KNOWN}/mcp"],
    ),
    "with a port": ("/mcp", "https://api.example:8443/mcp", f"https://api.example:8443{WELL_KNOWN}/mcp", []),
    "in other case": ("/mcp", "https://API.example/MCP", f"https://API.example{WELL_KNOWN}/MCP", []),
    "a host": ("/mcp", "https://api.example", f"https://api.example{WELL_KNOWN}", [f"{WELL_KNOWN}/mcp"]),
    "a host with a slash": ("/mcp", "https://api.example/", f"https://api.example{WELL_KNOWN}", []),
    "mounted at the root": ("/", None, f"http://localhost:8000{WELL_KNOWN}", [f"{WELL_KNOWN}/"]),
    "deep": ("/a/b", None, f"http://localhost:8000{WELL_KNOWN}/a/b", []),
}


@pytest.mark.parametrize("case", PLACES)
def test_the_resource_is_what_is_typed_and_its_document_where_clients_look(case: str) -> None:
    path, declared, metadata, others = PLACES[case]
    app = boot(oauth([ISSUER], resource=declared), path=path)
    paths = [WELL_KNOWN, metadata[metadata.index(WELL_KNOWN) :], *others]
    bodies = {get(app, each).body for each in paths}
    assert len(bodies) == 1
    assert json.loads(bodies.pop())["resource"] == (declared or f"http://localhost:8000{path}")
    assert challenge(ask(app, None))["resource_metadata"] == metadata


# Under a prefix of another application

INSIDE, ROOT = f"http://localhost:8000/agents{WELL_KNOWN}/mcp", f"https://api.example{WELL_KNOWN}"
MOUNTED: Final[dict[str, tuple[str, str, str | None, str, str]]] = {
    # mount, prefix, resource declared; resource, metadata
    "undeclared": ("/mcp", "/agents", None, "http://localhost:8000/agents/mcp", INSIDE),
    "at the prefix itself": (
        "/",
        "/agents/mcp",
        None,
        "http://localhost:8000/agents/mcp",
        f"http://localhost:8000/agents/mcp{WELL_KNOWN}",
    ),
    "two prefixes": (
        "/mcp",
        "/a/b",
        None,
        "http://localhost:8000/a/b/mcp",
        f"http://localhost:8000/a/b{WELL_KNOWN}/mcp",
    ),
    "of other letters": (
        "/mcp",
        '/\u00fc "',
        None,
        "http://localhost:8000/%C3%BC%20%22/mcp",
        f"http://localhost:8000/%C3%BC%20%22{WELL_KNOWN}/mcp",
    ),
    "declared": (
        "/mcp",
        "/agents",
        "https://api.example/agents/mcp",
        "https://api.example/agents/mcp",
        f"https://api.example/agents{WELL_KNOWN}/mcp",
    ),
    "declared, and rewritten in front": (
        "/mcp",
        "/agents",
        "https://api.example/mcp",
        "https://api.example/mcp",
        f"{ROOT}/mcp",
    ),
}


def mounted(app: App, prefix: str, path: str, method: str = "GET", door: str = "asgi") -> Answer:
    """Ask an app that another application mounts under a prefix, without a token."""
    if door == "wsgi":
        return over_wsgi(app, prefix, path, method)
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    whole = path if door == "asgi of old" else f"{prefix}{path}"  # since 2023 a path has its prefix in it
    scope = {"type": "http", "method": method, "path": whole, "root_path": prefix, "client": ("::1", 9)}
    headers = [tuple(each.encode() for each in HOST)]
    asyncio.run(asgi(app)({**scope, "headers": headers, "query_string": b""}, receive, send))
    told = frozenset((name.decode(), value.decode()) for name, value in sent[0]["headers"])
    return Answer(sent[0]["status"], told, sent[1]["body"])


def over_wsgi(app: App, prefix: str, path: str, method: str) -> Answer:
    door = wsgi(app)
    try:
        script = prefix.encode().decode("latin-1")
        told = asked(door, method, path, [HOST], script=script)
    finally:
        door.close()
    return Answer(told.status, frozenset(told.headers), told.body)


@pytest.mark.parametrize("door", ["asgi", "asgi of old", "wsgi"])
@pytest.mark.parametrize("path", ["/mcp", "/api/internal"])
@pytest.mark.parametrize("prefix", ["", "/agents", "/a/b"])
def test_who_is_kept_out_is_audited_with_the_path_that_was_asked(prefix: str, path: str, door: str) -> None:
    events = list[Event]()
    assert mounted(boot(on_audit=events.append), prefix, path, "POST", door).status == 401
    assert [each.path for each in events if isinstance(each, AuthRefused)] == [f"{prefix}{path}"]


@pytest.mark.parametrize("door", ["asgi", "asgi of old", "wsgi"])
@pytest.mark.parametrize("case", MOUNTED)
def test_under_a_prefix_a_challenge_points_to_where_the_document_is(case: str, door: str) -> None:
    path, prefix, declared, told, metadata = MOUNTED[case]
    app = boot(oauth([ISSUER], resource=declared), path=path)
    refused = mounted(app, prefix, path, "POST", door)
    assert refused.status == 401
    assert challenge(refused)["resource_metadata"] == metadata
    found = mounted(app, prefix, f"{WELL_KNOWN}{path}", "GET", door)
    assert (found.status, json.loads(found.body)["resource"]) == (200, told)


@pytest.mark.parametrize("door", ["asgi", "wsgi"])
def test_mounted_a_second_time_the_document_is_at_the_root_of_the_host(door: str) -> None:
    """Where clients look that read no challenge (RFC 9728 3.1)."""
    app = boot(oauth([ISSUER], resource="https://api.example/agents/mcp"))
    for path in ("/agents/mcp", "/agents/mcp/", "", "/"):
        found = mounted(app, WELL_KNOWN, path, "GET", door)
        assert (found.status, json.loads(found.body)["resource"]) == (200, "https://api.example/agents/mcp")
    assert mounted(app, WELL_KNOWN, "/mcp", "POST", door).status == 405
    assert mounted(app, WELL_KNOWN, "/agents", "GET", door).status == 401


def test_without_a_resource_nobody_can_say_what_the_prefix_was() -> None:
    assert mounted(boot(), WELL_KNOWN, "/agents/mcp").status == 401
    assert mounted(boot(), "/evil", f"{WELL_KNOWN}/agents/mcp").status == 404


def test_where_the_document_is_can_be_said() -> None:
    url = "https://docs.example/oauth/posts"
    app = boot(oauth([ISSUER], resource="https://api.example/mcp", metadata_url=url))
    assert challenge(ask(app, None))["resource_metadata"] == url
    assert challenge(ask(app, "none", "write"))["resource_metadata"] == url
    assert challenge(mounted(app, "/agents", "/mcp", "POST"))["resource_metadata"] == url
    assert faults(oauth([ISSUER], metadata_url="http://docs.example")) == [
        (
            "X_MCP_OAUTH_INVALID",
            "the metadata URL `http://docs.example` is no https address without query and fragment",
        )
    ]


@pytest.mark.parametrize(
    "path", [f"{WELL_KNOWN}/other", f"{WELL_KNOWN}mcp", f"{WELL_KNOWN}/mcp/x", "/.well-known/x"]
)
def test_elsewhere_there_is_no_document(path: str) -> None:
    assert get(boot(), path).status == 404


def test_without_a_declaration_there_is_none() -> None:
    app = define_app_mcp(Registry(), name="bare", resolve_token=CALLERS.get, rate_limits=None)
    assert {get(app, path).status for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp")} == {404}
    assert challenge(ask(app, None)) == {"realm": "nonsuch-mcp"}


def test_the_document_is_read_only_and_for_admitted_hosts() -> None:
    app = boot()
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        answer = get(app, WELL_KNOWN, method)
        assert (answer.status, dict(answer.headers).get("allow")) == (405, "GET, HEAD")
    assert get(app, WELL_KNOWN, "HEAD").status == 200
    foreign = in_process(app, Request("GET", WELL_KNOWN, (("host", "evil.example"),)))
    assert foreign.status == 403
    assert b"evil" not in foreign.body


def test_a_page_of_an_admitted_origin_reads_the_document() -> None:
    origin = ("origin", "http://localhost:6274")
    answer = get(boot(), WELL_KNOWN, "GET", origin)
    assert ("access-control-allow-origin", "http://localhost:6274") in answer.headers
    asks = (
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "mcp-protocol-version"),
    )
    flight = get(boot(), f"{WELL_KNOWN}/mcp", "OPTIONS", origin, *asks)
    assert flight.status == 204
    assert ("access-control-allow-methods", "GET") in flight.headers
    assert ("access-control-allow-headers", "mcp-protocol-version") in flight.headers
    stranger = get(boot(), WELL_KNOWN, "GET", ("origin", "https://evil.example"))
    assert stranger.status == 403
    assert not [name for name, _ in stranger.headers if name.startswith("access-control")]


# The challenges


def ask(app: App, caller: str | None, name: str = "look", revision: str = REVISIONS[-1]) -> Answer:
    headers, body = request(revision, "tools/call", caller or "", name=name, arguments={})
    kept = [HOST if each[0] == "host" else each for each in headers if caller or each[0] != "authorization"]
    return in_process(app, Request("POST", app.path, tuple(kept), body))


def challenge(answer: Answer) -> dict[str, str]:
    """The parameters of the one challenge, read as RFC 9110 11.2 writes them."""
    (header,) = [value for name, value in answer.headers if name == "www-authenticate"]
    scheme, _, rest = header.partition(" ")
    assert scheme == "Bearer"
    told = dict[str, str]()
    while rest:
        name, _, rest = rest.partition("=")
        assert rest.startswith('"')
        value, rest = quoted(rest[1:])
        assert name not in told
        told[name] = value
        assert rest == "" or rest.startswith(", ")
        rest = rest[2:]
    return told


def quoted(text: str) -> tuple[str, str]:
    value, escaped = "", False
    for at, char in enumerate(text):
        if char == '"' and not escaped:
            return value, text[at + 1 :]
        escaped = char == "\\" and not escaped
        value += "" if escaped else char
    raise AssertionError("the text does not end")


@pytest.mark.parametrize("revision", REVISIONS)
def test_nobody_is_told_what_to_ask_for_and_of_whom(revision: str) -> None:
    answer = ask(boot(), None, revision=revision)
    assert answer.status == 401
    assert challenge(answer) == {
        "realm": "nonsuch-mcp",
        "scope": "open",
        "resource_metadata": f"http://localhost:8000{WELL_KNOWN}/mcp",
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_token_that_is_none_is_told_so(revision: str) -> None:
    answer = ask(boot(), "unknown", revision=revision)
    assert answer.status == 401
    assert challenge(answer) == {
        "realm": "nonsuch-mcp",
        "error": "invalid_token",
        "scope": "open",
        "resource_metadata": f"http://localhost:8000{WELL_KNOWN}/mcp",
    }


@pytest.mark.parametrize(("caller", "held"), [("none", []), ("poor", ["open"])])
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_token_that_lacks_a_scope_is_told_which(revision: str, caller: str, held: list[str]) -> None:
    answer = ask(boot(), caller, "write", revision)
    wanted = ["write"] if revision == REVISIONS[-1] else [*held, "write"]
    assert answer.status == 403
    assert challenge(answer) == {
        "realm": "nonsuch-mcp",
        "error": "insufficient_scope",
        "scope": " ".join(wanted),
        "error_description": "ask for a token with the scope `write`",
        "resource_metadata": f"http://localhost:8000{WELL_KNOWN}/mcp",
    }
    assert json.loads(answer.body)["error"]["data"]["scope"] == "write"


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("name", ["hidden", "absent"])
def test_no_challenge_names_the_scope_of_what_is_hidden(name: str, revision: str) -> None:
    answer = ask(boot(), "none", name, revision)
    assert answer.status == 200
    assert not [each for each, _ in answer.headers if each == "www-authenticate"]


def test_a_person_at_the_door_of_agents_has_nothing_to_ask_for() -> None:
    answer = ask(boot(), "person")
    assert answer.status == 403
    assert not [name for name, _ in answer.headers if name == "www-authenticate"]


@pytest.mark.parametrize(
    ("host", "metadata"),
    [
        ("localhost", f"http://localhost{WELL_KNOWN}/mcp"),
        ("127.0.0.1:9", f"http://127.0.0.1:9{WELL_KNOWN}/mcp"),
        ("[::1]:9", f"http://[::1]:9{WELL_KNOWN}/mcp"),
        ("api.example", f"http://api.example{WELL_KNOWN}/mcp"),
    ],
)
def test_the_document_is_where_the_request_went(host: str, metadata: str) -> None:
    app = boot(allowed_hosts=["api.example"])
    headers, body = request(REVISIONS[-1], "tools/list", "unknown")
    kept = tuple(("host", host) if name == "host" else (name, value) for name, value in headers)
    assert challenge(in_process(app, Request("POST", "/mcp", kept, body)))["resource_metadata"] == metadata


def test_a_scope_is_carried_whole_or_not_at_all() -> None:
    """`admin`, `admin:`, `admin:*`, ` admin:seats`, other case: no prefix and no pattern opens anything."""
    registry = Registry()

    async def seats() -> str:
        return "seats"

    registry.query(policy=can("a:b"), mcp=expose("S"), single=True)(seats)
    held = {
        "exact": ["admin:seats"],
        "prefix": ["admin"],
        "colon": ["admin:"],
        "star": ["admin:*", "*", "admin:*:*"],
        "blank": [" admin:seats", "admin:seats ", "admin: seats"],
        "case": ["ADMIN:SEATS", "Admin:seats"],
        "longer": ["admin:seats:read", "admin:seats2"],
        "many": [f"s{number}" for number in range(10_000)],
        "joined": ["admin:seats other", "other,admin:seats"],
    }
    app = define_app_mcp(
        registry,
        name="creep",
        include="exposed",
        scopes={"admin:seats": ["seats"]},
        grants=[grant("r", "any")],
        resolve_token=lambda token: Agent("a", roles={"r"}, scopes=held[token]),
        rate_limits=None,
    )
    found = {token: ask(app, token, "seats").status for token in held}
    assert found == {token: 200 if token == "exact" else 403 for token in held}
