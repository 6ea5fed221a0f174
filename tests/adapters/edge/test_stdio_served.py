"""A program on stdio as released clients start it: what it answers, what it prints, and how it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import mcp
import mcp.types as types
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPDeprecationWarning

from ...conformance.environment import HERE, ROOT, node, npm_modules
from .talkers import LEGACY, call, message

MODULE: Final = "tests.adapters.edge.stdio_app"
PATIENCE: Final = 60
TOOLS: Final = ["ask", "count", "hello", "noisy", "plainly", "regional", "toggle", "wait", "where"]
Started = subprocess.Popen[str]


def started(*more: str) -> Started:
    return subprocess.Popen(
        [sys.executable, "-m", MODULE, *more],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(program: Started, *told: dict[str, Any]) -> None:
    assert program.stdin is not None
    program.stdin.write("".join(json.dumps(each) + "\n" for each in told))
    program.stdin.flush()


def heard(program: Started) -> Any:
    assert program.stdout is not None
    return json.loads(program.stdout.readline())


ENDED: Final = "entered\nleft\nserved\n"


# The program


def test_nothing_but_messages_goes_to_stdout() -> None:
    """Neither what a handler prints nor what a program prints that it starts; and neither reads our input."""
    with started("prints") as program:
        for _ in range(2):
            said(program, call("noisy"))
            assert heard(program)["result"]["content"][0]["text"] == "silent"
        out, err = program.communicate(timeout=PATIENCE)
    assert out == "the end\n", "stdout is the program's again afterwards"
    assert sorted(err.splitlines()) == sorted(["entered", *["printed", "started"] * 2, "left", "served"])


def test_the_end_of_the_input_is_the_end_of_the_program() -> None:
    with started("prints") as program:
        out, err = program.communicate("", PATIENCE)
    assert (program.returncode, out, err) == (0, "the end\n", ENDED)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_as_well(number: signal.Signals) -> None:
    """With a request under way, a subscription open and the input open."""
    with started("prints") as program:
        listen = message("subscriptions/listen", {"notifications": {}}, ident=2, modern=True)
        said(program, call("wait"), listen)
        assert heard(program)["method"] == "notifications/subscriptions/acknowledged"
        program.send_signal(number)
        assert heard(program)["result"]["resultType"] == "complete"
        out, err = program.communicate(timeout=PATIENCE)
    assert (program.returncode, out) == (0, "the end\n")
    assert [each for each in err.splitlines() if not each.startswith("{")] == ENDED.splitlines()


def test_a_reader_that_leaves_ends_it_as_well() -> None:
    with started("prints") as program:
        assert program.stdout is not None
        said(program, call("count", {"to": 10**9, "size": 1_000}, progressToken=0))
        assert heard(program)["method"] == "notifications/progress"
        program.stdout.close()
        assert program.wait(PATIENCE) != 0, "`the end` cannot be printed"


# The Python client


class Asked:
    """The client's side of questions and notifications."""

    def __init__(self) -> None:
        self.progress: list[float] = []
        self.logged: list[Any] = []
        self.changed: list[str] = []
        self.told = asyncio.Event()

    async def elicited(self, context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": "Ann"})

    async def roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate({"roots": [{"uri": "file:///work"}]})

    async def progressed(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append(progress)

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logged.append(params.data)

    async def heard(self, message: Any) -> None:
        if message.method.endswith(("/list_changed", "/updated")):
            self.changed.append(message.method)
        if len(self.changed) >= 2:
            self.told.set()


def connected(mode: str, asked: Asked) -> mcp.Client:
    server = StdioServerParameters(command=sys.executable, args=["-m", MODULE], cwd=ROOT)
    return mcp.Client(
        stdio_client(server),
        mode=mode,
        elicitation_callback=asked.elicited,
        list_roots_callback=asked.roots,
        logging_callback=asked.log,
        message_handler=asked.heard,
    )


async def until(done: Callable[[], bool]) -> None:
    """Wait for what the client hands over beside its answers."""
    while not done():  # noqa: ASYNC110  (callbacks of the client make it true)
        await asyncio.sleep(0.005)


async def text(client: mcp.Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    held = result.content[0]
    assert isinstance(held, types.TextContent)
    return held.text


@pytest.mark.parametrize(
    ("mode", "spoken", "unknown"),
    [("legacy", LEGACY, -32601), ("2026-07-28", "2026-07-28", -32602), ("auto", "2026-07-28", -32602)],
)
def test_the_python_client_is_served_in_every_mode(mode: str, spoken: str, unknown: int) -> None:
    asked = Asked()

    async def main() -> None:
        async with asyncio.timeout(PATIENCE), connected(mode, asked) as client:
            assert client.protocol_version == spoken
            assert [each.name for each in (await client.list_tools()).tools] == TOOLS
            assert await text(client, "hello", name="Python") == "hello Python from the desk by clerk"
            await client.call_tool("count", {"to": 3}, progress_callback=asked.progressed)
            await until(lambda: asked.progress == [0, 1, 2])
            assert await text(client, "noisy") == "silent"
            assert await text(client, "ask") == '{"name": "Ann"}'
            assert await text(client, "where") == "file:///work"
            prompt = await client.get_prompt("greeting", {"name": "Bob"})
            assert getattr(prompt.messages[0].content, "text", None) == "Greet Bob"
            with pytest.raises(mcp.MCPError) as refused:
                await client.call_tool("gone", {})
            assert refused.value.code == unknown
            await follows(client, asked, legacy=mode == "legacy")
            await until(lambda: len(asked.logged) == (3 if mode == "legacy" else 0))

    asyncio.run(main())


async def follows(client: mcp.Client, asked: Asked, *, legacy: bool) -> None:
    """Learn of a change, as the client's revision does."""
    if legacy:
        with pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource("desk://note")  # pyright: ignore[reportDeprecated]  # it is tested
        await text(client, "toggle")
        await asked.told.wait()
        assert sorted(asked.changed) == [
            "notifications/resources/updated",
            "notifications/tools/list_changed",
        ]
    else:
        async with client.listen(tools_list_changed=True, resource_subscriptions=["desk://note"]) as changes:
            await text(client, "toggle")
            kinds = {type(await anext(changes)).__name__ for _ in range(2)}
        assert len(kinds) == 2
    assert "closed" in [each.name for each in (await client.list_tools()).tools]


def test_a_call_that_the_python_client_gives_up_is_stopped() -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE), connected("legacy", Asked()) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await client.call_tool("wait", {})
            assert await text(client, "hello", name="x") == "hello x from the desk by clerk"

    asyncio.run(main())


# The TypeScript client


@pytest.mark.parametrize(("era", "unknown"), [("legacy", -32601), ("modern", -32602), ("auto", -32602)])
def test_the_typescript_client_is_served_in_every_mode(era: str, unknown: int) -> None:
    """The script is read from stdin, so that its imports are found beside the lock of its packages."""
    npm_modules()
    command = [node(), "--input-type=module", "-", era, ROOT, sys.executable, "-m", MODULE]
    done = subprocess.run(
        [str(each) for each in command],
        cwd=HERE,
        input=Path(__file__).with_name("client_stdio.mjs").read_text(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "tools": TOOLS,
        "hello": "hello TypeScript from the desk by clerk",
        "count": "3",
        "noisy": "silent",
        "ask": '{"name": "Ann"}',
        "gone": unknown,
        "aborted": True,
        "after": "hello again from the desk by clerk",
    }
