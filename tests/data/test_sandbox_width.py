"""A result's width, its names and how deep its values go are bounded, as its rows are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import pytest

from data.errors import QueryError
from data.sandbox import QueryLimits, run_query, wire

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = QueryLimits(wall_seconds=60.0)  # a busy machine


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small snapshot of five columns."""
    path = tmp_path_factory.mktemp("store") / "warehouse-1.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE jobs AS SELECT i AS a, 2 AS b, 3 AS c, 4 AS d, 5 AS e "
                    "FROM range(10) r(i)")  # fmt: skip
    return path


def test_columns_beyond_the_first_thousand_are_left_out_and_counted(snapshot: Path) -> None:
    result = run_query(snapshot, f"SELECT {', '.join('*' * 300)} FROM jobs ORDER BY a", LIMITS)
    assert (len(result.columns), len(result.types), result.columns_left_out) == (1_000, 1_000, 500)
    assert [row[:6] for row in result.rows[:2]] == [(0, 2, 3, 4, 5, 0), (1, 2, 3, 4, 5, 1)]
    assert {len(row) for row in result.rows} == {1_000}
    assert (len(result.rows), result.truncated) == (10, False)


def test_a_thousand_columns_are_all_there(snapshot: Path) -> None:
    result = run_query(snapshot, f"SELECT {', '.join('*' * 200)} FROM jobs", LIMITS)
    assert (len(result.columns), result.columns_left_out) == (1_000, 0)
    assert len(set(result.names)) == 1_000


def test_columns_end_where_their_names_take_too_much(snapshot: Path) -> None:
    long = f'SELECT a AS "{"x" * 1000}" FROM jobs'
    result = run_query(
        snapshot, f"SELECT *, *, * FROM ({long})", replace(LIMITS, max_head_bytes=2_500)
    )
    assert (len(result.columns), result.columns_left_out) == (2, 1)
    with pytest.raises(QueryError, match="name and type of the first column take more than 900 b"):
        run_query(snapshot, long, replace(LIMITS, max_head_bytes=900))


def test_rows_end_where_they_hold_too_many_values(snapshot: Path) -> None:
    limits = replace(LIMITS, max_values=30)
    flat = run_query(snapshot, "FROM jobs", limits)
    assert (len(flat.rows), flat.truncated) == (6, True)
    nested = run_query(snapshot, "SELECT [[a], [b, c]], {'x': c} FROM jobs", limits)
    assert (len(nested.rows), nested.truncated) == (3, True)  # each row holds six and three
    with pytest.raises(
        QueryError, match=r"the first row .* holds more than 30 values: select less"
    ):
        run_query(snapshot, "SELECT range(30)", limits)


def test_rows_end_where_their_names_would_fill_a_file_of_json(snapshot: Path) -> None:
    result = run_query(
        snapshot, f'SELECT a AS "{"x" * 1000}" FROM jobs', replace(LIMITS, max_named_bytes=5_100)
    )
    assert (len(result.rows), result.truncated) == (5, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("opens", "closes"),
    [("[", "]"), ("{'a': ", "}"), ("MAP {'a': ", "}")],
    ids=["list", "struct", "map"],
)
def test_a_value_is_shown_or_refused_by_its_depth(snapshot: Path, opens: str, closes: str) -> None:
    held = run_query(snapshot, f"SELECT {opens * 100}0{closes * 100}", LIMITS)
    depth, value = 0, held.rows[0][0]
    while value != 0:
        depth, value = depth + 1, value[0] if isinstance(value, list) else value["a"]
    assert depth == 100
    told = "a value is nested more than 100 levels deep: select a part of it, or unnest it"
    with pytest.raises(QueryError, match=f"^{told}$"):
        run_query(snapshot, f"SELECT {opens * 101}0{closes * 101}", LIMITS)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (f"SELECT {'[' * 1500}1{']' * 1500}", r"depth limit of 1000 exceeded: write the query in"),
        ("SELECT (repeat('[', 30000) || repeat(']', 30000))::JSON::VARIANT", "nesting too deep"),
    ],
    ids=["query", "value"],
)
def test_what_is_nested_too_deep_for_the_engine_is_told_in_one_line(
    snapshot: Path, sql: str, told: str
) -> None:
    with pytest.raises(QueryError, match=told) as refusal:
        run_query(snapshot, sql, LIMITS)
    assert "\n" not in str(refusal.value)


def test_values_are_counted_with_those_that_are_nested_in_them() -> None:
    assert [wire.n_values(value) for value in (1, "abc", [], [1, [2]], {"a": (1, 2)})] == [
        1, 1, 1, 4, 5,
    ]  # fmt: skip
