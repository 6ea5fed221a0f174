"""A tool's published input and output: one JSON Schema document each, and what enforces it.

Input is judged by exactly the published document, then built into the typed value that the
policy and the handler both see. Knows no wire.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, cast

import jsonschema_rs
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_json

from .content import Base64, is_content
from .model import Issue
from .strict_json import Json

MAX_ISSUES: Final = 32
MAX_PARTS: Final = 1_000
MAX_KEY_CHARS: Final = 4_096
MAX_STEPS: Final = 16
MAX_MESSAGE: Final = 200
JsonSchema = dict[str, Any]
Form = Literal["value", "text", "blob", "content"]


class NoInput(BaseModel):  # no docstring: pydantic would publish it
    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Invalid:
    """The arguments were refused."""

    issues: tuple[Issue, ...]


class InputBroken(Exception):
    """A validator of the application's raised something that says nothing about the input."""


class SchemaRefused(ValueError):
    """A declared schema cannot be published or enforced."""


@dataclass(frozen=True, slots=True, eq=False)
class InputSchema:
    """An input model and its published document."""

    model: type[BaseModel]
    document: JsonSchema
    _validator: jsonschema_rs.Draft202012Validator
    _branching: bool
    _choosing: bool

    def parse(self, arguments: Mapping[str, Json]) -> BaseModel | Invalid:
        """Return the typed input, or every issue (32 at most) by path.

        Raises: InputBroken, when a validator of the application's raised.
        """
        given = dict(arguments)
        try:
            to_json(given)
            if not self._validator.is_valid(given):
                return Invalid(self._issues(given))
        except ValueError:  # what no wire carries: nesting past the validator, half a surrogate pair
            return Invalid((Issue("", "cannot be read"),))
        try:
            typed: BaseModel = self.model.__pydantic_validator__.validate_python(given)
            return typed
        except ValidationError as refusal:
            if _small(given):
                return Invalid(_model_issues(refusal))
            return Invalid((Issue("", f"fails {refusal.error_count()} checks of its values"),))
        except KeyboardInterrupt:
            raise
        except BaseException as refusal:  # a validator of the application's can raise anything
            raise InputBroken from refusal

    def _issues(self, given: Mapping[str, Json]) -> tuple[Issue, ...]:
        """Explain a refusal at a bounded cost: the validator makes every error there is, with its path."""
        if self._branching:
            return (Issue("", "does not satisfy the schema"),)
        if _small(given):
            return _issues(self._validator.iter_errors(given))
        try:
            if not self._choosing:  # the first error of a union holds every error of each branch
                self._validator.validate(given)
        except jsonschema_rs.ValidationError as first:
            return _issues([first])
        return (Issue("", "does not satisfy the schema"),)


def _small(value: object) -> bool:
    """Whether a value has at most 1,000 parts and 4,096 characters of keys."""
    stack, parts, keys = [value], 0, 0
    while stack:
        each = stack.pop()
        parts += 1
        if isinstance(each, dict):
            held = cast("dict[str, object]", each)
            keys += sum(len(key) for key in held)
            stack.extend(held.values())
        elif isinstance(each, list):
            stack.extend(cast("list[object]", each))
        if parts + len(stack) > MAX_PARTS or keys > MAX_KEY_CHARS:
            return False
    return True


MODELS: Final = 1_024
_NAMES: Final = frozenset({"properties", "$defs"})
_DATA: Final = frozenset({"default", "examples", "enum", "const"})


def publish_input(model: type[BaseModel]) -> InputSchema:
    """Return the schema of an input model; one for all entries that take it.

    Objects are closed: an argument that is not declared is refused, unless the model says ``extra="allow"``.
    Raises: SchemaRefused.
    """
    return _known_input(cast("Hashable", model))


def _input(model: type[BaseModel]) -> InputSchema:
    try:
        document = _rooted(model.model_json_schema())
        _tidy(document)
    except Exception as refusal:  # pydantic has a family of its own
        raise SchemaRefused(str(refusal).splitlines()[0]) from refusal
    return enforced(model, document)


_known_input: Final = lru_cache(MODELS)(_input)


def enforced(model: type[BaseModel], document: JsonSchema) -> InputSchema:
    """Return the schema of an input model that is judged by ``document``.

    Raises: SchemaRefused.
    """
    try:
        branching, choosing = cycles(document), any(_Reach(document).unions())
        validator = jsonschema_rs.Draft202012Validator(
            document,
            offline=True,
            validate_formats=True,
            pattern_options=jsonschema_rs.RegexOptions(),
        )
    except Exception as refusal:  # the validator has a family of its own
        raise SchemaRefused(str(refusal).splitlines()[0]) from refusal
    return InputSchema(model, document, validator, branching, choosing)


def _rooted(document: JsonSchema) -> JsonSchema:
    """Put a recursive model's own definition at the root: clients want a plain object there.

    Raises: SchemaRefused, when the input is no object.
    """
    name = str(document.get("$ref", "")).removeprefix("#/$defs/")
    root = {**document["$defs"][name], "$defs": document["$defs"]} if name else document
    if root.get("type") != "object":
        raise SchemaRefused("an input is an object, so its model has fields")
    return root


def _tidy(node: object, *, names: bool = False) -> None:
    """Close objects and drop the titles that pydantic derives from field names.

    ``names`` says that the keys of ``node`` are names of fields or definitions, not keywords.
    """
    if isinstance(node, list):
        for each in cast("list[object]", node):
            _tidy(each)
    elif isinstance(node, dict):
        held = cast("JsonSchema", node)
        if not names:
            _tidy_object(held)
        for key, sub in held.items():
            if names or key not in _DATA:
                _tidy(sub, names=not names and key in _NAMES)


def _tidy_object(node: JsonSchema) -> None:
    properties = node.get("properties")
    if not isinstance(properties, dict) or node.get("type") != "object":
        return
    node.setdefault("additionalProperties", False)
    node.pop("title", None)
    for name, sub in cast("dict[str, JsonSchema]", properties).items():
        if sub.get("title") == name.replace("_", " ").title():
            del sub["title"]


def _issues(errors: Iterable[jsonschema_rs.ValidationError]) -> tuple[Issue, ...]:
    found: list[Issue] = []
    for error in errors:
        found.extend(_issue(error))
        if len(found) >= MAX_ISSUES:
            break
    return tuple(sorted(found[:MAX_ISSUES], key=lambda each: (each.path, each.problem)))


def _issue(error: jsonschema_rs.ValidationError) -> list[Issue]:
    """Say what is wrong without repeating the value that was sent."""
    kind: Any = error.kind
    path = [_short(str(step)) for step in error.instance_path][:MAX_STEPS]
    if kind.name == "required":
        return [Issue(".".join([*path, kind.property]), "required")]
    if kind.name in ("additionalProperties", "unevaluatedProperties"):
        return [
            Issue(".".join([*path, _short(name)]), "not an argument") for name in kind.unexpected[:MAX_ISSUES]
        ]
    return [Issue(".".join(path), _problem(kind))]


def _problem(kind: Any) -> str:
    if kind.name == "type":
        return f"must be of type {' or '.join(kind.types)}"
    if kind.name == "enum":
        return f"must be one of {', '.join(str(option) for option in kind.options)}"
    if hasattr(kind, "limit"):
        return f"breaks `{kind.name}` {kind.limit}"
    return f"breaks `{kind.name}`"


def _short(text: str, limit: int = 64) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _model_issues(refusal: ValidationError) -> tuple[Issue, ...]:
    errors = refusal.errors(include_url=False, include_context=False, include_input=False)[:MAX_ISSUES]
    paths = (".".join(_short(str(step)) for step in each["loc"][:MAX_STEPS]) for each in errors)
    return tuple(
        Issue(path, _short(each["msg"], MAX_MESSAGE)) for path, each in zip(paths, errors, strict=True)
    )


def cycles(document: JsonSchema) -> bool:
    """Whether a definition holds itself through several branches of a union.

    Raises: SchemaRefused, when nothing tells such branches apart: judging a value then takes time
    that doubles with each level, and a few hundred bytes stop the server.
    """
    reached = _Reach(document)
    found = False
    for name, union in reached.unions():
        back = [each for each in union["branches"] if name in reached.of(each)]
        if len(back) > 1 and not union["told"]:
            raise SchemaRefused("a union holds itself in several branches: give it a discriminator")
        found = found or len(back) > 1
    return found


class _Reach:
    """Which definitions a part of a document refers to, directly or not."""

    def __init__(self, document: JsonSchema) -> None:
        self._defs: dict[str, object] = {"": {k: v for k, v in document.items() if k != "$defs"}}
        self._defs |= cast("dict[str, object]", document.get("$defs", {}))

    def of(self, node: object) -> set[str]:
        """Return every definition that a part reaches."""
        seen: set[str] = set()
        names = list(_references(node))
        while names:
            name = names.pop()
            if name not in seen:
                seen.add(name)
                names.extend(_references(self._defs.get(name)))
        return seen

    def unions(self) -> Iterator[tuple[str, JsonSchema]]:
        """Yield each union with the definition that holds it."""
        for name, held in self._defs.items():
            for node in _nodes(held):
                branches = node.get("anyOf") or node.get("oneOf")
                if isinstance(branches, list):
                    yield name, {"branches": branches, "told": "discriminator" in node}


def without_unused(document: JsonSchema) -> JsonSchema:
    """Return a document without the definitions that nothing in it refers to."""
    used = _Reach(document).of({key: held for key, held in document.items() if key != "$defs"})
    kept = {name: held for name, held in document.get("$defs", {}).items() if name in used}
    rest = {key: held for key, held in document.items() if key != "$defs"}
    return {**rest, "$defs": kept} if kept else rest


def _nodes(node: object) -> Iterator[JsonSchema]:
    stack = [node]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            held = cast("JsonSchema", each)
            yield held
            stack.extend(held.values())
        elif isinstance(each, list):
            stack.extend(cast("list[object]", each))


def _references(node: object) -> Iterator[str]:
    for each in _nodes(node):
        target = each.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix("#/$defs/")


class OutputRefused(Exception):
    """A handler's answer does not satisfy its declared output; the answer is not repeated here."""


@dataclass(frozen=True, slots=True, eq=False)
class OutputSchema:
    """A declared output: its document (``None`` without an object root) and its serialiser.

    ``form`` says what its JSON is: a value, a string of words, bytes in base64, or content blocks; ``whole``
    describes that JSON, whatever its root.
    """

    document: JsonSchema | None
    wrapped: bool
    form: Form
    whole: JsonSchema
    _adapter: TypeAdapter[Any]
    _validator: jsonschema_rs.Draft202012Validator

    def serialise(self, value: object) -> bytes:
        """Return compact JSON of exactly the declared fields, true to the published document.

        Raises: OutputRefused.
        """
        try:
            checked = self._adapter.validator.validate_python(value)
            plain = self._adapter.serializer.to_python(checked, mode="json", by_alias=True, warnings="error")
            if not self._validator.is_valid(plain):
                raise OutputRefused
            answer = to_json(plain, inf_nan_mode="null")
            if b"null" in answer and not _finite(self._adapter.dump_python(checked)):
                raise OutputRefused  # a float that JSON cannot hold is written null
        except Exception as refusal:  # a serialiser of the application's can raise anything
            raise OutputRefused from refusal
        return answer


def _finite(value: object) -> bool:
    """Whether no float is NaN or infinite: JSON has no such number."""
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, float) and not math.isfinite(each):
            return False
        if isinstance(each, dict):
            stack.extend(cast("dict[object, object]", each).values())
        elif isinstance(each, (list, tuple)):
            stack.extend(cast("list[object]", each))
    return True


def publish_output(annotation: Any, *, rows: bool) -> OutputSchema:
    """Return the schema of a handler's return annotation; ``rows`` publishes a list under ``rows``.

    Raises: SchemaRefused.
    """
    try:
        return _known_output(annotation, rows=rows)
    except TypeError:  # an annotation that cannot be hashed
        return _output(annotation, rows=rows)


def _output(annotation: Any, *, rows: bool) -> OutputSchema:
    form, annotation = _formed(annotation)
    try:
        adapter = TypeAdapter[Any](annotation)
        document = adapter.json_schema(mode="serialization")
        _structure_only(document)
        validator = jsonschema_rs.Draft202012Validator(document, offline=True)
    except Exception as refusal:  # pydantic and the validator each have a family of their own
        raise SchemaRefused(str(refusal).splitlines()[0]) from refusal
    if rows and form == "value" and document.get("type") == "array":
        return OutputSchema(_under_rows(document), True, form, document, adapter, validator)
    published = document if form == "value" and document.get("type") == "object" else None
    return OutputSchema(published, False, form, document, adapter, validator)


_known_output: Final = lru_cache(MODELS, typed=True)(_output)


def _formed(annotation: Any) -> tuple[Form, Any]:
    if annotation is str:
        return "text", annotation
    if annotation is bytes:
        return "blob", Base64
    return "content" if is_content(annotation) else "value", annotation


def _under_rows(document: JsonSchema) -> JsonSchema:
    items = {key: value for key, value in document.items() if key != "$defs"}
    wrapped: JsonSchema = {"type": "object", "properties": {"rows": items}, "required": ["rows"]}
    return {**wrapped, "$defs": document["$defs"]} if "$defs" in document else wrapped


_BOUNDS: Final = frozenset(
    """title additionalProperties pattern format minLength maxLength minimum maximum exclusiveMinimum
    exclusiveMaximum multipleOf minItems maxItems uniqueItems""".split()  # noqa: SIM905  (reads as a list)
)


def _structure_only(node: object, *, names: bool = False) -> None:
    """Keep structure, drop bounds: a client refuses a result that misses its schema by a detail."""
    if isinstance(node, list):
        for each in cast("list[object]", node):
            _structure_only(each)
    elif isinstance(node, dict):
        held = cast("JsonSchema", node)
        for key in [] if names else [each for each in held if each in _BOUNDS]:
            del held[key]
        for key, sub in held.items():
            if names or key not in _DATA:
                _structure_only(sub, names=not names and key in _NAMES)


def checker(document: JsonSchema) -> Callable[[object], bool]:
    """Return what tells whether a value satisfies a document.

    Raises: SchemaRefused.
    """
    try:
        return jsonschema_rs.Draft202012Validator(
            document, offline=True, validate_formats=True, pattern_options=jsonschema_rs.RegexOptions()
        ).is_valid
    except Exception as refusal:  # the validator has a family of its own
        raise SchemaRefused(str(refusal).splitlines()[0]) from refusal
