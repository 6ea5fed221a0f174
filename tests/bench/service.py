"""The service every subject offers: names, tokens, schema and the handler's work; it knows no framework."""

from itertools import chain, combinations

NAME = "bench"
ROLE = "editor"
OTHER_ROLE = "admin"
SCOPE = "items:write"
PERMISSION = "item:touch"
TEAMS = tuple(f"team{index}" for index in range(10))
HOT = 64
FRESH = 1_023
"""How many callers exist that no request has used yet; a cold measurement uses each of them once."""

TOKEN = "bench-token-warm"
UNSCOPED = "bench-token-unscoped"
STRANGER = "bench-token-of-nobody"
DESCRIPTION = "Touch one item and say what came of it"
MARKER = "touched-ok"
"""Made by the handler and by nothing else, so an error answer can never carry it."""
LIMIT = 1_000

INPUT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "itemId": {"type": "string", "title": "Itemid"},
        "amount": {"type": "integer", "title": "Amount"},
        "note": {"type": "string", "default": "", "title": "Note"},
    },
    "required": ["itemId", "amount"],
}
OUTPUT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "title": "Id"},
        "amount": {"type": "integer", "title": "Amount"},
        "state": {"type": "string", "title": "State"},
    },
    "required": ["id", "amount", "state"],
}


def tool_name(index: int) -> str:
    return f"tool_{index:05d}"


def fresh_token(index: int) -> str:
    """A caller of its own with the roles of the warm one."""
    return f"bench-token-fresh-{index}"


def mixed_token(index: int) -> str:
    """A caller of its own whose set of roles nobody shares."""
    return f"bench-token-mixed-{index}"


def callers() -> dict[str, frozenset[str]]:
    """Token -> roles of its bearer; every bearer but `UNSCOPED` holds the scope."""
    base = frozenset((ROLE,))
    subsets = chain.from_iterable(combinations(TEAMS, size) for size in range(1, len(TEAMS) + 1))
    mixed = {mixed_token(index): base.union(teams) for index, teams in enumerate(subsets)}
    return {TOKEN: base, UNSCOPED: base} | {fresh_token(index): base for index in range(FRESH)} | mixed


def hot(tools: int) -> list[int]:
    """The few tools that most calls go to, spread evenly over the catalog."""
    count = min(HOT, tools)
    return [index * tools // count for index in range(count)]


def arguments(index: int, amount: int) -> dict[str, str | int]:
    return {"itemId": f"item-{index}", "amount": amount, "note": "from the bench"}


def scopes(token: str) -> frozenset[str]:
    return frozenset() if token == UNSCOPED else frozenset((SCOPE,))


def touch(item: str, amount: int) -> dict[str, object]:
    """The whole work of a handler: a small object."""
    return {"id": item, "amount": amount, "state": MARKER}
