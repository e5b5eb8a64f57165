"""Tables of jobs by preset or mapping, and the Philly trace: records as their documentation shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from data.errors import SourceError
from tests.data.ingest.job_reading import read_jobs, rejected, takers

if TYPE_CHECKING:
    from pathlib import Path

SEREN = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,"
    "gpu_time\n5778432,u1,2,16,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
    "2023-03-01 00:20:51+08:00,117,32,936.0\n"
    "dlc1_2,u1,1,8.0,128,Other,NODE_FAIL,2023-03-01 00:18:22+08:00,,,,,\n"
)
HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1425511,u1,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,"
    "2020-06-10 04:55:09,36848,0\n"
)
PAI = (
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
    "4f05,tensorflow,1.0,Terminated,1739162.0,1739200.0,600.0,29.2,50.0,MISC\n"
    "4f05,worker,4.0,Failed,1739162.0,,600.0,29.2,100.0,V100\n"
)
HOSTS = [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}, {"ip": "m48", "gpus": ["gpu0"]}]
PHILLY: dict[str, Any] = {
    "status": "Pass", "vc": "ee9e8c", "jobid": "application_1506638472019_14199", "user": "ce2f4c",
    "submitted_time": "2017-10-07 01:11:39",
    "attempts": [
        {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23", "detail": HOSTS},
        {"start_time": "2017-10-07 01:13:30", "end_time": "2017-10-09 06:53:12", "detail": HOSTS},
    ],
}  # fmt: skip


def test_jobs_of_acme_are_read_by_their_columns_or_the_preset() -> None:
    assert takers(SEREN) == ["job-table"]
    _, rows = read_jobs("job-table", SEREN)
    assert rows == read_jobs("job-table", SEREN, mapping="acme")[1]
    expected = {
        "job_id": "5778432", "cluster": "acme", "state": "FAILED", "n_nodes": 2, "n_gpus": 16,
        "n_cpus": 128, "elapsed_s": None, "name": "Other", "array_job_id": None,
    }  # fmt: skip
    assert {name: rows[0].get(name) for name in expected} == expected
    assert rows[0]["submit_at"].isoformat() == "2023-02-28T16:18:22+00:00"
    assert (rows[1]["job_id"], rows[1]["state"], rows[1]["n_gpus"], rows[1]["end_at"]) == (
        "dlc1_2", "NODE_FAIL", 8, None,
    )  # fmt: skip


def test_helios_names_no_zone_which_is_told() -> None:
    assert takers(HELIOS) == ["job-table"]
    batch, (row,) = read_jobs("job-table", HELIOS)
    assert "times without a zone, read as UTC (pass --timezone)" in batch.notices
    assert (row["cluster"], row["partition"], row["elapsed_s"]) == ("helios", "vcJkd", 36848)
    _, (row,) = read_jobs("job-table", HELIOS, timezone="Asia/Shanghai")
    assert row["start_at"].isoformat() == "2020-06-09T10:41:01+00:00"


def test_gpus_of_alibaba_are_those_of_all_instances_and_shares_stay_unknown() -> None:
    assert takers(PAI) == ["job-table"]
    batch, (shared, whole) = read_jobs("job-table", PAI)
    without_header = PAI.partition("\n")[2]
    _, same = read_jobs("job-table", without_header, mapping="alibaba-pai")
    assert same == [shared, whole]
    assert (shared["job_id"], shared["state"], shared["n_gpus"], shared["n_cpus"]) == (
        "4f05/tensorflow", "COMPLETED", None, 6,
    )  # fmt: skip
    assert (whole["state"], whole["n_gpus"], whole["n_cpus"]) == ("FAILED", 4, 24)
    assert whole["start_at"].isoformat() == "1970-01-21T03:06:02+00:00"
    assert "n_gpus of a share of one, which stays unknown: 1" in batch.notices
    assert any(text.startswith("the dates are not real") for text in batch.notices)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("3,ok,2024-03-01", "number of fields differs from the header"),
        (",ok,2024-03-01,2", "JobID is no job id"),
        ("3,lost,2024-03-01,2", "State is no Slurm state"),
        ("3,ok,noon,2", "submit is no time"),
        ("3,ok,2024-03-01 00:00:00,many", "n_gpus is no number"),
        ("3,ok,2024-03-01 00:00:00,-1", "n_gpus is no number"),
    ],
)
def test_a_sites_own_table_is_read_by_its_mapping(tmp_path: Path, line: str, reason: str) -> None:
    mapping = tmp_path / "own.toml"
    mapping.write_text(
        'timezone = "Asia/Tokyo"\ncluster = "hal"\n[columns]\njob_id = "id"\nstate = "outcome"\n'
        'submit_at = "asked"\nn_gpus = "gpus"\n[states]\nok = "COMPLETED"\n'
    )
    text = f"\ufeffid,outcome,asked,gpus\n1,ok,2024-03-01 09:00:00,2\r\n{line}\n,,,\n"
    batch, (row,) = read_jobs("job-table", text, mapping=str(mapping))
    assert rejected(batch) == [(3, reason)]
    assert batch.skipped_by_reason == {"blank": 1}
    assert (row["cluster"], row["state"], row["n_gpus"], row["submit_at"].hour) == (
        "hal", "COMPLETED", 2, 0,
    )  # fmt: skip
    assert batch.local == frozenset()


def test_a_table_without_the_columns_of_a_job_is_refused() -> None:
    with pytest.raises(SourceError, match="no column 'job_id', there are: a, b"):
        read_jobs("job-table", "a,b\n1,2\n")


def test_attempts_of_philly_are_requeued_but_the_last() -> None:
    text = json.dumps([PHILLY], indent=1)
    assert takers(text) == ["philly"]
    batch, rows = read_jobs("philly", text)
    assert [(row["state"], row["n_gpus"], row["node_list"]) for row in rows] == [
        ("REQUEUED", 3, "m47,m48"), ("COMPLETED", 3, "m47,m48"),
    ]  # fmt: skip
    assert [row["submit_at"].isoformat() for row in rows] == [
        "2017-10-07T08:11:39+00:00", "2017-10-07T08:13:23+00:00",
    ]  # fmt: skip
    assert len({row["attempt_key"] for row in rows}) == 2
    assert any("America/Los_Angeles" in text for text in batch.notices)
    _, split = read_jobs("philly", json.dumps(PHILLY), timezone="America/Los_Angeles")
    assert split == rows


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({"attempts": []}, "COMPLETED"),
        ({"status": "Killed", "attempts": []}, "CANCELLED"),
        ({"status": "Failed", "attempts": PHILLY["attempts"][:1]}, "FAILED"),
        ({"attempts": [{"start_time": "2017-10-07 01:12:09", "end_time": "None"}]}, "RUNNING"),
        ({"attempts": [{"start_time": None, "end_time": None, "detail": []}]}, "COMPLETED"),
    ],
)
def test_how_a_job_of_philly_ended(change: dict[str, Any], state: str) -> None:
    _, (row,) = read_jobs("philly", json.dumps([PHILLY | change]))
    assert row["state"] == state


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"attempts": [7]}, "no JSON object"),
        ({"attempts": 7}, "attempts is no list"),
        ({"attempts": [{"detail": 7}]}, "detail is no list"),
        ({"status": "Lost", "attempts": []}, "State is no Slurm state"),
        ({"submitted_time": "noon"}, "submit is no time"),
    ],
)
def test_a_broken_job_of_philly_is_told(change: dict[str, Any], reason: str) -> None:
    whole = PHILLY | {"attempts": PHILLY["attempts"][1:]}
    batch, rows = read_jobs("philly", json.dumps([whole, whole | change]))
    assert (len(rows), [why for _, why in rejected(batch)]) == (1, [reason])
