"""`make conformance`: every leg of the suite over the fixture behind each door, or over a server of your own.

`python -m tests.conformance.run [URL]`; the URL's host must be `localhost`. Exit code 1 when the suite says
that a leg does not conform; it leaves out what a requirement set does not score.
"""

import sys
from collections.abc import Iterable, Iterator

from .serving import DOORS, served
from .suite import LEGS, Results, passed, remarks, run, told

Row = tuple[str, str, Results]
HEADINGS = ("server", "leg", "conforms", "scenarios", "passed", "failed", "warnings", "skipped")


def main() -> int:
    """Run, print the table and what it counts, and return the exit code."""
    rows = list(_over(sys.argv[1:2]))
    _say(*_table(rows))
    for server, leg, results in rows:
        if remarks(results):
            _say(f"\n{server}, {leg}", told(results))
    return int(not all(results.conforms for _, _, results in rows))


def _over(urls: list[str]) -> Iterator[Row]:
    for url in urls:
        yield from ((url, leg, run(url, leg)) for leg in LEGS)
    for door in () if urls else DOORS:
        for leg in LEGS:
            with served(door) as url:
                yield door, leg, run(url, leg)


def _table(rows: Iterable[Row]) -> Iterator[str]:
    yield f"| {' | '.join(HEADINGS)} |"
    yield "|" + " --- |" * len(HEADINGS)
    for server, leg, results in rows:
        counts = [_count(results, status) for status in ("FAILURE", "WARNING", "SKIPPED")]
        conforms = "yes" if results.conforms else "no"
        cells = [server, leg, conforms, len(results.checks), passed(results), *counts]
        yield f"| {' | '.join(map(str, cells))} |"


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")


def _count(results: Results, status: str) -> int:
    return sum(each == status for _, _, each in remarks(results))


if __name__ == "__main__":
    sys.exit(main())
