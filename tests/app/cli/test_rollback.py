"""faultline ingests, rollback and forget: what was read, taking it back, and keeping it no longer."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from app.cli import main
from data.audit import Audit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEADER = "JobID|Cluster|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"
JOB = (
    "{0}|c|ann|NODE_FAIL|2026-01-0{0}T00:00:00|2026-01-0{0}T00:00:00|2026-01-0{0}T09:00:00|1||n1\n"
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two files, beside a store that has read both; only to be copied."""
    place = tmp_path_factory.mktemp("read")
    folder = place / "home" / "ann"
    folder.mkdir(parents=True)
    for number in (1, 2):
        (folder / f"{number}.txt").write_text(HEADER + JOB.format(number))
        read = ["ingest", "sacct", str(folder / f"{number}.txt"), "--cluster", "c"]
        assert main([*read, "--store", str(place / "store"), "--timezone", "UTC"]) == 0
    return folder


@pytest.fixture
def store(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A copy of a store of two ingests, of a file each."""
    capsys.readouterr()
    return shutil.copytree(files.parents[1] / "store", tmp_path / "store")


@pytest.mark.slow
def test_an_ingest_is_listed_with_what_it_brought_and_taken_back(
    faultline: Callable[..., Any], refused: Callable[..., str], files: Path, store: Path
) -> None:
    at = ("--store", store)
    listed = faultline("ingests", *at).json
    assert [each["ingest_id"] for each in listed] == ["2.2", "1.1"]
    assert listed[0]["brought"] == {"jobs": 1, "job_nodes": 1}
    assert (listed[0]["undoable"], listed[0]["zones"]) == (True, {"c": "UTC"})
    again = f"faultline ingest sacct --cluster c --timezone UTC {files}/2.txt"
    planned = faultline("rollback", "1.1", "--dry-run", *at)
    assert (planned.json["snapshot"], planned.json["undone"]) == (None, ["1.1", "2.2"])
    assert f"2.2 would be taken back too, to repeat it: {again}\n" in planned.err
    assert faultline("info", *at).json["snapshot"] == 2
    done = faultline("rollback", "1.1", *at)
    assert (done.json["from_snapshot"], done.json["to_snapshot"]) == (2, None)
    assert [each["command"] for each in done.json["to_repeat"]] == [again]
    assert "`faultline rollback --to 2` takes this back" in done.err
    assert faultline("ingests", *at).json == []
    assert "no ingest '1.1'" in refused("rollback", "1.1", *at)
    assert faultline("rollback", "--to", 2, *at).json["brought_back"] == ["1.1", "2.2"]
    info = faultline("info", *at).json
    assert [each["snapshot"] for each in info["snapshots"]] == [4, 3, 2, 1]
    sizes = [(store / f"warehouse-{number}.duckdb").stat().st_size for number in (1, 2, 3)]
    assert info["earlier_snapshots_bytes"] == sum(sizes)
    (again_to, back, *_) = Audit(store).entries()
    assert (back.action, back.target, back.detail["undone"]) == ("rollback", "1.1", ["1.1", "2.2"])
    assert again_to.target == "snapshot 2"


def test_names_in_paths_and_commands_can_be_left_out(
    faultline: Callable[..., Any], store: Path
) -> None:
    assert "/ann/" in faultline("ingests", "--store", store).out
    assert "/ann/" not in faultline("ingests", "--redact", "--store", store).out
    printed = faultline("ingests", "--format", "table", "--redact", "--store", store).out
    assert printed.startswith("2 ingests, of which 2 can be taken back by `faultline rollback ID`.")


@pytest.mark.parametrize("arguments", [(), ("1.1", "--to", "1")])
def test_one_of_ingest_and_snapshot_is_needed(
    refused: Callable[..., str], store: Path, arguments: tuple[str, ...]
) -> None:
    assert "name an ingest or --to" in refused("rollback", *arguments, "--store", store)


def test_forgetting_is_a_dry_run_until_it_is_agreed_to(
    faultline: Callable[..., Any], refused: Callable[..., str], store: Path
) -> None:
    asked = ("forget", "--as-of", "2026-02-01T12:00", "--store", store)
    assert "write e.g. jobs = 730" in refused(*asked)
    (store / "site.toml").write_text("[retention]\njobs = 30\n")
    dry = faultline(*asked)
    assert "nothing is removed without --yes" in dry.err
    assert "the 1 earlier snapshots" in dry.err
    (jobs,) = dry.json["tables"]
    assert (jobs["n_rows"], jobs["before_at"]) == (1, "2026-01-02T00:00:00+00:00")
    assert (dry.json["done"], faultline("info", "--store", store).json["snapshot"]) == (False, 2)
    assert faultline(*asked, "--yes").json["snapshot"] == 3
    info = faultline("info", "--store", store).json
    assert (info["tables"]["jobs"], len(info["snapshots"])) == (1, 1)
    assert json.loads(faultline("ingests", "--store", store).out)[0]["undoable"] is False
    (entry, *_) = Audit(store).entries()
    assert (entry.action, entry.target) == ("forget", "jobs")


def test_a_zone_is_of_the_cluster_or_of_the_file(refused: Callable[..., str], store: Path) -> None:
    zones = ("--timezone", "UTC", "--file-timezone", "UTC")
    said = refused("ingest", "sacct", "x.txt", *zones, "--store", store)
    assert "--timezone and --file-timezone exclude one another" in said
