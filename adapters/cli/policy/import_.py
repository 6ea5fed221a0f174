"""`nonsuch policy import`: policies written for a schema that `cedar-policy-mcp-schema-generator` made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, cast

from cyclopts import Parameter
from rich.console import Console

from ....kernel import cedar
from ....kernel.cedar_text import PolicyRefused
from ....kernel.compile import PolicySource
from ....kernel.errors import Fault
from ....kernel.expansion import Expansion
from ....kernel.loader import Sources, load
from ....kernel.policy_text import schema_too_deep
from ....kernel.strict_json import JsonRefused, loads
from ...analysis.counterparts import INPUT, Argument, Counterparts, Tool, counterparts
from ...analysis.importing import Check, Import, Taken, imported
from ...analysis.schema_json import Document, SchemaUnwritable, schema_json, schema_text
from ...analysis.schema_types import Types
from ...edge import policies as files
from ...edge.app import App
from ..caller import names
from ..options import ASKED, Asked
from ..render import FINDINGS, FINE, Refused, Result, counted, table, words
from ..rules import Rules, rules_of
from .check import described as fault_described
from .check import line
from .page import write

_SCHEMA: Final = "X_POLICY_SCHEMA_INVALID"
_HOW: Final = {"same": "same", "record": "its attributes", "choice": "as a string"}


def import_(
    schema: Path,
    policies: Path | None = None,
    /,
    *,
    types: Annotated[
        str, Parameter(help="which type here one of the schema's is: `User=Human`, more with commas")
    ] = "",
    out: Annotated[
        Path | None, Parameter(help="file to write to, if no policy is refused; printed if not given")
    ] = None,
    asked: Asked = ASKED,
) -> Result:
    """Say what each name of a generated schema is here, and rewrite policies where that is exact.

    Exits with 1 if a policy is refused; then nothing is written, since a permit without its forbid
    permits more.

    Parameters
    ----------
    schema
        The generated schema, as Cedar text or in a `.json` file.
    policies
        Policies written for it: a directory of `.cedar` files, or one.
    """
    app = asked.one()
    rules, text = rules_of(app), _schema_of(schema)
    known = _known(rules, text, types)
    check = _beside(app, _replaced(app, out))
    found = imported(_sources(policies), text, known, check) if policies is not None else Import()
    written = out if out is not None and found.policies and not found.refused else None
    if written is not None:
        write(written, _text(found.policies))
    document = _document(known, found, written)
    status = FINDINGS if found.refused else FINE
    return Result(document, lambda console: _show(console, known, found, written), status)


# what was given


def _beside(app: App, replaced: str | None) -> Check:
    """Return what the app would find wrong with policies beside its own, without the file they replace."""
    own = app.sources()
    others = tuple(each for each in own.policies if each.origin != replaced)

    def check(more: tuple[PolicySource, ...]) -> Iterable[Fault]:
        everything = Sources((*others, *more), own.schemas, own.links, own.grants)
        return load(app.kernel.catalog, files.base(), everything).faults

    return check


def _replaced(app: App, out: Path | None) -> str | None:
    """Return what the app calls the file to be written, if that is one of its own."""
    own = app.policies_dir
    if own is None or out is None or not out.resolve().is_relative_to(own.resolve()):
        return None
    return out.resolve().relative_to(own.resolve()).as_posix()


def _schema_of(path: Path) -> str:
    """Return the schema as the engine writes it. Raises: Refused."""
    try:
        raw = path.read_bytes()
        if path.suffix == ".json":
            return schema_text(cast("Document", loads(raw)))
        text = raw.decode("utf-8")
        strain = schema_too_deep(text) or Expansion([text]).strain(text)
        if strain is not None:
            raise Refused("X_POLICY_TOO_DEEP", f"`{path}`: {strain.why}")
        return str(cedar.schema(text))
    except OSError as refusal:
        raise Refused("X_POLICY_UNREADABLE", f"`{path}`: {refusal.strerror}", "name a schema file") from None
    except (UnicodeDecodeError, JsonRefused, PolicyRefused, SchemaUnwritable) as refusal:
        cause = f"`{path}` is no schema: {' '.join(str(refusal).split())}"
        raise Refused(_SCHEMA, cause, "give what the generator wrote") from None


def _known(rules: Rules, text: str, types: str) -> Counterparts:
    theirs = Types(schema_json(text))
    if not any(INPUT in action.context.attributes for action in theirs.actions.values()):
        cause = f"no action of the schema has `context.{INPUT}`, so it was not made for MCP tools"
        raise Refused(_SCHEMA, cause, "give what `cedar-policy-mcp-schema-generator` wrote")
    pairs = {each: _pair(each, theirs) for each in names(types)}
    known = counterparts(theirs, rules.catalog, rules.base, dict(pairs.values()))
    for given, (_, here) in pairs.items():
        if here not in known.ours.entities:
            choose = words(sorted(known.ours.entities), "or")
            raise Refused("X_CLI_USAGE", f"`{given}`: no type here is `{here}`", f"choose {choose}")
    return known


def _pair(given: str, theirs: Types) -> tuple[str, str]:
    """Return a type of the schema, which may go without its namespace, and the type here."""
    name, _, here = (each.strip() for each in given.partition("="))
    meant = sorted(each for each in theirs.entities if each == name or each.rpartition("::")[2] == name)
    whole = [each for each in meant if each == name] or meant
    if len(whole) != 1:
        cause = f"`{given}`: {len(whole)} types of the schema are `{name}`"
        raise Refused("X_CLI_USAGE", cause, "write `THEIRS=OURS` with the whole name of a type of the schema")
    return whole[0], here


def _sources(given: Path) -> list[PolicySource]:
    paths = sorted(given.rglob("*.cedar")) if given.is_dir() else [given]
    fix = "name a directory of `.cedar` files, or one"
    if not paths:
        raise Refused("X_POLICY_UNREADABLE", f"`{given}` holds no `.cedar` file", fix)
    try:
        return [PolicySource(str(each), each.read_text("utf-8")) for each in paths]
    except (OSError, UnicodeDecodeError) as refusal:
        raise Refused("X_POLICY_UNREADABLE", f"`{given}`: {type(refusal).__name__}", fix) from None


# what is answered


def _text(taken: Iterable[Taken]) -> str:
    return "\n".join(f"// from {' '.join(each.where.split())}\n{each.text}" for each in taken)


def _show(console: Console, known: Counterparts, found: Import, written: Path | None) -> None:
    console.print(table(("tool", "argument", "there", "here", "in policies"), _rows(known)))
    for name, here in sorted(known.kinds.items()):
        console.print(f"\n{name} is {here}", soft_wrap=True)
    for each in found.refused:
        console.print(f"\n{line(each)}", soft_wrap=True)
    kept = [each for each in found.policies if each.text]
    if kept and written is None:
        console.out(f"\n{_text(kept)}", end="")
    if found.policies or found.unread:
        rewritten = f"{counted(len(kept), 'policy', 'policies')} rewritten"
        console.print(f"\n{rewritten}, {counted(len(found.refused), 'fault')}")
    if written is not None:
        console.print(f"wrote {written}", soft_wrap=True)


def _rows(known: Counterparts) -> Iterable[tuple[str, str, str, str, str]]:
    for tool in known.tools.values():
        name = tool.name if tool.entry is not None else f"{tool.name} (no tool here)"
        for each in tool.arguments.values():
            told = (
                f"{_HOW[each.how]}{', null is absent' if each.nullable else ''}"
                if each.how
                else f"no: {each.cause}"
            )
            yield name, each.name, str(each.theirs or ""), str(each.ours or ""), told
        if not tool.arguments:
            yield name, "", "", "", ""


def _document(known: Counterparts, found: Import, written: Path | None) -> dict[str, Any]:
    return {
        "types": dict(sorted(known.kinds.items())),
        "tools": [_tool(each) for each in known.tools.values()],
        "policies": [_policy(each) for each in found.policies],
        "faults": [fault_described(each) for each in found.refused],
        "written": str(written) if written is not None else None,
    }


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "tool": tool.name,
        "here": tool.entry is not None,
        "resource": {"theirs": list(tool.action.resources), "ours": tool.resource or None},
        "arguments": [_argument(each) for each in tool.arguments.values()],
    }


def _argument(each: Argument) -> dict[str, Any]:
    return {
        "name": each.name,
        "theirs": str(each.theirs) if each.theirs is not None else None,
        "ours": str(each.ours) if each.ours is not None else None,
        "exact": each.how is not None,
        "as": each.how,
        "nullable": each.nullable,
        "cause": each.cause or None,
    }


def _policy(each: Taken) -> dict[str, Any]:
    return {
        "id": each.id,
        "where": each.where,
        "effect": "permit" if each.permit else "forbid",
        "text": each.text or None,
    }
