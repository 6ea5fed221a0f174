"""How clients show what they met, where one does not show the protocol's own result or error.

Each takes a step and what it meets on the wire, and returns what the client shows of it.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from .client_walk import Met
from .plan import SCOPE, SCOPE_FIX, Step

Shown = Callable[[Step, Met], Met]


def unchanged(step: Step, met: Met) -> Met:
    return met


def prefixed(step: Step, met: Met) -> Met:
    """The TypeScript SDK names the code in the message."""
    return {**met, "message": f"MCP error {met['code']}: {met['message']}"} if "code" in met else met


def renumbered(step: Step, met: Met) -> Met:
    """The TypeScript client gives a resource that is not found one code in every revision."""
    return {**met, "code": -32602} if met.get("code") == -32002 else met


def challenged(step: Step, met: Met) -> Met:
    """The TypeScript client reads the challenge of a 403 and not its body."""
    message = 'Insufficient scope: required "delete"'
    shown = {"failure": "InsufficientScopeError", "message": message, "description": SCOPE_FIX}
    return shown if met == SCOPE else met


def unread(step: Step, met: Met) -> Met:
    """LangChain's adapters do not show why a resource could not be read."""
    failed = {"failure": "RuntimeError", "message": f"Error fetching resource {step[1]}"}
    return failed if step[0] == "read" and "code" in met else met


def for_a_model(step: Step, met: Met) -> Met:
    """Pydantic AI turns a tool's error into words for the model, and a result into its value."""
    if step[0] != "call":
        return met
    if "code" in met or met["isError"]:
        return {"failure": "ModelRetry", "message": met["text"] if "isError" in met else met["message"]}
    return {"told": met["text"] if met["structured"] is None else met["structured"]}


NO_REGISTRATION: Final = (
    "mcp-remote: Dynamic Client Registration rejected (HTTP 404): "
    '{"code":"X_ROUTE_NOT_FOUND","cause":"no action answers at that path","fix":"check the path",'
    '"docs":"nonsuch://errors/X_ROUTE_NOT_FOUND","type":"nonsuch://errors/X_ROUTE_NOT_FOUND",'
    '"title":"no action answers at that path","status":404,"detail":"no action answers at that path"}'
)


def unregistered(step: Step, met: Met) -> Met:
    """mcp-remote answers a challenge by signing in, and shows why it cannot."""
    return {"code": -32001, "message": NO_REGISTRATION, "data": None} if met == SCOPE else met


def exited(step: Step, met: Met, *, challenge: bool) -> Met:
    """The inspector looks a tool up before it calls it, and says with its exit code how it went."""
    if "code" not in met:
        return {"exit": 5 if met.get("isError") else 0, **met}
    if met["message"].startswith("tool not found"):
        return {"exit": 5, "failure": "tool_not_found", "message": f"Tool '{step[1]}' not found on server."}
    read = 'Insufficient scope: required "delete"' if challenge and met == SCOPE else met["message"]
    return {"exit": 1, "failure": "error", "message": read}


exited_of_body: Final[Shown] = partial(exited, challenge=False)
exited_of_challenge: Final[Shown] = partial(exited, challenge=True)
