"""Records of Slurm's jobcomp plugins."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from app.actions import ingest_files
from data.ingest.reader import Options
from data.store import Store
from tests.data.ingest.job_reading import read_jobs, rejected, takers

if TYPE_CHECKING:
    from pathlib import Path


def record(job_id: int = 1, **changes: Any) -> dict[str, Any]:
    """A record as the plugin writes it."""
    return {
        "jobid": job_id, "username": "ada", "@start": "2024-03-01T12:01:40+00:00",
        "@end": "2024-03-01T13:01:40+00:00", "@submit": "2024-03-01T12:00:00+00:00",
        "elapsed": 3600, "partition": "p", "nodes": "n[1-2]", "total_cpus": 8, "total_nodes": 2,
        "exit_code": "1:0", "state": "FAILED", "cluster": "c", "qos": "q", "time_limit": 7200,
        "tres_alloc": "cpu=8,mem=1000M,node=2,gres/gpu=16", "account": "a", "job_name": "train",
    } | changes  # fmt: skip


def hit(job_id: int = 1, **changes: Any) -> dict[str, Any]:
    """The same as Elasticsearch gives it."""
    return {"_index": "slurm", "_id": "x", "_score": 1.0, "_source": record(job_id, **changes)}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([hit(1), hit(2)], indent=4),
        json.dumps([record(1), record(2)]),
        f"{json.dumps(hit(1))}\n{json.dumps(hit(2))}\n",
        json.dumps({"took": 1, "hits": {"total": {"value": 2}, "hits": [hit(1), hit(2)]}}),
        json.dumps([hit(1), hit(2)]).replace("+00:00", ""),
    ],
)
def test_every_form_of_a_dump_is_read_alike(text: str) -> None:
    assert takers(text[:16_384]) == ["jobcomp"]
    batch, rows = read_jobs("jobcomp", text, timezones={"c": "Europe/Berlin"})
    assert [row["job_id"] for row in rows] == ["1", "2"]
    notice, other = batch.notices
    assert other.startswith("no column SubmitLine: ")
    assert notice.startswith("no column Reason: ")
    of_text = read_jobs("sacct", "JobID|Cluster|State|Submit|Start|End\n"
                        "1|c|FAILED|2024-03-01T12:00:00|2024-03-01T12:01:40|Unknown\n")[1][0]  # fmt: skip
    assert rows[0]["attempt_key"] == of_text["attempt_key"]
    expected = {
        "user": "ada", "account": "a", "name": "train", "n_gpus": 16, "n_nodes": 2, "n_cpus": 8,
        "exit_code": 1, "exit_signal": 0, "timelimit_s": 7200, "elapsed_s": 3600,
        "node_list": "n[1-2]", "state": "FAILED",
    }  # fmt: skip
    assert {name: rows[0][name] for name in expected} == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"state": "PENDING"}, {"state": "REQUEUED", "state_raw": "PENDING"}),
        ({"array_job_id": 7, "array_task_id": 0}, {"job_id": "7_0", "job_id_raw": "1"}),
        ({"het_job_id": 0, "het_job_offset": 0}, {"job_id": "1", "het_offset": None}),
        ({"pack_job_id": 3, "pack_job_offset": 1}, {"job_id": "3+1", "het_offset": 1}),
        ({"excluded_nodes": "n9"}, {"excluded_nodes": "n9"}),
        ({"@start": "Unknown"}, {"start_at": None}),
        ({"tres_alloc": None}, {"n_gpus": None}),
    ],
)
def test_what_a_record_says(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    _, (row,) = read_jobs("jobcomp", json.dumps([hit(**changes)]))
    assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"state": "LOST"}, "State is no Slurm state"),
        ({"@end": "yesterday"}, "end is no time"),
        ({"@end": "2024-13-01T00:00:00"}, "end is no time"),
        ({"total_nodes": []}, "a number is none"),
        ({"nodes": {}}, "a text is none"),
        ({"jobid": None}, "JobID is no job id"),
    ],
)
def test_a_record_that_cannot_be_read_is_told(broken: dict[str, Any], reason: str) -> None:
    text = "\n".join(json.dumps(one) for one in (record(1), record(2) | broken, record(3)))
    batch, rows = read_jobs("jobcomp", text)
    assert (len(rows), rejected(batch)) == (2, [(2, reason)])
    assert batch.rejected[0].raw == text.splitlines()[1]


def test_a_part_of_an_index_and_a_cut_are_told() -> None:
    text = json.dumps({"hits": {"total": {"value": 10_001}, "hits": [hit(1), hit(2)]}})
    batch, _ = read_jobs("jobcomp", text)
    assert batch.notices[-1] == "the index holds 10,001 records, this is a part of them"
    batch, rows = read_jobs("jobcomp", text[:-30])
    assert (len(rows), rejected(batch)) == (1, [(1, "cut off before its end")])
    assert "the JSON ends early: what precedes that was read" in batch.notices


def test_records_without_a_cluster_among_named_ones_are_told() -> None:
    batch, _ = read_jobs("jobcomp", json.dumps([hit(1), hit(2, cluster="")]))
    assert batch.clusters == ("c", "cluster")
    told = "records that name no cluster, read as of cluster (pass --cluster): 1"
    assert told in batch.notices
    batch, _ = read_jobs("jobcomp", json.dumps([hit(1), hit(2, cluster="")]), cluster="c")
    assert told not in batch.notices


@pytest.mark.slow
def test_the_published_dump_is_read(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "slurm/deucalion/slurm_first_50k.json"
    batch, rows = read_jobs("jobcomp", path, cluster="deucalion")
    assert takers(path.read_text(encoding="utf-8")[:16_384]) == ["jobcomp"]
    assert Counter(row["state_raw"] for row in rows) == {
        "COMPLETED": 1373, "CANCELLED": 179, "FAILED": 86, "TIMEOUT": 35, "NODE_FAIL": 5,
        "OUT_OF_MEMORY": 4, "PENDING": 3,
    }  # fmt: skip
    assert len({row["job_id"] for row in rows}) == 1685 - 22
    assert [reason for _, reason in rejected(batch)] == ["cut off before its end"]
    halves = path.read_text(encoding="utf-8").split('    {\n        "_index"')
    parts = [tmp_path / "a.json", tmp_path / "b.json"]
    for part, records in zip(parts, (halves[700:], halves[1:900]), strict=True):
        part.write_text("".join('{"_index"' + one for one in records), encoding="utf-8")
    options = Options(cluster="deucalion")
    for store, paths in (("whole", [path]), ("parts", [*parts, parts[0]])):
        _, errors = ingest_files(tmp_path / store, "jobcomp", list(map(str, paths)), options)
        assert errors == []
    stored = []
    for store in ("whole", "parts"):
        with closing(Store.open(tmp_path / store)) as opened:
            stored.append(opened.rows("SELECT attempt_key, state, end_at FROM jobs ORDER BY ALL"))
    assert stored[0] == stored[1]
    assert len(stored[0]) == 1685
