"""The OpenAPI validator, in a process with packages of its own: its parts do not fit beside ours."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from typing import Any, Final

from ...conformance.environment import python_of

PROGRAM: Final = """
import json, sys
from openapi_spec_validator import OpenAPIV31SpecValidator
for line in sys.stdin:
    errors = [error.message for error in OpenAPIV31SpecValidator(json.loads(line)).iter_errors()]
    print(json.dumps(errors), flush=True)
"""


@cache
def _process() -> subprocess.Popen[str]:
    """The one process, which ends with its standard input: at the end of the tests."""
    command = [str(python_of("openapi")), "-c", PROGRAM]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def errors(document: Any) -> list[str]:
    """Return what is wrong with a document by the specification (OpenAPI 3.1)."""
    process = _process()
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process without pipes")
    process.stdin.write(json.dumps(document) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the validator ended: exit code {process.wait(10)}")
    found: list[str] = json.loads(line)
    return found


def close() -> None:
    """End the process, if it was started."""
    if _process.cache_info().currsize:
        process = _process()
        process.communicate(timeout=10)
        _process.cache_clear()
