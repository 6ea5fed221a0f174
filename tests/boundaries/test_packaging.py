"""What a user installs: the wheel's files, its imports, and locks that hold hashes and no address.

Builds the wheel once and installs it in an environment of its own; it knows nothing of what the package does.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZipFile

import pytest
import uv

ROOT = Path(__file__).resolve().parents[2]
LOCKS = [
    "requirements.lock",
    "tests/conformance/mcp1.lock",
    "tests/conformance/mcp2.lock",
    "tests/conformance/package-lock.json",
]
FRAMEWORKS = {"django", "fastapi", "fastmcp", "flask", "starlette", "uvicorn"}
CLIENTS_AND_DRIVERS = {"httpx", "mcp", "psycopg", "psycopg_pool"}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    locked = ["--no-build-isolation", "--python", sys.executable]
    _uv("build", "--wheel", *locked, "--out-dir", str(out), str(ROOT))
    return next(out.glob("nonsuch-*.whl"))


@pytest.fixture(scope="session")
def wheel_files(wheel: Path) -> list[PurePosixPath]:
    with ZipFile(wheel) as archive:
        return [PurePosixPath(name) for name in archive.namelist()]


@pytest.fixture(scope="session")
def installed_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel and its core dependencies, at the locked versions, and nothing else."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    python = venv / "bin" / "python"
    _uv("venv", "--python", sys.executable, str(venv))
    lock = str(ROOT / "requirements.lock")
    _uv("pip", "install", "--python", str(python), "--constraints", lock, str(wheel))
    return python


def test_the_wheel_holds_the_package_and_its_metadata_only(wheel_files: list[PurePosixPath]) -> None:
    tops = {file.parts[0] for file in wheel_files}
    assert tops == {"nonsuch", f"nonsuch-{_project()['version']}.dist-info"}


def test_the_wheel_holds_every_file_of_the_package(wheel_files: list[PurePosixPath]) -> None:
    package = {str(file.relative_to("nonsuch")) for file in wheel_files if file.parts[0] == "nonsuch"}
    assert package == _tracked("__init__.py", "py.typed", "kernel", "adapters", "policies")


def test_the_wheel_holds_the_policies_and_the_type_marker(wheel_files: list[PurePosixPath]) -> None:
    inside = {str(file) for file in wheel_files}
    assert _policies()
    assert {"nonsuch/py.typed", *(f"nonsuch/policies/{name}" for name in _policies())} <= inside


def test_the_installed_wheel_imports(installed_python: Path, tmp_path: Path) -> None:
    assert _python(installed_python, tmp_path, "import nonsuch, nonsuch.kernel, nonsuch.adapters") == ""


def test_the_installed_wheel_reads_its_policies(installed_python: Path, tmp_path: Path) -> None:
    listing = (
        "from importlib.resources import files; print(*[f.name for f in files('nonsuch.policies').iterdir()])"
    )
    names = _python(installed_python, tmp_path, listing).split()
    assert {name for name in names if ".cedar" in name} == _policies()


@pytest.mark.parametrize("name", ["kernel", "adapters", "policies", "tests"])
def test_the_installed_wheel_claims_no_other_name(installed_python: Path, tmp_path: Path, name: str) -> None:
    found = _python(installed_python, tmp_path, f"import importlib.util as u; print(u.find_spec({name!r}))")
    assert found.strip() == "None"


def test_importing_nonsuch_imports_no_framework_client_or_driver(tmp_path: Path) -> None:
    """Run where all of them are installed, or the assertion would be empty."""
    loaded = _python(Path(sys.executable), tmp_path, "import nonsuch, sys; print(*sys.modules)").split()
    assert "nonsuch" in loaded
    assert set(loaded) & (FRAMEWORKS | CLIENTS_AND_DRIVERS) == set()


def test_the_editable_links_are_what_the_wheel_holds() -> None:
    wheel_target = _pyproject()["tool"]["hatch"]["build"]["targets"]["wheel"]
    entries = (ROOT / ".editable" / "nonsuch").iterdir()
    links = {entry.name: entry.readlink() for entry in entries if entry.name != "__pycache__"}
    assert links == {name: Path("../..") / name for name in wheel_target["only-include"]}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address(lock: str) -> None:
    assert [line for line in (ROOT / lock).read_text().splitlines() if "://" in line] == []


@pytest.mark.parametrize("lock", [lock for lock in LOCKS if not lock.endswith(".json")])
def test_every_locked_python_package_has_a_hash(lock: str) -> None:
    entries = (ROOT / lock).read_text().replace("\\\n", " ").splitlines()
    packages = [entry for entry in entries if entry and not entry.lstrip().startswith("#")]
    assert packages
    assert [package for package in packages if "==" not in package or "--hash=sha256:" not in package] == []


def test_every_locked_npm_package_has_a_hash() -> None:
    lock = json.loads((ROOT / "tests/conformance/package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages
    hashed = {name for name, entry in packages.items() if entry.get("integrity", "").startswith("sha512-")}
    assert set(packages) - hashed == set()


def test_the_npm_packages_are_pinned_exactly() -> None:
    wanted = json.loads((ROOT / "tests/conformance/package.json").read_text())["devDependencies"]
    assert [f"{name} {version}" for name, version in wanted.items() if not version[0].isdigit()] == []


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _project() -> dict[str, Any]:
    project: dict[str, Any] = _pyproject()["project"]
    return project


def _policies() -> set[str]:
    return {file.name for file in (ROOT / "policies").glob("*.cedar*")}


def _tracked(*paths: str) -> set[str]:
    """The files as git sees them, new ones included: what an ignore rule hides must not be shipped."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *paths]
    names = _run(listing, cwd=ROOT).split("\0")
    return {name for name in names if name and (ROOT / name).exists()}


def _uv(*arguments: str) -> None:
    _run([uv.find_uv_bin(), *arguments], cwd=ROOT)


def _python(python: Path, cwd: Path, code: str) -> str:
    """Run from a directory outside the repository, so that only what is installed can be found."""
    return _run([str(python), "-I", "-c", code], cwd=cwd)


def _run(command: Sequence[str], *, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout
