"""`nonsuch policy fmt`: policy files in the engine's format. Writes whole files or nothing, loses nothing."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter
from rich.console import Console

from ....kernel import cedar_text
from ..options import AsJson
from ..render import FINDINGS, FINE, Refused, Result, counted

_LEXEME: Final = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*')
State = Literal["formatted", "changed", "refused"]


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    state: State
    cause: str = ""
    text: str = ""


def fmt(
    directory: Path,
    /,
    *,
    check: Annotated[
        bool, Parameter(negative="", help="write nothing; 1 if a file is not formatted")
    ] = False,
    json: AsJson = False,
) -> Result:
    """Format every policy file of a directory.

    Parameters
    ----------
    directory
        A directory of `.cedar` files, or one file.
    """
    del json
    files = [_formatted(path) for path in _paths(directory)]
    if not check:
        for each in files:
            if each.state == "changed":
                _replace(each.path, each.text)
    return _result(files, check=check)


def _paths(given: Path) -> list[Path]:
    if given.is_file():
        return [given]
    if not given.is_dir():
        raise Refused(
            "X_POLICY_UNREADABLE", f"there is no `{given}`", "name a directory of `.cedar` files, or one"
        )
    return sorted(path for path in given.rglob("*.cedar") if path.is_file())


def _formatted(path: Path) -> _File:
    try:
        before = path.read_bytes().decode("utf-8")
        after = formatted(before)
    except (OSError, UnicodeDecodeError) as refusal:
        return _File(path, "refused", type(refusal).__name__)
    except cedar_text.PolicyRefused as refusal:
        return _File(path, "refused", " ".join(str(refusal).split()))
    return _File(path, "formatted" if before == after else "changed", text=after)


def formatted(before: str) -> str:
    """Return policy text in the engine's format. Raises: PolicyRefused, also if anything would get lost."""
    after = cedar_text.formatted(before) if before.strip() else before
    if comments(before) != comments(after):
        raise cedar_text.PolicyRefused("formatting it would lose a comment")
    return after


def comments(text: str) -> list[str]:
    """Return the comments of a text, in their order."""
    return [each.rstrip() for each in _LEXEME.findall(text) if each.startswith("//")]


def _replace(path: Path, text: str) -> None:
    """Put a new file in the place of the old one, with its mode, in one step."""
    target = path.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(stat.S_IMODE(target.stat().st_mode))
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _result(files: list[_File], *, check: bool) -> Result:
    changed = [each for each in files if each.state == "changed"]
    refused = [each for each in files if each.state == "refused"]

    def show(console: Console) -> None:
        for each in refused:
            console.print(f"{each.path}: X_POLICY_SYNTAX: {each.cause}: left as it is", soft_wrap=True)
        for each in changed:
            console.print(f"{'would format' if check else 'formatted'} {each.path}", soft_wrap=True)
        console.print(f"{counted(len(files), 'file')}, {len(changed)} changed, {len(refused)} refused")

    document = {
        "files": [
            {"path": str(each.path), "state": each.state, **({"cause": each.cause} if each.cause else {})}
            for each in files
        ],
        "written": 0 if check else len(changed),
    }
    return Result(document, show, FINDINGS if refused or (check and changed) else FINE)
