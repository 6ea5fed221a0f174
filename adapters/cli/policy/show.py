"""`nonsuch policy show`: every policy as it was compiled, the generated and granted ones too."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter
from rich.console import Console

from ....kernel import cedar, cedar_text
from ....kernel.cedar_text import Policy
from ...analysis.condition_text import tidy_policy
from ..options import ASKED, Asked
from ..render import Refused, Result, effect
from ..rules import Rules

GateName = Literal["visibility", "scope", "policy"]
_GATES: Final[tuple[GateName, ...]] = ("visibility", "scope", "policy")


def show(
    ident: Annotated[str | None, Parameter(name="ID")] = None,
    /,
    *,
    gate: Annotated[GateName | None, Parameter(help="only the policies of one gate")] = None,
    asked: Asked = ASKED,
) -> Result:
    """Print every policy as it was compiled, with the place it comes from.

    Parameters
    ----------
    ident
        The id of one policy.
    """
    rules = asked.rules()
    found: list[tuple[GateName, Policy]] = [
        (name, policy)
        for name in _GATES
        if gate in (None, name)
        for policy in _of(rules, name)
        if ident in (None, policy.id)
    ]
    if ident is not None and not found:
        raise Refused(
            "X_CLI_USAGE", f"no policy has the id `{ident}`", "list the ids with `nonsuch policy show`"
        )

    def told(console: Console) -> None:
        for name, policy in found:
            console.print(f"// {policy.where} ({name})", style="dim", soft_wrap=True)
            console.print(text(policy).rstrip() + "\n", soft_wrap=True)

    return Result({"policies": [described(name, policy) for name, policy in found]}, told)


def _of(rules: Rules, gate: GateName) -> tuple[Policy, ...]:
    return {
        "visibility": rules.policies.visibility,
        "scope": rules.policies.scope,
        "policy": rules.policies.policy,
    }[gate]


def text(policy: Policy) -> str:
    """Return a policy as Cedar text for people."""
    exact = str(cedar.policy_set([policy]))
    try:
        return cedar_text.formatted(tidy_policy(exact))
    except cedar_text.PolicyRefused:  # the engine writes `has a.b` as two tests: a longer chain than was read
        return exact


def described(gate: GateName, policy: Policy) -> dict[str, Any]:
    """Return a policy as JSON."""
    return {
        "id": policy.id,
        "gate": gate,
        "effect": effect(policy),
        "where": policy.where,
        "annotations": dict(policy.annotations),
        "text": text(policy),
    }
