"""`nonsuch token new`: a token for a file of tokens, shown once, and the lines that know it by its digest."""

from __future__ import annotations

import json
from typing import Annotated, cast

from cyclopts import Parameter
from rich.console import Console

from ..edge.tokens.static import Line, Person, new_token, principal_of
from .caller import USAGE, names
from .options import AsJson
from .render import Refused, Result

NewRoles = Annotated[str, Parameter(help="roles that it has, with commas")]
NewScopes = Annotated[str, Parameter(help="scopes that it carries, with commas")]


def new(
    ident: str,
    /,
    *,
    roles: NewRoles = "",
    scopes: NewScopes = "",
    org: Annotated[str | None, Parameter(help="its organisation")] = None,
    human: Annotated[bool, Parameter(negative="", help="it is a person's, for HTTP only")] = False,
    acts_for: Annotated[str | None, Parameter(help="the person for whom the agent acts")] = None,
    their_roles: Annotated[str, Parameter(help="the roles of that person, with commas")] = "",
    json: AsJson = False,
) -> Result:
    """Make a token. It is shown once, here; the file of tokens gets its digest.

    Parameters
    ----------
    ident
        Whose it is: the id of an agent, or with `--human` of a person.
    """
    del json
    token, sha256 = new_token()
    person = None if acts_for is None else Person(id=acts_for, roles=frozenset(names(their_roles)), org=org)
    line = Line(
        sha256=sha256,
        id=ident,
        kind="human" if human else "agent",
        roles=frozenset(names(roles)),
        scopes=frozenset(names(scopes)),
        org=org,
        acts_for=person,
    )
    if person is None and their_roles:
        raise Refused(USAGE, "`--their-roles` without a person", "name the person: `--acts-for ann`")
    try:
        principal_of(line)
    except ValueError as refusal:
        raise Refused(USAGE, str(refusal), "read `nonsuch token new --help`") from None
    return _result(token, line)


def _result(token: str, line: Line) -> Result:
    text = toml(line)

    def show(console: Console) -> None:
        console.print("the token, shown this once:", soft_wrap=True)
        console.print(token, soft_wrap=True)
        console.print("\nfor the file of `StaticTokens`:", soft_wrap=True)
        console.print(text, end="", soft_wrap=True)

    return Result({"token": token, "toml": text}, show)


def toml(line: Line) -> str:
    """Return a line as it is written in a file of tokens; what says nothing is left out."""
    told: dict[str, object] = {"sha256": line.sha256, "id": line.id}
    if line.kind == "human":
        told["kind"] = line.kind
    told |= _more(line.roles, line.org, line.scopes)
    if line.acts_for is not None:
        behind = {"id": line.acts_for.id, **_more(line.acts_for.roles, line.acts_for.org)}
        told["acts_for"] = behind
    return "[[token]]\n" + "".join(f"{name} = {_value(held)}\n" for name, held in told.items())


def _more(roles: frozenset[str], org: str | None, scopes: frozenset[str] = frozenset()) -> dict[str, object]:
    held = {"roles": sorted(roles), "scopes": sorted(scopes), "org": org}
    return {name: value for name, value in held.items() if value}


def _value(held: object) -> str:
    if isinstance(held, dict):
        inside = cast("dict[str, object]", held).items()
        return "{ " + ", ".join(f"{name} = {_value(value)}" for name, value in inside) + " }"
    return json.dumps(held, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML 1.0, basic strings
