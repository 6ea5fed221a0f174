"""The package as text: which module a path is, and what each module imports. Runs none of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]

Tree = Mapping[str, str]  # path below the root -> source


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name. ``target`` is a path of the tree, or a dotted name from outside of it."""

    importer: str
    line: int
    target: str
    inside: bool
    relative: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


def package() -> Tree:
    """The modules that are shipped."""
    files = [ROOT / "__init__.py", *(ROOT / "kernel").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")]
    return {file.relative_to(ROOT).as_posix(): file.read_text() for file in files}


def imports(tree: Tree) -> Iterator[Import]:
    """Every import of every module, those inside functions and under ``TYPE_CHECKING`` too."""
    for path, source in sorted(tree.items()):
        for node in ast.walk(ast.parse(source, path)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(path, node.lineno, alias.name, inside=False, relative=False)
            elif isinstance(node, ast.ImportFrom):
                yield from _from(tree, path, node)


def line_of(node: ast.AST) -> int:
    """Where a node begins; 0 for what has no place of its own."""
    return getattr(node, "lineno", 0)


def _from(tree: Tree, path: str, node: ast.ImportFrom) -> Iterator[Import]:
    if node.level == 0:
        yield Import(path, node.lineno, node.module or "", inside=False, relative=False)
        return
    parts = PurePosixPath(path).parts
    if node.level > len(parts):
        yield Import(path, node.lineno, "what lies above the package", inside=False, relative=True)
        return
    base = [*parts[: len(parts) - node.level], *(node.module or "").split(".")]
    for alias in node.names:
        target = _module(tree, [*base, alias.name]) or _module(tree, base)
        name = target or ".".join(part for part in [*base, alias.name] if part)
        yield Import(path, node.lineno, name, inside=target is not None, relative=True)


def _module(tree: Tree, names: list[str]) -> str | None:
    """The path of a dotted module of the tree, the module itself or the package's ``__init__``."""
    stem = "/".join(name for name in names if name)
    files = (f"{stem}.py", f"{stem}/__init__.py" if stem else "__init__.py")
    return next((file for file in files if file in tree), None)
