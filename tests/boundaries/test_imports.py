"""Who may import whom: read by ``ast`` from the package, and from made-up trees that break each rule."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import chain
from pathlib import PurePosixPath
from typing import Final

import pytest

from .sources import Import, Tree, imports, line_of, package


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The kernel, bottom first. A module imports what stands to its left or in a line before.
KERNEL: Final = (
    (
        "strict_json",
        "values",
        "seal",
        "confirm_seal",
        "uri_template",
        "policy_text",
        "money",
        "refs",
        "unreadable",
        "codes",
        "content",
        "asks",
        "tasks",
        "model",
        "meter",
        "errors",
        "confirmation",
        "audit",
        "chain",
        "chain_walk",
    ),
    ("told", "client", "declare", "effects", "shapes", "schema", "form", "signatures", "listing"),
    ("meta_text",),
    ("sql_facts", "sql_text", "sql_grammar", "sql_tree", "sql_found", "sql_walk"),
    ("sql_families", "sql_catalog", "sql_names", "sql_columns", "sql_rules", "sql", "sql_live", "sql_weigh"),
    ("catalog", "line", "idempotency", "steps"),
    ("boot_content", "boot_confirmation", "boot", "compile"),
    ("cedar_text", "cedar", "cedar_parts", "places", "links"),
    ("expansion", "advice"),
    ("sql_verdict",),
    ("policies", "attributes", "reading", "confinement", "own_types", "validation", "loader", "judge"),
    ("view", "meta", "denials", "replay", "confirmed", "conclusion"),
    ("gates", "held", "guarded"),
)

# The package, bottom first. What shares a line stands side by side, and neither imports the other.
PARTS: Final = (
    ("kernel/",),
    ("adapters/wire.py",),
    ("adapters/door.py",),
    ("adapters/authentication.py", "adapters/meters.py"),
    ("adapters/mcp/", "adapters/http/", "adapters/analysis/"),
    ("adapters/edge/",),
    ("__init__.py",),  # the public API
    ("adapters/cli/",),
    ("adapters/demo/",),
)

# What decides and what translates. All effects live beyond.
DECIDES: Final = ("kernel/",)
TRANSLATES: Final = (
    "adapters/wire.py",
    "adapters/door.py",
    "adapters/authentication.py",
    "adapters/meters.py",
    "adapters/mcp/",
    "adapters/http/",
    "adapters/analysis/",
)

# The whole of what they take from outside. None of these modules acts when it is imported or called,
# but for the names in ACTS: a clock, randomness, files, the console, an import that no test can read.
DECIDING_STDLIB: Final = words(
    "__future__ base64 binascii bisect codecs collections collections.abc dataclasses datetime decimal"
    " difflib enum functools graphlib hashlib hmac inspect ipaddress itertools json math pathlib re"
    " types typing urllib.parse uuid"
)
TRANSLATING_STDLIB: Final = DECIDING_STDLIB | {"logging", "unicodedata"}
LIBRARIES: Final = frozenset({"pydantic", "pydantic.dataclasses", "pydantic.fields", "pydantic_core"})
ACTS: Final = words(
    "now utcnow today uuid1 uuid4 open print eval exec __import__ read_text read_bytes write_text write_bytes"
    " iterdir glob rglob exists is_file is_dir stat mkdir unlink cwd home"
)

# Libraries that named modules speak to for everybody; one of them alone asks the engine for a decision.
IMPORTERS: Final = {
    "cedarpy": ("kernel/cedar.py", "kernel/cedar_text.py", "kernel/cedar_parts.py"),
    "jsonschema_rs": ("kernel/schema.py",),
    "pglast": ("kernel/sql_tree.py",),
    "cryptography": ("kernel/confirm_seal.py",),
}
DECIDER: Final = "kernel/cedar.py"
DECISIONS: Final = frozenset({"is_authorized", "is_authorized_batch"})

OWN_NAMES: Final = frozenset({"nonsuch", "kernel", "adapters", "policies"})

_KERNEL_ORDER: Final = {f"kernel/{name}.py": place for place, name in enumerate(chain.from_iterable(KERNEL))}

Rule = Callable[[Tree], list[str]]


def layers(tree: Tree) -> list[str]:
    """A module stands in a layer and imports only what stands below it."""
    homeless = [path for path in sorted(tree) if not _is_marker(path) and _rank(path) is None]
    upward = (_upward(each) for each in imports(tree) if each.inside and each.importer not in homeless)
    return [*(_no_layer(path) for path in homeless), *(told for told in upward if told)]


def _no_layer(path: str) -> str:
    where = "KERNEL" if path.startswith("kernel/") else "PARTS"
    return f"{path} stands in no layer: put it into {where} of test_imports.py"


def _upward(each: Import) -> str | None:
    if _is_marker(each.target):
        return f"{each} whole: name the module"
    above, here = _rank(each.target), _rank(each.importer)
    if here is None or above is None or above[:2] == here[:2]:
        return None
    if above[0] == here[0] and above[0] > 0:
        return f"{each}, which stands beside it"
    return f"{each}, which stands above it" if above > here else None


def _rank(path: str) -> tuple[int, int] | None:
    """Return the line and the place in it; two modules of one part outside the kernel have one rank."""
    if path.startswith("kernel/"):
        return (0, _KERNEL_ORDER[path]) if path in _KERNEL_ORDER else None
    for line, parts in enumerate(PARTS):
        for place, part in enumerate(parts):
            if path == part or (part.endswith("/") and path.startswith(part)):
                return line, place
    return None


def _is_marker(path: str) -> bool:
    return path.endswith("/__init__.py")


def nothing_is_listed_twice_or_gone(tree: Tree) -> list[str]:
    """The layers name modules that exist."""
    listed = list(chain.from_iterable(KERNEL))
    twice = [f"KERNEL names {name} twice" for name in sorted(set(listed)) if listed.count(name) > 1]
    gone = [f"KERNEL names {name}, which is gone" for name in listed if f"kernel/{name}.py" not in tree]
    parts = chain.from_iterable(PARTS)
    return [
        *twice,
        *gone,
        *(f"PARTS names {part}, which is gone" for part in parts if not _holds(tree, part)),
    ]


def _holds(tree: Tree, part: str) -> bool:
    return any(path == part or path.startswith(part) for path in tree)


def relative(tree: Tree) -> list[str]:
    """Inside the package every import is relative: one name for one module."""
    absolute = (each for each in imports(tree) if not each.relative and _top(each) in OWN_NAMES)
    astray = (each for each in imports(tree) if each.relative and not each.inside)
    return [
        *(f"{each}: import it relatively" for each in absolute),
        *(f"{each}: no such module" for each in astray),
    ]


def nothing_from_outside_that_acts(tree: Tree) -> list[str]:
    """The kernel and the translators take a closed list of modules from outside."""
    return [
        f"{each}, which is not in the list of what {_who(each.importer)} may import"
        for each in imports(tree)
        if not each.relative
        and each.target not in _allowed(each.importer)
        and each.importer not in IMPORTERS.get(_top(each), ())
    ]


def _allowed(importer: str) -> frozenset[str]:
    own = {library for library, only in IMPORTERS.items() if importer in only}
    if importer.startswith(DECIDES):
        return DECIDING_STDLIB | LIBRARIES | own
    return TRANSLATING_STDLIB | LIBRARIES


def _who(importer: str) -> str:
    return "the kernel" if importer.startswith(DECIDES) else "a translator"


def no_call_for_an_effect(tree: Tree) -> list[str]:
    """No name in the kernel or a translator reads the clock, draws a number or touches a file."""
    nodes = ((path, node) for path, source in sorted(tree.items()) for node in ast.walk(ast.parse(source)))
    places = sorted((path, line_of(node), name) for path, node in nodes if (name := _loaded(node)) in ACTS)
    return [f"{path}:{line} uses {name}: let the edge do it, and yield a step" for path, line, name in places]


def _loaded(node: ast.AST) -> str | None:
    if isinstance(node, ast.alias):
        return node.name
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) else None


def few_importers(tree: Tree) -> list[str]:
    """Named modules speak to the policy engine, and one to the schema validator."""
    return [
        f"{each}; only {', '.join(IMPORTERS[_top(each)])} may"
        for each in imports(tree)
        if not each.relative and each.importer not in IMPORTERS.get(_top(each), (each.importer,))
    ]


def one_asks_for_decisions(tree: Tree) -> list[str]:
    """Of the modules that speak to the engine one alone asks it what is allowed."""
    nodes = ((path, node) for path, source in sorted(tree.items()) for node in ast.walk(ast.parse(source)))
    return [
        f"{path}:{line_of(node)} uses {name}; only {DECIDER} may"
        for path, node in nodes
        if (name := _loaded(node)) in DECISIONS and path != DECIDER
    ]


def _top(each: Import) -> str:
    return each.target.partition(".")[0]


def markers_are_empty(tree: Tree) -> list[str]:
    """``__init__.py`` holds a sentence and no code, so that importing one module imports no other."""
    bodies = {path: ast.parse(source, path).body for path, source in sorted(tree.items()) if _is_marker(path)}
    return [
        f"{path} holds code" for path, body in bodies.items() if [each for each in body if not _is_text(each)]
    ]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def without_effects(tree: Tree) -> Tree:
    """The kernel and the translators."""
    return {path: source for path, source in tree.items() if path.startswith((*DECIDES, *TRANSLATES))}


# The package keeps every rule.


def test_a_module_imports_only_what_its_layer_may() -> None:
    assert layers(package()) == []


def test_the_layers_name_what_exists() -> None:
    assert nothing_is_listed_twice_or_gone(package()) == []


def test_inside_the_package_every_import_is_relative() -> None:
    assert relative(package()) == []


def test_the_kernel_and_the_translators_take_a_closed_list_from_outside() -> None:
    assert nothing_from_outside_that_acts(without_effects(package())) == []


def test_the_kernel_and_the_translators_call_for_no_effect() -> None:
    assert no_call_for_an_effect(without_effects(package())) == []


def test_the_policy_engine_and_the_validator_have_named_importers() -> None:
    assert few_importers(package()) == []


def test_one_module_asks_for_decisions() -> None:
    assert one_asks_for_decisions(package()) == []
    assert DECISIONS & {_loaded(node) for node in ast.walk(ast.parse(package()[DECIDER]))}


def test_importing_a_package_runs_no_code() -> None:
    assert markers_are_empty(package()) == []


def test_the_rules_read_the_whole_package() -> None:
    """Or an empty tree would keep all of them."""
    paths = {str(PurePosixPath(path).parent) for path in package()}
    assert {".", "kernel", "adapters", "adapters/mcp", "adapters/http", "adapters/edge"} <= paths
    assert len(list(imports(package()))) > 200


# A made-up tree that breaks a rule is told so.

BROKEN: Final[list[tuple[Rule, Tree, list[str]]]] = [
    (
        layers,
        {"kernel/model.py": "from .gates import Kernel", "kernel/gates.py": ""},
        ["kernel/model.py:1 imports kernel/gates.py, which stands above it"],
    ),
    (
        layers,
        {"kernel/cedar.py": "def late() -> None:\n    from . import judge", "kernel/judge.py": ""},
        ["kernel/cedar.py:2 imports kernel/judge.py, which stands above it"],
    ),
    (
        layers,
        {"kernel/model.py": "if TYPE_CHECKING:\n    from .view import View", "kernel/view.py": ""},
        ["kernel/model.py:2 imports kernel/view.py, which stands above it"],
    ),
    (
        layers,
        {"kernel/gates.py": "from ..adapters.wire import Head", "adapters/wire.py": ""},
        ["kernel/gates.py:1 imports adapters/wire.py, which stands above it"],
    ),
    (
        layers,
        {"adapters/wire.py": "from .mcp.server import serve", "adapters/mcp/server.py": ""},
        ["adapters/wire.py:1 imports adapters/mcp/server.py, which stands above it"],
    ),
    (
        layers,
        {"adapters/mcp/server.py": "from ..http.invoke import serve", "adapters/http/invoke.py": ""},
        ["adapters/mcp/server.py:1 imports adapters/http/invoke.py, which stands beside it"],
    ),
    (
        layers,
        {"adapters/http/invoke.py": "from ..mcp import server", "adapters/mcp/server.py": ""},
        ["adapters/http/invoke.py:1 imports adapters/mcp/server.py, which stands beside it"],
    ),
    (
        layers,
        {"adapters/mcp/server.py": "from ..edge.run import Edge", "adapters/edge/run.py": ""},
        ["adapters/mcp/server.py:1 imports adapters/edge/run.py, which stands above it"],
    ),
    (
        layers,
        {"adapters/http/invoke.py": "from ..edge import run", "adapters/edge/run.py": ""},
        ["adapters/http/invoke.py:1 imports adapters/edge/run.py, which stands above it"],
    ),
    (
        layers,
        {"adapters/edge/run.py": "from ... import asgi", "__init__.py": ""},
        ["adapters/edge/run.py:1 imports __init__.py, which stands above it"],
    ),
    (
        layers,
        {"adapters/edge/asgi.py": "from ..demo.postly import app", "adapters/demo/postly/app.py": ""},
        ["adapters/edge/asgi.py:1 imports adapters/demo/postly/app.py, which stands above it"],
    ),
    (
        layers,
        {"adapters/mcp/server.py": "from ... import kernel", "kernel/__init__.py": "", "kernel/cedar.py": ""},
        ["adapters/mcp/server.py:1 imports kernel/__init__.py whole: name the module"],
    ),
    (
        layers,
        {"kernel/gauge.py": "", "adapters/agent/loop.py": ""},
        [
            "adapters/agent/loop.py stands in no layer: put it into PARTS of test_imports.py",
            "kernel/gauge.py stands in no layer: put it into KERNEL of test_imports.py",
        ],
    ),
    (
        nothing_is_listed_twice_or_gone,
        {
            **{path: "" for path in _KERNEL_ORDER if path != "kernel/view.py"},
            **{part if part.endswith(".py") else f"{part}a.py": "" for part in chain(*PARTS[:-1])},
        },
        ["KERNEL names view, which is gone", "PARTS names adapters/demo/, which is gone"],
    ),
    (
        relative,
        {"kernel/view.py": "import nonsuch.kernel.judge\nfrom kernel import model\nfrom .gone import x"},
        [
            "kernel/view.py:1 imports nonsuch.kernel.judge: import it relatively",
            "kernel/view.py:2 imports kernel: import it relatively",
            "kernel/view.py:3 imports kernel.gone.x: no such module",
        ],
    ),
    (
        relative,
        {"kernel/view.py": "from ...tests import rules"},
        ["kernel/view.py:1 imports what lies above the package: no such module"],
    ),
    *(
        (
            nothing_from_outside_that_acts,
            {"kernel/gates.py": f"import {name}"},
            [f"kernel/gates.py:1 imports {name}, which is not in the list of what the kernel may import"],
        )
        for name in sorted(words("time random secrets socket logging asyncio threading os importlib orjson"))
    ),
    *(
        (
            nothing_from_outside_that_acts,
            {path: f"import {name}"},
            [f"{path}:1 imports {name}, which is not in the list of what a translator may import"],
        )
        for path in ("adapters/mcp/server.py", "adapters/http/invoke.py", "adapters/wire.py")
        for name in sorted(words("socket asyncio ssl urllib.request http.client subprocess mcp cedarpy"))
    ),
    (
        no_call_for_an_effect,
        {
            "kernel/gates.py": "from datetime import datetime\nat = datetime.now()\nclock = datetime.utcnow",
            "kernel/view.py": "from uuid import uuid4 as fresh\nprint(open('x'))\n",
        },
        [
            "kernel/gates.py:2 uses now: let the edge do it, and yield a step",
            "kernel/gates.py:3 uses utcnow: let the edge do it, and yield a step",
            "kernel/view.py:1 uses uuid4: let the edge do it, and yield a step",
            "kernel/view.py:2 uses open: let the edge do it, and yield a step",
            "kernel/view.py:2 uses print: let the edge do it, and yield a step",
        ],
    ),
    (
        few_importers,
        {
            "kernel/cedar.py": "import cedarpy",
            "kernel/cedar_parts.py": "from cedarpy import pst",
            "kernel/judge.py": "from cedarpy import is_authorized",
            "adapters/edge/run.py": "import cedarpy.pst\nimport jsonschema_rs",
        },
        [
            "adapters/edge/run.py:1 imports cedarpy.pst; "
            "only kernel/cedar.py, kernel/cedar_text.py, kernel/cedar_parts.py may",
            "adapters/edge/run.py:2 imports jsonschema_rs; only kernel/schema.py may",
            "kernel/judge.py:1 imports cedarpy; "
            "only kernel/cedar.py, kernel/cedar_text.py, kernel/cedar_parts.py may",
        ],
    ),
    (
        one_asks_for_decisions,
        {
            "kernel/cedar.py": "import cedarpy\ncedarpy.is_authorized",
            "kernel/cedar_parts.py": "import cedarpy\ncedarpy.is_authorized_batch",
            "kernel/cedar_text.py": "from cedarpy import is_authorized",
        },
        [
            "kernel/cedar_parts.py:2 uses is_authorized_batch; only kernel/cedar.py may",
            "kernel/cedar_text.py:1 uses is_authorized; only kernel/cedar.py may",
        ],
    ),
    (
        markers_are_empty,
        {
            "kernel/__init__.py": '"""A sentence."""\nfrom .gates import Kernel',
            "adapters/__init__.py": '"""."""',
        },
        ["kernel/__init__.py holds code"],
    ),
]


@pytest.mark.parametrize(("rule", "tree", "told"), BROKEN, ids=lambda each: getattr(each, "__name__", None))
def test_a_tree_that_breaks_a_rule_is_told(rule: Rule, tree: Tree, told: list[str]) -> None:
    assert rule(tree) == told


def test_every_rule_has_a_tree_that_breaks_it() -> None:
    """Every function of this file from a tree to faults."""
    rules = {
        name
        for name, each in globals().items()
        if getattr(each, "__annotations__", {}) == layers.__annotations__
    }
    assert {rule.__name__ for rule, _, _ in BROKEN} == rules


def test_a_tree_in_order_is_told_nothing() -> None:
    tree = {
        "__init__.py": "from .adapters.edge.run import Edge",
        "kernel/__init__.py": '"""Decides."""',
        "kernel/cedar.py": "import cedarpy\nfrom .model import Call",
        "kernel/model.py": "from datetime import datetime\nfrom .strict_json import Json",
        "kernel/strict_json.py": "",
        "adapters/mcp/server.py": "from ...kernel import model\nfrom . import envelope",
        "adapters/mcp/envelope.py": "from ..wire import Reply",
        "adapters/wire.py": "import logging\nfrom urllib.parse import urlsplit",
        "adapters/edge/run.py": "from ..mcp import server",
        "adapters/demo/app.py": "from ... import asgi",
    }
    assert [
        told for rule in (layers, relative, few_importers, markers_are_empty) for told in rule(tree)
    ] == []
    quiet = without_effects(tree)
    assert [*nothing_from_outside_that_acts(quiet), *no_call_for_an_effect(quiet)] == []
