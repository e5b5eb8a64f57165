"""Results of SuperBench, as its tests have them, and what is broken in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from data.errors import SourceError
from data.ingest.readers.training.superbench import read_results

if TYPE_CHECKING:
    from pathlib import Path

LINES = """{"node": "sb-validation-01", "kernel-launch/return_code:0": 0, "kernel-launch/event_time:0": 0.00542, "kernel-launch/event_time:1": 0.00559, "mem-bw/h2d_bw:0": 26.1, "version": "0.9"}

{"node": "sb-validation-02", "mem-bw/h2d_bw:0": 25.9, "mem-bw/d2h_bw:0": NaN, "flag": true}
{"mem-bw/h2d_bw:0": 25.9}
{"node": "sb-validation-03", "mem-bw
[1, 2]
"""


def test_ranks_and_runs_of_a_metric_are_its_samples(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text(LINES)
    (tmp_path / "two.jsonl").write_text('{"node": "sb-validation-01", "mem-bw/h2d_bw:0": 20}\n')
    found = read_results([str(tmp_path / "one.jsonl"), str(tmp_path / "two.jsonl")])
    assert found.by_node["sb-validation-01"] == {
        "kernel-launch/return_code": [0.0], "kernel-launch/event_time": [0.00542, 0.00559], "mem-bw/h2d_bw": [26.1, 20.0],
    }  # fmt: skip
    assert list(found.by_node["sb-validation-02"]) == ["mem-bw/h2d_bw", "mem-bw/d2h_bw"]
    assert (found.n_lines, found.n_rejected) == (6, 3)
    assert found.rejected_at == f"{tmp_path}/one.jsonl:4"


def test_a_file_without_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "poem.txt").write_text("Roses are red\n")
    with pytest.raises(SourceError, match="holds no result: give SuperBench's"):
        read_results([str(tmp_path / "poem.txt")])
