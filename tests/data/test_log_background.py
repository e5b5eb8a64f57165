"""What logs of completed jobs say as well decides no verdict on those that failed."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from analytics.failures.log_classifier import classify_log
from data.publish import writer
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]
END = datetime(2024, 3, 1, 12, tzinfo=UTC)
BENIGN = "[init] GPU {}: NVLink link 2 is inactive"
KEY_ERROR = ["Traceback (most recent call last):", '  File "train.py", line 1, in <module>',
             "    batch['tokens']", "KeyError: 'tokens'"]  # fmt: skip
ECC = ["RuntimeError: CUDA error: uncorrectable ECC error encountered"]
RARE = ["OSError: [Errno 28] No space left on device"]
FAILED = {"key": KEY_ERROR, "ecc": ECC, "silent": ["step 3 loss 1.9"], "full": RARE}


def job(cluster: str, name: str, state: str) -> Row:
    return {"cluster": cluster, "attempt_key": name, "job_id": name, "state": state, "n_nodes": 1,
            "node_list": "n1", "start_at": END - timedelta(hours=1), "end_at": END}  # fmt: skip


def lines(cluster: str, name: str, texts: list[str]) -> list[Row]:
    return [
        {"cluster": cluster, "job_id": name, "file": f"{name}.out", "line_no": n, "text": text}
        for n, text in enumerate(texts, 1)
    ]


def publish(root: Path, jobs: list[Row], logs: list[Row]) -> None:
    with writer(root) as building:
        building.merge({"jobs": pd.DataFrame(jobs), "job_logs": pd.DataFrame(logs)})
        building.publish()


def causes(root: Path, cluster: str) -> dict[str, str]:
    with closing(Store.open(root)) as store:
        return dict(
            store.rows("SELECT attempt_key, cause FROM failures WHERE cluster = $c", {"c": cluster})
        )


def failed(cluster: str) -> tuple[list[Row], list[Row]]:
    """Jobs that failed, each with the benign warning first."""
    jobs = [job(cluster, name, "FAILED") for name in FAILED]
    logs = [
        row
        for n, (name, texts) in enumerate(FAILED.items())
        for row in lines(cluster, name, [BENIGN.format(n), *texts])
    ]
    return jobs, logs


def completed(cluster: str, n: int) -> tuple[list[Row], list[Row]]:
    """Jobs that completed with the same warning, one of them after an error it survived."""
    jobs = [job(cluster, f"done{k}", "COMPLETED") for k in range(n)]
    logs = [
        row
        for k in range(n)
        for row in lines(
            cluster, f"done{k}", [BENIGN.format(k), *(RARE if k == 0 else []), "Training completed"]
        )
    ]
    return jobs, logs


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cluster a has logs of completed jobs, cluster b of failed ones alone."""
    root = tmp_path_factory.mktemp("background") / "store"
    parts = [failed("a"), failed("b"), completed("a", 12)]
    jobs, logs = ([row for part in parts for row in part[which]] for which in (0, 1))
    publish(root, jobs, logs)
    return root


def test_a_warning_in_every_log_decides_nothing_where_another_cause_stands(root: Path) -> None:
    found = causes(root, "a")
    assert (found["key"], found["ecc"]) == ("key_error", "gpu_memory")


def test_a_log_with_nothing_but_that_warning_is_unknown(root: Path) -> None:
    assert causes(root, "a")["silent"] == "unknown"


def test_one_completed_job_that_saw_a_line_takes_little_from_it(root: Path) -> None:
    assert causes(root, "a")["full"] == "storage_exhausted"


def test_without_logs_of_completed_jobs_the_rules_stand_alone(root: Path) -> None:
    alone = classify_log([BENIGN.format(0), *KEY_ERROR])
    assert alone.cause == "nvlink"
    assert causes(root, "b")["key"] == alone.cause


@pytest.mark.slow
def test_logs_of_completed_jobs_change_verdicts_when_they_arrive_and_when_they_are_few_do_not(
    tmp_path: Path,
) -> None:
    publish(tmp_path, *failed("a"))
    assert causes(tmp_path, "a")["key"] == "nvlink"
    publish(tmp_path, *completed("a", 2))
    assert causes(tmp_path, "a")["key"] == "nvlink"
    publish(tmp_path, *completed("a", 12))
    assert causes(tmp_path, "a")["key"] == "key_error"
