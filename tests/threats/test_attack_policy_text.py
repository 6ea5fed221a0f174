"""Policy text that hides policies or depth behind a string over lines: nothing is swallowed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nonsuch import App, Registry, can, expose
from nonsuch.kernel.cedar_text import PolicyRefused, parse_one
from nonsuch.kernel.model import PolicyDenied

from ..kernel.trial import EDITOR, boot, called, folder

MANY = 10_000
ACTION = 'action in Action::"post:publish"'
PERMIT = f'permit (principal in Role::"editor", {ACTION}, resource)'
FORBID = f'@id("frozen")\nforbid (principal, {ACTION}, resource);\n'


def publish() -> str:
    return "done"


def press(policies_dir: Path) -> App:
    registry = Registry()
    registry.action(policy=can("post:publish"), mcp=expose("Publish"))(publish)
    return boot(registry, roles=["editor"], policies_dir=policies_dir)


SWALLOWING = {
    "in an annotation": f'@id("open")\n@reason("editors only (see\nthe handbook")\n{PERMIT};\n',
    "at a carriage return": f'@id("open")\n@reason("editors only (see\r\nthe handbook")\n{PERMIT};\n',
    "after an escaped quote": f'@id("open")\n@reason("\\"editors\\" (\n")\n{PERMIT};\n',
    "in a condition": f'@id("open")\n{PERMIT} when {{ "(\n" != "" }};\n',
    "with a semicolon": f'@id("open")\n@reason("one;\n(two;")\n{PERMIT};\n',
}


@pytest.mark.parametrize("name", SWALLOWING)
def test_a_string_over_lines_swallows_no_forbid(name: str, tmp_path: Path) -> None:
    app = press(folder(tmp_path, own=SWALLOWING[name] + FORBID))
    assert set(app.kernel.judge.annotations) == {"open", "frozen"}
    outcome = called(app, EDITOR, "publish")
    assert isinstance(outcome, PolicyDenied)
    assert outcome.policies == ("frozen",)


@pytest.mark.parametrize("text", [f"{PERMIT};\n{FORBID}", f"{FORBID}{PERMIT};", "", "// nothing\n"])
def test_a_statement_is_one_policy_and_no_other_number(text: str) -> None:
    with pytest.raises(PolicyRefused):
        parse_one(text, "p", "own.cedar:1:1")


PROGRAM = """
import sys
from nonsuch import BootError, Registry, can, define_app_mcp, expose
registry = Registry()
@registry.action(policy=can("post:publish"), mcp=expose("Publish"))
def publish() -> str:
    return "done"
try:
    define_app_mcp(registry, name="trial", include="exposed", policies_dir=sys.argv[1])
    print("booted")
except BootError as refusal:
    print(*(each.code for each in refusal.faults))
"""


def refused(directory: Path) -> str:
    """What a process of its own said of a directory, or how it died."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(directory)],
        capture_output=True,
        text=True,
        cwd=directory,
        timeout=60,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else f"died of {-done.returncode}"


def hidden(before: str, deep: str) -> str:
    return f"{before}\npermit (principal, {ACTION}, resource) when {{ {deep} }};\n"


CLOSING = ")" * MANY
DEEP = "(" * MANY + "true" + ")" * MANY
BURIED = {
    "behind an annotation": hidden(f'@reason("\n{CLOSING}")', DEEP),
    "behind a condition": hidden("", f'"\n{CLOSING}" != "" && {DEEP}'),
    "between two strings": hidden('@reason("\n")', f'"\n" != "" && {DEEP} && "\n" != ""'),
    "prefixes between lines": hidden('@reason("\n!")', "!" * MANY + "true"),
}


@pytest.mark.parametrize("name", BURIED)
def test_a_string_over_lines_hides_no_depth(name: str, tmp_path: Path) -> None:
    assert refused(folder(tmp_path, own=BURIED[name])) == "X_POLICY_TOO_DEEP"


def test_a_deep_schema_kills_no_process(tmp_path: Path) -> None:
    sets = "Set<" * MANY + "String" + ">" * MANY
    (tmp_path / "own.cedarschema").write_text(f"entity Folder {{ tags: {sets} }};")
    (tmp_path / "named.cedarschema").write_text(f"type Tags = {sets};")
    assert refused(tmp_path) == "X_POLICY_TOO_DEEP X_POLICY_TOO_DEEP"
