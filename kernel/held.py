"""A task asked after by its id: whose it is, and whether they may still have to do with its tool.

A task that is unknown, somebody else's, gone, or of a tool that is hidden by now is one answer. Knows
no store.
"""

from __future__ import annotations

from .audit import Asked, task_asked
from .codes import CODES
from .gates import Kernel
from .model import Failed, Hidden, Outcome, owner_key
from .steps import Audit, FindTask, Returned, Steps
from .tasks import IDENT, Task
from .view import View


def held(kernel: Kernel, view: View, ident: str, asked: Asked) -> Steps[tuple[Task | None, Outcome | None]]:
    """Return a task of the caller's, and why the caller may not have to do with it now, if so.

    1. its id and its owner  2. visibility and  3. scope of its tool, as they are now. Whatever is refused
    is audited.
    """
    found = yield from _found(view, ident)  # 1
    task = found if isinstance(found, Task) else None
    refused = kernel.still(view, found.tool) if isinstance(found, Task) else found  # 2, 3
    if refused is not None or asked != "look":
        tool = None if task is None else task.tool
        yield Audit(task_asked(view.principal, asked, ident, tool, refused))
    return task, refused


def _found(view: View, ident: str) -> Steps[Task | Hidden | Failed]:
    if not IDENT.fullmatch(ident):
        return Hidden(ident)
    answer = yield FindTask(ident, owner_key(view.judge.server, view.principal))
    if not isinstance(answer, Returned):
        told = CODES["X_INTERNAL"]
        return Failed(told.code, told.cause, told.fix, told.caller_fix)
    return answer.value if isinstance(answer.value, Task) else Hidden(ident)
