"""Entry of the bench: runs the suites interleaved, prints the ratios beside their bars, writes JSON.

`python tests/bench/run.py [--quick] [--only NAME] [--json out.json] [--strict]`. Ratios are of medians of
blocks that ran in turns in one invocation; absolute figures are this machine's and mean nothing elsewhere.
"""

import argparse
import json
import os
import platform
import signal
import sys
import time
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
if not __package__:  # run as a file: the bench is a package of the repository
    sys.path[0] = str(ROOT)

from tests.bench import report, suites  # noqa: E402  the path is set above
from tests.bench.subjects import SUBJECTS  # noqa: E402  the path is set above

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("fastmcp", "mcp", "starlette", "uvicorn", "uvloop", "httptools", "orjson", "cedarpy", "pydantic")


def main() -> int:
    """0 when all was measured; with --strict, 1 when a bar was missed."""
    signal.signal(signal.SIGTERM, _leave)
    options = _options()
    settings = _settings(options)
    began = time.perf_counter()
    results: list[suites.Result] = []
    for name in [options.only] if options.only else suites.SUITES:
        for result in suites.SUITES[name](settings):
            results.append(result)
            print(f"## {result.title}\n\n{result.table}\n", flush=True)
    rows = [row for result in results for row in result.rows]
    print(f"## Ratios\n\n{report.bars(rows)}\n\n{_circumstances(time.perf_counter() - began)}")
    _write(options.json, results)
    missed = [row.what for row in rows if row.missed]
    if missed:
        print("bars missed: " + "; ".join(missed), file=sys.stderr)
    return 1 if missed and options.strict else 0


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """A terminated run ends its children too."""
    sys.exit(128 + number)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="measure nonsuch against its floors and its peers")
    parser.add_argument(
        "--quick", action="store_true", help="shorter blocks, no catalog of 10,000 for the lists"
    )
    parser.add_argument("--only", choices=sorted(suites.SUITES), help="one suite")
    parser.add_argument(
        "--subjects",
        default=",".join(name for name in SUBJECTS if name not in suites.RECORDED),
        help="comma-separated, of " + ", ".join(SUBJECTS),
    )
    parser.add_argument(
        "--json", type=Path, default=RESULTS / "latest.json", help="where to write the figures"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a bar is missed")
    return parser.parse_args()


def _settings(options: argparse.Namespace) -> suites.Settings:
    names = [name for name in options.subjects.split(",") if name in SUBJECTS]
    if options.quick:
        return suites.Settings(names, rounds=3, seconds=0.25, quick=True)
    return suites.Settings(names, rounds=5, seconds=0.6, quick=False)


def _circumstances(seconds: float) -> str:
    load = os.getloadavg()[0]
    words = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}, {seconds:.0f} s"
    return words if load < 2 else f"{words}; the machine was busy: read the CPU ratios, not the req/s"


def _write(path: Path, results: list[suites.Result]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": _machine(),
        "suites": [asdict(result) for result in results],
    }
    path.write_text(json.dumps(document, indent=1))


def _machine() -> dict[str, object]:
    packages = {name: _version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "cores": os.cpu_count(), "packages": packages}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
