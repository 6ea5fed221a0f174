"""What is asked of a mutant of branches and migrations: tests of ``tests/adapters/edge``, on one server."""

from __future__ import annotations

import atexit
import inspect
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import pytest

from nonsuch.adapters.edge.postgres.branch_load import Contents

from ..adapters.edge import test_branch_defaults as defaults
from ..adapters.edge import test_branch_names as names
from ..adapters.edge import test_branches as branches
from ..adapters.edge import test_branches_crash as crash
from ..adapters.edge import test_migrate as migrations
from ..adapters.edge import test_migrate_tool as tools
from ..adapters.edge.branching import Shop, served, shop_on

Test = Callable[..., None]
Opened = Callable[[str], AbstractContextManager[Shop]]


@cache
def _server() -> str:
    """One server for all properties of a process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(served())


@contextmanager
def _failing() -> Generator[None]:
    """What pytest raises for a failed expectation is no Exception; the runner takes those."""
    try:
        yield
    except pytest.fail.Exception as failure:
        raise AssertionError(str(failure)) from failure


def _plain(*tests: Test) -> Callable[[], Iterator[None]]:
    """Tests that need no server; each of its cases, if it has some."""

    def run() -> Iterator[None]:
        for test in tests:
            for case in _cases(test):
                with _failing():
                    test(**case)
                yield

    return run


def _on_shops(*tests: Test, opened: Opened = shop_on) -> Callable[[], Iterator[None]]:
    """Tests on a shop of their own, with every case that they have."""

    def run() -> Iterator[None]:
        for test in tests:
            for case in _cases(test):
                with _failing(), opened(_server()) as shop, TemporaryDirectory() as folder:
                    test(**_wanted(test, shop, Path(folder)), **case)
                yield

    return run


def _wanted(test: Test, shop: Shop, folder: Path) -> dict[str, object]:
    """What a test asks for by the names of its parameters."""
    asked = inspect.signature(test).parameters
    held: dict[str, object] = {}
    if "shop" in asked:
        held["shop"] = shop
    if "server" in asked:
        held["server"] = shop.server
    if "branch" in asked:
        held["branch"] = shop.branch("feat", Contents(full=True)).database
    if "files" in asked:
        (folder / "1_a.sql").write_text("create table a (x int)")
        held["files"] = folder
    return held


def _cases(test: Test) -> Iterator[dict[str, object]]:
    """The cases of a test that is parametrised once; one of nothing for another."""
    marks: list[Any] = [each for each in getattr(test, "pytestmark", ()) if each.name == "parametrize"]
    if not marks:
        yield {}
    for mark in marks[:1]:
        for value in cast("Iterable[object]", mark.args[1]):
            yield {str(mark.args[0]): value}


def _ended() -> Iterator[None]:
    for end in migrations.ENDS[::3]:
        with _failing(), shop_on(_server()) as shop:
            branch = shop.branch("feat", Contents(full=True)).database
            migrations.test_no_file_ends_its_transaction(shop, branch, end, dry_run=False)
        yield


BRANCH_PROPERTIES: Final = (
    (
        "branches: names",
        _plain(
            names.test_what_an_identifier_does_not_hold_becomes_an_underscore_and_a_digest,
            names.test_a_name_that_looks_like_ours_is_told_apart_from_ours,
            names.test_a_name_that_postgresql_would_cut_is_refused,
            names.test_the_bytes_of_the_source_count_and_not_its_characters,
            names.test_names_that_hosts_do_not_tell_apart_have_two_previews,
        ),
    ),
    (
        "branches: markers",
        _plain(
            names.test_the_line_of_a_branch_is_read_where_it_was_made,
            names.test_the_line_is_worth_nothing_on_another_server_database_or_name,
            names.test_the_line_is_worth_nothing_under_another_key,
            names.test_nothing_that_the_line_says_can_be_changed,
            names.test_no_two_branches_share_a_seal_by_moving_text_between_fields,
        ),
    ),
    (
        "branches: contents",
        _on_shops(
            branches.test_a_branch_has_the_schema_and_no_row,
            branches.test_a_schema_comes_with_the_history_of_its_migrations,
            branches.test_a_branch_reaches_no_other_server_by_passwords_of_the_source,
        ),
    ),
    (
        "branches: defaults",
        _on_shops(
            defaults.test_a_branch_is_not_wider_by_what_another_has_taken_from_everybody,
            defaults.test_those_that_its_maker_may_not_give_are_left_out_and_told,
            opened=defaults.shop_of_readers,
        ),
    ),
    (
        "branches: width",
        _on_shops(
            branches.test_a_branch_is_as_wide_as_its_source_and_no_wider,
            branches.test_the_comment_of_the_source_stays_behind_the_marker,
        ),
    ),
    (
        "branches: listed and dropped",
        _on_shops(
            branches.test_ls_shows_the_branches_of_one_source,
            branches.test_a_branch_speaks_of_its_source,
            branches.test_a_database_that_only_has_the_name_is_not_dropped,
            crash.test_what_is_left_of_another_key_or_source_or_name_is_left_alone,
        ),
    ),
    (
        "branches: killed",
        _on_shops(
            crash.test_a_create_that_dies_before_any_statement_leaves_no_branch_or_a_whole_one,
        ),
    ),
    (
        "branches: at once",
        _on_shops(
            crash.test_of_creates_of_one_name_one_makes_it, crash.test_of_drops_of_one_branch_one_drops_it
        ),
    ),
    (
        "migrations: where",
        _on_shops(
            migrations.test_the_source_is_no_branch,
            migrations.test_the_comment_of_a_branch_makes_no_other_database_one,
            migrations.test_a_renamed_branch_is_none,
            migrations.test_the_name_of_a_branch_makes_none,
            migrations.test_functions_of_a_database_cannot_answer_for_the_server,
            migrations.test_a_branch_is_seen_as_one_for_each_file_anew,
        ),
    ),
    (
        "migrations: whole files",
        _on_shops(
            migrations.test_a_file_that_fails_leaves_nothing_of_it_and_all_before_it,
            migrations.test_a_dry_run_runs_every_file_and_keeps_nothing,
            migrations.test_deferred_constraints_fail_with_their_file,
        ),
    ),
    ("migrations: no end", _ended),
    (
        "migrations: beyond",
        _on_shops(
            migrations.test_nothing_changes_beyond_the_database,
            migrations.test_where_changes_are_not_counted_nothing_runs,
            migrations.test_where_a_database_says_not_to_count_nothing_runs,
            migrations.test_objects_of_the_database_may_change_and_be_given,
        ),
    ),
    (
        "migrations: left to the next",
        _on_shops(
            migrations.test_no_file_leaves_a_setting_to_the_next,
            migrations.test_no_file_leaves_a_lock_or_a_temporary_table_to_the_next,
        ),
    ),
    (
        "migrations: known",
        _plain(
            migrations.test_what_ran_must_be_what_the_directory_begins_with,
            migrations.test_how_lines_end_is_no_change,
        ),
    ),
    (
        "migrations: at once",
        _on_shops(
            crash.test_a_migration_beside_another_is_refused_at_once,
            crash.test_migrations_at_once_apply_each_file_once,
        ),
    ),
    (
        "migrations: judged",
        _on_shops(
            tools.test_a_branch_is_migrated_and_told_as_it_was,
            tools.test_any_other_database_is_refused_by_the_policy,
        ),
    ),
)
