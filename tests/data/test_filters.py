"""A filter that is set keeps the rows it says, and one that is not set is no part of the query."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Any

import duckdb
import pandas as pd
import pytest

from data.filters import Filter, Selection, equal

BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)
ROWS = [
    (place, cluster, partition, n_gpus, begin, end)
    for place, (cluster, partition, n_gpus, (begin, end)) in enumerate(
        itertools.product(
            ("a", "b"),
            ("large", None),
            (8, None),
            ((0, 1), (1, 1), (1, 2), (2, None), (0, 3), (None, None), (3, 4)),
        )
    )
]
"""Place, cluster, partition, GPUs, and the hours of begin and end."""
SELECTIONS = [
    Selection(cluster=cluster, partition=partition, from_at=since, to_at=until, min_gpus=least)
    for cluster, partition, (since, until), least in itertools.product(
        (None, "a", "none"),
        (None, "large"),
        (
            (None, None),
            (BEGIN + HOUR, None),
            (None, BEGIN + HOUR),
            (BEGIN + HOUR, BEGIN + 2 * HOUR),
        ),
        (0, 8, 9),
    )
]


@cache
def table() -> duckdb.DuckDBPyConnection:
    """The rows in a database."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone='UTC'")
    frame = pd.DataFrame(ROWS, columns=["place", "cluster", "partition", "n_gpus", "begin", "end"])
    for name in ("begin", "end"):
        frame[f"{name}_at"] = BEGIN + pd.to_timedelta(frame[name].astype(float), unit="h")
    connection.register("frame", frame.convert_dtypes())
    connection.execute("CREATE TABLE rows AS FROM frame")
    return connection


def selected(rows_filter: Filter, selection: Selection) -> set[int]:
    """Places of the rows that a filter keeps."""
    condition = rows_filter.where(selection)
    values = {
        name: value for name, value in selection.parameters.items() if f"${name}" in condition
    }
    places = table().execute(f"SELECT place FROM rows WHERE {condition}", values).fetchall()
    return {place for (place,) in places}


def expected(selection: Selection, in_period: Any) -> set[int]:
    """The same, row by row in Python."""
    since, until = (
        None if at is None else int((at - BEGIN) / HOUR)
        for at in (selection.from_at, selection.to_at)
    )
    return {
        place
        for place, cluster, partition, n_gpus, begin, end in ROWS
        if selection.cluster in (None, cluster)
        and selection.partition in (None, partition)
        and (selection.min_gpus == 0 or (n_gpus or 0) >= selection.min_gpus)
        and in_period(begin, end, since, until)
    }


def within(begin: Any, end: Any, since: Any, until: Any) -> bool:
    unbounded = since is None and until is None
    return unbounded or (
        begin is not None and (since is None or begin >= since) and (until is None or begin < until)
    )


def overlaps(begin: Any, end: Any, since: Any, until: Any) -> bool:
    return (since is None or end is None or end >= since) and (
        until is None or (begin is not None and begin < until)
    )


CASES: dict[str, tuple[Filter, Any]] = {
    "within": (Filter(within="begin_at"), within),
    "within_or_undated": (
        Filter(within="begin_at", undated=True),
        lambda begin, *rest: begin is None or within(begin, *rest),
    ),
    "overlaps": (Filter(overlaps=("begin_at", "end_at")), overlaps),
    "overlaps_or_undated": (
        Filter(overlaps=("begin_at", "end_at"), undated=True),
        lambda begin, *rest: begin is None or overlaps(begin, *rest),
    ),
    "at_any_time": (Filter(), lambda *times: True),
}


@pytest.mark.parametrize("case", CASES)
def test_it_keeps_what_a_loop_over_the_rows_keeps(case: str) -> None:
    timed, in_period = CASES[case]
    of_rows = Filter(
        columns=("cluster", "partition"),
        of="rows",
        within=timed.within,
        overlaps=timed.overlaps,
        undated=timed.undated,
        n_gpus="n_gpus",
    )
    answers = set()
    for selection in SELECTIONS:
        kept = selected(of_rows, selection)
        assert kept == expected(selection, in_period), selection
        answers.add(frozenset(kept))
    assert frozenset() in answers
    assert len(answers) > 8


def test_what_is_not_asked_for_is_no_part_of_the_query() -> None:
    every = Filter(
        of="jobs", overlaps=("start_at", "end_at"), n_gpus="n_gpus", lacking=("account",)
    )
    assert every.where(Selection()) == "true"
    assert every.where(Selection(cluster="a")) == "jobs.cluster = $cluster"
    assert every.where(Selection(to_at=BEGIN)) == "start_at < $to_at"
    assert every.where(Selection(min_gpus=2)) == "(n_gpus >= $min_gpus)"


def test_rows_of_no_size_are_kept_where_the_query_says_so() -> None:
    least = Selection(min_gpus=8)
    assert selected(Filter(n_gpus="n_gpus"), least) < selected(
        Filter(n_gpus="n_gpus", unsized="n_gpus IS NULL"), least
    )


def test_a_filter_that_the_rows_cannot_answer_keeps_none() -> None:
    nodes = Filter(columns=("cluster",), lacking=("partition", "account"))
    assert selected(nodes, Selection(cluster="a"))
    assert not selected(nodes, Selection(cluster="a", account="x"))
    assert not selected(nodes, Selection(partition="large"))


def test_columns_are_equal_to_what_is_given_and_others_stay_open() -> None:
    assert equal(cause="nic", domain=None) == "cause = $cause"
    assert equal(cause=None) == "true"


def test_whole_days_are_those_of_utc_that_the_period_touches() -> None:
    east = timezone(timedelta(hours=5))
    selection = Selection(from_at=datetime(2026, 1, 6, 4, tzinfo=east), to_at=BEGIN + 30 * HOUR)
    assert selection.days == Selection(from_at=BEGIN, to_at=BEGIN + 48 * HOUR)
    assert selection.days.days == selection.days
    assert Selection().days == Selection()
