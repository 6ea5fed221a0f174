"""Finding the app: each way it fails is told with its own cause, and nothing is started or printed."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

from nonsuch.adapters.cli.main import main

_NUMBER = itertools.count()
APP = """
from nonsuch import Registry, can, define_app_mcp, expose
registry = Registry()
@registry.action(policy=can("a:b"), mcp=expose("A"))
def ping() -> str:
    return "pong"
def app(name):
    return define_app_mcp(registry, name=name, include="exposed")
"""


class Project:
    """A directory with a module and a pyproject.toml."""

    def __init__(self, at: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.at, self._capture = at, capture

    def module(self, text: str) -> str:
        """Write a module under a name that was never imported."""
        name = f"app_of_test_{next(_NUMBER)}"
        (self.at / f"{name}.py").write_text(text)
        return name

    def check(self, *arguments: str) -> tuple[int, str]:
        """Run `nonsuch policy check` and return its status and what it said."""
        self._capture.readouterr()
        status = main(["policy", "check", *arguments])
        told = self._capture.readouterr()
        return status, (told.out if status < 2 else told.err).strip()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return Project(tmp_path, capsys)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (None, "X_APP_NOT_FOUND: there is no `pyproject.toml` in"),
        ("[tool", "cannot be read: "),
        ("", "has no `[tool.nonsuch]`"),
        ("tool = 7", "has no `[tool.nonsuch]`"),
        ("[tool.nonsuch]", "has no `app` that is a string"),
        ("[tool.nonsuch]\napp = 7", "has no `app` that is a string"),
        ('[tool.nonsuch]\napp = "a b"', "`a b` is no module name"),
        ('[tool.nonsuch]\napp = "gone_for_good"', "there is no module `gone_for_good`"),
        ('[tool.nonsuch]\napp = "json.gone_for_good"', "there is no module `json.gone_for_good`"),
    ],
)
def test_a_project_that_names_no_app(project: Project, text: str | None, cause: str) -> None:
    if text is not None:
        (project.at / "pyproject.toml").write_text(text)
    status, told = project.check()
    assert status == 2
    assert cause in told
    assert "\nfix: " in told


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "exports no `mcp`"),
        ("mcp = 7", "`mcp` of `{name}` is a int"),
        ("mcp = []", "`mcp` of `{name}` is an empty list"),
        ("raise SystemExit(0)", "importing `{name}` raised SystemExit at"),
        ("1 / 0", "importing `{name}` raised ZeroDivisionError at"),
        ("import gone_for_good", "`{name}` imports `gone_for_good`, which is not installed"),
    ],
)
def test_a_module_that_is_no_app(project: Project, text: str, cause: str) -> None:
    name = project.module(text)
    status, told = project.check("--app", name)
    assert status == 2
    assert cause.format(name=name) in told
    assert "\nfix: " in told


def test_one_app_or_several_by_name(project: Project) -> None:
    several = project.module(APP + "mcp = [app('first'), app('second')]")
    assert project.check("--app", several) == (0, "8 policies, 0 faults, 0 warnings")
    assert project.check("--app", several, "--server", "second") == (0, "4 policies, 0 faults, 0 warnings")
    assert "no app is named `third`" in project.check("--app", several, "--server", "third")[1]
    assert "choose one with `--server`" in project.check("--app", several, ".")[1]
    assert main(["policy", "who", "--app", several]) == 2
    single = project.module(APP + "mcp = app('first')")
    assert project.check("--app", single) == (0, "4 policies, 0 faults, 0 warnings")


def test_what_a_module_prints_does_not_reach_stdout(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.module(APP + "print('hello')\nmcp = app('first')")
    assert main(["policy", "check", "--app", name, "--json"]) == 0
    told = capsys.readouterr()
    assert (told.out[:1], told.err) == ("{", "hello\n")


def test_an_app_that_does_not_boot_is_told_fault_by_fault(project: Project) -> None:
    name = project.module(
        APP.replace('mcp=expose("A")', 'mcp=expose("A", visible_to="admin")') + "mcp = app('first')"
    )
    status, told = project.check("--app", name)
    assert status == 1
    assert "X_DECLARATION_INVALID: `ping` gives `visible_to` one string" in told
    assert main(["policy", "who", "--app", name]) == 1
