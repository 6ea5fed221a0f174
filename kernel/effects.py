"""What a tool is declared to do to the world: one rule for its hints, for its tag and for what a call costs.

Reads declarations, never a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .declare import Kind


@dataclass(frozen=True, slots=True)
class Effect:
    """``reads_only`` changes nothing; ``destructive`` may undo or overwrite; neither adds something.

    INVARIANT: what only reads is not destructive.
    """

    reads_only: bool
    destructive: bool


def effect_of(kind: Kind, annotations: Mapping[str, bool | str], *, destructive: bool) -> Effect:
    """Return what a declaration says of its effect; its annotations have the last word.

    A query only reads, and so does a hand-written tool that is not destructive, for nothing else is said of
    one. An action changes something. A query that says it does not only read is destructive unless it
    says otherwise, as MCP takes it (ToolAnnotations).
    """
    reads = _said(annotations, "readOnlyHint", kind == "query" or (kind == "tool" and not destructive))
    harms = _said(annotations, "destructiveHint", kind == "query" or destructive)
    return Effect(reads, harms and not reads)


def _said(annotations: Mapping[str, bool | str], hint: str, otherwise: bool) -> bool:
    said = annotations.get(hint)
    return said if isinstance(said, bool) else otherwise
