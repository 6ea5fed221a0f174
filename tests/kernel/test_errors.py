"""The code table is complete, and both audiences are told the right words."""

import re
from pathlib import Path

import pytest

import nonsuch
from nonsuch import ActionError, BootError
from nonsuch.kernel.codes import CODES, Code
from nonsuch.kernel.errors import ErrorAudience, Fault, Refusal, fault, refusal, refused
from nonsuch.kernel.model import (
    Failed,
    Hidden,
    InputRequired,
    InvalidArguments,
    Issue,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    ScopeDenied,
    Unfit,
)

PACKAGE = Path(nonsuch.__file__).resolve().parent
# The demo is an application: its codes are its own, as those of any `ActionError` are.
SOURCES = [
    *(PACKAGE / "kernel").rglob("*.py"),
    *(file for file in (PACKAGE / "adapters").rglob("*.py") if "demo" not in file.parts),
]
MENTION = re.compile(r'"(X_[A-Z0-9_]+)"')


def mentioned(*, table: bool) -> set[str]:
    """The codes in string literals of the sources, those of the table or all others."""
    files = [file for file in SOURCES if (file.name == "codes.py") is table]
    return {code for file in files for code in MENTION.findall(file.read_text())}


def test_the_sources_were_found() -> None:
    assert {"gates.py", "boot.py", "codes.py", "wire.py"} <= {file.name for file in SOURCES}


def test_every_code_that_the_sources_mention_is_registered() -> None:
    assert mentioned(table=False) - set(CODES) == set()


def test_every_registered_code_is_mentioned_by_the_sources() -> None:
    assert set(CODES) - mentioned(table=False) == set()


def test_no_code_is_registered_twice() -> None:
    (table,) = [file for file in SOURCES if file.name == "codes.py"]
    listed = MENTION.findall(table.read_text())
    assert sorted(listed) == sorted(CODES)


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.code)
def test_every_code_speaks_in_our_style(code: Code) -> None:
    """Lower case, no final period, one line; a code that a caller meets tells the caller what to do."""
    assert re.fullmatch(r"X_[A-Z]+(_[A-Z]+)*", code.code)
    for text in (code.cause, code.fix, *([code.caller_fix] if code.caller_fix else [])):
        assert text == text.strip()
        assert "\n" not in text
        assert not text.endswith((".", "!"))
        assert text[0].islower() or text[0] == "`"
    assert code.culprit in ("caller", "developer", "operator")
    assert code.docs == f"nonsuch://errors/{code.code}"


def test_what_a_caller_can_do_is_written_down_for_each_refusal_of_a_call() -> None:
    silent = {code.code for code in CODES.values() if code.culprit == "caller" and not code.caller_fix}
    assert silent == {"X_MCP_TOOL_UNKNOWN", "X_MCP_RESOURCE_UNKNOWN", "X_MCP_PROMPT_UNKNOWN"}


def test_a_fault_takes_the_fix_of_its_code_unless_a_better_one_is_known() -> None:
    standard = "use 1 to 128 of the characters A-Z a-z 0-9 _ . : / -"
    assert fault("X_NAME_INVALID", "`a b` is no role name") == Fault(
        "X_NAME_INVALID", "`a b` is no role name", standard
    )
    assert fault("X_NAME_INVALID", "why", "do that") == Fault("X_NAME_INVALID", "why", "do that")
    told = fault("X_NAME_INVALID", "why", where="f.cedar:1:2")
    assert told == Fault("X_NAME_INVALID", "why", standard, "f.cedar:1:2")
    with pytest.raises(KeyError):
        fault("X_NO_SUCH_CODE", "why")


def test_a_boot_error_tells_every_fault() -> None:
    one, two = Fault("X_A", "first", "do a"), Fault("X_B", "second", "do b", "f.cedar:2:3")
    assert str(BootError([one])) == "the app cannot start: 1 fault\nX_A: first: do a"
    assert str(BootError(iter([one, two]))) == (
        "the app cannot start: 2 faults\nX_A: first: do a\nf.cedar:2:3: X_B: second: do b"
    )


def test_boot_errors_compare_by_their_faults() -> None:
    one, two = Fault("X_A", "first", "do a"), Fault("X_B", "second", "do b")
    assert BootError([one, two]) == BootError((one, two))
    assert BootError([one, two]) != BootError([two, one])
    assert BootError([one]) != ValueError(one)
    assert len({BootError([one])}) == 1


def test_an_action_error_tells_the_caller_its_own_fix() -> None:
    plain = ActionError("X_LATE", "too late", "come earlier")
    other = ActionError("X_LATE", "too late", "raise the limit", "come earlier")
    assert (plain.fix, plain.caller_fix, str(plain)) == ("come earlier", "come earlier", "X_LATE: too late")
    assert (other.fix, other.caller_fix) == ("raise the limit", "come earlier")
    assert other.args == ("X_LATE", "too late", "raise the limit", "come earlier")
    assert ActionError("X_LATE", "too late", "raise the limit", "").caller_fix == ""


PROTOCOL_FIX = "correct what the cause names, and send one JSON-RPC 2.0 message at a time"
TOLD: dict[str, tuple[Outcome, Refusal, Refusal]] = {
    "hidden": (
        Hidden("t"),
        Refusal("X_MCP_TOOL_UNKNOWN", "no visible tool has that name", "call tools/list to read the catalog"),
        Refusal("X_MCP_TOOL_UNKNOWN", "no visible tool has that name", "call tools/list to read the catalog"),
    ),
    "scope": (
        ScopeDenied("posts:write"),
        Refusal(
            "X_MCP_SCOPE_DENIED",
            "`t` needs the scope `posts:write`, which this connection's token does not carry",
            "ask for a token with the scope `posts:write`",
        ),
        Refusal(
            "X_MCP_SCOPE_DENIED",
            "`t` needs the scope `posts:write`, which this connection's token does not carry",
            "let `resolve_token` return the scope `posts:write` for this token",
        ),
    ),
    "arguments": (
        InvalidArguments((Issue("a.0", "required"), Issue("", "must be of type object"))),
        Refusal(
            "X_INPUT_INVALID",
            "input for tool `t` failed validation: a.0: required; must be of type object",
            "correct the named fields and send the call again",
        ),
        Refusal(
            "X_INPUT_INVALID",
            "input for tool `t` failed validation: a.0: required; must be of type object",
            "correct the named fields and send the call again",
        ),
    ),
    "policy": (
        PolicyDenied("X_FORBIDDEN", "not yours", "grant it", "ask for it", ("p", "q")),
        Refusal("X_FORBIDDEN", "not yours", "ask for it"),
        Refusal("X_FORBIDDEN", "not yours (policies: `p`, `q`)", "grant it"),
    ),
    "policy error": (
        PolicyError(("p",), "not yours", "grant it", "ask for it"),
        Refusal("X_FORBIDDEN", "not yours", "ask for it"),
        Refusal("X_FORBIDDEN", "not yours (policies: `p`)", "grant it"),
    ),
    "scope that nobody presents": (
        ScopeDenied("-"),
        Refusal(
            "X_MCP_SCOPE_DENIED", "`t` is under no scope, so no token opens it", "ask the app's developer"
        ),
        Refusal(
            "X_MCP_SCOPE_DENIED",
            "`t` is under no scope, so no token opens it",
            "name `t` in `scopes` of `define_app_mcp`",
        ),
    ),
    "header": (
        Unfit("the header says otherwise"),
        Refusal("X_MCP_PROTOCOL", "the header says otherwise", PROTOCOL_FIX),
        Refusal("X_MCP_PROTOCOL", "the header says otherwise", PROTOCOL_FIX),
    ),
    "capability": (
        Unfit("it cannot", ("sampling",)),
        Refusal(
            "X_MCP_CAPABILITY_MISSING",
            "it cannot",
            "use a client that declares what `requiredCapabilities` lists",
        ),
        Refusal(
            "X_MCP_CAPABILITY_MISSING",
            "it cannot",
            "use a client that declares what `requiredCapabilities` lists, or let the tool do without it",
        ),
    ),
    "failed": (
        Failed("X_LATE", "too late", "raise the limit", "come earlier"),
        Refusal("X_LATE", "too late", "come earlier"),
        Refusal("X_LATE", "too late", "raise the limit"),
    ),
    "failed, without a word for the caller": (
        Failed("X_LATE", "too late", "raise the limit", ""),
        Refusal("X_LATE", "too late", "raise the limit"),
        Refusal("X_LATE", "too late", "raise the limit"),
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_each_audience_is_told_its_own_fix(name: str) -> None:
    outcome, caller, developer = TOLD[name]
    assert refusal(outcome, "t", "caller") == caller
    assert refusal(outcome, "t", "developer") == developer


@pytest.mark.parametrize("outcome", [Ok(b"1"), InputRequired({}, None)])
def test_a_call_that_goes_on_has_no_refusal(outcome: Outcome) -> None:
    with pytest.raises(TypeError, match="a call that goes on has no refusal"):
        refusal(outcome, "t", "caller")


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.code)
@pytest.mark.parametrize("audience", ["caller", "developer"])
def test_the_standard_words_of_a_code(code: Code, audience: ErrorAudience) -> None:
    fix = code.fix if audience == "developer" else code.caller_fix or code.fix
    told = refused(code.code, audience)
    assert told == Refusal(code.code, code.cause, fix)
    assert told.docs == f"nonsuch://errors/{code.code}"


def test_the_caller_is_the_audience_unless_said_otherwise() -> None:
    assert refused("X_FORBIDDEN") == refused("X_FORBIDDEN", "caller")
