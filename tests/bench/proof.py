"""Before a subject's speed counts: it must be seen to refuse what its gates are there to refuse."""

from collections.abc import Awaitable, Callable

from . import service
from .subjects import SUBJECTS
from .wire import WIRES, Request, Wire, call


class GateOpen(Exception):
    """A subject let through what it was built to refuse: its figures would mean nothing."""


async def prove(name: str, passes: Callable[[Request], Awaitable[bool]]) -> None:
    """Ask what must be refused, and what must not. Raises `GateOpen`, `RuntimeError`."""
    for wire in WIRES:
        if not await passes(call(wire, 0)):
            raise RuntimeError(f"`{name}` refused a good call on the {wire} wire")
        for gate, request in _refused(wire).items():
            if gate in SUBJECTS[name].gates and await passes(request):
                raise GateOpen(f"`{name}` let a call through its {gate} gate on the {wire} wire")


def _refused(wire: Wire) -> dict[str, Request]:
    return {
        "token": call(wire, 0, token=service.STRANGER),
        "scope": call(wire, 0, token=service.UNSCOPED),
        "argument": call(wire, 0, service.LIMIT + 1),
    }
