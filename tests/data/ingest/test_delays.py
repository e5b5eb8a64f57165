"""Files of delays: long tables, matrices, units, groups, and what is broken in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import SourceError
from data.ingest.readers.metrics.delays import read_delays
from data.limits import DEFAULTS

if TYPE_CHECKING:
    from pathlib import Path

LONG = """src;DST;latency_ms;message_bytes;src_switch;dst_switch
n1;n2;0.5;8;s1;s2
n2;n1;0.25;8;s2;s1
n1;n1;0;8;s1;s1
n1;;0.5;8;s1;
n2;n1;-1;8;s2;s1
n2;n1;soon;8;s2;s1
"""
MATRIX = ",a,b,c\na,0,1.5,2.5\nb,1.25,-,\nc,inf,2,0\n"


def test_a_long_table_in_other_words_and_units(tmp_path: Path) -> None:
    (tmp_path / "delays.csv").write_text(LONG)
    file = read_delays(str(tmp_path / "delays.csv"))
    made = file.samples
    assert (made.names, made.delay_us.tolist(), made.size_bytes.tolist()) == (
        ("n1", "n2"),
        [500.0, 250.0],
        [8.0, 8.0],
    )
    assert (made.source.tolist(), made.destination.tolist()) == ([0, 1], [1, 0])
    assert dict(made.group_of) == {"n1": "s1", "n2": "s2"}
    assert (file.n_rejected, file.rejected_at) == (3, 5)


def test_a_matrix_with_missing_pairs(tmp_path: Path) -> None:
    (tmp_path / "delays.csv").write_text(MATRIX)
    file = read_delays(str(tmp_path / "delays.csv"))
    pairs = {
        (file.samples.names[a], file.samples.names[b]): delay
        for a, b, delay in zip(
            file.samples.source, file.samples.destination, file.samples.delay_us, strict=True
        )
    }
    assert pairs == {("a", "b"): 1.5, ("a", "c"): 2.5, ("b", "a"): 1.25, ("c", "b"): 2.0}
    assert (file.n_rejected, file.rejected_at) == (1, 4)  # inf


def test_a_matrix_of_numbers_alone_is_of_numbered_ends(tmp_path: Path) -> None:
    (tmp_path / "delays.csv").write_text("0,5,9\n5,0,9\n5,7,0\n")
    file = read_delays(str(tmp_path / "delays.csv"))
    assert (sorted(file.samples.names), file.samples.delay_us.tolist(), file.n_rejected) == (
        ["0", "1", "2"],
        [5, 9, 5, 9, 5, 7],
        0,
    )

    pq.write_table(pa.table({"0": [0.0, 5.0], "1": [6.0, 0.0]}), tmp_path / "delays.parquet")
    of_parquet = read_delays(str(tmp_path / "delays.parquet")).samples
    assert (of_parquet.names, of_parquet.delay_us.tolist()) == (("0", "1"), [6.0, 5.0])


def test_parquet_of_numbered_ranks_and_a_table_of_switches(tmp_path: Path) -> None:
    columns = {
        "source": [0, 1, 1],
        "destination": [1, 0, 0],
        "delay_us": [3.0, 4.0, None],
        "source_host": ["x", "y", "y"],
    }
    pq.write_table(pa.table(columns), tmp_path / "delays.parquet")
    (tmp_path / "switches.csv").write_text("host,switch\nx,s1\ny,s2\n,s3\n")
    file = read_delays(str(tmp_path / "delays.parquet"), str(tmp_path / "switches.csv"))
    assert (file.samples.names, dict(file.samples.host_of)) == (("0", "1"), {"0": "x", "1": "y"})
    assert (dict(file.samples.group_of), file.n_rejected) == ({"x": "s1", "y": "s2"}, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("source,destination,delay\na,b,1\n", "no delay with a unit"),
        (
            "source,destination,delay_us\na,b,0\n",
            "holds no delay of a pair .1 rows or cells left out, the first of line 2",
        ),
        ("Roses are red\nviolets\n", "holds no delay of a pair"),
        ("", "is empty"),
    ],
    ids=["unit", "zero", "poem", "empty"],
)
def test_what_holds_no_delay_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "delays.csv").write_text(text)
    with pytest.raises(SourceError, match=said):
        read_delays(str(tmp_path / "delays.csv"))


def test_a_row_of_a_matrix_that_csv_cannot_split_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text(f"0,1,2\n3,0,{'9' * 140_000}\n4,5,0\n")
    found = read_delays(str(path))
    assert sorted(found.samples.delay_us) == [1, 2, 4, 5]
    assert found.n_rejected == 1


def test_lines_of_a_table_of_switches_that_are_left_out_are_counted(tmp_path: Path) -> None:
    delays, switches = tmp_path / "delays.csv", tmp_path / "switches.csv"
    delays.write_text(LONG)
    switches.write_text(f"host,switch\nn1,s1\nn{'2' * DEFAULTS.line_bytes},s1\nn3,\nn2,s9,x\n")
    file = read_delays(str(delays), str(switches))
    assert file.groups_left_out == (3, 3)
    assert dict(file.samples.group_of) == {"n1": "s1", "n2": "s2"}
    switches.write_text("host,switch\nn1,s1\n")
    assert read_delays(str(delays), str(switches)).groups_left_out is None
