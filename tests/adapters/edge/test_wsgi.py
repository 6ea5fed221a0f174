"""WSGI environments in and answers out: what ASGI answers, bodies within bounds, events after the answer."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final
from wsgiref.util import shift_path_info
from wsgiref.validate import validator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch import App, BootError, asgi, oauth, wsgi
from nonsuch.adapters.edge import run
from nonsuch.adapters.edge.environ import head_of
from nonsuch.adapters.edge.wsgi import Wsgi
from nonsuch.adapters.wire import Head
from nonsuch.kernel.audit import AuthRefused, ToolCall

from ..mcp.press import press
from ..mcp.vectors import Case, cases_of
from ..mcp.wire import Answer, Request, in_process
from .environs import PATIENCE, Answered, Asking, Input, asked, environ_of
from .talkers import LEGACY, MODERN, Desk, call, message

HOST: Final = ("Host", "localhost")
TYPED: Final = ("Content-Type", "application/json")
CLERK: Final = ("Authorization", "Bearer clerk")
BOTH: Final = ("Accept", "application/json, text/event-stream")
HEADERS: Final = (HOST, TYPED, CLERK, BOTH)
PING: Final = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG: Final = b'{"jsonrpc":"2.0","id":1,"result":{}}'
APP: Final = press()


@pytest.fixture(scope="module")
def served() -> Iterator[Wsgi]:
    held = wsgi(APP)
    yield held
    held.close()


@pytest.fixture
def desk() -> Iterator[Desk]:
    """An app that is closed after the test, however it went."""
    held = Desk()
    yield held
    held.released.set()


@pytest.fixture
def door(desk: Desk) -> Iterator[Wsgi]:
    held = wsgi(desk.app)
    yield held
    desk.released.set()
    held.close()


def rpc(told: dict[str, Any], *more: tuple[str, str]) -> tuple[Any, ...]:
    """A POST of a message, mirrored where its era wants it."""
    headers = [*HEADERS, *more]
    if "_meta" in told["params"] and "io.modelcontextprotocol/protocolVersion" in told["params"]["_meta"]:
        headers += [("MCP-Protocol-Version", MODERN), ("Mcp-Method", told["method"])]
        named = told["params"].get("name", told["params"].get("uri"))
        headers += [("Mcp-Name", named)] if isinstance(named, str) else []
    else:
        headers.append(("MCP-Protocol-Version", LEGACY))
    return "POST", "/mcp", headers, json.dumps(told).encode()


def through(door: Wsgi, *request: Any, **more: Any) -> Answer:
    """Ask, with the answer as the ASGI side has it."""
    told = asked(door, *request, **more)
    return Answer(told.status, frozenset((name.lower(), value) for name, value in told.headers), told.body)


def events(body: bytes) -> list[Any]:
    """The messages of a stream."""
    parts = [each for each in body.split(b"\n\n") if each.startswith(b"event: message\ndata: ")]
    return [json.loads(each.partition(b"data: ")[2]) for each in parts]


def until(done: Callable[[], bool]) -> None:
    """Wait for another thread."""
    ticks = threading.Event()
    for _ in range(PATIENCE * 200):
        if done():
            return
        ticks.wait(0.005)
    raise AssertionError("it did not come true")


# One request has one answer


def test_a_challenge_and_the_document_it_leads_to_are_those_of_asgi() -> None:
    app = Desk().build(oauth=oauth(["https://issuer.example"]), lifespan=None)
    door = wsgi(app)
    well_known = "/.well-known/oauth-protected-resource"
    for method, path in (
        ("GET", well_known),
        ("GET", f"{well_known}/mcp"),
        ("POST", "/mcp"),
        ("PUT", well_known),
    ):
        alike = in_process(app, Request(method, path, (HOST, TYPED), b""))
        assert through(door, method, path, (HOST, TYPED)) == alike
    assert "https://localhost/mcp" in asked(door, "GET", well_known, [HOST], **HTTPS).body.decode()
    door.close()


HTTPS: Final = {"wsgi.url_scheme": "https"}


def named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", [*cases_of("mcp_ladder.json"), *cases_of("mcp_results.json")], ids=named)
def test_wsgi_answers_every_vector_as_asgi_does(case: Case, served: Wsgi) -> None:
    request = case.request
    alike = in_process(APP, request)
    if request.method == "HEAD":  # an ASGI server leaves the body out, a WSGI server may not
        alike = Answer(alike.status, alike.headers, b"")
    assert through(served, request.method, request.path, request.headers, request.body) == alike


METHODS: Final = st.sampled_from(["POST", "POST", "POST", "GET", "HEAD", "OPTIONS", "DELETE"])
PATHS: Final = st.one_of(
    st.sampled_from(["/mcp", "/mcp/", "/mcp//", "/api/posts/get", "/api/posts/publish", "/api/", "/", ""]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(lambda text: f"/{text}"),
)
VALUES: Final = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=12
)
LIKELY: Final[dict[str, list[str]]] = {
    "Host": ["localhost", "press.example", "evil.example", ""],
    "Origin": ["https://desk.example", "null", "http://localhost:3"],
    "Content-Type": ["application/json", "Application/JSON; charset=utf-8", "text/plain"],
    "Content-Encoding": ["identity", "gzip"],
    "Accept": ["application/json", "text/event-stream", "*/*;q=0", "text/*"],
    "Authorization": ["Bearer editor", "bearer viewer", "Bearer erna", "Bearer outage", "Basic x", "Bearer"],
    "MCP-Protocol-Version": ["2025-06-18", "2025-11-25", "2026-07-28", "2024-11-05", "7"],
    "Mcp-Method": ["tools/list", "tools/call", "ping"],
    "Mcp-Name": ["getPost", "=?base64?Z2V0UG9zdA==?=", "publishPost"],
    "Access-Control-Request-Method": ["POST"],
    "Access-Control-Request-Headers": ["authorization, mcp-param-x", "cookie"],
    "X-Other": ["1"],
}
# A repeated Content-Type is the server's to fold, and servers differ.
HEADER: Final = st.sampled_from(list(LIKELY)).flatmap(
    lambda name: st.tuples(st.just(name), st.one_of(st.sampled_from(LIKELY[name]), VALUES))
)
GOOD: Final = st.just([HOST, TYPED, ("Authorization", "Bearer editor"), ("MCP-Protocol-Version", LEGACY)])
SENT_HEADERS: Final = st.one_of(
    GOOD,
    st.lists(HEADER, max_size=8),
    st.tuples(GOOD, st.lists(HEADER, max_size=3)).map(
        lambda both: [*both[0], *(each for each in both[1] if each[0] != "Content-Type")]
    ),
)
MESSAGES: Final = st.sampled_from(
    [
        message("ping"),
        message("tools/list"),
        message("nothing/such"),
        message("resources/read", {"uri": "press://style"}),
        call("getPost", {"postId": "p1"}),
        call("publishPost", {"postId": "none"}),
        call("getPost", {"postId": "p1"}, modern=True),
        message("tools/list", modern=True),
        message("ping", ident=None),
        {"postId": "p1"},
    ]
).map(lambda told: json.dumps(told).encode())
BODIES: Final = st.one_of(
    MESSAGES, st.binary(max_size=40), st.integers(4090, 4100).map(lambda size: b" " * size)
)


@given(method=METHODS, path=PATHS, headers=SENT_HEADERS, body=BODIES)
def test_wsgi_answers_any_request_as_asgi_does(
    method: str, path: str, headers: list[tuple[str, str]], body: bytes
) -> None:
    """Hypothesis gives no fixture a scope of its own: one door for all examples."""
    once = [each for at, each in enumerate(headers) if each[0] not in {name for name, _ in headers[:at]}]
    alike = in_process(APP, Request(method, path, tuple(once), body))
    if method == "HEAD":
        alike = Answer(alike.status, alike.headers, b"")
    assert through(DOOR, method, path, once, body) == alike


DOOR: Final = wsgi(APP)


@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "text/event-stream"])
@pytest.mark.parametrize("origin", [(), (("Origin", "http://localhost:3"),)])
@pytest.mark.parametrize("modern", [True, False])
def test_a_stream_is_byte_for_byte_the_stream_of_asgi(
    accept: str, origin: tuple[tuple[str, str], ...], modern: bool
) -> None:
    meta = {"io.modelcontextprotocol/logLevel": "info"} if modern else {}
    told = call("count", {"to": 3}, modern=modern, progressToken=0, **meta)
    method, path, headers, body = rpc(told, *origin)
    sent = [(name, accept if name == "Accept" else value) for name, value in headers]
    request = Request(method, path, tuple(sent), body)
    app = Desk().build(lifespan=None)
    held = wsgi(app)
    answer = through(held, method, path, sent, body)
    held.close()
    assert answer == in_process(app, request)
    assert ("content-type", "text/event-stream") in answer.headers
    assert [each["method"] for each in events(answer.body)[:-1]] == [
        "notifications/progress",
        "notifications/message",
    ] * 3
    assert events(answer.body)[-1]["id"] == 1


def test_a_head_is_read_from_its_environment() -> None:
    environ = environ_of(
        "GET", "/p\u00e9\udcff", [("X-One", "a"), ("x-one", "b"), ("Y", "\xe9")], REMOTE_ADDR="::1"
    )
    del environ["CONTENT_LENGTH"]
    more = {"CONTENT_TYPE": "", "HTTP_CONTENT_TYPE": "lie", "HTTP_CONTENT_LENGTH": "7", "HTTPS": "on"}
    headers = {"x-one": "a,b", "y": "\xe9"}
    assert head_of({**environ, **more}, 3) == Head("GET", "/p\u00e9\ufffd", headers, "::1", "http", 3)
    assert head_of({**environ, "wsgi.url_scheme": "https"}).scheme == "https"
    assert head_of({"REQUEST_METHOD": "GET"}) == Head("GET", "", {}, None)


def test_an_answer_to_head_has_the_length_and_not_the_body(served: Wsgi) -> None:
    got = asked(served, "GET", "/nothing", [HOST, ("Authorization", "Bearer editor")])
    head = asked(served, "HEAD", "/nothing", [HOST, ("Authorization", "Bearer editor")])
    assert (head.status, head.headers, head.body) == (got.status, got.headers, b"")
    assert dict(head.headers)["content-length"] == str(len(got.body)) != "0"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("told", [message("ping"), call("count", {"to": 2}, progressToken="p")])
def test_the_standard_library_finds_no_fault_with_an_answer(told: dict[str, Any], door: Wsgi) -> None:
    assert asked(validator(door), *rpc(told)).status == 200


def test_an_app_that_cannot_tell_who_calls_is_not_served() -> None:
    with pytest.raises(BootError) as refusal:
        wsgi(Desk().build(resolve_token=None))
    assert [each.code for each in refusal.value.faults] == ["X_MCP_APP_UNMOUNTED"]


# Under a prefix


def dispatched(prefix: str, application: Any) -> Any:
    """Mount as middleware does: the prefix moves from PATH_INFO to SCRIPT_NAME."""

    def dispatch(environ: dict[str, Any], start_response: Any) -> Any:
        assert shift_path_info(environ) == prefix
        return application(environ, start_response)

    return dispatch


@pytest.mark.parametrize(
    ("path", "target"), [("/mcp", "/agents/mcp"), ("/mcp", "/agents/mcp/"), ("/", "/agents")]
)
def test_under_a_prefix_mcp_is_below_it(path: str, target: str) -> None:
    held = wsgi(Desk().build(path=path, lifespan=None))
    _, _, headers, body = rpc(message("ping"))
    answer = asked(dispatched("agents", held), "POST", target, headers, body)
    assert (answer.status, answer.body) == (200, PONG)
    assert asked(dispatched("agents", held), "POST", "/agents/mcp/mcp", headers, body).status == 404
    held.close()


@pytest.mark.parametrize(
    ("path", "target"), [("/mcp", "/agents/mcp"), ("/mcp", "/agents/mcp/"), ("/", "/agents/")]
)
def test_under_a_mount_of_starlette_mcp_is_below_it(path: str, target: str) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    desk = Desk()
    application = asgi(desk.build(path=path))
    mounted = Starlette(routes=[Mount("/agents", application)], lifespan=application.lifespan)

    async def main() -> list[tuple[int, bytes]]:
        async with mounted.router.lifespan_context(mounted):
            during = await over_asgi(mounted, target)
        return [during, await over_asgi(mounted, target)]

    during, after = asyncio.run(main())
    assert (during, after[0]) == ((200, PONG), 503)
    assert desk.lifespans == ["entered", "left"]


async def over_asgi(application: Any, path: str) -> tuple[int, bytes]:
    sent: list[Any] = []
    _, _, headers, body = rpc(message("ping"))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(told: Any) -> None:
        sent.append(told)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "root_path": "",
        "headers": raw,
        "query_string": b"",
    }
    await application(scope, receive, send)
    return sent[0]["status"], b"".join(each["body"] for each in sent[1:])


# Bodies

LIMIT: Final = 4096


def padded(size: int) -> bytes:
    return PING + b" " * (size - len(PING))


def bodied(door: Wsgi, body: bytes, *, terminated: bool = False, **more: Any) -> tuple[int, Input]:
    source = Input(body, fault=more.pop("fault", None))
    headers = [HOST, TYPED, ("Authorization", "Bearer editor"), BOTH, ("MCP-Protocol-Version", LEGACY)]
    given = {"wsgi.input_terminated": terminated, **more}
    return asked(door, "POST", "/mcp", headers, body, source=source, **given).status, source


@pytest.mark.parametrize("terminated", [True, False])
@pytest.mark.parametrize(("size", "status"), [(LIMIT, 200), (LIMIT + 1, 413), (LIMIT * 9, 413)])
def test_the_cap_is_kept_while_reading(size: int, status: int, terminated: bool, served: Wsgi) -> None:
    told, source = bodied(served, padded(size), terminated=terminated)
    assert told == status
    assert source.asked == [] if status == 413 else sum(source.asked) <= LIMIT * 2 + 1


@pytest.mark.parametrize("announced", ["", "nonsense", "\xb2", "-1", str(len(PING)), "1"])
def test_an_input_that_ends_by_itself_is_read_to_its_end_whatever_was_announced(
    announced: str, served: Wsgi
) -> None:
    assert bodied(served, padded(LIMIT), terminated=True, CONTENT_LENGTH=announced)[0] == 200
    told, source = bodied(served, padded(LIMIT * 99), terminated=True, CONTENT_LENGTH=announced)
    assert told == 413
    assert sum(source.asked) == LIMIT + 1


def test_an_input_without_an_end_is_read_to_the_announced_length(served: Wsgi) -> None:
    told, source = bodied(served, PING + b"GET / HTTP/1.1", CONTENT_LENGTH=str(len(PING)))
    assert (told, source.asked) == (200, [len(PING)])


@pytest.mark.parametrize("announced", ["", "nonsense", "\xb2", "-1", "0"])
def test_an_input_without_an_end_and_a_length_is_not_read(announced: str, served: Wsgi) -> None:
    told, source = bodied(served, PING, CONTENT_LENGTH=announced)
    assert (told, source.asked) == (400, [])


def test_a_chunked_body_that_the_server_does_not_decode_needs_a_length(served: Wsgi) -> None:
    told, source = bodied(served, PING, CONTENT_LENGTH="", HTTP_TRANSFER_ENCODING="chunked")
    assert (told, source.asked) == (411, [])


@pytest.mark.parametrize("announced", ["4097", "9" * 18, "9" * 19, "9" * 10_000])
def test_an_announced_length_beyond_the_cap_is_refused_unread(announced: str, served: Wsgi) -> None:
    told, source = bodied(served, PING, CONTENT_LENGTH=announced)
    assert (told, source.asked) == (413, [])


@pytest.mark.parametrize("terminated", [True, False])
def test_a_body_that_ends_early_runs_nothing(terminated: bool, door: Wsgi, desk: Desk) -> None:
    """The padding is cut off and the message is whole: it was not sent whole all the same."""
    for path, body in (
        ("/mcp", json.dumps(call("hello", {"name": "x"})).encode()),
        ("/api/hello", b'{"name":"x"}'),
    ):
        more = {"wsgi.input_terminated": terminated, "CONTENT_LENGTH": str(len(body) + 1)}
        told = asked(door, "POST", path, HEADERS, body, **more)
        said = json.loads(told.body)
        assert (told.status, said["code"], said["status"]) == (400, "X_MCP_PROTOCOL", 400)
        assert "Content-Length" in said["fix"]
    assert desk.events == []


@pytest.mark.parametrize("fault", [OSError("reset"), TimeoutError(), ValueError("closed file")])
def test_a_body_that_cannot_be_read_runs_nothing(fault: Exception, served: Wsgi) -> None:
    assert bodied(served, PING, fault=fault)[0] == 400


def test_a_body_is_read_only_for_who_was_let_in(served: Wsgi) -> None:
    source = Input(PING)
    assert asked(served, "POST", "/mcp", [HOST, TYPED], PING, source=source).status == 401
    assert source.asked == []


# The lifespan


def test_nothing_starts_before_the_first_request_and_everything_ends_with_the_last(desk: Desk) -> None:
    door = wsgi(desk.app)
    assert desk.lifespans == []
    for name in ("a", "b"):
        told = asked(door, *rpc(call("hello", {"name": name})))
        assert f"hello {name} from the desk by clerk" in told.body.decode()
    assert desk.lifespans == ["entered"]
    door.close()
    door.close()
    assert desk.lifespans == ["entered", "left"]
    assert asked(door, *rpc(message("ping"))).body == PONG
    door.close()
    assert desk.lifespans == ["entered", "left"] * 2


def test_a_lifespan_that_fails_is_told_to_everybody_alike_and_tried_again(
    caplog: pytest.LogCaptureFixture, desk: Desk
) -> None:
    broken = [True, True]

    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[str]:
        if broken:
            broken.pop()
            raise OSError("s3cret")
        yield "the desk"

    door = wsgi(desk.build(lifespan=lifespan))
    known, unknown = asked(door, *rpc(message("ping"))), asked(door, "GET", "/")
    assert known.status == unknown.status == 503
    assert known.body == unknown.body
    assert json.loads(known.body)["code"] == "X_INTERNAL"
    assert asked(door, *rpc(message("ping"))).status == 200
    door.close()
    assert caplog.messages == ["the lifespan of `desk` did not start: OSError"] * 2


def test_a_request_under_way_is_answered_when_the_app_is_closed(desk: Desk, monkeypatch: Any) -> None:
    from nonsuch.adapters.edge import background

    monkeypatch.setattr(background, "GRACE_SECONDS", 0.05)
    door = wsgi(desk.app)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(asked, door, *rpc(call("wait")))
        assert desk.started.wait(PATIENCE)
        door.close()
        assert waiting.result(PATIENCE).status == 503
    assert desk.stopped.is_set()
    code = "X_INTERRUPTED"
    assert desk.events == [ToolCall("wait", "failed", "mcp", "clerk", "agent", code=code)]
    assert desk.lifespans == ["entered", "stopped", "left"]


def test_policies_are_read_again_where_that_is_wanted(desk: Desk, tmp_path: Any, monkeypatch: Any) -> None:
    from nonsuch.adapters.edge import reload

    monkeypatch.setattr(reload, "WATCH_SECONDS", 0.01)
    door = wsgi(desk.build(policies_dir=tmp_path), reload="watch")
    greet = rpc(call("hello", {"name": "x"}))
    assert b"isError" not in asked(door, *greet).body
    (tmp_path / "no.cedar").write_text(
        '@id("no") forbid (principal, action in Action::"desk:use", resource);'
    )
    until(lambda: b"isError" in asked(door, *greet).body)
    door.close()


# What is recorded, and when


def test_an_event_is_recorded_once_the_answer_has_left(desk: Desk, door: Wsgi) -> None:
    asking = Asking(door, environ_of(*rpc(call("hello", {"name": "x"}))))
    assert asking.part()
    assert desk.events == []
    asking.leave()
    assert desk.events == [ToolCall("hello", "ok", "mcp", "clerk", "agent")]
    asking.leave()
    assert len(desk.events) == 1


def test_a_server_that_takes_all_and_does_not_close_is_recorded_too(desk: Desk, door: Wsgi) -> None:
    Asking(door, environ_of(*rpc(call("hello", {"name": "x"})))).rest()
    assert desk.events == [ToolCall("hello", "ok", "mcp", "clerk", "agent")]


def test_an_answer_that_nobody_takes_is_recorded(desk: Desk, door: Wsgi) -> None:
    Asking(door, environ_of(*rpc(call("hello", {"name": "x"})))).leave()
    assert desk.events == [ToolCall("hello", "ok", "mcp", "clerk", "agent")]


def test_an_answer_that_cannot_be_started_is_recorded(desk: Desk, door: Wsgi) -> None:
    def start(*_: object) -> Any:
        raise OSError("the client is gone")

    with pytest.raises(OSError, match="the client is gone"):
        door(environ_of(*rpc(call("hello", {"name": "x"}))), start)
    assert desk.events == [ToolCall("hello", "ok", "mcp", "clerk", "agent")]


def test_who_is_not_let_in_is_audited(desk: Desk, door: Wsgi) -> None:
    assert asked(door, "POST", "/api/hello", [HOST, TYPED], b"{}", REMOTE_ADDR="1.2.3.4").status == 401
    assert desk.events == [AuthRefused("no-token", 401, "1.2.3.4", "/api/hello")]


def test_a_bug_reaches_the_server(door: Wsgi, monkeypatch: Any) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("nonsuch.adapters.edge.wsgi.route", broken)
    with pytest.raises(ZeroDivisionError):
        asked(door, *rpc(message("ping")))


# Clients that leave


def under_way(door: Wsgi) -> int:
    """How many requests the loop still knows."""
    life = door._background._life  # pyright: ignore[reportPrivateUsage]
    return 0 if life is None else len(life._tasks)  # pyright: ignore[reportPrivateUsage]


def streaming(door: Wsgi, told: dict[str, Any]) -> Asking:
    """Begin a stream and take its first part."""
    asking = Asking(door, environ_of(*rpc(told)))
    assert asking.part().startswith(b"event: message\n")
    return asking


def test_a_client_that_leaves_stops_a_request_of_the_newest_revision(desk: Desk, door: Wsgi) -> None:
    asking = streaming(door, call("count", {"to": 10_000}, modern=True, progressToken=0))
    asking.leave()
    until(lambda: bool(desk.events))
    code = "X_INTERRUPTED"
    assert desk.events == [ToolCall("count", "failed", "mcp", "clerk", "agent", code=code)]
    assert desk.said <= 2


def test_a_client_that_leaves_does_not_stop_a_request_of_an_older_one(desk: Desk, door: Wsgi) -> None:
    """MCP 2025-11-25, transports: a disconnection should not be taken for a cancellation."""
    asking = streaming(door, call("count", {"to": 500}, progressToken=0))
    asking.leave()
    until(lambda: bool(desk.events))
    assert desk.events == [ToolCall("count", "ok", "mcp", "clerk", "agent")]
    assert desk.said == 500


def test_a_subscription_rests_tells_and_ends_with_its_client(
    desk: Desk, door: Wsgi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "KEEP_ALIVE_SECONDS", 0.02)
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["desk://note"]}
    asking = streaming(door, message("subscriptions/listen", {"notifications": wanted}, modern=True))
    assert asking.part() == b": \n\n"
    asked(door, *rpc(call("toggle")))
    told = list[Any]()
    while len(told) < 2:
        told += events(asking.part())
    methods = [each["method"] for each in told]
    assert methods == ["notifications/tools/list_changed", "notifications/resources/updated"]
    assert under_way(door) == 1
    asking.leave()
    until(lambda: under_way(door) == 0)


def test_a_client_that_leaves_before_anything_changes_ends_its_subscription(desk: Desk, door: Wsgi) -> None:
    asking = streaming(door, message("subscriptions/listen", {"notifications": {}}, modern=True))
    asking.leave()
    until(lambda: under_way(door) == 0)


def test_an_app_that_is_closed_and_asked_again_has_subscriptions_again(desk: Desk, door: Wsgi) -> None:
    asked(door, *rpc(message("ping")))
    door.close()
    wanted = {"resourceSubscriptions": ["desk://note"]}
    asking = streaming(door, message("subscriptions/listen", {"notifications": wanted}, modern=True))
    desk.app.notify.resource_updated("desk://note")
    assert [each["method"] for each in events(asking.part())] == ["notifications/resources/updated"]
    asking.leave()


def test_a_subscription_ends_by_itself_when_the_app_is_closed(desk: Desk) -> None:
    door = wsgi(desk.app)
    asking = streaming(door, message("subscriptions/listen", {"notifications": {}}, ident="s", modern=True))
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(asking.rest)
        door.close()
        told = events(rest.result(PATIENCE).body)
    assert (told[-1]["id"], told[-1]["result"]["resultType"]) == ("s", "complete")


def test_a_slow_client_slows_its_handler_and_nothing_piles_up(desk: Desk, door: Wsgi) -> None:
    asking = streaming(door, call("count", {"to": 100}, progressToken=0))
    threading.Event().wait(0.05)
    assert desk.said == 0
    for _ in range(10):
        asking.part()
    assert desk.said <= 7
    asking.rest()
    assert desk.said == 100
    asking.leave()


# Questions and threads


def test_a_question_is_answered_by_another_request(desk: Desk, door: Wsgi) -> None:
    asking = Asking(door, environ_of(*rpc(call("ask"))))
    (question,) = events(asking.part())
    assert (asking.answered.status, question["method"]) == (200, "elicitation/create")
    answer = {
        "jsonrpc": "2.0",
        "id": question["id"],
        "result": {"action": "accept", "content": {"name": "Ann"}},
    }
    headers = [*HEADERS, ("MCP-Protocol-Version", LEGACY)]
    assert asked(door, "POST", "/mcp", headers, json.dumps(answer).encode()).status == 202
    (told,) = events(asking.part())
    assert told["result"]["content"][0]["text"] == '{"name": "Ann"}'
    asking.leave()


def test_two_hundred_requests_over_sixteen_threads_are_two_hundred_answers(desk: Desk, door: Wsgi) -> None:
    """Async and plain handlers, streams and whole answers, each with a name that comes back."""

    def one(at: int) -> Answered:
        kinds: list[dict[str, Any]] = [
            call("hello", {"name": f"n{at}"}, ident=at),
            call("plainly", {"to": 3}, ident=at, progressToken=at),
            call("count", {"to": 3}, ident=at, progressToken=at),
            call("gone", ident=at),
        ]
        return asked(door, *rpc(kinds[at % 4]))

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, range(200)))
    for at, answer in enumerate(answers):
        told = events(answer.body) if at % 4 in (1, 2) else [json.loads(answer.body)]
        assert [each["id"] for each in told if "id" in each] == [at]
        assert {
            e["params"]["progressToken"] for e in told if e.get("method") == "notifications/progress"
        } <= {at}
        assert len(told) == (1, 4, 7, 1)[at % 4]
        if at % 4 == 0:
            assert f"hello n{at} " in told[0]["result"]["content"][0]["text"]
    assert desk.lifespans == ["entered"]
    assert sorted(str(getattr(each, "outcome", "")) for each in desk.events) == ["hidden"] * 50 + ["ok"] * 150


def test_plain_handlers_run_beside_each_other_in_as_many_threads_as_there_are_requests() -> None:
    meeting = threading.Barrier(40, timeout=PATIENCE)

    def meet() -> str:
        meeting.wait()
        return "met"

    from ..mcp.asking import declared, served

    app: App = served(declared(meet), "meet")
    door = wsgi(app)
    with ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(partial(asked, door), *zip(*[rpc(call("meet"))] * 40, strict=True)))
    assert [b'"text":"met"' in each.body for each in answers] == [True] * 40
    door.close()
