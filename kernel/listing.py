"""The whitelist of a list query: its published input, narrowed to what callers may send.

The narrowed document is the one that every surface judges by, so what is left out of it reaches no
handler. Knows no wire and runs no query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pydantic import AliasChoices, AliasPath, BaseModel
from pydantic.fields import FieldInfo

from .declare import Action, ListParams
from .schema import InputSchema, JsonSchema, checker, enforced, without_unused

Narrow = Callable[[JsonSchema], JsonSchema | None]

_NULL: Final[JsonSchema] = {"type": "null"}
_STRUCTURE: Final = frozenset(
    """anyOf $ref type enum const pattern format minLength maxLength items minItems maxItems uniqueItems
    minimum maximum exclusiveMinimum exclusiveMaximum multipleOf""".split()  # noqa: SIM905  (reads as a list)
)


def narrowed(action: Action, given: InputSchema) -> InputSchema | tuple[str, ...]:
    """Return the input that callers may send to an action, or what is wrong with its whitelist.

    Raises: SchemaRefused.
    """
    params = action.mcp.list_params if action.mcp is not None else None
    if params is None:
        return given
    if action.kind != "query" or action.single:
        return (f"`{action.name}` has `list_params` and is no query of a list",)
    work = _Narrowing(action.name, params, given.document)
    document = work.document()
    causes = (*work.causes, *_detours(action.name, given.model, document["properties"]))
    return causes or enforced(given.model, document)


class _Narrowing:
    """One whitelist applied to one document; collects what does not fit."""

    def __init__(self, name: str, params: ListParams, document: JsonSchema) -> None:
        self._name, self._params, self._document = name, params, document
        self._held: dict[str, JsonSchema] = document.get("properties", {})
        self._defs: dict[str, JsonSchema] = document.get("$defs", {})
        self.causes: list[str] = []

    def document(self) -> JsonSchema:
        """Return the document of the whitelisted and the required keys; read ``causes`` before using it."""
        rewritten = {"sort": self._sort, "fields": self._fields, "limit": self._limit}
        admitted = tuple(self._admitted())
        for key in (each for each in admitted if each not in self._held):
            self._wrong(f"whitelists `{key}`, which its input does not declare")
        wanted = {*admitted, *self._document.get("required", ())}
        kept = {key: held for key, held in self._held.items() if key in wanted}
        for key in sorted(rewritten.keys() & kept.keys()):
            kept[key] = rewritten[key](kept[key])
        rest = {key: held for key, held in self._document.items() if key != "patternProperties"}
        return without_unused({**rest, "properties": kept, "additionalProperties": False})

    def _wrong(self, what: str) -> None:
        self.causes.append(f"`{self._name}` {what}")

    def _admitted(self) -> Iterator[str]:
        """The whitelisted keys, flat as they are sent."""
        for name, operators in self._params.filters.items():
            yield from (name + operator for operator in self._list(f"filters[{name!r}]", operators))
        yield from ("sort" for _ in self._list("sort", self._params.sort)[:1])
        yield from ("fields" for _ in self._list("fields", self._params.fields)[:1])
        if self._params.max_limit is not None:
            yield from ("cursor", "limit")

    def _list(self, what: str, names: Any) -> tuple[str, ...]:
        if isinstance(names, str):
            self._wrong(f"gives `{what}` of its whitelist one string, not a list")
            return ()
        return tuple(names)

    # the three keys whose values are whitelisted too

    def _sort(self, held: JsonSchema) -> JsonSchema:
        if not self._params.sort:  # required, and not whitelisted: as declared
            return held
        return self._one_of("sort", held, {name: (name, f"-{name}") for name in self._params.sort})

    def _fields(self, held: JsonSchema) -> JsonSchema:
        if not self._params.fields:
            return held
        return self._one_of("fields", held, {name: (name,) for name in self._params.fields})

    def _one_of(self, key: str, held: JsonSchema, spelled: Mapping[str, tuple[str, ...]]) -> JsonSchema:
        """Narrow a string, or a list of strings, to those of the whitelist that the input accepts."""
        accepts = self._accepts(held)
        taken = {
            name: [each for each in said if accepts(each) or accepts([each])]
            for name, said in spelled.items()
        }
        for name in (name for name, said in taken.items() if not said):
            self._wrong(f"whitelists `{name}`, which its input field `{key}` does not accept")
        one: JsonSchema = {"type": "string", "enum": [each for said in taken.values() for each in said]}

        def narrow(branch: JsonSchema) -> JsonSchema | None:
            match branch.get("type"):
                case "string":
                    return one
                case "array":
                    return {**branch, "items": one}
                case _:
                    return None

        return self._rewritten(key, held, narrow, "a string or a list of strings")

    def _limit(self, held: JsonSchema) -> JsonSchema:
        most = self._params.max_limit
        if most is None:
            return held
        if most < 1:
            self._wrong(f"gives `max_limit` {most}, which admits no row")
        default = held.get("default")
        if isinstance(default, int) and default > most:
            self._wrong(f"has a `limit` of {default} by default, and `max_limit` is {most}")

        def narrow(branch: JsonSchema) -> JsonSchema | None:
            if branch.get("type") != "integer":
                return None
            return {**branch, "maximum": min(most, branch.get("maximum", most))}

        return self._rewritten("limit", held, narrow, "an integer")

    def _rewritten(self, key: str, held: JsonSchema, narrow: Narrow, wanted: str) -> JsonSchema:
        """Narrow each branch of a field that may also be null; what it can be besides is left out."""
        branches = [self._resolved(each) for each in held.get("anyOf", [held])]
        kept = [new for each in branches if (new := narrow(each)) is not None]
        if not kept:
            self._wrong(f"whitelists `{key}`, and its input field is not {wanted}")
            return held
        options = [*kept, _NULL] if _NULL in branches else kept
        new = options[0] if len(options) == 1 else {"anyOf": options}
        told = {name: value for name, value in held.items() if name not in _STRUCTURE}
        if "default" in told and not self._accepts(new)(told["default"]):
            del told["default"]  # what the handler falls back on, and no caller may send
        return {**told, **new}

    def _resolved(self, branch: JsonSchema) -> JsonSchema:
        target = branch.get("$ref")
        if not isinstance(target, str):
            return branch
        rest = {key: held for key, held in branch.items() if key != "$ref"}
        return {**self._defs.get(target.removeprefix("#/$defs/"), {}), **rest}

    def _accepts(self, held: JsonSchema) -> Callable[[object], bool]:
        return checker({**held, "$defs": self._defs})


def _detours(tool: str, model: type[BaseModel], admitted: Mapping[str, object]) -> Iterator[str]:
    """Say which fields outside of a whitelist a key of it would set, by another of their aliases."""
    by_name = bool(model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name"))
    for name, info in model.model_fields.items():
        spelled = list(_spelled(name, info))
        published = next((each for each in spelled if isinstance(each, str)), name)
        keys = {each if isinstance(each, str) else str(each.path[0]) for each in spelled}
        keys |= {name} if by_name else set()
        for key in sorted(keys & admitted.keys()) if published not in admitted else ():
            yield f"`{tool}` whitelists `{key}`, from which its input field `{name}` is read too"


def _spelled(name: str, info: FieldInfo) -> Iterator[str | AliasPath]:
    """Yield where pydantic looks for a field, in its order."""
    alias = info.validation_alias if info.validation_alias is not None else info.alias
    if isinstance(alias, AliasChoices):
        yield from alias.choices
    else:
        yield name if alias is None else alias
