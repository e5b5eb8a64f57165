"""faultline info: what a store holds and what it rests on."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from data.current import SCHEMA_VERSION
from data.sandbox import landlock_missing
from tests.without_landlock import WITHOUT_LANDLOCK
from tests.written_current import saying

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]
RUN = f"{WITHOUT_LANDLOCK}\nfrom app.cli import main\nsys.exit(main(sys.argv[1:]))"


def test_the_keys_of_the_contract_are_there(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    said = faultline("info", "--store", sacct_store)
    found = said.json
    assert said.code == 0
    nodes, *others = said.err.splitlines(keepends=True)
    assert nodes.startswith("3 nodes are in no inventory: each counts with the most GPUs that ")
    assert "".join(others) in ("", f"{landlock_missing()}\n")
    assert found["landlock"] is (landlock_missing() is None)
    assert {"schema_version", "snapshot", "tables", "coverage"} <= set(found)
    assert (found["schema_version"], found["snapshot"], found["synthetic"]) == (
        SCHEMA_VERSION,
        1,
        False,
    )
    assert found["checksum_holds"] is True
    assert (found["tables"]["jobs"], found["tables"]["job_nodes"]) == (3, 4)
    (source,) = found["coverage"]["sources"]
    assert (source["cluster"], source["source"], source["n_rows"]) == ("c", "jobs", 3)
    assert source["first_at"] == "2026-01-06T00:00:00+00:00"
    assert "node_events" in found["coverage"]["missing"]


def test_a_table_names_what_is_there_and_what_is_missing(
    faultline: Callable[..., Any], demo_store: Path
) -> None:
    said = faultline("info", "--store", demo_store, "--format", "table")
    assert said.code == 0
    assert said.out.startswith("Snapshot 1 (synthetic), published ")
    assert "\njobs " in said.out
    assert "\ntickets " in said.out
    assert said.out.splitlines()[0].endswith("no rows of node_failures.")


def test_csv_counts_the_rows_of_every_table(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    said = faultline("info", "--store", sacct_store, "--format", "csv")
    rows = dict(csv.reader(io.StringIO(said.out)))
    assert rows.pop("table") == "rows"
    tables = faultline("info", "--store", sacct_store).json["tables"]
    assert rows == {name: str(n) for name, n in tables.items()}


def test_an_empty_store_is_described(faultline: Callable[..., Any], empty_store: Path) -> None:
    for form in ("json", "csv", "table"):
        assert faultline("info", "--store", empty_store, "--format", form).code == 0
    found = faultline("info", "--store", empty_store).json
    records = {name: n for name, n in found["tables"].items() if name != "stage_runs"}
    assert set(records.values()) == {0, 1}
    assert found["coverage"]["sources"] == []


def test_a_damaged_snapshot_is_noticed(
    faultline: Callable[..., Any], sacct_store: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(sacct_store, tmp_path / "copy")
    saying(copy, sha256="0" * 64)  # as where a bit turned in a block that no query reads
    assert faultline("info", "--store", copy).json["checksum_holds"] is False
    said = faultline("info", "--store", copy, "--format", "table")
    assert "restore it from a backup" in said.err


def test_a_store_that_cannot_be_read_is_refused(
    refused: Callable[..., str], sacct_store: Path, tmp_path: Path
) -> None:
    assert "holds no store" in refused("info", "--store", tmp_path)
    copy = shutil.copytree(sacct_store, tmp_path / "copy")
    current = json.loads((copy / "CURRENT").read_text(encoding="utf-8"))
    saying(copy, schema_version=99)
    assert "written by a newer Faultline" in refused("info", "--store", copy)
    (copy / "CURRENT").write_text("{", encoding="utf-8")
    assert "restore it from a backup" in refused("info", "--store", copy)
    (copy / "CURRENT").write_text(json.dumps(current), encoding="utf-8")
    (copy / current["file"]).unlink()
    assert f"{current['file']}: is missing" in refused("info", "--store", copy)


@pytest.mark.slow
def test_a_system_without_landlock_is_told(sacct_store: Path) -> None:
    command = [sys.executable, "-c", RUN, "info", "--format", "json", "--store", str(sacct_store)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this system lets no process filter its calls")
    assert done.returncode == 0
    assert json.loads(done.stdout)["landlock"] is False
    assert "This system has no Landlock" in done.stderr


@pytest.mark.slow
def test_a_system_without_landlock_is_told_at_the_start(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, "serve", "--port", "0", "--store", str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        printed = server.stdout.readline()
        server.terminate()
        _, err = server.communicate()
    if server.returncode == 77:
        pytest.skip("this system lets no process filter its calls")
    assert "Faultline is at" in printed
    assert err.startswith("This system has no Landlock")
