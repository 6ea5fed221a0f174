"""What an app compiles, as official Cedar tools read it: one schema and one set of policies.

Decides nothing. The kernel asks by parts of this schema; the whole of it says the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...kernel import cedar
from ...kernel.catalog import Catalog
from ...kernel.cedar_text import Policy, PolicyRefused, formatted, parse
from ...kernel.compile import Base, entry_schema, gate_schema
from .condition_text import tidy_policy


def whole_schema(catalog: Catalog, base: Base) -> str:
    """Return the schema of all gates and all entries, as the engine writes it. Raises: PolicyRefused."""
    return str(cedar.schema(entry_schema(gate_schema(catalog, base), catalog.entries)))


def whole_text(policies: Iterable[Policy]) -> str:
    """Return policies as one text, each below the place it comes from."""
    return "\n".join(f"// {' '.join(each.where.split())}\n{policy_source(each)}" for each in policies)


def policy_source(policy: Policy) -> str:
    """Return a policy as text that reads back as this policy, for people if that can be."""
    exact = str(cedar.policy_set([policy])).strip() + "\n"
    read = (text for text in (tidy_policy(exact), exact) if _same(text, policy))
    return next(map(formatted, read), exact)


def _same(text: str, policy: Policy) -> bool:
    try:
        return [each.node for each in parse(text, policy.where)] == [policy.node]
    except PolicyRefused:  # deeper than the kernel reads; the engine wrote it and reads it
        return False
