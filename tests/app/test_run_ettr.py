"""One run: the parts of its attempts are those of job_runs, and its ETTR over time ends there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from analytics.efficiency.beside_expected import expected_curve_of_runs
from app.actions import Options, annotate, build_ledger, ingest_files
from app.answers.efficiency import ettr
from app.answers.efficiency import run as run_answer
from app.ask import of_store
from data.errors import DataError
from data.filters import Selection
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "JobID|Cluster|JobName|User|State|Submit|Eligible|Start|End|NNodes|AllocTRES|NodeList|Restarts\n"
FIRST = ("2026-01-05T00:00:00", "2026-01-05T00:00:00", "2026-01-05T01:00:00", "2026-01-05T11:00:00")
SECOND = (
    "2026-01-05T11:00:00",
    "2026-01-05T11:00:00",
    "2026-01-05T12:00:00",
    "2026-01-06T00:00:00",
)
SUMS = {
    "waited_s": "queued_s", "ran_s": "scheduled_s", "startup_s": "startup_s",
    "checkpoint_s": "checkpoint_s", "lost_s": "lost_s", "productive_s": "productive_s",
    "lower_productive_s": "lower_productive_s", "upper_productive_s": "upper_productive_s",
    "interrupted": "n_interruptions",
}  # fmt: skip


def row(times: tuple[str, ...], state: str, *, cluster: str = "c", nodes: int = 2) -> str:
    gpus = f"gres/gpu={8 * nodes}"
    return f"7|{cluster}|llm|u|{state}|{'|'.join(times)}|{nodes}|{gpus}|n[1-{nodes}]|0\n"


def store_of(folder: Path, *rows: str) -> Store:
    (folder / "sacct.txt").write_text(HEADER + "".join(rows))
    options = Options(timezone="UTC")
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], options)
    build_ledger(folder / "store")
    return Store.open(folder / "store")


def test_a_run_of_two_attempts_by_hand(tmp_path: Path) -> None:
    """36,000 s: 300 s start-up, 9 writes of 60 s, 1,830 s of work lost (a uniform phase of an hour);
    43,200 s: 300 s start-up, 11 writes. Waited 7,200 s."""
    found = run_answer.measured(
        store_of(tmp_path, row(FIRST, "NODE_FAIL"), row(SECOND, "COMPLETED")), "7"
    )
    attempts = found.attempts
    assert attempts["checkpoint_s"].tolist() == [9 * 60, 11 * 60]
    assert attempts["lost_s"].tolist() == [1830, 0]
    productive = 36_000 - 300 - 540 - 1830 + 43_200 - 300 - 660
    assert found.ettr.value == pytest.approx(productive / (7_200 + 79_200))
    assert found.ettr.n == 1
    assert found.ettr.lower < found.ettr.value < found.ettr.upper
    assert found.over_time.cumulative[-1] == pytest.approx(found.ettr.value)
    assert attempts["state"].tolist() == ["NODE_FAIL", "COMPLETED"]
    assert attempts["incident_id"].notna().tolist() == [True, False]


@pytest.mark.slow
def test_what_people_say_interrupts_a_run_once_the_ledger_is_built_anew(tmp_path: Path) -> None:
    store = store_of(tmp_path, row(FIRST, "FAILED"), row(SECOND, "COMPLETED"))
    before = run_answer.measured(store, "7")
    assert before.ettr.n == 0
    key = before.attempts["attempt_key"][0]
    annotate(store.root, f"attempt:c/{key}", "cause", "gpu_memory")
    build_ledger(store.root)
    after = run_answer.measured(Store.open(store.root), "7")
    assert after.ettr.n == 1
    assert after.attempts["cause"][0] == "gpu_memory"
    assert after.ettr.value < before.ettr.value


def test_a_run_on_one_node_has_an_ettr_too(tmp_path: Path) -> None:
    found = run_answer.measured(store_of(tmp_path, row(SECOND, "COMPLETED", nodes=1)), "7")
    assert found.ettr.value == pytest.approx(12 / 13)


def test_what_cannot_be_answered_is_said(tmp_path: Path) -> None:
    store = store_of(tmp_path, row(FIRST, "COMPLETED"), row(FIRST, "COMPLETED", cluster="d"))
    with pytest.raises(DataError, match="is in c, d: choose one"):
        run_answer.measured(store, "7")
    assert run_answer.measured(store, "7", cluster="d").cluster == "d"
    with pytest.raises(DataError, match="'8' is not in the store"):
        run_answer.measured(store, "8")
    with pytest.raises(DataError, match="is not in the store"):
        run_answer.measured(store, "7", cluster="e")


def test_a_run_that_never_ran_says_so(tmp_path: Path) -> None:
    waiting = row((*FIRST[:2], "Unknown", "2026-01-05T11:00:00"), "CANCELLED")
    store = store_of(tmp_path, waiting, row(SECOND, "COMPLETED").replace("7|", "8|", 1))
    with pytest.raises(DataError, match="no attempt of it ran with GPUs"):
        run_answer.measured(store, "7")


@pytest.mark.slow
def test_parts_of_every_run_of_the_demo_are_those_of_its_row(demo_store: Path) -> None:
    store = Store.open(demo_store)
    rows = store.frame(
        """SELECT * FROM job_runs WHERE scheduled_s > 0 AND n_nodes > 1
           ORDER BY n_attempts DESC, n_gpus DESC, run_id LIMIT 12"""
    )
    for run in rows.to_dict("records"):
        found = run_answer.measured(store, run["run_id"])
        for ours, theirs in SUMS.items():
            assert found.attempts[ours].sum() == run[theirs], (run["run_id"], ours)
        expected = run["productive_s"] / (run["queued_s"] + run["scheduled_s"])
        assert found.over_time.cumulative[-1] == pytest.approx(expected)
        assert np.nanmax(found.over_time.sliding) <= 1.0


def test_runs_of_equal_gpu_time_stand_in_order_of_their_names(tmp_path: Path) -> None:
    one = row(FIRST, "COMPLETED")
    rows = [one.replace("7|c|llm", f"{job}|c|llm{job}", 1) for job in (9, 8, 7)]
    found = ettr.measured(store_of(tmp_path, *rows), Selection()).by_run
    assert found["run_id"].tolist() == ["7", "8", "9"]


def test_the_list_of_the_largest_runs_is_the_head_of_all(demo_store: Path) -> None:
    store, selection = Store.open(demo_store), Selection()
    every, ten = ettr.measured(store, selection), ettr.measured(store, selection, limit=10)
    assert ten.n_runs == every.n_runs == len(every.by_run)
    assert ten.ettr == every.ettr
    assert ten.by_run["run_id"].tolist() == every.by_run["run_id"].head(10).tolist()
    assert set(ten.by_run.columns) == set(every.by_run.columns)
    assert list(ettr.runs(of_store(store), selection, limit=3).rows["ettr"]) == (
        every.by_run["ettr"].head(3).tolist()
    )


def test_the_curve_is_expected_of_runs_like_these(demo_store: Path) -> None:
    store, selection = Store.open(demo_store), Selection(min_gpus=129)
    runs, gpus_per_node = ettr.measured(store, selection), 8
    curve = expected_curve_of_runs(runs, ettr.habits(store), gpus_per_node)
    assert curve is not None
    assert curve.gpus[0] == pytest.approx(runs.gpus[0])
    assert curve.settings.run_days * 86_400 == pytest.approx(runs.by_run["productive_s"].mean())
    assert curve.settings.queue_min == pytest.approx(60 * runs.mean_wait_hours.value)
    node_days = (runs.by_run["n_gpus"] * runs.by_run["scheduled_s"]).sum() / 8 / 86_400
    ended = runs.by_run["n_interruptions"].sum()
    assert curve.rate_per_1000_node_days.n == ended
    assert curve.settings.rate_per_1000_node_days == pytest.approx(1000 * ended / node_days)
    nobody = ettr.measured(store, Selection(min_gpus=10**6))
    assert expected_curve_of_runs(nobody, ettr.habits(store), gpus_per_node) is None


def test_every_interval_of_the_answer_follows_the_level_asked_for(demo_store: Path) -> None:
    """20 runs of the demo have training metrics: what is not known of the others is estimated."""
    store = Store.open(demo_store)
    half, most = (
        ettr.answer(of_store(store), Selection(), conf_level=level).record for level in (0.5, 0.99)
    )
    pairs = [(half[name], most[name]) for name in ("ettr", "of_these_runs", "mean_wait_hours")]
    for groups in ("by_size", "by_week"):
        for narrow, wide in zip(half[groups], most[groups], strict=True):
            judged = narrow["n_runs"] > 1 and narrow["ettr"].lower is not None
            names = ["of_these_runs", *(["ettr"] if judged else [])]
            pairs += [(narrow[name], wide[name]) for name in names]
    for narrow, wide in pairs:
        assert (narrow.conf_level, wide.conf_level) == (0.5, 0.99)
        assert wide.lower <= narrow.lower <= narrow.value <= narrow.upper <= wide.upper
    assert most["ettr"].upper - most["ettr"].lower > 2 * (half["ettr"].upper - half["ettr"].lower)
    named = {run["run_id"]: run["ettr"] for run in most["by_run"]}
    assert all(
        named[run["run_id"]].lower <= run["ettr"].lower <= run["ettr"].upper
        for run in half["by_run"]
    )
