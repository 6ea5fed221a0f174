"""The options that several commands share."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

Module = Annotated[str | None, Parameter(name="--app", help="module that exports `mcp`")]
Server = Annotated[str | None, Parameter(name="--server", help="name of one app, where `mcp` is a list")]
AsJson = Annotated[bool, Parameter(name="--json", negative="", help="print one JSON document")]
