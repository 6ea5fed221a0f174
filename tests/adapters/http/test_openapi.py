"""The OpenAPI document: sound, of one view, true to what the paths answer, and no word of the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, Literal

import pytest
from pydantic import BaseModel, Field

from nonsuch import App, Human, Registry, can, openapi
from nonsuch.adapters.http.examples import example
from nonsuch.kernel.schema import checker, publish_input

from ...kernel.trial import boot
from .asking import APP as PRESS
from .asking import told
from .counter import APP, CALLERS, ask, counter, session
from .validator import close, errors

SESSIONS: Final = counter(resolve_principal=session, session_cookie="sid")


@pytest.fixture(scope="module", autouse=True)
def validator() -> Iterator[None]:
    yield
    close()


def test_the_validator_sees_what_is_wrong() -> None:
    assert errors({"openapi": "3.1.1", "info": {"title": "x"}, "paths": {}}) != []


def served(caller: str, app: App = APP) -> Any:
    """The document as a caller gets it, after it was held to the specification."""
    status, document = told(ask("GET", "openapi.json", None, caller, app))
    assert status == 200
    sound(document)
    return document


def sound(document: Any) -> None:
    assert errors(document) == []


# whose it is


@pytest.mark.parametrize("app", [APP, SESSIONS, PRESS], ids=["counter", "sessions", "press"])
def test_the_whole_document_is_one(app: App) -> None:
    document = openapi(app)
    sound(document)
    paths = {entry.path for entry in app.kernel.catalog.entries if entry.path}
    assert {path.removeprefix("/api/") for path in document["paths"]} == paths


def test_a_caller_is_served_what_the_caller_sees() -> None:
    everybody = {"/api/items", "/api/items/get", "/api/items/search", "/api/items/change"}
    assert set(served("guest")["paths"]) == everybody
    assert set(served("seller")["paths"]) == everybody | {"/api/items/sell", "/api/items/drop"}
    assert served("seller") == openapi(APP, CALLERS["seller"]) == openapi(APP)
    assert served("guest") == openapi(APP, CALLERS["guest"])


def test_nobody_gets_one_without_saying_who_they_are() -> None:
    assert ask("GET", "openapi.json", None, None).status == 401
    assert ask("GET", "openapi.json", None, None, SESSIONS, {"cookie": "session=ann"}).status == 200


@pytest.mark.parametrize("word", ["sell", "drop", "Sell", "Drop", "Idempotency", "428", "item:", "seller"])
def test_no_word_of_what_is_hidden_is_in_it(word: str) -> None:
    assert word not in json.dumps(served("guest"))


def test_a_document_is_the_same_each_time_it_is_made() -> None:
    assert json.dumps(openapi(counter())) == json.dumps(openapi(counter()))


# what it says


def operation(method: str, path: str, app: App = APP) -> Any:
    return openapi(app)["paths"][f"/api/{path}"][method]


def test_each_declared_method_is_an_operation_of_its_own() -> None:
    found = {
        path.removeprefix("/api/"): {method: each["operationId"] for method, each in item.items()}
        for path, item in openapi(APP)["paths"].items()
    }
    assert found == {
        "items": {"get": "listItems", "post": "listItems:post"},
        "items/get": {"get": "getItem"},
        "items/search": {"post": "searchItems"},
        "items/sell": {"post": "sellItem"},
        "items/change": {"put": "changeItem", "patch": "changeItem:patch"},
        "items/drop": {"delete": "dropItem"},
    }


def test_a_tool_is_named_by_its_one_name_and_nothing_else_is() -> None:
    named = {path: next(iter(item.values())).get("x-nonsuch") for path, item in openapi(APP)["paths"].items()}
    assert named == {
        "/api/items": {"mcpTool": "listItems"},
        "/api/items/get": {"mcpTool": "getItem"},
        "/api/items/search": {"mcpTool": "searchItems"},
        "/api/items/sell": {"mcpTool": "sellItem"},
        "/api/items/change": None,
        "/api/items/drop": {"mcpTool": "dropItem"},
    }


def test_a_scope_is_told_with_its_tool() -> None:
    assert operation("post", "posts/publish", PRESS)["x-nonsuch"] == {
        "scope": "posts:write",
        "mcpTool": "publishPost",
    }
    assert operation("post", "posts/purge", PRESS)["x-nonsuch"] == {"scope": "posts:write"}


def test_a_path_that_is_not_hidden_is_no_tool_for_whom_it_is_hidden() -> None:
    document = openapi(counter(hide_paths=False), CALLERS["guest"])
    assert "x-nonsuch" not in document["paths"]["/api/items/sell"]["post"]
    assert set(document["paths"]) == set(openapi(APP)["paths"])


def test_the_keys_of_a_query_string_are_parameters_and_nothing_else_is() -> None:
    listed = operation("get", "items")
    assert [each["name"] for each in listed["parameters"]] == [
        "state_in",
        "price_gt",
        "sort",
        "cursor",
        "limit",
    ]
    assert "requestBody" not in listed
    by_name = {each["name"]: each["schema"] for each in listed["parameters"]}
    assert by_name["state_in"] == {
        "type": "array",
        "minItems": 1,
        "items": {"type": "string", "enum": ["new", "sold"]},
    }
    assert by_name["limit"]["maximum"] == 20
    assert by_name["cursor"] == {"type": "string"}
    assert "parameters" not in operation("post", "items")


def test_the_key_of_a_call_is_a_header() -> None:
    (header,) = operation("post", "items/sell")["parameters"]
    assert (header["name"], header["in"], header["required"]) == ("Idempotency-Key", "header", False)
    ident, key = operation("delete", "items/drop")["parameters"]
    assert (ident["name"], ident["in"], ident["required"]) == ("id", "query", True)
    assert (key["name"], key["required"]) == ("Idempotency-Key", True)


def test_every_answer_is_told() -> None:
    body = {"400", "413", "415"}
    usual = {"200", "401", "403", "404", "409", "422", "429", "500", "503"}
    assert set(operation("get", "items")["responses"]) == usual
    assert set(operation("post", "items/sell")["responses"]) == usual | body
    assert set(operation("delete", "items/drop")["responses"]) == usual | {"428"}
    refused = {"$ref": "#/components/responses/Problem"}
    assert all(
        each == refused for code, each in operation("get", "items")["responses"].items() if code != "200"
    )


def test_a_problem_is_what_its_schema_says() -> None:
    schema = openapi(APP)["components"]["schemas"]["Problem"]
    value = json.loads(ask("POST", "items", {"limit": 0}).body)
    assert checker(schema)(value)
    assert set(schema["properties"]) == set(value)


def test_who_may_call_is_told_by_what_the_app_takes() -> None:
    bearer = {"type": "http", "scheme": "bearer"}
    document = openapi(APP)
    assert document["components"]["securitySchemes"] == {"bearer": bearer}
    assert document["security"] == [{"bearer": []}]
    document = openapi(SESSIONS)
    cookie = {"type": "apiKey", "in": "cookie", "name": "sid"}
    assert document["components"]["securitySchemes"] == {"bearer": bearer, "session": cookie}
    assert document["security"] == [{"bearer": []}, {"session": []}]


# the schemas


def test_definitions_are_components_and_every_reference_has_one() -> None:
    document = openapi(APP)
    text = json.dumps(document)
    assert "$defs" not in text
    schemas = document["components"]["schemas"]
    assert set(schemas) == {"Item", "Item2", "Said", "Problem"}  # as it is taken, and as it is answered
    answered = operation("post", "items/search")["responses"]["200"]["content"]["application/json"]
    assert answered["schema"] == {"type": "array", "items": {"$ref": "#/components/schemas/Item2"}}
    assert schemas["Item"]["additionalProperties"] is False


def registry_of(*models: type[BaseModel]) -> Registry:
    registry = Registry()
    for at, model in enumerate(models):

        def work(input: Any) -> None: ...

        work.__name__, work.__annotations__ = f"work{at}", {"input": model, "return": None}
        registry.action(policy=can("a:b"))(work)
    return registry


def test_two_models_of_one_name_are_two_components() -> None:
    class Part(BaseModel):
        n: int

    class One(BaseModel):
        part: Part

    def other() -> type[BaseModel]:
        class Part(BaseModel):
            s: str

        class Two(BaseModel):
            part: Part

        return Two

    document = openapi(boot(registry_of(One, other(), One)))
    sound(document)
    schemas = document["components"]["schemas"]
    assert set(schemas) == {"Part", "Part2", "Problem"}
    said = [
        document["paths"][f"/api/work{at}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        for at in range(3)
    ]
    assert [each["properties"]["part"]["$ref"].rpartition("/")[2] for each in said] == [
        "Part",
        "Part2",
        "Part",
    ]


class Leaf(BaseModel):
    kind: Literal["leaf"]


class Tree(BaseModel):
    kind: Literal["tree"]
    left: Tree | Leaf = Field(discriminator="kind")


class Problem(BaseModel):
    mine: int


class Holds(BaseModel):
    tree: Tree
    problem: Problem


def test_a_model_that_holds_itself_and_one_that_is_named_like_ours() -> None:
    document = openapi(boot(registry_of(Holds)))
    sound(document)
    schemas = document["components"]["schemas"]
    assert set(schemas) == {"Tree", "Leaf", "Problem", "Problem2"}
    assert schemas["Problem2"]["properties"]["mine"]["type"] == "integer"
    mapping = schemas["Tree"]["properties"]["left"]["discriminator"]["mapping"]
    assert mapping == {"leaf": "#/components/schemas/Leaf", "tree": "#/components/schemas/Tree"}


# examples


class Rich(BaseModel):
    name: str = Field(min_length=3, max_length=5)
    count: int = Field(gt=3)
    ratio: float = Field(ge=0.5, le=0.75)
    kind: Literal["a", "b"]
    tags: list[Literal["x"]] = Field(min_length=2)
    item: Leaf
    tree: Tree | None = None
    shown: str = Field(default="", examples=["this one"])


def test_an_example_is_one_that_the_action_takes() -> None:
    document = publish_input(Rich).document
    found = example(document)
    assert found is not None
    assert checker(document)(found)
    assert found["shown"] == "this one"
    Rich.model_validate(found)


class Patterned(BaseModel):
    code: str = Field(pattern="^[A-Z]{7}$")


class Endless(BaseModel):
    more: Endless


def test_where_none_is_known_none_is_given() -> None:
    assert example(publish_input(Patterned).document) is None
    assert example(publish_input(Endless).document) is None


def test_examples_of_operations_are_taken_by_them() -> None:
    given = operation("post", "items/sell")["requestBody"]["content"]["application/json"]["example"]
    assert given == {"id": "i1"}
    assert ask("POST", "items/sell", given).status == 200
    (parameter,) = operation("get", "items/get")["parameters"]
    assert ask("GET", f"items/get?id={parameter['example']}").status == 200


def test_a_human_gets_a_document_like_an_agent() -> None:
    assert openapi(APP, Human("h", roles={"seller"})) == openapi(APP)
