"""Tokens in a file: found by their digest, every fault of the file at once, and no token anywhere."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from nonsuch import Agent, BootError, Human, Principal, StaticTokens
from nonsuch.adapters.edge.tokens.remembered import MAX_TOKENS, Remembered, digest
from nonsuch.adapters.edge.tokens.static import new_token


def sha(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


FILE = f"""
[[token]]
sha256 = "{sha("robot's")}"
id = "robot"
roles = ["editor"]
scopes = ["posts:read"]
org = "acme"

[[token]]
sha256 = "{sha("bot's")}"
id = "bot"
roles = ["editor"]
acts_for = {{ id = "ann", roles = ["viewer"], org = "acme" }}

[[token]]
sha256 = "{sha("ann's")}"
id = "ann"
kind = "human"
"""
WHO: dict[str, Principal | None] = {
    "robot's": Agent("robot", roles={"editor"}, scopes={"posts:read"}, org="acme"),
    "bot's": Agent("bot", roles={"editor"}, acts_for=Human("ann", roles={"viewer"}, org="acme")),
    "ann's": Human("ann", scopes=()),
    "robot's ": None,
    "Robot's": None,
    "robot'": None,
    "": None,
    sha("robot's"): None,
    "\ud800": None,
    "\u00fc": None,
}


def written(path: Path, text: str | bytes) -> Path:
    held = path / "tokens.toml"
    held.write_bytes(text if isinstance(text, bytes) else text.encode())
    return held


@pytest.mark.parametrize("token", WHO)
def test_a_token_is_whose_the_file_says(tmp_path: Path, token: str) -> None:
    assert StaticTokens(written(tmp_path, FILE))(token) == WHO[token]


def test_a_human_with_a_token_has_the_scopes_of_the_line_and_no_others(tmp_path: Path) -> None:
    line = f'[[token]]\nsha256 = "{sha("t")}"\nid = "ann"\nkind = "human"\nscopes = ["s"]'
    assert StaticTokens(written(tmp_path, line))("t") == Human("ann", scopes={"s"})


def test_a_file_without_tokens_knows_nobody(tmp_path: Path) -> None:
    assert StaticTokens(written(tmp_path, ""))("t") is None


LINE = f'[[token]]\nsha256 = "{"0" * 64}"\nid = "a"\n'
FAULTY: dict[str, tuple[str | bytes, list[str]]] = {
    "no TOML": ("[[token]\n", ["Expected ']]' at the end of an array declaration (at line 1, column 8)"]),
    "not UTF-8": (b"\xff", ["'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"]),
    "a token itself": (
        '[[token]]\nsha256 = "a s3cret"\nid = "a"',
        ["token.0.sha256: String should match pattern '^[0-9a-f]{64}$'"],
    ),
    "capitals": (
        f'[[token]]\nsha256 = "{"A" * 64}"\nid = "a"',
        ["token.0.sha256: String should match pattern '^[0-9a-f]{64}$'"],
    ),
    "a line end behind": (
        f'[[token]]\nsha256 = "{"0" * 64}\\n"\nid = "a"',
        ["token.0.sha256: String should match pattern '^[0-9a-f]{64}$'"],
    ),
    "two faults": (
        '[[token]]\nid = "a"\n[[token]]\nrole = ["x"]\nsha256 = "0"',
        [
            "token.0.sha256: Field required",
            "token.1.sha256: String should match pattern '^[0-9a-f]{64}$'",
            "token.1.id: Field required",
            "token.1.role: Extra inputs are not permitted",
        ],
    ),
    "one digest twice": (f"{LINE}{LINE}", ["token.1: the digest is another token's too"]),
    "an id that is none": (
        LINE.replace('"a"', '""'),
        ["token.0: an agent needs an id of 1 to 512 printable characters"],
    ),
    "a kind that is none": (f'{LINE}kind = "robot"', ["token.0.kind: Input should be 'agent' or 'human'"]),
    "roles in one text": (f'{LINE}roles = "admin"', ["token.0.roles: Input should be a valid frozenset"]),
    "a human for somebody": (
        f'{LINE}kind = "human"\nacts_for = {{ id = "b" }}',
        ["token.0: a human acts for nobody else"],
    ),
    "something beside": ("tokens = 1", ["tokens: Extra inputs are not permitted"]),
}


@pytest.mark.parametrize("case", FAULTY)
def test_every_fault_of_a_file_is_said_at_once(tmp_path: Path, case: str) -> None:
    text, causes = FAULTY[case]
    with pytest.raises(BootError) as raised:
        StaticTokens(written(tmp_path, text))
    told = [(each.code, each.cause) for each in raised.value.faults]
    assert told == [
        ("X_TOKENS_INVALID", f"the tokens of `tokens.toml` cannot be used: {cause}") for cause in causes
    ]
    assert "s3cret" not in str(raised.value)


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(BootError, match="cannot be used: No such file or directory"):
        StaticTokens(tmp_path / "nothing.toml")


def test_reading_again_takes_the_new_tokens_or_keeps_the_old_ones(tmp_path: Path) -> None:
    path = written(tmp_path, FILE)
    tokens = StaticTokens(path)
    written(tmp_path, f'[[token]]\nsha256 = "{sha("new")}"\nid = "new"')
    assert tokens("new") is None
    tokens.reload()
    assert (tokens("new"), tokens("robot's")) == (Agent("new"), None)
    written(tmp_path, "[[")
    with pytest.raises(BootError):
        tokens.reload()
    assert tokens("new") == Agent("new")


def test_what_is_shown_of_it_is_no_token(tmp_path: Path) -> None:
    path = written(tmp_path, FILE)
    tokens = StaticTokens(path)
    assert repr(tokens) == f"StaticTokens({str(path)!r}, 3 tokens)"
    assert "robot's" not in str(vars(tokens))


def test_a_new_token_is_one_that_nobody_can_guess_and_its_line(tmp_path: Path) -> None:
    pairs = [new_token() for _ in range(100)]
    assert len({token for token, _ in pairs}) == 100
    for token, line in pairs:
        assert len(token) >= 43
        assert token.replace("-", "").replace("_", "").isalnum()
        assert line == sha(token)
    token, line = pairs[0]
    path = written(tmp_path, f'[[token]]\nsha256 = "{line}"\nid = "a"')
    assert StaticTokens(path)(token) == Agent("a")


# What the other resolvers remember


def test_what_is_remembered_is_bounded_and_the_least_asked_for_goes_first() -> None:
    held = Remembered[int](lambda: 0, max_tokens=3)
    for number in range(3):
        held.keep(digest(f"t{number}"), number, 1)
    assert held.find(digest("t0")) == 0
    held.keep(digest("t3"), 3, 1)
    assert [held.find(digest(f"t{number}")) for number in range(4)] == [0, None, 2, 3]
    assert MAX_TOKENS == 10_000


def test_what_is_remembered_ends_when_it_was_said_to() -> None:
    now = [0.0]
    held = Remembered[str](lambda: now[0])
    held.keep(digest("t"), "x", 10)
    now[0] = 9.9
    assert held.find(digest("t")) == "x"
    now[0] = 10.0
    assert held.find(digest("t")) is None
    now[0] = 0.0
    assert held.find(digest("t")) is None
