"""Labelled rows of a table: columns, times, what is left out."""

from __future__ import annotations

import gzip
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from data.errors import SourceError
from data.ingest.formats.tabular import parsed_times, read_labelled_text

if TYPE_CHECKING:
    from pathlib import Path

TABLE = """When,What happened,Where,Part
2024-01-02,"fan stopped, hot",node 1, FAN
2024-02-03,no label,node 2,
broken line
2024-02-04,"two
lines",,DISK
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(TABLE, encoding="utf-8-sig")
    return path


def test_rows_come_in_order_and_what_is_left_out_is_counted(table: Path) -> None:
    found = read_labelled_text(str(table), ["What happened", "where "], "Part", time="when")
    assert found.rows == (("fan stopped, hot", "node 1"), ("two\nlines", ""))
    assert found.labels == ("FAN", "DISK")
    assert found.times == (datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 2, 4, tzinfo=UTC))
    assert (found.n_unlabelled, found.n_broken) == (1, 1)


def test_a_packed_table_and_a_parquet_table_say_the_same(table: Path, tmp_path: Path) -> None:
    import pandas as pd

    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    columns = (["What happened"], "Part")
    expected = read_labelled_text(str(table), *columns)
    assert read_labelled_text(str(packed), *columns) == expected
    frame = pd.DataFrame({"What happened": [row[0] for row in expected.rows] + [None], "Part": [*expected.labels, None],
                          "at": [pd.Timestamp("2024-01-02"), pd.NaT, pd.NaT]})  # fmt: skip
    frame.to_parquet(tmp_path / "rows.parquet")
    found = read_labelled_text(str(tmp_path / "rows.parquet"), *columns, time="at")
    assert (found.rows, found.labels, found.n_unlabelled) == (expected.rows, expected.labels, 1)
    assert found.times == (datetime(2024, 1, 2, tzinfo=UTC), None)


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        (["What"], "Part", "has no column 'What'"),
        (["What hapened"], "Part", "did you mean 'What happened'"),
        (["Where"], "Parts", "did you mean 'Part'"),
        (["Where", "Part"], "Part", "the answer is no part of the text"),
    ],
)
def test_a_column_that_is_not_there_is_refused(
    table: Path, text: list[str], label: str, message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        read_labelled_text(str(table), text, label)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["11/29/2003 7:00", "1/2/2004"], ["2003-11-29T07:00", "2004-01-02T00:00"]),
        (["29/11/2003 7:00", "1/2/2004"], ["2003-11-29T07:00", "2004-02-01T00:00"]),
        (["1/2/2004", "29/11/2003", "11/29/2003"], ["2004-01-02T00:00", None, "2003-11-29T00:00"]),
        (["03.02.2024 18:30:05"], ["2024-02-03T18:30:05"]),
        (["1/2/04 3:05 PM"], ["2004-01-02T15:05"]),
        (["2024-05-06T07:08:09+02:00", "2024-05-06 07:08"], ["2024-05-06T05:08:09", "2024-05-06T07:08"]),
        (["1700000000", "1700000000.5"], ["2023-11-14T22:13:20", "2023-11-14T22:13:20.500000"]),
        ([date(2024, 1, 2), datetime(2024, 1, 2, 3, tzinfo=UTC)], ["2024-01-02T00:00", "2024-01-02T03:00"]),
        (["", None, float("nan"), "soon", "13/32/2000", "1/2/2004 25:00", "7"], [None] * 7),
    ],
    ids=["month first", "day first", "both", "dots", "half days", "ISO", "epoch", "typed", "none"],
)  # fmt: skip
def test_times_are_read_as_the_column_writes_them(
    values: list[Any], expected: list[str | None]
) -> None:
    wanted = [
        None if one is None else datetime.fromisoformat(one).replace(tzinfo=UTC) for one in expected
    ]
    assert list(parsed_times(values)) == wanted
