"""``tools/call``: parameters to a call, through the kernel's gates, and the outcome back."""

from __future__ import annotations

from ...kernel.model import Call, InputRequired
from ...kernel.steps import Steps
from ..wire import Reply
from .endpoint import Request
from .refusals import answer
from .revisions import INVALID_PARAMS
from .rounds import another


def call(request: Request) -> Steps[Reply]:
    """Answer ``tools/call``."""
    params = request.message.params
    name, arguments = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return request.malformed("`name` must be a string and `arguments` an object")
    line = request.exchange()
    if not line.reopen(request.server.seal):
        return request.error(INVALID_PARAMS, "invalid requestState")
    view = request.view()  # 8
    outcome = yield from request.server.kernel.invoke(view, Call(name, arguments, "mcp"), line)
    if isinstance(outcome, InputRequired):
        return another(request, line, outcome)
    return answer(request, name, view.find(name, "mcp"), outcome)
