"""What an engine says of a mistake -> what to write instead. Knows no engine and no app.

The engine's words stay the cause. A mistake that is not in the table has the fix of its code.
"""

from __future__ import annotations

import re
from typing import Final

_TABLE: Final = tuple(
    (re.compile(words), fix)
    for words, fix in (
        # syntax
        (r"^unexpected end of input", "close what is open, and end the policy with `;`"),
        (r"^invalid policy effect", "begin the policy with `permit` or `forbid`"),
        (r"^'=' is not a valid operator", "write `==`"),
        (r"^invalid token", "write texts in straight double quotes, and comments after `//`"),
        (r"^expected an entity uid, found literal", 'write a type and an id: `Action::"publish"`'),
        (r"found a `\+/-` expression", 'write the id in quotes: `Post::"post-1"`'),
        (
            r"found a `(?:&&|\|\|)` expression",
            "write it in `when { ... }`; several actions are `action in [...]`",
        ),
        (r"found set of entity uids", "write a policy for each, or `when { principal in [...] }`"),
        (r"^invalid policy condition", "write `when { ... }` or `unless { ... }`"),
        (r"condition clause cannot be empty", "write a condition, or leave the clause out"),
        (r"^unexpected token `and`", "write `&&`"),
        (r"^unexpected token `or`", "write `||`"),
        (r"^found the variable", "write them in this order: principal, action, resource"),
        (r"^this policy is missing", "write all three: `permit (principal, action, resource)`"),
        (
            r"^invalid variable: (?:True|False|None|null|nil)",
            "write `true` or `false`; what is absent is asked with `has`",
        ),
        # types
        (
            r"^unable to find an applicable action",
            'write a role as `principal in Role::"..."`, and name the type that the action is about',
        ),
        (r"optional attribute `args\.(\S+)` in context", r"write `context.args has \1` and `&&` before it"),
        (
            r"optional attribute `(\S+)` on entity type `(?:Agent|Human)`",
            r"write `principal has \1` and `&&` before it",
        ),
        (r"optional attribute `(\S+)` on entity type", r"write `resource has \1` and `&&` before it"),
        (r"attribute `roles?` on entity type `(?:Agent|Human)`", 'write `principal in Role::"..."`'),
        (r"attribute `(?!args\b)(\S+)` in context .* not found", r"read an argument as `context.args.\1`"),
        (
            r"^unrecognized entity type `(\S+)`",
            r"write `Human` or `Agent` for a caller, or declare `entity \1;` in a `.cedarschema` file",
        ),
    )
)
_INNER: Final = {"AnyEntity": "any entity", "OpenRecord": "any record"}
_INTERNAL: Final = re.compile(r"__cedar::internal::(AnyEntity|OpenRecord)(?:\{\})?")


def advice(message: str) -> str | None:
    """Return what to write instead of what an engine message is about, ``None`` for one that is not known."""
    for words, fix in _TABLE:
        found = words.search(message)
        if found is not None:
            return found.expand(fix)
    return None


def plain(message: str) -> str:
    """Return an engine message without the names of types that nobody can write."""
    return _INTERNAL.sub(lambda found: _INNER[found[1]], message)
