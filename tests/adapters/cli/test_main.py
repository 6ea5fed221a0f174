"""The command line as a program: one document on stdout, logs on stderr, 0 fine, 1 findings, 2 wrong use."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tomllib
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest

from nonsuch.adapters.cli import main as entry
from nonsuch.adapters.cli.render import counted
from nonsuch.adapters.edge import extras
from nonsuch.adapters.edge.extras import ExtraMissing

from .desk import POSTLY, Desk, command

ROOT = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(f'[tool.nonsuch]\napp = "{POSTLY}"\n')
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["policy", "check"], 0),
        (["policy", "test"], 0),
        (["policy", "who"], 0),
        (["policy", "show"], 0),
        (["policy", "explain", "--as", "viewer", "--tool", "publishPost"], 1),
        (["policy", "explain", "--as", "viewer", "--org", "acme", "--tool", "listPosts"], 0),
    ],
)
def test_a_command_answers_as_text_and_as_one_document(
    project: Path, arguments: list[str], status: int
) -> None:
    text, document = command(*arguments, at=project), command(*arguments, "--json", at=project)
    assert (text.status, text.err, bool(text.out)) == (status, "", True)
    assert (document.status, document.err) == (status, "")
    assert isinstance(document.value, dict)


@pytest.mark.parametrize(
    "arguments",
    [
        ["policy", "nothing"],
        ["policy", "explain"],
        ["policy", "explain", "--as", "editor", "--tool", "getPost", "--input", "{"],
        ["policy", "explain", "--as", "editor", "--tool", "getPost", "--input", "[]"],
        ["policy", "explain", "--as", "editor", "--tool", "getPost", "--input", "@gone.json"],
        ["policy", "explain", "--as", "editor", "--tool", "getPost", "--facts", "{}"],
        ["policy", "explain", "--as", "nobody", "--tool", "getPost"],
        ["policy", "explain", "--as", "editor", "--scopes", "x", "--tool", "getPost"],
        ["policy", "explain", "--as", "editor", "--tool", "publishPost", "--facts", '{"id": 7}'],
        ["policy", "show", "gone"],
        ["policy", "who", "--tool", "gone"],
        ["policy", "who", "--html", "gone/who.html"],
        ["policy", "check", "gone"],
        ["policy", "diff", "gone", "gone"],
        ["policy", "test", "gone"],
        ["policy", "fmt", "gone"],
        ["policy", "diff", ".", ".", "--requests", "-1"],
    ],
    ids=" ".join,
)
def test_wrong_use_has_a_code_a_cause_and_a_fix(desk: Desk, arguments: list[str]) -> None:
    found = desk.run(*arguments[1:], "--json")
    error = found.value["error"]
    assert found.status == 2
    assert error.keys() == {"code", "cause", "fix"}
    assert all(error.values())
    assert found.err == f"{error['code']}: {error['cause']}\nfix: {error['fix']}\n"


def test_a_value_of_the_caller_is_never_repeated(desk: Desk) -> None:
    found = desk.run(
        "explain", "--as", "editor", "--tool", "publishPost", "--facts", '{"id": "secret", "org": 7}'
    )
    assert found.status == 2
    assert "secret" not in found.err + found.out


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(module: str, install: str, package: str | None = None) -> Path:
        raise ExtraMissing(package or module, install)

    monkeypatch.setattr(entry, "require", missing)
    assert entry.main(["policy", "check", "--json"]) == 2
    told = capsys.readouterr()
    assert told.out == (
        '{"error": {"code": "X_EXTRA_MISSING", "cause": "`cyclopts` is not installed",'
        ' "fix": "pip install \\"nonsuch[cli]\\""}}\n'
    )
    assert told.err == 'X_EXTRA_MISSING: `cyclopts` is not installed\nfix: pip install "nonsuch[cli]"\n'


def but_pglast(name: str) -> ModuleSpec | None:
    return None if name == "pglast" else find_spec(name)


@pytest.mark.parametrize("arguments", [["db", "guard"], ["db", "query", "SELECT 1"]], ids=" ".join)
def test_without_the_extra_of_a_command_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 1"))
    monkeypatch.setattr(extras, "find_spec", but_pglast)
    assert entry.main([*arguments, "--database", "postgresql:///gone", "--json"]) == 2
    told = capsys.readouterr()
    assert json.loads(told.out)["error"]["code"] == "X_EXTRA_MISSING"
    assert told.err == 'X_EXTRA_MISSING: `pglast` is not installed\nfix: pip install "nonsuch[sql]"\n'


def test_the_entry_point_imports_nothing_of_the_extra() -> None:
    code = "import sys, nonsuch.adapters.cli.main; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"cyclopts", "rich", "jinja2", "yaml"} & set(loaded)


def test_a_command_imports_only_its_own_module(project: Path) -> None:
    code = (
        "import sys; from nonsuch.adapters.cli.main import main; main(['policy', 'check']);"
        " print(*(name for name in sys.modules if '.cli.policy.' in name), 'jinja2' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "nonsuch.adapters.cli.policy.check False"


def test_the_project_declares_the_command_and_its_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["nonsuch"] == "nonsuch.adapters.cli.main:main"
    extra = {each.partition(">")[0] for each in project["optional-dependencies"]["cli"]}
    assert extra == {"cyclopts", "jinja2", "pyyaml", "rich"}
    assert "cli" in project["optional-dependencies"]["all"][0]


def test_help_lists_every_command(project: Path) -> None:
    told = command("policy", "--help", at=project)
    assert told.status == 0
    assert all(name in told.out for name in ("check", "diff", "explain", "fmt", "show", "test", "who"))


def test_help_says_what_shape_an_answer_in_json_has(project: Path) -> None:
    told = " ".join(command("--help", at=project).out.split())
    for said in (
        "With --json the answer is one JSON document",
        "db branch has it under data",
        "db guard and db grant-readonly --print print an object a line",
        'A refusal is {"error": {"code", "cause", "fix"}}',
    ):
        assert said in told


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 policies"), (1, "1 policy"), (2, "2 policies"), (21, "21 policies")]
)
def test_one_is_not_told_as_several(number: int, said: str) -> None:
    assert counted(number, "policy", "policies") == said
    assert counted(number, "row") == said.replace("policies", "rows").replace("policy", "row")


def test_a_reader_that_stops_early_is_no_failure(project: Path) -> None:
    shell = f"{sys.executable} -m nonsuch.adapters.cli policy who --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    command = ["bash", "-c", shell]  # the shell of the path, as a person has it
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
