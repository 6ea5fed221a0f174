"""One maker of a Permit, and one place that starts application code for it: read by ``ast``, then run."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, cast

import pytest
from pydantic import BaseModel

from nonsuch import Agent, Registry, can, define_app_mcp, expose, grant
from nonsuch.adapters.edge.run import Edge, Running
from nonsuch.kernel.audit import AuthRefused
from nonsuch.kernel.model import Ok
from nonsuch.kernel.signatures import read_signature
from nonsuch.kernel.steps import (
    Audit,
    Deliver,
    Permit,
    Raised,
    ReadBody,
    RequestFacts,
    ResolveToken,
    Returned,
    Step,
    UnknownStep,
    Watch,
    Write,
)

from .sources import Tree, line_of, package

DECLARES: Final = "kernel/steps.py"
MAKES: Final = "kernel/gates.py"
STARTS: Final = "adapters/edge/run.py"

# Who may copy or fill in a frozen value, and which. A changed copy of a Permit would be a second maker.
COPIES: Final = {
    "adapters/edge/guards.py": "an audit event, of an action that was declared",
    "adapters/http/inbox.py": "a head without its origin; who looks at a page",
    "kernel/boot.py": "a declared action, under the name that the app gives it; an entry, in its group",
    "kernel/boot_content.py": "an entry, with its place and completions",
    "adapters/edge/prompts.py": "a declared prompt, with the function that reads its file",
    "kernel/model.py": "a principal, while it is built",
    "kernel/tasks.py": "a task, as it changes",
    "kernel/confirmation.py": "a confirmation, as it changes",
    "kernel/boot_confirmation.py": "an entry, whose calls wait for a person",
    "kernel/own_types.py": "the texts of the base, with the types of an app",
    "kernel/audit.py": "an audit event, with the confirmation it had to do with",
    "adapters/edge/confirmations.py": "a confirmation, without its arguments",
    "adapters/edge/task_store.py": "a task, with another lease",
    "adapters/edge/runtime.py": "an app, with the store that it counts in",
    "adapters/edge/idempotency.py": "the record of a keyed call, with its outcome",
    "kernel/cedar.py": "a node of a policy, under our own id",
    "kernel/cedar_text.py": "a node of a policy, under our own id, its slots filled",
    "kernel/cedar_parts.py": "a node of a policy, with other conditions or an other id",
    "adapters/analysis/parts.py": "what a part of a condition holds",
    "adapters/mcp/connection.py": "what a connection remembers of its client",
    "kernel/sql.py": "the facts of a query, once what is refused in it has a place",
    "kernel/sql_rules.py": "a part of a query that is refused, with its place in characters",
    "kernel/sql_weigh.py": "the facts of a body, without what it says of its parameters",
    "adapters/edge/postgres/readonly_live.py": "the facts of a query, with what its database says",
    "adapters/edge/audit.py": "an audit event, once hidden is told from absent",
}
COPIERS: Final = frozenset({"dataclasses", "dataclasses.replace", "copy", "pickle", "copyreg", "marshal"})
MAKERS_WITHOUT_A_CALL: Final = frozenset(
    {"__class__", "__new__", "__reduce__", "__reduce_ex__", "__replace__", "__setattr__", "__subclasses__"}
)

# Application code hangs from these attributes.
CODE: Final = frozenset({"function", "handler", "loader"})

Rule = Callable[[Tree], list[str]]
Parents = Mapping[ast.AST, ast.AST]


def one_maker(tree: Tree) -> list[str]:
    """``Permit`` and ``Load`` are called in the gates, and elsewhere only matched or annotated."""
    found: list[str] = []
    for path, source in sorted(tree.items()):
        module = ast.parse(source, path)
        parents = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
        told = ((line_of(node), _misuse(path, node, parents)) for node in ast.walk(module))
        found += [f"{path}:{line} {what}" for line, what in sorted(each for each in told if each[1])]
    return found


def _misuse(path: str, node: ast.AST, parents: Parents) -> str:
    match node:
        case ast.ClassDef(name="Permit" | "Load" as name) if path != DECLARES:
            return f"declares another {name}"
        case ast.alias(name="Permit" | "Load" as name, asname=str()):
            return f"renames {name}"
        case ast.alias(name="*"):
            return "imports every name of a module"
        case ast.Constant(value="Permit" | "Load" as name):
            return f"names {name} by its text"
        case ast.Name(id="Permit" | "Load" as name) | ast.Attribute(attr="Permit" | "Load" as name):
            return _use(path, node, name, parents)
        case _:
            return ""


def _use(path: str, node: ast.AST, name: str, parents: Parents) -> str:
    parent = parents[node]
    match parent:
        case ast.Call() if parent.func is node:
            return "" if path == MAKES else f"makes a {name}"
        case ast.ClassDef():
            return f"subclasses {name}"
        case ast.MatchClass():
            return ""
        case _:
            return "" if _is_annotation(path, node, parents) else f"hands {name} around"


def _is_annotation(path: str, node: ast.AST, parents: Parents) -> bool:
    """Whether the node stands in an annotation, or in the union of all steps."""
    while node in parents:
        child, node = node, parents[node]
        match node:
            case ast.arg() | ast.AnnAssign():
                return node.annotation is child
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return node.returns is child
            case ast.Assign(targets=[ast.Name(id="Step")]):
                return path == DECLARES
            case ast.BinOp() | ast.Subscript() | ast.Tuple():
                continue
            case _:
                return False
    return False


def no_changed_copy(tree: Tree) -> list[str]:
    """Nothing copies a frozen value with changes, or makes one without calling its class."""
    return [
        f"{path}:{line} uses {what}: say in COPIES what it copies"
        for path, source in sorted(tree.items())
        if path not in COPIES
        for line, what in sorted(_copiers(ast.parse(source, path)))
    ]


def _copiers(module: ast.Module) -> Iterator[tuple[int, str]]:
    own = {id(node.func) for node in ast.walk(module) if isinstance(node, ast.Call) and _sets_self(node)}
    for node in ast.walk(module):
        match node:
            case ast.Import():
                yield from ((node.lineno, each.name) for each in node.names if each.name in COPIERS)
            case ast.ImportFrom(module=str(name)):
                full = [
                    name if name in COPIERS - {"dataclasses"} else f"{name}.{each.name}"
                    for each in node.names
                ]
                yield from ((node.lineno, each) for each in full if each in COPIERS)
            case ast.Attribute(attr=name) if name in MAKERS_WITHOUT_A_CALL and id(node) not in own:
                yield node.lineno, name
            case ast.Call(func=ast.Call(func=ast.Name(id="type"))):
                yield node.lineno, "type(...)(...)"
            case _:
                pass


def _sets_self(call: ast.Call) -> bool:
    """``object.__setattr__(self, ...)``: how a frozen dataclass fills in its own fields."""
    return ast.unparse(call).startswith("object.__setattr__(self, ")


def one_starter(tree: Tree) -> list[str]:
    """Only the enforcement point touches the function of a handler."""
    return [
        f"{path}:{line} {what}"
        for path, source in sorted(tree.items())
        if path != STARTS
        for line, what in sorted(_starts(ast.parse(source, path)))
    ]


def _starts(module: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module):
        match node:
            case ast.Attribute(attr="function", ctx=ast.Load()):
                yield node.lineno, "takes the function of a handler"
            case ast.Call(func=ast.Attribute(attr="handler" | "loader" as name)):
                yield node.lineno, f"calls a {name}"
            case ast.Call(args=[_, ast.Constant(value=str(name)), *_]) if name in CODE:
                yield node.lineno, f"names `{name}` by its text"
            case _:
                pass


def started_for_a_permit_or_a_load(tree: Tree) -> list[str]:
    """In the enforcement point, application code is started by one method, and that one for two steps."""
    module = ast.parse(tree[STARTS])
    parents = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
    found: list[str] = []
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and node.attr == "function" and _method(node, parents) != "_apply":
            found.append(f"line {node.lineno} takes the function of a handler outside of _apply")
        if isinstance(node, ast.Attribute) and node.attr == "_apply" and not _for_a_step(node, parents):
            found.append(f"line {node.lineno} applies a handler for neither a Permit nor a Load")
    return found


def _method(node: ast.AST, parents: Parents) -> str:
    while node in parents:
        node = parents[node]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return node.name
    return ""


def _for_a_step(node: ast.AST, parents: Parents) -> bool:
    while node in parents and not isinstance(node, ast.match_case):
        node = parents[node]
    return isinstance(node, ast.match_case) and ast.unparse(node.pattern) in ("Permit()", "Load()")


# The package keeps every rule.


def test_only_the_gates_construct_a_permit() -> None:
    """Nor a ``Load``, the other step for which the edge starts application code."""
    assert one_maker(package()) == []


def test_the_gates_load_by_a_loader() -> None:
    """A ``Load`` runs what it is given: with a handler in place of a loader it would be a permit."""
    calls = [node for node in ast.walk(ast.parse(package()[MAKES])) if isinstance(node, ast.Call)]
    loads = [ast.unparse(call.args[0]) for call in calls if ast.unparse(call.func) == "Load"]
    assert loads == ["entry.resource.loader"]


def test_the_gates_complete_by_a_completer() -> None:
    """A ``Permit`` runs the entry's handler, or what completes an argument of it."""
    calls = [node for node in ast.walk(ast.parse(package()[MAKES])) if isinstance(node, ast.Call)]
    permits = [call for call in calls if ast.unparse(call.func) == "Permit"]
    given = [(ast.unparse(call.args[0]), [ast.unparse(each) for each in call.args[5:]]) for call in permits]
    assert given == [("entry", []), ("entry", ["completer.handler"])]
    assert not any(call.keywords for call in permits)


def test_nothing_copies_a_permit() -> None:
    assert no_changed_copy(package()) == []


def test_every_copier_that_is_excused_copies() -> None:
    assert {path for path in COPIES if not list(_copiers(ast.parse(package()[path])))} == set()


def test_only_the_enforcement_point_touches_the_function_of_a_handler() -> None:
    assert one_starter(package()) == []


def test_the_enforcement_point_starts_code_for_a_permit_or_a_load() -> None:
    assert started_for_a_permit_or_a_load(package()) == []


def test_the_rules_read_the_gates_and_the_enforcement_point() -> None:
    """Calls in the gates, and code started in the edge: or the rules above would hold of an empty tree."""
    calls = [node for node in ast.walk(ast.parse(package()[MAKES])) if isinstance(node, ast.Call)]
    assert [ast.unparse(each.func) for each in calls].count("Permit") == 2
    assert list(_starts(ast.parse(package()[STARTS])))


# A made-up tree that breaks a rule is told so.

USES: Final = {
    "made = Permit(entry, given, who, None)": "makes a Permit",
    "made = steps.Permit(entry, given, who, None)": "makes a Permit",
    "class Lax(Permit): ...": "subclasses Permit",
    "class Permit: ...": "declares another Permit",
    "from ..kernel.steps import Permit as P": "renames Permit",
    "from ..kernel.steps import *": "imports every name of a module",
    "P = Permit": "hands Permit around",
    "P = steps.Permit": "hands Permit around",
    "P: object = Permit": "hands Permit around",
    "made = map(Permit, entries)": "hands Permit around",
    "def make(kind=Permit): ...": "hands Permit around",
    "Step = Audit | Permit": "hands Permit around",
    "made = getattr(steps, 'Permit')(entry)": "names Permit by its text",
    "made = vars(steps)['Permit'](entry)": "names Permit by its text",
    "step = Load(entry.handler, given, who)": "makes a Load",
    "class Lax(steps.Load): ...": "subclasses Load",
    "from ..kernel.steps import Load as L": "renames Load",
}


@pytest.mark.parametrize(("source", "told"), USES.items())
def test_another_maker_is_told(source: str, told: str) -> None:
    assert one_maker({"adapters/agent/loop.py": source}) == [f"adapters/agent/loop.py:1 {told}"]


@pytest.mark.parametrize(
    "source",
    [
        "from ..kernel.steps import Permit",
        "def run(step: Permit | Load) -> list[Permit]:\n    held: Permit = step",
        "match step:\n    case Permit() | steps.Permit(): ...",
    ],
)
def test_a_reader_of_permits_is_told_nothing(source: str) -> None:
    assert one_maker({"adapters/agent/loop.py": source}) == []


COPYING: Final = {
    "from dataclasses import dataclass, replace": "dataclasses.replace",
    "import dataclasses": "dataclasses",
    "import copy": "copy",
    "from copy import copy as twin": "copy",
    "import pickle": "pickle",
    "made = type(step)(entry, other, who, None)": "type(...)(...)",
    "made = step.__class__(entry, other, who, None)": "__class__",
    "made = object.__new__(kind)": "__new__",
    "object.__setattr__(step, 'input', other)": "__setattr__",
    "made = step.__replace__(input=other)": "__replace__",
    "kinds = tuple.__subclasses__()": "__subclasses__",
    "made = step.__reduce__()": "__reduce__",
}


@pytest.mark.parametrize(("source", "what"), COPYING.items())
def test_a_changed_copy_is_told(source: str, what: str) -> None:
    told = no_changed_copy({"adapters/agent/loop.py": source})
    assert told == [f"adapters/agent/loop.py:1 uses {what}: say in COPIES what it copies"]


def test_a_frozen_value_may_fill_in_its_own_fields() -> None:
    source = "from dataclasses import dataclass\nobject.__setattr__(self, 'roles', frozenset(roles))"
    assert no_changed_copy({"kernel/model.py": source}) == []


STARTING: Final = {
    "entry.handler.function(given)": "takes the function of a handler",
    "start = handler.function": "takes the function of a handler",
    "action.handler(given)": "calls a handler",
    "kind.loader(given)": "calls a loader",
    "getattr(handler, 'function')(given)": "names `function` by its text",
}


@pytest.mark.parametrize(("source", "told"), STARTING.items())
def test_another_starter_is_told(source: str, told: str) -> None:
    assert one_starter({"adapters/agent/loop.py": source}) == [f"adapters/agent/loop.py:1 {told}"]


def test_a_handler_started_for_another_step_is_told() -> None:
    source = """
class Edge:
    async def answer(self, step):
        match step:
            case Permit():
                return await self._apply(step)
            case Audit() | Permit():
                return await self._apply(step)
            case _:
                return await self._apply(step)
    async def early(self, step):
        await self._apply(step)
        return step.handler.function()
"""
    assert sorted(started_for_a_permit_or_a_load({STARTS: source})) == [
        "line 10 applies a handler for neither a Permit nor a Load",
        "line 12 applies a handler for neither a Permit nor a Load",
        "line 13 takes the function of a handler outside of _apply",
        "line 8 applies a handler for neither a Permit nor a Load",
    ]


# The edge, run.


class Given(BaseModel):
    word: str = "given"


class World:
    """An app with one action, and how often it ran."""

    def __init__(self) -> None:
        registry = Registry()
        self.ran: list[str] = []

        @registry.action(policy=can("word:say"), mcp=expose("Say a word"))
        def say(input: Given) -> str:
            self.ran.append(input.word)
            return input.word

        grants = [grant("speaker", "word:say")]
        self.app = define_app_mcp(registry, name="words", include="exposed", grants=grants)
        self.entry = self.app.kernel.catalog.entries[0]
        self.running = Running(self.app)
        self.speaker = Agent("speaker", roles=frozenset({"speaker"}))

    def answer(self, step: object) -> Any:
        return asyncio.run(Edge(self.running, _no_body).answer(cast("Step", step)))


async def _no_body(_limit: int) -> bytes:
    return b""


def _look_alike(world: World) -> object:
    """Every field of a Permit, under its name, and not one."""
    names = [each.name for each in fields(Permit)]
    held = (world.entry, Given(), world.speaker, None, None, world.entry.handler)
    kind = type("Permit", (), {"handler": world.entry.handler, **dict(zip(names, held, strict=True))})
    return kind()


@dataclass(frozen=True)
class Approve:
    """A step that a later kernel might yield and this edge does not know."""

    entry: object
    input: object


FACTS: Final = RequestFacts(None, None, None, "/mcp")
NOT_A_PERMIT: Final[dict[str, Callable[[World], object]]] = {
    "the audit step": lambda _: Audit(AuthRefused("no-token", 401, None, "/mcp")),
    "the token step": lambda _: ResolveToken("token", FACTS),
    "the body step": lambda _: ReadBody(10),
    "the delivery step": lambda world: Deliver("id", world.speaker, {}),
    "a message without a stream": lambda _: Write(b"{}"),
    "a watch without a stream": lambda _: Watch(0),
    "a look-alike": _look_alike,
    "an unknown step": lambda world: Approve(world.entry, Given()),
    "the class itself": lambda _: Permit,
    "its fields as a tuple": lambda world: (world.entry, Given(), world.speaker, None),
    "its fields as a mapping": lambda world: {"entry": world.entry, "input": Given()},
    "the entry": lambda world: world.entry,
    "the handler": lambda world: world.entry.handler,
    "the function": lambda world: world.entry.handler.function,
    "an answer": lambda world: Returned(world.entry),
    "nothing": lambda _: None,
    "true": lambda _: True,
}
KNOWN: Final = ("the audit step", "the token step", "the body step", "the delivery step")


@pytest.mark.parametrize("name", NOT_A_PERMIT)
def test_only_a_permit_runs_a_handler(name: str) -> None:
    world = World()
    answer = world.answer(NOT_A_PERMIT[name](world))
    assert world.ran == []
    if name not in KNOWN:
        assert isinstance(answer, Raised)
        assert isinstance(answer.error, UnknownStep)


def test_a_permit_runs_its_handler_once() -> None:
    """The control: the world above has a handler that the edge can run."""
    world = World()
    assert world.answer(Permit(world.entry, Given(), world.speaker, None)) == Returned("given")
    assert world.ran == ["given"]


def test_a_permit_to_complete_runs_the_completer_alone() -> None:
    world = World()
    completer = read_signature(completions)[0]
    permit = Permit(world.entry, Given(), world.speaker, None, None, completer)
    assert world.answer(permit) == Returned(["given"])
    assert world.ran == []


def completions() -> list[str]:
    return ["given"]


def test_the_gates_make_the_permit_of_an_allowed_call_and_of_no_other() -> None:
    world = World()
    stranger = Agent("stranger")
    called = [asyncio.run(world.running.invoke(who, "say", {}, "agent")) for who in (stranger, world.speaker)]
    assert [isinstance(outcome, Ok) for outcome in called] == [False, True]
    assert world.ran == ["given"]
