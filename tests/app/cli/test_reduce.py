"""faultline reduce: what it says, and that its library is loaded by it alone."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from data.reduce.plan import begin_of

if TYPE_CHECKING:
    from pathlib import Path

LINES = """at,node,metric,value
1767650400,n1,power_watts,41
1767650401000,n1,power_watts,nan
1767650402,n1,power_watts,43
yesterday,n1,x,1
"""


def test_the_command_tells_what_it_did_and_estimates_before(faultline: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LINES)
    (tmp_path / "b.csv").touch()
    command = ("reduce", "metrics", str(tmp_path / "*.csv"), "--out", str(tmp_path / "out"))
    said = faultline(*command, "--dry-run", "--format", "json").json
    assert (said["files_new"], said["sample_rows"], said["rows_estimated"]) == (2, 4, 5)
    assert said["seconds_estimated"] > 0
    assert not (tmp_path / "out").exists()
    said = faultline(*command, "--format", "json")
    assert (said.code, said.json["rows_in"], said.json["rows_out"]) == (2, 2, 1)
    assert "b.csv: is empty" in said.err
    again = faultline(*command, "--dry-run", "--format", "json").json
    assert (again["files_new"], again["seconds_estimated"]) == (1, None)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert begin_of(next(iter(manifest["partitions"]))) == 1767571200000000


ACCOUNTING = """JobID|State|Submit|Start|End|Cluster
1|RUNNING|2026-01-05T08:00:00|2026-01-05T09:00:00|Unknown|a
1|FAILED|2026-01-05T08:00:00|2026-01-05T09:00:00|2026-01-05T10:00:00|a
1.0|FAILED|2026-01-05T08:00:00|2026-01-05T09:00:00|2026-01-05T10:00:00|a
x|FAILED|2026-01-05T08:00:00|2026-01-05T09:00:00|2026-01-05T10:00:00|a
"""


def test_accounting_is_reduced_told_and_read_into_a_store(faultline: Any, tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text(ACCOUNTING)
    out = str(tmp_path / "out")
    command = ("reduce", "jobs", str(tmp_path / "sacct.txt"), "--out", out, "--format", "json")
    said = faultline(*command, "--dry-run").json
    assert (said["files_new"], said["sample_rows"]) == (1, 4)
    assert said["seconds_estimated"] > 0
    assert said["memory_bytes_estimated"] > 0
    said = faultline(*command).json
    assert (said["rows_read"], said["rows_kept"], said["rows_skipped"]) == (4, 1, 2)
    assert said["rejected_by_reason"] == {"JobID is no job id": 1}
    assert (said["rows_in"], said["rows_out"], said["partitions_done"]) == (2, 1, ["2026-01-05"])
    assert faultline(*command).json["partitions_done"] == []
    told = faultline("ingest", "auto", out, "--store", str(tmp_path / "store"))
    assert "made of 4 records of 1 files, of which 1 were kept, 2 skipped" in told.out + told.err


def test_events_are_reduced_by_the_same_command(faultline: Any, tmp_path: Path) -> None:
    line = "Jan  5 10:00:0{} n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU lost\n"
    (tmp_path / "a.log").write_text("".join(line.format(n) for n in range(9)))
    (tmp_path / "b.csv").write_text("node,at,xid\nn1,1767650400,79\nn1,1767650401,0\n")
    command = ("reduce", "events", str(tmp_path), "--out", str(tmp_path / "out"))
    said = faultline(*command, "--dry-run", "--format", "json").json
    assert (said["files_new"], said["sample_rows"]) == (2, 9)
    said = faultline(*command, "--format", "json").json
    assert (said["rows_in"], said["rows_out"], said["rows_skipped"]) == (10, 2, 1)


def test_no_other_command_loads_ibis() -> None:
    code = (
        "import sys\n"
        "from app.cli import commands, parser_of\n"
        "for name, text in commands().items(): parser_of(name, text)\n"
        "from data.ingest.readers import known_readers\n"
        "known_readers()\n"
        "print('ibis' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert said.stdout == "False\n"


def test_samples_around_the_jobs_of_a_store_are_told(
    faultline: Any, tmp_path: Path, empty_store: Path
) -> None:
    (tmp_path / "a.csv").write_text(LINES)
    command = ("reduce", "metrics", str(tmp_path / "a.csv"), "--out", str(tmp_path / "out"))
    said = faultline(*command, "--jobs", str(empty_store), "--format", "json").json
    assert said["windows"] == {"jobs": 0, "jobs_left_out": 0, "samples_left_out": 0}
    assert said["rows_out_by_kind"]["windows"] == 2  # the last half hour of the day
    said = faultline(*command)
    assert (said.code, "with --jobs: say the same" in said.err) == (2, True)
    said = faultline(*command, "--jobs", str(tmp_path / "none"))
    assert said.code == 2
