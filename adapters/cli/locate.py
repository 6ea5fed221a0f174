"""Finds an app: `[tool.nonsuch] app = "package.module"` of the working directory, or `--app package.module`.

The module exports `mcp`: one app, or a non-empty list of them. Starts nothing.
"""

from __future__ import annotations

import importlib
import sys
import tomllib
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar, cast

from ...kernel.codes import CODES
from ...kernel.errors import BootError
from ..edge.app import App
from .render import Refused, words

CODE: Final = "X_APP_NOT_FOUND"


class Unexported(Refused):
    """The module is there and exports no app."""


def apps(module: str | None = None) -> tuple[App, ...]:
    """Return the apps that a module exports.

    Raises: Refused; BootError, when the app itself finds faults at boot.
    """
    name = named(module)
    exported = getattr(_imported(name), "mcp", None)
    found = cast("Sequence[object]", exported if isinstance(exported, (list, tuple)) else [exported])
    chosen = tuple(each for each in found if isinstance(each, App))
    if exported is None:
        raise Unexported(CODE, f"`{name}` exports no `mcp`", f"add `mcp = define_app_mcp(...)` to `{name}`")
    if not chosen or len(chosen) != len(found):
        kind = "an empty list" if not found else f"a {type(found[0]).__name__}"
        raise Refused(
            CODE, f"`mcp` of `{name}` is {kind}", "export what `define_app_mcp(...)` returned, or a list"
        )
    return chosen


def named(module: str | None = None) -> str:
    """Return the name of the module that exports the apps. Raises: Refused."""
    return module or _configured(Path.cwd() / "pyproject.toml")


def one(module: str | None = None, server: str | None = None) -> App:
    """Return the one app to ask about. Raises: Refused, BootError."""
    return only(apps(module), server)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_Named)


def only(found: Sequence[_N], server: str | None = None) -> _N:
    """Return the one app of a module, or the one that is named. Raises: Refused."""
    named = [each for each in found if server in (None, each.name)]
    if len(named) == 1:
        return named[0]
    names = words(each.name for each in found)
    if server is not None:
        raise Refused(CODE, f"no app is named `{server}`", f"choose one of {names}")
    raise Refused(CODE, f"the module exports {len(found)} apps", f"choose one with `--server`: {names}")


def _configured(file: Path) -> str:
    fix = CODES[CODE].fix
    try:
        document: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise Refused(
            CODE, f"there is no `{file.name}` in `{file.parent}`", "run it where that file is, or use `--app`"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as refusal:
        raise Refused(
            CODE, f"`{file}` cannot be read: {refusal}", "correct the file, or use `--app`"
        ) from None
    tool = document.get("tool")
    section = cast("dict[str, Any]", tool).get("nonsuch") if isinstance(tool, dict) else None
    if not isinstance(section, dict):
        raise Refused(CODE, f"`{file}` has no `[tool.nonsuch]`", fix)
    name = cast("dict[str, Any]", section).get("app")
    if not isinstance(name, str):
        raise Refused(CODE, f"`[tool.nonsuch]` in `{file}` has no `app` that is a string", fix)
    return name


def _imported(name: str) -> ModuleType:
    """Import a module of the working directory; what it prints goes to stderr."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise Refused(CODE, f"`{name}` is no module name", 'name it as an import does: "package.module"')
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        with redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except BootError:
        raise
    except ModuleNotFoundError as missing:
        raise _not_found(name, missing.name or "") from None
    except (Exception, SystemExit) as raised:  # noqa: BLE001  (application code: whatever it raises is told)
        cause = f"importing `{name}` raised {type(raised).__name__} at {_place(raised)}"
        fix = f"make `python -c 'import {name}'` work: a module of an app starts nothing when it is imported"
        raise Refused(CODE, cause, fix) from None


def _not_found(name: str, missing: str) -> Refused:
    if name == missing or name.startswith(f"{missing}."):
        return Refused(
            CODE, f"there is no module `{missing}`", "correct `app`, or run it in the project's directory"
        )
    return Refused(CODE, f"`{name}` imports `{missing}`, which is not installed", f"install `{missing}`")


def _place(raised: BaseException) -> str:
    frames = traceback.extract_tb(raised.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "its first line"
