"""Runs bounded properties against every mutant and against the real code. Knows no kernel.

A mutant is killed by the first property that fails; the real code has to survive all of them.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ..properties import shelf
from ..properties import test_a_broken_policy_refuses_the_whole_set as broken
from ..properties import test_a_hidden_group_is_an_absent_group as hidden_group
from ..properties import test_a_reload_is_whole as reload
from ..properties import test_a_slice_answers_as_the_whole_set as sliced
from ..properties import test_agent_within_human as within
from ..properties import test_an_agents_permit_is_its_humans as permits
from ..properties import test_content_is_judged as content_judged
from ..properties import test_hidden_and_absent_leave_one_trace as one_trace
from ..properties import test_hidden_changes_are_silent as silent
from ..properties import test_limits_tell_nothing as limits
from ..properties import test_manage_is_the_flat_call as manage
from ..properties import test_no_caller_makes_an_entity as entity
from ..properties import test_no_memo_answers_another_question as memo
from ..properties import test_no_value_escapes_its_type as typed
from ..properties import test_one_judge as one_judge
from ..properties import test_removing_a_permit_never_allows_more as fewer
from ..properties.hidden_content import HIDDEN_CONTENT_NAMES
from ..properties.test_hidden_is_absent import HiddenIsAbsent, walk, walk_content
from ..properties.two_worlds import HIDDEN_NAMES
from .branch_properties import BRANCH_PROPERTIES
from .branch_table import BRANCH_MUTANTS
from .chain_properties import CHAIN_PROPERTIES
from .chain_table import CHAIN_MUTANTS
from .confirm_properties import CONFIRM_PROPERTIES
from .confirm_table import CONFIRM_MUTANTS
from .http_properties import HTTP_PROPERTIES
from .http_table import HTTP_MUTANTS
from .inbox_properties import INBOX_PROPERTIES
from .inbox_table import INBOX_MUTANTS
from .limit_table import LIMIT_MUTANTS
from .mutant import Mutant
from .policy_table import POLICY_MUTANTS
from .readonly_properties import READONLY_PROPERTIES
from .readonly_table import READONLY_MUTANTS
from .rewrite import Stale, applied
from .sql_properties import SQL_PROPERTIES, examples
from .sql_table import SQL_MUTANTS
from .table import MUTANTS
from .telemetry_properties import TELEMETRY_PROPERTIES
from .telemetry_table import TELEMETRY_MUTANTS
from .wire_table import WIRE_MUTANTS
from .wires import WIRES, Case

ROOT: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = Path(__file__).resolve().parent / "results"
REAL: Final = Mutant("real", "nothing", ())
EVERY: Final = (
    *MUTANTS,
    *WIRE_MUTANTS,
    *LIMIT_MUTANTS,
    *HTTP_MUTANTS,
    *POLICY_MUTANTS,
    *SQL_MUTANTS,
    *READONLY_MUTANTS,
    *BRANCH_MUTANTS,
    *CONFIRM_MUTANTS,
    *INBOX_MUTANTS,
    *TELEMETRY_MUTANTS,
    *CHAIN_MUTANTS,
)


@dataclass(slots=True)
class Counted:
    """How many examples a property saw."""

    examples: int = 0


@dataclass(frozen=True, slots=True)
class Property:
    """One bounded run of a promise's property; it raises when the promise is broken."""

    name: str
    run: Callable[[Counted], None]


@dataclass(frozen=True, slots=True)
class Killed:
    """What came of one mutant. ``by`` is empty for a survivor; ``stale`` says why it could not run."""

    mutant: str
    breaks: str
    by: tuple[str, ...]
    examples: int
    seconds: float
    stale: str = ""

    @property
    def killer(self) -> str:
        """What killed it, in words."""
        return "; ".join(self.by) or self.stale or "-"


def bounded(examples: int, steps: int = 15) -> settings:
    """A short, repeatable profile that does not explain or shrink."""
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        print_blob=False,
    )


def _walked(count: Counted) -> None:
    count.examples += 1
    walk(("edit", "over"), HIDDEN_NAMES[:3], scoped=True)
    count.examples += 1
    walk(("none", "part", "view"), HIDDEN_NAMES[3:5], scoped=False)


def _walked_content(count: Counted) -> None:
    count.examples += 1
    walk_content(("edit",), HIDDEN_CONTENT_NAMES, page_size=2)
    count.examples += 1
    walk_content(("over",), HIDDEN_CONTENT_NAMES[:2], page_size=None)


def _judged_content(count: Counted) -> None:
    count.examples += 1
    content_judged.walk()


def _silent(count: Counted) -> None:
    count.examples += 1
    silent.walk()


def _cases(cases: Callable[[], Iterator[Case]]) -> Callable[[Counted], None]:
    """Every case of a few tests."""

    def run(count: Counted) -> None:
        for case in cases():
            count.examples += 1
            case()

    return run


def _explored(count: Counted) -> None:
    class Counting(HiddenIsAbsent):
        def __init__(self) -> None:
            super().__init__()
            count.examples += 1

    run_state_machine_as_test(Counting, settings=bounded(25))


def _drawn(test: object, examples: int) -> Callable[[Counted], None]:
    """A `@given` test under the short profile, counting its examples."""

    def run(count: Counted) -> None:
        held = cast("Any", test)
        inner = held.hypothesis.inner_test

        def counting(*arguments: object, **named: object) -> None:
            count.examples += 1
            inner(*arguments, **named)

        before = held._hypothesis_internal_use_settings
        held.hypothesis.inner_test = counting
        held._hypothesis_internal_use_settings = bounded(examples)
        try:
            held()
        finally:
            held.hypothesis.inner_test = inner
            held._hypothesis_internal_use_settings = before

    return run


def _judged(count: Counted) -> None:
    count.examples += 1
    one_judge.walk()
    one_judge.test_a_request_that_cannot_be_judged_is_denied_as_an_error()


def _traced(count: Counted) -> None:
    count.examples += 1
    one_trace.over_mcp(HIDDEN_NAMES[:3], ("edit", "over"), one_trace.SHAPES[:2])
    one_trace.over_http(HIDDEN_NAMES[:3], ("edit", "view"), one_trace.SHAPES[:2])
    one_trace.over_content(HIDDEN_CONTENT_NAMES, ("edit",))


def _grouped(count: Counted) -> None:
    count.examples += 1
    hidden_group.walk()


def _limited(count: Counted) -> None:
    count.examples += 1
    limits.walk(("edit", "over"), HIDDEN_NAMES[:4])


def _managed(count: Counted) -> None:
    count.examples += 1
    manage.walk()


def _headed(count: Counted) -> None:
    count.examples += 1
    sliced.test_every_head_is_found_by_everyone_who_satisfies_it()


def _refused(count: Counted) -> None:
    for text, code in broken.BROKEN.values():
        count.examples += 1
        assert set(broken.refused(shelf.sources(text))) == {code}


def _revoked(count: Counted) -> None:
    count.examples += 3
    reload.test_a_revoked_grant_is_refused_by_the_next_request()
    reload.test_a_grant_that_comes_back_is_permitted_again()
    reload.test_a_broken_directory_keeps_the_set_and_says_every_fault()


def _misfits(count: Counted) -> None:
    for name in typed.FINE:
        count.examples += 1
        typed.test_each_other_value_is_refused_or_held_by_its_type(name)


def _ended(count: Counted) -> None:
    count.examples += 1
    typed.test_every_way_that_a_call_can_end_is_met()


def _behind(count: Counted) -> None:
    count.examples += 1
    permits.test_an_error_of_the_human_denies_its_agent()


def _asked(run: Callable[[], Iterator[None]]) -> Callable[[Counted], None]:
    def counted(count: Counted) -> None:
        for _ in examples(run):
            count.examples += 1

    return counted


PROPERTIES: Final = (
    Property("hidden is absent, walked", _walked),
    Property("hidden content is absent, walked", _walked_content),
    Property("hidden changes are silent, walked", _silent),
    Property("one judge, walked", _judged),
    Property("content is judged, walked", _judged_content),
    Property("one trace", _traced),
    Property("a hidden group is absent", _grouped),
    Property("manage is the flat call", _managed),
    Property("limits tell nothing, walked", _limited),
    *(Property(name, _cases(cases)) for name, cases in WIRES.items()),
    Property("every head is found", _headed),
    Property("a broken set is refused", _refused),
    Property("a revoked grant is refused", _revoked),
    Property("each other value", _misfits),
    Property("every end is met", _ended),
    Property("an error of the human denies", _behind),
    Property("slice is whole", _drawn(sliced.test_the_judge_answers_as_the_whole_set, 60)),
    Property(
        "head covers tool", _drawn(sliced.test_the_policies_about_a_tool_are_those_whose_head_covers_it, 20)
    ),
    Property("missing is never read", _drawn(sliced.test_a_row_that_is_not_there_is_never_read, 50)),
    Property(
        "index over hierarchies",
        _drawn(sliced.test_the_index_answers_as_the_whole_set_over_any_hierarchy, 150),
    ),
    Property("no entity of a caller", _drawn(entity.test_nothing_that_a_caller_sends_becomes_an_entity, 40)),
    Property("entities of rows", _drawn(entity.test_a_row_names_what_its_model_declares, 40)),
    Property("what was sent", _drawn(typed.test_what_the_engine_holds_is_what_was_sent, 400)),
    Property("any other value", _drawn(typed.test_any_other_value_is_refused_or_held_by_its_type, 200)),
    Property("no forbid turned off", _drawn(typed.test_no_input_and_no_row_turns_a_forbid_off, 400)),
    Property("no other question", _drawn(memo.test_no_memo_answers_another_question, 30)),
    Property("reload is whole", _drawn(reload.test_a_request_is_judged_by_the_set_it_began_with, 20)),
    Property("permit is its human's", _drawn(permits.test_what_an_agent_is_allowed_its_human_is_allowed, 30)),
    Property("fewer permits", _drawn(fewer.test_removing_a_permit_never_allows_more, 15)),
    Property("more forbids", _drawn(fewer.test_adding_a_forbid_never_allows_more, 15)),
    Property(
        "unlinked decides nothing", _drawn(broken.test_a_template_that_nothing_links_decides_nothing, 20)
    ),
    Property("one judge, explored", _drawn(one_judge.test_every_outcome_is_the_one_that_the_rules_give, 80)),
    Property("missing is foreign", _drawn(one_judge.test_a_missing_row_and_a_foreign_row_are_one_answer, 40)),
    Property("agent within human, seen", _drawn(within.test_what_an_agent_is_shown_its_human_may_see, 60)),
    Property("agent within human, done", _drawn(within.test_what_an_agent_is_allowed_its_human_is_too, 60)),
    Property("hidden is absent, explored", _explored),
    *(Property(f"queries: {name}", _asked(run)) for name, run in SQL_PROPERTIES),
    *(Property(name, _asked(run)) for name, run in READONLY_PROPERTIES),
    *(Property(name, _asked(run)) for name, run in HTTP_PROPERTIES),
    *(Property(name, _asked(run)) for name, run in BRANCH_PROPERTIES),
    *(Property(name, _asked(run)) for name, run in (*CONFIRM_PROPERTIES, *INBOX_PROPERTIES)),
    *(Property(name, _asked(run)) for name, run in TELEMETRY_PROPERTIES),
    *(Property(name, _asked(run)) for name, run in CHAIN_PROPERTIES),
)


def judge(mutant: Mutant, *, everything: bool, only: str = "") -> Killed:
    """Run the properties (``only`` those of a name) against one mutant: until one fails, or all of them."""
    started, count, by = time.monotonic(), Counted(), list[str]()
    try:
        with applied(mutant.edits):
            for each in (each for each in ordered(mutant) if only in each.name):
                if fails(each, count):
                    by.append(each.name)
                    if not everything:
                        break
    except Stale as stale:
        return Killed(mutant.name, mutant.breaks, (), 0, 0.0, str(stale))
    seconds = round(time.monotonic() - started, 1)
    return Killed(mutant.name, mutant.breaks, tuple(by), count.examples, seconds)


def ordered(mutant: Mutant) -> list[Property]:
    """All properties, and first the one that the mutant is made for."""
    return sorted(PROPERTIES, key=lambda each: each.name != mutant.first)


def fails(each: Property, count: Counted) -> bool:
    """Whether a property is broken. A mutant whose own text is broken proves nothing.

    Raises: Stale.
    """
    typed.forget()
    try:
        each.run(count)
    except (NameError, AttributeError, ImportError, TypeError) as fault:
        raise Stale(f"the edited text raises {fault!r}") from fault
    except Exception:  # noqa: BLE001 - whatever else a mutant raises shows that it is seen
        return True
    return False


def run(
    mutants: Sequence[Mutant], *, everything: bool = False, only: str = "", shares: int = 2
) -> list[Killed]:
    """Judge mutants in a few processes of their own; each takes the next one that is left."""
    command = [sys.executable, "-m", f"{__package__}.runner", *(["--everything"] if everything else [])]
    command += ["--property", only, "--serve"]
    left, found = iter([mutant.name for mutant in mutants]), dict[str, Killed]()
    with ThreadPoolExecutor(shares) as pool:
        served = [pool.submit(_served, command, left, found) for _ in range(shares)]
    for each in served:
        each.result()
    return [found[mutant.name] for mutant in mutants]


def _served(command: Sequence[str], left: Iterator[str], found: dict[str, Killed]) -> None:
    """Have one process judge mutants until none is left. A list iterator may be shared by threads."""
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a process without pipes")
        for name in left:
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"a process ended early over `{name}`; its words are above")
            found[name] = _read(line)
        process.stdin.close()


def _read(line: str) -> Killed:
    held = json.loads(line)
    held["by"] = tuple(held["by"])
    return Killed(**held)


def table(results: Iterable[Killed]) -> str:
    """The results as text: mutant, what it breaks, what killed it, after how many examples."""
    rows = [
        (
            each.mutant,
            "; ".join(each.by) or each.stale or "-",
            str(each.examples),
            str(each.seconds),
            each.breaks,
        )
        for each in results
    ]
    head = ("mutant", "killed by", "examples", "seconds", "breaks")
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(4)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, [*widths, 0], strict=True)).rstrip()
        for row in (head, *rows)
    )


def write(results: Iterable[Killed]) -> Path:
    """Leave the results as JSON for other checks."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "mutants.json"
    path.write_text(json.dumps([asdict(each) for each in results], indent=2) + "\n")
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the real code and every mutant, or with ``--serve`` those named by standard input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--everything", action="store_true", help="do not stop at the first killer")
    parser.add_argument("--shares", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="mutants by name")
    parser.add_argument("--property", default="", help="only properties with this in their name")
    parser.add_argument("--serve", action="store_true", help="one name a line in, one JSON line out")
    given = parser.parse_args(arguments)
    named = {mutant.name: mutant for mutant in (REAL, *EVERY)}
    if given.serve:
        logging.disable(logging.CRITICAL)
        for line in sys.stdin:
            killed = judge(named[line.strip()], everything=given.everything, only=given.property)
            sys.stdout.write(json.dumps(asdict(killed)) + "\n")
            sys.stdout.flush()
        return 0
    chosen = [named[name] for name in given.only] if given.only else list(named.values())
    results = run(chosen, everything=given.everything, only=given.property, shares=given.shares)
    whole = not (given.only or given.property)
    sys.stdout.write(table(results) + (f"\nwritten to {write(results)}\n" if whole else "\n"))
    return int(any(bool(each.stale) or bool(each.by) is (each.mutant == "real") for each in results))


if __name__ == "__main__":
    sys.exit(main())
