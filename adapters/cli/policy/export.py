"""`nonsuch policy export`: the schema and all policies of an app, as official Cedar tools read them."""

from __future__ import annotations

from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console

from ....kernel.cedar_text import PolicyRefused
from ...analysis.export import whole_schema, whole_text
from ...analysis.policy_json import PolicyUnwritable, policy_set_json
from ...analysis.schema_json import SchemaUnwritable, schema_json
from ...edge.app import App
from ..options import ASKED, Asked
from ..render import Refused, Result
from ..rules import Rules, rules_of
from .page import write

Format = Literal["cedar", "json"]
_AS_TEXT = "export it with `--format cedar`"


@dataclass(frozen=True, slots=True)
class _Part:
    """The schema or the policies: as a value for one JSON document, and as the text of a file."""

    name: str
    value: Any
    text: str


def export(
    *,
    format_: Annotated[
        Format, Parameter(name="--format", help="Cedar text, or Cedar's JSON format")
    ] = "cedar",
    out: Annotated[
        Path | None, Parameter(help="directory to write two files to; printed if not given")
    ] = None,
    asked: Asked = ASKED,
) -> Result:
    """Write what an app compiles: one schema of every gate and action, and every policy.

    Grants and audiences are policies, and a linked template is the policies that its links make.
    """
    app = asked.one()
    rules = rules_of(app)
    schema, policies = _parts(rules, format_)
    written = [] if out is None else _written(app, out, (schema, policies))
    document = {
        "format": format_,
        "schema": schema.value,
        "policies": policies.value,
        "count": len(rules.all),
        "written": [str(each) for each in written],
    }

    def show(console: Console) -> None:
        if out is None:
            console.out(_printed(schema, policies, format_), end="")
        for each in written:
            console.print(f"wrote {each}", soft_wrap=True)

    return Result(document, show)


def _parts(rules: Rules, form: Format) -> tuple[_Part, _Part]:
    try:
        schema = whole_schema(rules.catalog, rules.base)
        if form == "cedar":
            policies = whole_text(rules.all)
            return _Part("schema.cedarschema", schema, schema), _Part("policies.cedar", policies, policies)
        return (
            _json("schema.cedarschema.json", schema_json(schema)),
            _json("policies.cedar.json", policy_set_json(rules.all)),
        )
    except PolicyRefused as refusal:
        raise Refused("X_POLICY_SCHEMA_INVALID", " ".join(str(refusal).split())) from None
    except SchemaUnwritable as refusal:
        raise Refused(
            "X_POLICY_SCHEMA_INVALID", f"the schema has no JSON form: {refusal}", _AS_TEXT
        ) from None
    except PolicyUnwritable as refusal:
        raise Refused("X_POLICY_INVALID", f"a policy has no JSON form: {refusal}", _AS_TEXT) from None


def _json(name: str, value: Any) -> _Part:
    return _Part(name, value, dumps(value, indent=2, ensure_ascii=False) + "\n")


def _printed(schema: _Part, policies: _Part, form: Format) -> str:
    if form == "json":
        both = {"schema": schema.value, "policies": policies.value}
        return dumps(both, indent=2, ensure_ascii=False) + "\n"
    return f"// {schema.name}\n\n{schema.text}\n// {policies.name}\n\n{policies.text}"


def _written(app: App, directory: Path, parts: tuple[_Part, ...]) -> list[Path]:
    """Write the parts, but never where the app would read them as policies of its own."""
    own = app.policies_dir
    if own is not None and directory.resolve().is_relative_to(own.resolve()):
        cause = f"`{directory}` is in the directory that the app reads its policies from"
        raise Refused("X_CLI_USAGE", cause, "name a directory outside of it")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as refusal:
        cause = f"`{directory}` cannot be made: {refusal.strerror}"
        raise Refused("X_CLI_USAGE", cause, "name another directory") from None
    for each in parts:
        write(directory / each.name, each.text)
    return [directory / each.name for each in parts]
