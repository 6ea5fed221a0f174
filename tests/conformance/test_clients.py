"""Released clients against a served app: each walks one plan, meets every outcome, and goes on afterwards."""

from collections.abc import Sequence

import pytest

from .clients import CLIENTS, Client
from .plan import EDITOR, MODERN, RUNS, VIEWER, Row
from .watched import Seen, Service, fresh


@pytest.mark.parametrize("name", CLIENTS)
def test_a_released_client_meets_every_outcome_and_goes_on(name: str, service: Service) -> None:
    client = CLIENTS[name]
    plans = {fresh("editor"): client.rows(EDITOR), fresh("viewer"): client.rows(VIEWER)}
    steps = {token: [row.step for row in rows] for token, rows in plans.items()}
    if client.runs:
        steps[fresh("editor")] = list(RUNS)
    sessions = [{"token": token, "steps": taken} for token, taken in steps.items()]
    walked = client.walk({"url": service.url, "era": client.era, "sessions": sessions})
    assert walked == [*map(client.expects, plans.values()), *([client.runs] if client.runs else [])]
    for token, rows in plans.items():
        expected = sorted(row.event for row in rows if row.event is not None and client.sends(row))
        assert sorted(audited(each) for each in service.events(token, len(expected))) == expected
        assert_spoken(client, service.seen("request", token), rows)


def audited(event: Seen) -> tuple[str, str]:
    return event.get("tool") or event.get("prompt") or event["uri"], event["outcome"]


def assert_spoken(client: Client, requests: Sequence[Seen], rows: Sequence[Row]) -> None:
    """One revision was spoken, and nothing but a refused scope of the modern one was refused by status."""
    posts = [each for each in requests if (each["method"], each["path"]) == ("POST", "/mcp")]
    assert {each["version"] for each in posts} - {None} == {client.revision}
    refusing = {each["status"] for each in posts if each["status"] >= 400}
    denied = any(row.outcome == "scope-denied" for row in rows)
    assert refusing == ({403} if client.revision == MODERN and denied else set())
