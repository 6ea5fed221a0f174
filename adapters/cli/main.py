"""The entry point of `nonsuch`: says what is not installed before anything imports it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Final

from ..edge.extras import ExtraMissing, require

_NEEDS: Final = (("cyclopts", "cyclopts"), ("jinja2", "Jinja2"), ("rich", "rich"), ("yaml", "PyYAML"))
_USAGE: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 0 fine, 1 findings, 2 wrong use."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        for module, package in _NEEDS:
            require(module, "nonsuch[cli]", package)
        from .program import run

        return run(given)
    except ExtraMissing as missing:
        if "--json" in given:
            print(json.dumps({"error": {"code": missing.code, "cause": missing.cause, "fix": missing.fix}}))
        print(missing, file=sys.stderr)
        return _USAGE
