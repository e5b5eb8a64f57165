"""Jobs of Slurm as JSON."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from data.errors import SourceError
from data.ingest.formats import json_records
from tests.data.ingest.job_reading import read_jobs, rejected, takers

if TYPE_CHECKING:
    from pathlib import Path

SUBMIT, START, END = 1_709_294_400, 1_709_294_500, 1_709_298_100


def number(value: int | None) -> dict[str, Any]:
    """A number as newer versions write it."""
    return {"set": value is not None, "infinite": False, "number": value or 0}


def old_job(job_id: int = 1, **changes: Any) -> dict[str, Any]:
    """A job as Slurm 21.08 writes it."""
    job = {
        "job_id": job_id, "account": "a", "allocation_nodes": 2, "cluster": "c", "user": "ada",
        "array": {"job_id": 0, "task": None, "task_id": None},
        "het": {"job_id": 0, "job_offset": None},
        "exit_code": {"status": "SIGNALED", "return_code": 0,
                      "signal": {"signal_id": 9, "name": "KILL"}},
        "flags": ["STARTED_ON_BACKFILL"], "name": "train", "nodes": "n[1-2]", "partition": "p",
        "priority": 5, "qos": "q", "state": {"current": "FAILED", "reason": "None"},
        "steps": [{"nodes": {}, "state": "FAILED"}],
        "time": {"submission": SUBMIT, "eligible": SUBMIT, "start": START, "end": END,
                 "elapsed": 3600, "limit": 4_294_967_295},
        "tres": {"allocated": [{"type": "cpu", "name": None, "id": 1, "count": 8},
                               {"type": "gres", "name": "gpu", "id": 1001, "count": 16},
                               {"type": "gres", "name": "gpu:h100", "id": 1002, "count": 16}]},
    }  # fmt: skip
    return job | changes


def new_job(job_id: int = 1, **changes: Any) -> dict[str, Any]:
    """The same as Slurm 24.05 writes it."""
    job = old_job(
        job_id,
        array={"job_id": 0, "task": "", "task_id": number(None)},
        het={"job_id": 0, "job_offset": number(None)},
        exit_code={"status": ["SIGNALED"], "return_code": number(0),
                   "signal": {"id": number(9), "name": "KILL"}},
        priority=number(5),
        state={"current": ["FAILED"], "reason": "None"},
    )  # fmt: skip
    job["time"] = job["time"] | {"limit": {"set": False, "infinite": True, "number": 0}}
    return job | changes


def document(*jobs: Any) -> str:
    """What sacct --json prints."""
    return json.dumps({"meta": {"Slurm": {}}, "errors": [], "jobs": list(jobs)}, indent=1)


@pytest.mark.parametrize("job", [old_job(), new_job()], ids=["21.08", "24.05"])
def test_each_shape_of_a_job_is_read_alike(job: dict[str, Any]) -> None:
    batch, (row,) = read_jobs("sacct-json", document(job))
    assert row.pop("attempt_key")
    assert {name: value for name, value in row.items() if value is not None} == {
        "cluster": "c", "job_id": "1", "job_id_raw": "1", "user": "ada", "account": "a",
        "partition": "p", "qos": "q", "name": "train", "flags": "STARTED_ON_BACKFILL",
        "state": "FAILED", "state_raw": "FAILED", "exit_code": 0, "exit_signal": 9,
        "submit_at": datetime.fromtimestamp(SUBMIT, UTC), "elapsed_s": 3600,
        "eligible_at": datetime.fromtimestamp(SUBMIT, UTC),
        "start_at": datetime.fromtimestamp(START, UTC),
        "end_at": datetime.fromtimestamp(END, UTC), "n_nodes": 2, "n_gpus": 16, "n_cpus": 8,
        "node_list": "n[1-2]", "priority": 5,
    }  # fmt: skip
    assert batch.clusters == ("c",)
    assert all(text.startswith("no column SubmitLine: ") for text in batch.notices)


def test_the_attempt_is_the_same_as_in_text_of_sacct() -> None:
    _, (of_json,) = read_jobs("sacct-json", document(new_job()))
    text = (
        "JobID|Cluster|State|Submit|Start|End\n"
        "1|c|FAILED|2024-03-01T12:00:00|2024-03-01T12:01:40|2024-03-01T13:01:40\n"
    )
    _, (of_text,) = read_jobs("sacct", text)
    assert of_json["attempt_key"] == of_text["attempt_key"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"array": {"job_id": 7, "task_id": number(0), "task": ""}},
         {"job_id": "7_0", "array_job_id": "7", "array_task_id": 0, "job_id_raw": "1"}),
        ({"array": {"job_id": 7, "task_id": None, "task": "4-9%2"}},
         {"job_id": "7_[4-9%2]", "array_job_id": "7", "array_task_id": None}),
        ({"array": {"job_id": 1, "task_id": number(None), "task": ""}},
         {"job_id": "1", "array_job_id": None}),
        ({"het": {"job_id": 3, "job_offset": number(1)}}, {"job_id": "3+1", "het_offset": 1}),
        ({"state": {"current": ["COMPLETED", "COMPLETING"], "reason": ""}},
         {"state": "COMPLETED", "flags": "COMPLETING,STARTED_ON_BACKFILL",
          "state_raw": "COMPLETED,COMPLETING"}),
        ({"state": {"current": ["NODE_FAIL", "REQUEUED"]}}, {"state": "NODE_FAIL"}),
        ({"state": {"current": ["PENDING", "REQUEUED"]}}, {"state": "REQUEUED"}),
        ({"exit_code": {"status": ["CANCELLED"], "return_code": number(None),
                        "signal": {"id": number(None)}}}, {"exit_code": None, "exit_signal": None}),
        ({"exit_code": 256}, {"exit_code": 1, "exit_signal": 0}),
        ({"tres": {"allocated": [{"type": "gres", "name": "gpu:1g.5gb", "count": 3}]}},
         {"n_gpus": 3}),
        ({"tres": {"allocated": [{"type": "cpu", "name": "", "count": 3}]}}, {"n_gpus": 0}),
        ({"tres": {"allocated": []}}, {"n_gpus": None, "n_cpus": None}),
        ({"priority": 4_294_967_294}, {"priority": None}),
        ({"nodes": "None assigned"}, {"node_list": None}),
        ({"submit_line": "sbatch --exclude n[3-4] a.sh"}, {"excluded_nodes": "n[3-4]"}),
        ({"restart_cnt": 2, "failed_node": "n2"}, {"restarts": 2, "failed_node": "n2"}),
        ({"name": None, "user": None}, {"name": None, "user": None}),
    ],
)  # fmt: skip
def test_what_a_job_says(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    for job in (old_job(**changes), new_job(**changes)):
        _, (row,) = read_jobs("sacct-json", document(job))
        assert {name: row[name] for name in expected} == expected


def test_what_the_controller_expects_is_no_fact() -> None:
    def job(state: str) -> dict[str, Any]:
        return {
            "job_id": 5, "job_state": state, "user_name": "ada", "node_count": number(1),
            "submit_time": SUBMIT, "start_time": number(START), "end_time": number(END),
            "tres_alloc_str": "cpu=4,node=1,gres/gpu:h100=8", "excluded_nodes": "n9",
            "cluster": "c", "nodes": "n1",
        }  # fmt: skip

    _, rows = read_jobs("sacct-json", document(*map(job, ("PENDING", "RUNNING", "FAILED"))))
    assert [(r["start_at"] is None, r["end_at"] is None, r["n_gpus"]) for r in rows] == [
        (True, True, 8), (False, True, 8), (False, False, 8),
    ]  # fmt: skip
    assert {row["excluded_nodes"] for row in rows} == {"n9"}


@pytest.mark.parametrize(
    "text",
    [
        document(old_job(1), old_job(2)),
        "\ufeff" + document(old_job(1), old_job(2)).replace("\n", "\r\n"),
        json.dumps([old_job(1), old_job(2)]),
        f"{json.dumps(old_job(1))}\n{json.dumps(old_job(2))}\n",
        document(old_job(1)) + document(old_job(2)),
        json.dumps({"jobs": [old_job(1), old_job(2)], "warnings": []}),
    ],
)
def test_jobs_may_stand_alone_or_in_lists(text: str) -> None:
    assert takers(text.lstrip("\ufeff")[:16_384]) == ["sacct-json"]
    _, rows = read_jobs("sacct-json", text)
    assert [row["job_id"] for row in rows] == ["1", "2"]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"job_id": "x"}, "a number is none"),
        ({"state": {"current": "LOST"}}, "State is no Slurm state"),
        ({"state": {"current": []}}, "no state"),
        ({"state": "FAILED"}, "state is no object"),
        ({"time": {"submission": SUBMIT, "end": 13_798}}, "end is no time"),
        ({"time": {"submission": [1]}}, "a number is none"),
        ({"tres": {"allocated": {"cpu": 1}}}, "tres is no list of objects"),
        ({"nodes": {"list": "n1"}}, "a text is none"),
    ],
)
def test_a_job_that_cannot_be_read_is_told_with_its_line(
    broken: dict[str, Any], reason: str
) -> None:
    text = document(old_job(1), {**old_job(2), **broken}, old_job(3))
    line = document(old_job(1)).count("\n")  # two lines close the document
    batch, rows = read_jobs("sacct-json", text)
    assert rejected(batch) == [(line, reason)]
    assert [row["job_id"] for row in rows] == ["1", "3"]


@pytest.mark.parametrize(
    ("text", "n_kept", "reasons"),
    [
        (document(old_job(1), old_job(2))[:-40], 1, ["cut off before its end"]),
        (document(old_job(1), "x", 7, None), 1, ["no JSON object"] * 3),
        (document(old_job(1), {"a": 1}), 1, ["no job with job_id and state"]),
        (json.dumps(old_job(1)) + "\n{oops}\nprose\n" + json.dumps(old_job(2)), 2, ["no JSON"] * 2),
        (document(old_job(1)).replace('"jobs": [', '"jobs": [' + "[" * 3000), 0,
         ["JSON deeper than the limit of 64"]),
    ],
)  # fmt: skip
def test_what_is_no_job_or_cut_off_loses_no_other(
    text: str, n_kept: int, reasons: list[str]
) -> None:
    batch, rows = read_jobs("sacct-json", text)
    assert (len(rows), [reason for _, reason in rejected(batch)]) == (n_kept, reasons)


def ends_of_jobs(text: str) -> list[int]:
    """Where the jobs of a document end."""
    ends, at = [], text.index("[", text.index('"jobs"'))
    while (at := text.find("{", at)) >= 0:
        at = json.JSONDecoder().raw_decode(text, at)[1]
        ends.append(at)
    return ends


@given(at=st.integers(0, 4_000), piece=st.integers(1, 300))
@example(at=2724, piece=1)
def test_a_cut_anywhere_keeps_what_precedes_it(at: int, piece: int) -> None:
    text = document(old_job(1), new_job(2))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_records, "_PIECE", piece)
        batch, rows = read_jobs("sacct-json", text[: at + 1])
    first, second = ends_of_jobs(text)
    assert len(rows) == (first <= at + 1) + (second <= at + 1)
    assert batch.rejected.total <= 1
    told = [notice for notice in batch.notices if "SubmitLine" not in notice]
    assert bool(told) == (at + 1 < len(text) and text[: at + 1].strip() != "")


def test_an_error_of_slurm_is_told() -> None:
    text = (
        '{"meta": {}, "jobs": [], "errors": [{"description": "Query failed", "error_number": 1}]}'
    )
    with pytest.raises(SourceError, match="is an error of Slurm: Query failed"):
        read_jobs("sacct-json", text)
    batch, _ = read_jobs("sacct-json", document(old_job()).replace(
        '"errors": []', '"errors": ["lost"]'))  # fmt: skip
    assert batch.notices[-1] == "Slurm told of an error, jobs may be missing: lost"


def test_the_published_files_are_read(shared_data: Path) -> None:
    states: Counter[str] = Counter()
    n_rejected = 0
    for path in sorted((shared_data / "slurm/sarc").glob("*.json")):
        batch, rows = read_jobs("sacct-json", path)
        assert takers(path.read_text(encoding="utf-8")[:16_384]) == ["sacct-json"]
        jobs = json.loads(path.read_text(encoding="utf-8"))["jobs"]
        assert batch.rows_read == len(jobs)
        states.update(row["state"] for row in rows)
        states.subtract(job["state"]["current"][0] for job in jobs)
        n_rejected += batch.rejected.total
    assert n_rejected == 1  # ended 13,798 seconds after 1970
    assert {state: n for state, n in states.items() if n} == {"CANCELLED": -1}
    accounting, nodes = shared_data / "collect/accounting", shared_data / "collect/node_inventory"
    _, rows = read_jobs("sacct-json", accounting / "clockwork_sacct_1.json")
    assert [(row["job_id"], row["state"], row["reason"]) for row in rows] == [
        ("1_7", "NODE_FAIL", "Prolog"), ("2_0", "REQUEUED", "Prolog"),
    ]  # fmt: skip
    _, (row,) = read_jobs("sacct-json", nodes / "soperator/2_node_job.json")
    assert (row["job_id"], row["n_nodes"], row["node_list"]) == ("349", 2, "worker-[1,0]")
    _, rows = read_jobs("sacct-json", nodes / "rivos/squeue_out.json")
    assert [(row["job_id"], row["state"]) for row in rows] == [
        ("26515966", "RUNNING"), ("58948420_[1-10]", "PENDING"),
    ]  # fmt: skip
