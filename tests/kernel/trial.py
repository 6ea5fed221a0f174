"""Small apps and small worlds for tests: declarations in, a kernel or its faults out; a spy answers steps.

Knows nothing of any one test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from nonsuch import Agent, App, BootError, Human, Principal, Registry, define_app_mcp
from nonsuch.kernel.errors import Fault
from nonsuch.kernel.model import Call, Outcome, Surface
from nonsuch.kernel.steps import Answer, Audit, Load, Permit, Raised, Returned, Step, Steps
from nonsuch.kernel.strict_json import Json

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

NOBODY = Agent("nobody")
EDITOR = Agent("ed", roles={"editor"})


def boot(registry: Registry, **given: Any) -> App:
    """Boot an app named ``trial`` that serves what is exposed."""
    settings: dict[str, Any] = {"name": "trial", "include": "exposed", **given}
    return define_app_mcp(registry, **settings)


def faults(registry: Registry, **given: Any) -> list[Fault]:
    """Return every fault of an app that must not boot."""
    with pytest.raises(BootError) as caught:
        boot(registry, **given)
    return list(caught.value.faults)


def folder(at: Path, **texts: str) -> Path:
    """Write ``name.cedar`` files and return their directory."""
    for name, text in texts.items():
        (at / f"{name}.cedar").write_text(text)
    return at


def unchecked(model: type[M], **values: Any) -> M:
    """Return a value that was never validated, as applications make them of database rows."""
    return model.model_construct(**values)


@dataclass
class Spy:
    """A world with a transcript: loads and handlers answer from values, everything is written down."""

    loaded: Callable[[Load], Answer] = lambda _: Returned(None)
    handled: Callable[[Permit], Answer] = lambda _: Returned(None)
    transcript: list[Step] = field(default_factory=list[Step])

    def answer(self, step: Step) -> Answer:
        """Answer one step."""
        self.transcript.append(step)
        match step:
            case Load():
                return self.loaded(step)
            case Permit():
                return self.handled(step)
            case Audit():
                return Returned(None)
            case _:
                return Raised(AssertionError(f"nobody expected {step}"))

    @property
    def kinds(self) -> list[str]:
        """The steps that were asked, by name."""
        return [type(step).__name__ for step in self.transcript]


def drive(steps: Steps[T], spy: Spy) -> T:
    """Answer steps until the generator returns."""
    try:
        step = next(steps)
        while True:
            step = steps.send(spy.answer(step))
    except StopIteration as done:
        value: T = done.value
        return value


def called(
    app: App,
    who: Principal,
    name: str,
    arguments: Mapping[str, Json] | None = None,
    spy: Spy | None = None,
    surface: Surface = "agent",
) -> Outcome:
    """Call a tool of an app in a spying world."""
    kernel = app.kernel
    call = Call(name, arguments or {}, surface)
    return drive(kernel.invoke(kernel.view_for(who), call), spy or Spy())


def everyone() -> list[Principal]:
    """Return one principal of each kind."""
    person = Human("h", roles={"editor"}, org="acme")
    return [NOBODY, EDITOR, person, person.delegate("a"), Human("t", scopes=())]
