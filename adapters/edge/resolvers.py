"""What an app gives as ``resolve_token``: a function of a token, or of a token and the request's facts.

Looks at how it may be called; calls it never.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from inspect import Parameter
from typing import Final, cast

from ...kernel.errors import Fault, fault
from ...kernel.model import Principal
from ...kernel.steps import RequestFacts, SessionFacts

Resolved = Principal | None
OfToken = Callable[[str], Awaitable[Resolved] | Resolved]
Resolver = Callable[[str, RequestFacts], Awaitable[Resolved] | Resolved]
ResolveTokenArgument = Resolver | OfToken
SessionResolver = Callable[[SessionFacts], Awaitable[Resolved] | Resolved]

FACTS: Final = "facts"
_FALLBACK: Final = "default"  # what `Mapping.get` calls its second one: facts in its place would be a caller
_FIX: Final = "give a function of `(token, facts)` or of `(token)`"


def resolver_of(given: ResolveTokenArgument | None) -> Resolver | None:
    """Return a function of a token and facts; what takes the token alone, as a ``dict.get``, gets it alone.

    Meant for what ``resolver_faults`` found nothing wrong with.
    """
    if given is None or _takes(given) == 2:
        return cast("Resolver | None", given)
    alone = cast("OfToken", given)
    return lambda token, _facts: alone(token)


def resolver_faults(given: object) -> Iterator[Fault]:
    """Yield why what was given can resolve no token, or could be told its facts in the wrong place."""
    told = None if given is None else _takes(given)
    if isinstance(told, str):
        yield fault("X_DECLARATION_INVALID", f"`resolve_token` {told}", _FIX)


def _takes(given: object) -> int | str:
    """Return how many arguments to give, 1 or 2, or what is wrong."""
    if not callable(given):
        return "is no function"
    try:
        parameters = list(inspect.signature(given).parameters.values())
    except (ValueError, TypeError):
        return 1 if _is_get(given) else "does not say what it takes"
    if any(each.kind is Parameter.KEYWORD_ONLY and each.default is Parameter.empty for each in parameters):
        return "needs more than a token and facts"
    return _counted(parameters)


def _counted(parameters: Sequence[Parameter]) -> int | str:
    by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    places = [each for each in parameters if each.kind in by_place]
    needed = sum(each.default is Parameter.empty for each in places)
    variadic = any(each.kind is Parameter.VAR_POSITIONAL for each in parameters)
    if needed > 2 or not (places or variadic):
        return "needs more than a token and facts" if places else "takes no token"
    if len(places) < 2:
        return 2 if variadic else 1
    second = places[1]
    if needed == 2 or second.name == FACTS:
        return 2
    return 1 if second.name == _FALLBACK else f"has a default for `{second.name}`: it may be the facts or not"


def _is_get(given: object) -> bool:
    """Whether it is the ``get`` of a mapping that is written in C and says nothing of itself."""
    return getattr(given, "__name__", "") == "get" and isinstance(getattr(given, "__self__", None), Mapping)
