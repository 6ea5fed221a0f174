"""Policy text that could exhaust the engine's stack is refused before the engine sees it; the process lives.

Each case runs in a process of its own, because what is tested for is its death.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nonsuch.kernel.cedar_text import PolicyTooDeep, check_nesting, parse
from nonsuch.kernel.policy_text import MAX_NESTING

MANY = 10_000


def policy(condition: str) -> str:
    return f'permit(principal, action == Action::"x", resource) when {{ {condition} }};'


def nested(opening: str, inner: str, closing: str, times: int = MANY) -> str:
    return policy(opening * times + inner + closing * times)


REFUSED = {
    "parentheses": nested("(", "true", ")"),
    "sets": nested("[", "", "]"),
    "records": nested("{a: ", "1", "}"),
    "calls": nested("ip(", '"1.1.1.1"', ")"),
    "not": nested("!", "true", ""),
    "not, spaced": nested("! ", "true", ""),
    "not, over lines": nested("!\n", "true", ""),
    "minus": nested("-", "1 == 1", ""),
    "not and minus": nested("!-", "1 == 1", ""),
    "not in parentheses": nested("!(", "true", ")"),
    "if in the condition": nested("if ", "true", " then true else true"),
    "if in the first branch": nested("if true then ", "true", " else true"),
    "if in the last branch": nested("if true then true else ", "true", ""),
    "opened and never closed": policy("(" * MANY),
    "after a comment": "// ) ) )\n" + nested("(", "true", ")"),
    "after a text of brackets": policy('"))))" == "" && ' + "(" * MANY + "true" + ")" * MANY),
    "after an escaped quote": policy('"\\"" == "" && ' + "(" * MANY + "true" + ")" * MANY),
    "before a stray bracket": "}" * MANY + nested("(", "true", ")"),
    "comments between": nested("!// c\n", "true", ""),
    "a text that never ends": policy('"\\\n" == ' + "(" * MANY),
}

# Chains do not nest for a reader. For the engine each link is one level more.
CHAINS = {
    "and": policy("true" + " && true" * MANY),
    "or": policy("true" + " || true" * MANY),
    "plus": policy("1" + " + 1" * MANY + " == 2"),
    "attributes": policy("context" + ".a" * MANY + " == 1"),
    "subscripts": policy("context" + '["a"]' * MANY + " == 1"),
    "methods": policy("context.a" + ".isEmpty()" * MANY),
    "has": policy("context has " + "a." * MANY + "b"),
}
# The engine ends a comment at a carriage return as well.
HIDDEN = {
    "before the policy": "//\r" + nested("(", "true", ")"),
    "inside the condition": policy("//\r" + "(" * MANY + "true" + ")" * MANY),
}

PROGRAM = """
import json, sys, threading
from nonsuch.kernel import cedar, cedar_text
stack, texts = json.load(sys.stdin)
told = {}
def main():
    for name, text in texts.items():
        try:
            told[name] = f"{len(cedar_text.parse(text, 'f'))} parsed"
        except cedar_text.PolicyRefused as refusal:
            told[name] = "refused"
if stack:
    threading.stack_size(stack * 1024)
thread = threading.Thread(target=main)
thread.start()
thread.join()
print(json.dumps(told))
"""


def answers(texts: dict[str, str], stack: int, at: Path) -> dict[str, str] | str:
    """What a process said of the texts, each parsed in a thread with this many KiB, or how it died."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([stack, texts]),
        capture_output=True,
        text=True,
        cwd=at,
        timeout=60,
        check=False,
    )
    if done.returncode != 0:
        return f"died of {-done.returncode}"
    told: dict[str, str] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("stack", [0, 512])
def test_deep_text_is_refused_and_the_process_lives(stack: int, tmp_path: Path) -> None:
    assert answers(REFUSED, stack, tmp_path) == dict.fromkeys(REFUSED, "refused")


@pytest.mark.parametrize("name", CHAINS)
def test_a_long_chain_does_not_kill_the_process(name: str, tmp_path: Path) -> None:
    assert answers({name: CHAINS[name]}, 0, tmp_path) == {name: "refused"}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_comment_hides_no_nesting(name: str, tmp_path: Path) -> None:
    assert answers({name: HIDDEN[name]}, 0, tmp_path) == {name: "refused"}


def test_what_is_within_the_cap_parses_in_a_small_thread(tmp_path: Path) -> None:
    within = MAX_NESTING - 2  # the clause's own brace, and the call's parenthesis
    texts = {
        "parentheses": nested("(", "true", ")", within),
        "sets": nested("[", "", "]", within),
        "records": nested("{a: ", "1", "}", within),
        "calls": nested("ip(", '"1"', ")", within),
        "if": nested("if true then ", "true", " else true", within),
    }
    assert answers(texts, 512, tmp_path) == dict.fromkeys(texts, "1 parsed")


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_by_our_own_count(name: str) -> None:
    """Two cases are left to the engine, which stops at the first token that it does not know."""
    if name in ("comments between", "a text that never ends", "before a stray bracket"):
        return
    with pytest.raises(PolicyTooDeep, match=r"^line \d+: [^\n]+$"):
        check_nesting(REFUSED[name])


@pytest.mark.parametrize(
    ("opening", "inner", "closing"), [("(", "true", ")"), ("[", "1", "]"), ("{a: ", "1", "}")]
)
def test_the_cap_is_exact(opening: str, inner: str, closing: str) -> None:
    check_nesting(opening * MAX_NESTING + inner + closing * MAX_NESTING)
    with pytest.raises(PolicyTooDeep):
        check_nesting(opening * (MAX_NESTING + 1) + inner + closing * (MAX_NESTING + 1))


@pytest.mark.parametrize("mark", ["!", "-", "! ", "-\n"])
def test_the_cap_on_prefixes_is_exact(mark: str) -> None:
    check_nesting(mark * (MAX_NESTING + 1) + "true")
    with pytest.raises(PolicyTooDeep):
        check_nesting(mark * (MAX_NESTING + 2) + "true")


def test_the_cap_on_branches_is_exact_and_starts_again_with_each_policy() -> None:
    branch = "if true then true else "
    check_nesting(f"{branch * MAX_NESTING}true;{branch * MAX_NESTING}true;")
    with pytest.raises(PolicyTooDeep):
        check_nesting(f"{branch * (MAX_NESTING + 1)}true;")


FLAT = {
    "brackets in a text": policy(f'"{"(" * 100}" == ""'),
    "brackets after an escaped quote in a text": policy(f'"\\"{"(" * 100}" == ""'),
    "brackets in a comment": f"// {'(' * 100}\n{policy('true')}",
    "marks apart": policy(" && ".join(["!false"] * 40)),
    "minus apart": policy(" + ".join(["-1"] * 40) + " == 1"),
    "brackets apart": policy(" && ".join(["(true)"] * 40)),
    "names that hold if": policy(" && ".join(["principal.iffy"] * 40)),
}


@pytest.mark.parametrize("name", FLAT)
def test_what_is_flat_parses(name: str) -> None:
    assert len(parse(FLAT[name], "f")) == 1


def test_the_line_is_told() -> None:
    with pytest.raises(PolicyTooDeep) as caught:
        check_nesting("\n\n// a comment\n" + policy("(" * 40))
    assert str(caught.value).startswith("line 4: ")


DECIDING = """
import json, sys, threading
from nonsuch.kernel import cedar, cedar_text
of = cedar.schema(
    'entity Agent; entity Server; action "x" appliesTo { principal: [Agent], resource: [Server] };'
)
text = '@id("yes") permit(principal, action, resource);'
text += '@id("no") forbid(principal, action, resource) when { %s };'
condition = "(" * 28 + "true" + ")" * 28 + " && (if true then {a: [true].contains(true)}.a else false)"
policies = cedar.policy_set(cedar_text.parse(text % condition, "f"))
held = cedar.entities("[]", of)
told = {}
def main(stack):
    who, what = {"type": "Agent", "id": "a"}, {"type": "Server", "id": "s"}
    told[stack] = cedar.decide(who, "x", what, "{}", policies, held, of).allow
for stack in json.load(sys.stdin):
    threading.stack_size(stack * 1024)
    thread = threading.Thread(target=main, args=(stack,))
    thread.start()
    thread.join()
print(json.dumps(told))
"""


def test_no_stack_is_so_small_that_a_forbid_is_skipped(tmp_path: Path) -> None:
    """The engine drops a policy for which its stack does not suffice: the same request is Deny or Allow."""
    stacks = [96, 128, 144, 160, 192, 256, 512, 1024]
    done = subprocess.run(
        [sys.executable, "-c", DECIDING],
        input=json.dumps(stacks),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, {str(stack): False for stack in stacks})
