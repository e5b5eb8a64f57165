"""What an incident hit and cost, what led it, and the sentence that says so."""

from __future__ import annotations

import pandas as pd
import pytest

from analytics.failures.incidents import incidents, summary


def only(tables) -> pd.Series:
    assert len(tables.incidents) == 1
    return tables.incidents.iloc[0]


def test_the_loss_is_the_running_time_up_to_half_an_hour_times_gpus(cluster) -> None:
    gpus = (8, 8, 8, 0, 8, None, 8)
    for number, (ran, n_gpus) in enumerate(zip((10, 30, 31, 10, -1, 10, 10), gpus, strict=True)):
        cluster.fails(100 * number, f"n{number}", ran=ran, n_gpus=n_gpus)
    cluster.failures[-1]["start_at"] = None
    found = cluster.incidents().incidents["lost_gpu_seconds"]
    assert found.dtype == "Int64"
    assert found.tolist() == [4800, 14_400, 14_400, 0, pd.NA, pd.NA, pd.NA]


def test_jobs_gpus_and_losses_add_up_with_the_preempted_ones_apart(cluster) -> None:
    cluster.fails(100, "n1", on=("n1", "n2"), job_id="7", n_gpus=16, restarted=110)
    cluster.fails(101, "n1", job_id="8", n_gpus=4, ran=10)
    cluster.is_preempted(108, "7", n_gpus=8, ran=20)
    cluster.is_preempted(109, "8", n_gpus=2)
    cluster.is_preempted(300, "7")
    found = only(cluster.incidents())
    assert found[["n_jobs", "n_failed_jobs", "n_preempted_jobs"]].tolist() == [4, 2, 2]
    assert found[["n_gpus", "n_failed_gpus", "n_preempted_gpus"]].tolist() == [30, 20, 10]
    assert found["second_order_gpu_seconds"] == 8 * 1200 + 2 * 1800
    assert found["lost_gpu_seconds"] == 16 * 1800 + 4 * 600 + 8 * 1200 + 2 * 1800
    assert (found["nodes"], found["n_nodes"]) == (("n1",), 2)


def test_a_requeued_job_counts_its_gpus_once(cluster) -> None:
    for number in range(3):
        cluster.fails(60 * number, "n1", job_id="7", n_gpus=1024)
    found = only(cluster.incidents())
    assert found[["n_jobs", "n_failures", "n_gpus"]].tolist() == [1, 3, 1024]
    assert found["lost_gpu_seconds"] == 3 * 1024 * 1800


def test_what_is_not_known_is_not_counted_as_nothing(cluster) -> None:
    cluster.fails(100, "n1", n_gpus=None)
    found = only(cluster.incidents())
    assert found["n_gpus"] is pd.NA
    assert found["lost_gpu_seconds"] is pd.NA
    assert found["n_unmeasured"] == 1
    assert found["summary"] == "Gpu memory on node n1: 1 job ended"
    cluster.fails(101, "n1", n_gpus=80)
    known = only(cluster.incidents())
    assert known["lost_gpu_seconds"] == 80 * 1800


def test_the_published_crash_loop_is_one_incident(cluster) -> None:
    nodes = tuple(f"n{number}" for number in range(128))
    for number in range(35):
        at = 45.0 * number
        cluster.fails(
            at,
            None,
            on=nodes,
            job_id="7",
            n_gpus=1024,
            ran=25,
            restarted=at + 20,
            state="NODE_FAIL",
            cause="node_lost",
        )
    for number in range(548):
        cluster.is_preempted(45.0 * (number % 35) + 15, "7", n_gpus=13 if number < 436 else 12)
    found = only(cluster.incidents(titles={"node_lost": "Node lost"}))
    assert found[["n_jobs", "n_failures", "n_preempted"]].tolist() == [549, 35, 548]
    assert found[["loop_failures", "loop_requeues", "n_nodes"]].tolist() == [35, 35, 128]
    assert found["second_order_gpu_seconds"] == 7012 * 1800
    assert found["lost_gpu_seconds"] == 35 * 1024 * 25 * 60 + 7012 * 1800
    assert found["summary"] == (
        "Node lost: 1 job (1,024 GPUs) failed 35 times in a row; 548 jobs (7,012 GPUs) preempted "
        "by the requeue"
    )


def test_the_cause_with_most_confidence_leads(cluster) -> None:
    cluster.fails(100, "n1", cause="pcie", confidence=0.9)
    cluster.fails(101, "n1", cause="gpu_memory", confidence=0.5)
    cluster.fails(102, "n1", cause="gpu_memory", confidence=0.5)
    assert only(cluster.incidents())[["cause", "domain"]].tolist() == ["gpu_memory", "hardware"]


def test_a_proximate_cause_gives_way_to_the_earliest_critical_signal(cluster) -> None:
    cluster.fails(100, None, on=("n1", "n2"), cause="nccl_timeout", domain="system_software")
    cluster.shows(98, "n2", cause="ib_link")
    cluster.shows(95, "n2", check_name="check-pci", cause="pcie")
    assert only(cluster.incidents())["cause"] == "pcie"


def test_without_any_cause_it_stays_unknown(cluster) -> None:
    cluster.shows(100, "n1", cause=None, domain=None)
    found = only(cluster.incidents())
    assert found[["cause", "domain"]].tolist() == ["unknown", "unknown"]
    assert found["summary"] == "No known cause on node n1: no job is known to have ended"


def test_bursts_without_a_cause_column_still_form_incidents(cluster) -> None:
    cluster.shows(100, "n1")
    frames = cluster.frames()
    frames["bursts"] = frames["bursts"].drop(columns=["cause", "domain", "message", "xid"])
    assert only(incidents(**frames))["cause"] == "unknown"


def test_failures_without_confidence_weigh_alike(cluster) -> None:
    for at, cause in ((100, "pcie"), (101, "gpu_memory"), (102, "gpu_memory")):
        cluster.fails(at, "n1", cause=cause)
    frames = cluster.frames()
    frames["failures"] = frames["failures"].drop(columns=["confidence", "restarted_at"])
    assert only(incidents(**frames))["cause"] == "gpu_memory"


def test_the_nodes_of_a_job_stand_in_where_none_is_named_and_the_sentence_names_none(
    cluster,
) -> None:
    cluster.fails(100, None, on=("n2", "n1"), state="NODE_FAIL")
    found = only(cluster.incidents())
    assert (found["nodes"], found["nodes_named"]) == (("n1", "n2"), False)
    assert " on node" not in found["summary"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "NVLink errors on node a17: 3 jobs (384 GPUs) ended"),
        ({"nodes": ("a", "b")}, "NVLink errors on nodes a, b: 3 jobs"),
        ({"nodes": tuple("abcd")}, "NVLink errors on 4 nodes: 3 jobs"),
        ({"cause": "unknown"}, "No known cause on node a17: 3 jobs"),
        ({"cause": "node_lost"}, "Node a17 lost, no evidence why: 3 jobs (384 GPUs) ended"),
        ({"cause": "node_lost", "nodes_named": False}, "Node lost: 3 jobs (384 GPUs) ended"),
        ({"cause": "host_memory"}, "Host memory on node a17: 3 jobs"),
        (
            {"n_failed_jobs": 1, "n_failed_gpus": 1},
            "NVLink errors on node a17: 1 job (1 GPU) ended",
        ),
        (
            {"n_failed_jobs": 2, "loop_failures": 5},
            "2 jobs (384 GPUs) ended, one of them 5 times in",
        ),
    ],
)
def test_a_sentence_says_what_the_numbers_say(changes: dict, sentence: str) -> None:
    incident = {
        "cause": "nvlink", "nodes": ("a17",), "nodes_named": True, "n_failed_jobs": 3,
        "n_failed_gpus": 384, "n_preempted_jobs": 0, "n_preempted_gpus": 0, "loop_failures": 0,
    }  # fmt: skip
    assert sentence in summary(incident | changes, {"nvlink": "NVLink errors"})


def test_members_carry_a_timeline(cluster) -> None:
    cluster.shows(98, "n1", times=3, xid=79, check_name="xid", message="off the bus")
    cluster.fails(100, "n1", job_id="7", restarted=105)
    cluster.goes_down(101, "n1", 500, reason="Not responding")
    cluster.is_preempted(104, "7", job_id="9")
    members = cluster.incidents(titles={"gpu_memory": "GPU memory"}).members
    assert members[["kind", "role", "text"]].to_numpy().tolist() == [
        ["health_event", "seed", "XID 79, 3 times: off the bus"],
        ["failure", "seed", "job 7 ended FAILED: GPU memory"],
        ["node_event", "consequence", "node DOWN: Not responding"],
        ["preemption", "consequence", "job 9 preempted by job 7"],
    ]
    assert members["severity"].tolist() == ["critical", None, None, None]
