"""Rewrites one function of the running program from edited source, and puts it back. Knows no mutant.

The code object is exchanged in place, so that every reference to the function, a bound method in a memo
included, runs the edited text.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, cast

from nonsuch.adapters.edge import policies
from nonsuch.kernel.compile import PolicySource


class Stale(Exception):
    """An edit no longer applies: the code that it changes reads differently now."""


@dataclass(frozen=True, slots=True)
class Edit:
    """In a function of a module (``kernel.gates:Kernel.invoke``), texts for others, each exactly once."""

    where: str
    changes: tuple[tuple[str, str], ...]

    @contextmanager
    def applied(self) -> Generator[None]:
        """Run the edited text inside."""
        function, code = self._compiled()
        before = function.__code__
        function.__code__ = code
        try:
            yield
        finally:
            function.__code__ = before

    def _compiled(self) -> tuple[FunctionType, CodeType]:
        module, _, path = self.where.partition(":")
        home = importlib.import_module(f"nonsuch.{module}")
        function = _function(home, path, self.where)
        lines, start = inspect.getsourcelines(function.__code__)
        text = "".join(lines)
        for old, new in self.changes:
            if text.count(old) != 1:
                raise Stale(f"{self.where}: `{old}` stands there {text.count(old)} times")
            text = text.replace(old, new)
        whole = Path(inspect.getfile(home)).read_text("utf-8").splitlines(keepends=True)
        edited = "".join(whole[: start - 1]) + text
        edited += "".join(whole[start - 1 + len(lines) :])
        try:
            codes = list(_codes(compile(edited, "<mutant>", "exec")))
        except SyntaxError as fault:
            raise Stale(f"{self.where}: the edited text is no Python: {fault}") from None
        found = [each for each in codes if each.co_qualname == path]
        if len(found) != 1 or found[0].co_freevars != function.__code__.co_freevars:
            raise Stale(f"{self.where}: the edited text does not define the same function")
        return function, found[0]


def _function(home: object, path: str, where: str) -> FunctionType:
    held: object = home
    for name in path.split("."):
        try:
            held = inspect.getattr_static(held, name)
        except AttributeError:
            raise Stale(f"{where}: no such function") from None
    held = inspect.unwrap(cast("Callable[..., Any]", held))
    held = held.fget if isinstance(held, property) else held
    if not isinstance(held, FunctionType):
        raise Stale(f"{where}: not a plain function")
    return held


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


@dataclass(frozen=True, slots=True)
class PolicyEdit:
    """In the policy texts that every app has, one text for another, exactly once."""

    old: str
    new: str

    @contextmanager
    def applied(self) -> Generator[None]:
        """Boot every app inside with the edited policies."""
        base = policies.base()
        if "\n".join(each.text for each in (*base.policies, *base.confirmation)).count(self.old) != 1:
            raise Stale(f"policies: `{self.old}` does not stand there once")
        edited = dataclasses.replace(
            base, policies=self._edited(base.policies), confirmation=self._edited(base.confirmation)
        )
        before = policies.base
        setattr(policies, "base", lambda: edited)  # noqa: B010 - mypy: a name of another module
        try:
            yield
        finally:
            setattr(policies, "base", before)  # noqa: B010

    def _edited(self, texts: Iterable[PolicySource]) -> tuple[PolicySource, ...]:
        return tuple(dataclasses.replace(each, text=each.text.replace(self.old, self.new)) for each in texts)


@contextmanager
def applied(edits: Iterable[Edit | PolicyEdit]) -> Generator[None]:
    """Apply all edits of a mutant."""
    with ExitStack() as stack:
        for edit in edits:
            stack.enter_context(edit.applied())
        yield
