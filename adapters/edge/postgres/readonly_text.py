"""What of a query's text is run: the statement itself, or a SELECT or an EXPLAIN for it. Sends nothing."""

from __future__ import annotations

from ....kernel.sql_facts import SqlFacts
from .readonly_settings import literal


def kind(facts: SqlFacts) -> str:
    """Return what the statement is: select, show or explain."""
    return facts.kinds[0] if facts.kinds else "select"


def shown(text: str, facts: SqlFacts) -> str:
    """Return what is selected, without a semicolon behind it: SHOW stands in no SELECT, and is one."""
    if kind(facts) != "show":
        return facts.statement or text
    name = facts.settings[0] if facts.settings else ""
    if name == "all":
        return "SELECT name, setting, short_desc FROM pg_catalog.pg_settings ORDER BY lower(name)"
    return f"SELECT pg_catalog.current_setting({literal(name)})"


def explained(text: str, facts: SqlFacts) -> str:
    """Return the statement that asks for its plan."""
    statement = facts.statement or text
    return statement if kind(facts) == "explain" else f"EXPLAIN {statement}"
