"""Invariant: `loads` returns a value that `json` writes and reads back unchanged, or raises `JsonRefused`.

python tests/fuzz/fuzz_strict_json.py --seconds 10 [--seed 1]    documents made at random
python tests/fuzz/fuzz_strict_json.py --atheris [its arguments]    guided by coverage, if atheris is there
"""

import argparse
import importlib
import json
import random
import sys
import time
from collections.abc import Iterator

from nonsuch.kernel.strict_json import JsonRefused, Limits, loads

LIMITS = Limits(max_bytes=4096, max_depth=6, max_digits=40)
PIECES = rb"""
[ ] { } , : " \ \\ \" \u \u0061 \ud83d \ude00 \uD83D\uDE00 "a" "a":1 "\u0061":0
0 -1 1.5 1e9 1e400 NaN Infinity -Infinity null true false
"""
ODD = [
    b"\xc3\xa9",
    b"\xf0\x9f\x98\x80",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\xff",
    b"\xef\xbb\xbf",
    b" ",
    b"\n",
    b"\0",
]
RUNS = [b"1" * 40, b"1" * 41, b"1" * 400, b"[" * 6, b"]" * 6, b'{"a":', b"}" * 6]
TOKENS = [*PIECES.split(), *ODD, *RUNS]
SEEDS = [
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":[1,-2.5e3,"\\u00e9"]}}}',
    b'[{"a":"\\ud83d\\ude00","b":"\\\\\\"[{"},[[[[[]]]]],' + b"9" * 40 + b",null,true]",
]


def check(raw: bytes) -> None:
    """Hold the invariant for one input; an assertion or any foreign exception is a finding."""
    try:
        value = loads(raw, LIMITS)
    except JsonRefused:
        return
    for ascii_only in (True, False):
        text = json.dumps(
            value, ensure_ascii=ascii_only, allow_nan=False
        ).encode()  # a lone surrogate fails here
        assert repr(json.loads(text)) == repr(value)
        assert repr(loads(text, Limits(max_bytes=len(text)))) == repr(value)


def inputs(rng: random.Random) -> Iterator[bytes]:
    """Soups of tokens, and seeds with a few places cut and patched, without end."""
    while True:
        yield b"".join(rng.choices(TOKENS, k=rng.randrange(16)))
        raw = rng.choice(SEEDS)
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(raw) + 1)
            raw = raw[:at] + rng.choice([*TOKENS, b""]) + raw[at + rng.randrange(3) :]
        yield raw


def at_random(seconds: float, seed: int, most: int = sys.maxsize) -> int:
    """Check inputs until the time or the count is used up; the same seed makes the same inputs."""
    end = time.monotonic() + seconds
    tried = 0
    for raw in inputs(random.Random(seed)):  # noqa: S311 - repeatable, guards nothing
        if tried == most or time.monotonic() > end:
            break
        try:
            check(raw)
        except BaseException:
            sys.stderr.write(f"seed {seed}, input {tried}: {raw!r}\n")
            raise
        tried += 1
    return tried


def guided(arguments: list[str]) -> None:
    atheris = importlib.import_module("atheris")
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *arguments], check)
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--atheris", action="store_true")
    options, rest = parser.parse_known_args()
    if options.atheris:
        guided(rest)
    else:
        sys.stdout.write(f"{at_random(options.seconds, options.seed)} inputs, seed {options.seed}\n")


if __name__ == "__main__":
    main()
