"""The tree of commands. A command's module is imported when it is run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

from cyclopts import App, CycloptsError

from ...kernel.errors import BootError
from .render import Refused, Result, answer, refuse

_HELP: Final = """Actions declared once, served behind one Cedar-judged kernel.

With `--json` the answer is one JSON document, and nothing is around it; but `db branch` has it under `data`,
and `db guard` and `db grant-readonly --print` print an object a line. A refusal is
`{"error": {"code", "cause", "fix"}}`. Exit status: 0 fine, 1 findings, 2 not carried out.
"""
_HERE: Final = __name__.rpartition(".")[0]
_POLICY: Final = {
    "check": "find every fault of the policies",
    "fmt": "format policy files",
    "show": "print every policy as it was compiled",
    "explain": "say why a call is decided as it is",
    "who": "show who can see, use and call what",
    "diff": "show what changes between two sets of policies",
    "test": "run the decision tables beside the policies",
    "export": "write the schema and all policies for official Cedar tools",
    "import": "take over policies written for a generated schema of MCP tools",
}
_CONFIRMATIONS: Final = {
    "list": "list what waits, or what is over",
    "view": "show one with its exact arguments",
    "approve": "approve one call with exactly these arguments",
    "reject": "refuse one call",
}
_PLACES: Final = {
    "test": "test:run_tables",  # pytest would take a function named `test` for one of its own
    "import": "import_:import_",
}


def program() -> App:
    """Return the command line."""
    root = App(name="nonsuch", help=_HELP)
    policy = App(name="policy", help="Check, explain and test the policies of an app.")
    for name, told in _POLICY.items():
        policy.command(f"{_HERE}.policy.{_PLACES.get(name, f'{name}:{name}')}", name=name, help=told)
    root.command(policy)
    db = App(name="db", help="Check what would be sent to a database.")
    db.command(
        f"{_HERE}.db.guard:guard", name="guard", help="say whether SQL is one statement that only reads"
    )
    db.command(f"{_HERE}.db.query:query", name="query", help="run one query through every layer")
    db.command(f"{_HERE}.db.grant:grant", name="grant-readonly", help="make the role that queries run as")
    branch = App(name="branch", help="Make, list and drop branch databases.")
    branch.command(f"{_HERE}.db.branch:create", name="create", help="make a branch of a database")
    branch.command(f"{_HERE}.db.branch:ls", name="ls", help="list the branches of a database")
    branch.command(f"{_HERE}.db.branch:drop", name="drop", help="drop a branch that `ls` shows")
    db.command(branch)
    db.command(f"{_HERE}.db.migrate:migrate", name="migrate", help="apply pending SQL files to a branch")
    root.command(db)
    token = App(name="token", help="Make tokens for a file of tokens.")
    token.command(
        f"{_HERE}.token:new", name="new", help="make a token, and the lines of the file that know it"
    )
    root.command(token)
    audit = App(name="audit", help="Check the chain that an audit is kept in.")
    audit.command(f"{_HERE}.audit:verify", name="verify", help="say whether a chain is as it was written")
    audit.command(f"{_HERE}.audit:head", name="head", help="print the head of a chain, to keep elsewhere")
    root.command(audit)
    confirmations = App(name="confirmations", help="View and decide what waits for a person.")
    for name, told in _CONFIRMATIONS.items():
        confirmations.command(f"{_HERE}.confirmations:{name.replace('list', 'list_')}", name=name, help=told)
    root.command(confirmations)
    root.command(f"{_HERE}.serve:serve", name="serve", help="serve the app over HTTP")
    root.command(
        f"{_HERE}.serve:dev", name="dev", help="serve it here, and follow changes of policies and code"
    )
    return root


def run(arguments: Sequence[str]) -> int:
    """Run one command; print one document or text; return the exit status."""
    as_json = "--json" in arguments
    try:
        result = program()(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        status = answer(result, as_json=as_json) if isinstance(result, Result) else 0
        sys.stdout.flush()
    except Refused as refusal:
        return refuse(refusal, as_json=as_json)
    except CycloptsError as error:
        cause = " ".join(str(error).split())
        return refuse(Refused("X_CLI_USAGE", cause), as_json=as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except BootError as refusal:
        from .policy.check import result as of_faults

        return answer(of_faults(refusal.faults, (), 0), as_json=as_json)
    except KeyboardInterrupt:
        return 130
    return status
