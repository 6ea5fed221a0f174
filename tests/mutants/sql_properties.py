"""What is asked of a mutant of the guard: bounded runs of the tests in ``tests/kernel/test_sql_*.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

from nonsuch.adapters.edge import sql_guard
from nonsuch.kernel.compile import PolicySource

from ..adapters.edge import test_sql_guard_memory as memory
from ..kernel import queries
from ..kernel import test_sql_corpus as corpus
from ..kernel import test_sql_facts as facts
from ..kernel import test_sql_notations as notations
from ..kernel import test_sql_text as texts
from ..kernel import test_sql_tree as tree
from ..kernel import test_sql_verdict as verdict

EVERY_NAME: Final = 12  # one of so many names stands for the others


def _refused() -> Iterator[None]:
    for row in corpus.ROWS:
        if (row.verdict, row.tier) == ("refuse", "parse"):
            assert not queries.judged(row.text).verdict.allow
            yield


def _accepted() -> Iterator[None]:
    corpus.test_few_reads_are_refused_and_each_is_reviewed()
    yield


def _spoken() -> Iterator[None]:
    names = (*notations.HARMFUL[::EVERY_NAME], *notations.TO_COME, "bt_metap", "pg_sleep")
    for text in notations.NOTATIONS.values():
        for name in names:
            assert not queries.judged(text.format(f=f'"{name}"')).verdict.allow
            yield


def _placed() -> Iterator[None]:
    for place in notations.PLACES:
        notations.test_a_harmful_function_is_refused_in_every_place(place)
        yield


def _cases(*tests: Any) -> Callable[[], Iterator[None]]:
    """Every case of parametrised tests."""

    def run() -> Iterator[None]:
        for test in tests:
            (mark,) = [each for each in test.pytestmark if each.name == "parametrize"]
            several = not isinstance(mark.args[0], str)
            for case in cast("Iterable[Any]", mark.args[1]):
                test(*case) if several else test(case)
                yield

    return run


def _nested() -> Iterator[None]:
    yield from _cases(tree.test_a_statement_nests_up_to_a_depth)()


def _of_an_app() -> Iterator[None]:
    app = sql_guard.guard(more=(PolicySource("app.cedar", verdict.OF_THE_APP),))
    (mark,) = cast("Any", verdict.test_an_app_forbids_by_what_the_text_tells).pytestmark
    for case in mark.args[1]:
        verdict.test_an_app_forbids_by_what_the_text_tells(app, *case)
        yield
    verdict.test_the_first_piece_of_all_policies_is_told(app)
    verdict.test_a_policy_that_cannot_be_evaluated_refuses()
    yield


def _remembered() -> Iterator[None]:
    asked = memory.fresh()
    for text in (*memory.SPEAKS, *memory.SPEAKS):
        assert asked.judge(text) == memory.fresh().judge(text)
        yield


def _families() -> Iterator[None]:
    verdict.test_every_family_has_its_policy_and_no_other_is_let_pass()
    yield
    yield from _cases(verdict.test_a_kind_that_is_no_read_is_refused_by_itself)()


SQL_PROPERTIES: Final[tuple[tuple[str, Callable[[], Iterator[None]]], ...]] = (
    (
        "texts unread",
        _cases(texts.test_a_text_that_is_refused_unread, texts.test_a_text_that_a_parser_may_see),
    ),
    ("attacks are refused", _refused),
    ("reads are accepted", _accepted),
    ("every notation", _spoken),
    ("every place", _placed),
    ("new trees", _cases(tree.test_a_tree_that_nobody_has_looked_at_is_refused)),
    ("depth", _nested),
    ("named queries", _cases(facts.test_a_named_query_hides_a_relation_only_where_it_is_seen)),
    ("relations", _cases(facts.test_the_relations_of_a_statement)),
    ("columns", _cases(facts.test_the_columns_that_a_statement_may_read)),
    ("first piece", _cases(facts.test_a_refusal_names_the_first_piece_of_the_text)),
    ("policies of an app", _of_an_app),
    ("families", _families),
    ("remembered", _remembered),
)


def examples(run: Callable[[], Iterator[None]]) -> Iterator[None]:
    """Yield as often as something was asked of a guard that is made anew."""
    queries.shipped.cache_clear()
    sql_guard.catalogue.cache_clear()
    try:
        yield from run()
    finally:
        queries.shipped.cache_clear()
        sql_guard.catalogue.cache_clear()
