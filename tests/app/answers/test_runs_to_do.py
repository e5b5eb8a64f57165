"""Runs in the list of what to do, and what stands beside their episodes, on a store of one job."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.actions import Options, ingest_files
from app.answers.fleet.actions.training_rows import of_runs
from app.answers.training import runs, stability
from app.ask import of_store
from data.errors import DataError
from data.filters import Selection
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

START = datetime(2026, 3, 1, tzinfo=UTC)
JOBS = (
    "JobID|Cluster|User|Account|Partition|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"
    "7|c|ann|lab|main|NODE_FAIL|2026-03-01T00:00:00|2026-03-01T00:00:00|2026-03-01T06:00:00|2|"
    "gres/gpu=16|n[1-2]\n"
)
KERNEL = "Mar  1 {at} n2 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus\n"


def steps(n: int, rises_at: int, lasts: int) -> str:
    rng = np.random.default_rng(0)
    loss = 2 + 0.01 * rng.normal(size=n)
    loss[rises_at : rises_at + lasts] += 1.0
    at = [(START + timedelta(minutes=5, seconds=20 * row)).isoformat() for row in range(n)]
    rows = [
        f"{row},{time},{value:.5f}" for row, (time, value) in enumerate(zip(at, loss, strict=True))
    ]
    return "\n".join(["step,logged_at,loss", *rows]) + "\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store of a job of two nodes, one of which reports an XID at the step 600."""
    at = START + timedelta(minutes=5, seconds=20 * 598)
    files = [("sacct", JOBS), ("kernel-log", KERNEL.format(at=f"{at:%H:%M:%S}"))]
    for name, text in files:
        path = tmp_path / name
        path.write_text(text)
        options = Options(cluster="c", timezone="UTC", year=2026 if name == "kernel-log" else None)
        ingest_files(tmp_path / "store", name, [str(path)], options)
    return tmp_path / "store"


def log(root: Path, text: str) -> None:
    (root.parent / "steps.csv").write_text(text)
    options = Options(cluster="c", job_id="7", timezone="UTC")
    ingest_files(root, "training-metrics", [str(root.parent / "steps.csv")], options)


def test_a_run_that_diverges_wants_somebody(root: Path) -> None:
    log(root, steps(1_000, 600, 400))
    with closing(Store.open(root)) as store:
        (action,) = of_runs(of_store(store), Selection())
    assert action.what == "Set run 7 back to step 500"
    assert action.why == "divergence since step 600, not recovered by step 999 (16 GPUs)"
    assert action.gpu_hours == 16 * 24
    assert (action.page, action.named) == ("runs", {"run": "7", "cluster": "c"})


def test_a_run_that_recovered_or_logged_nothing_wants_nobody(root: Path) -> None:
    with closing(Store.open(root)) as store:
        assert not list(of_runs(of_store(store), Selection()))
    log(root, steps(1_000, 600, 20))
    with closing(Store.open(root)) as store:
        assert not list(of_runs(of_store(store), Selection()))


def test_an_event_of_its_nodes_stands_beside_the_episode_with_its_chance(root: Path) -> None:
    log(root, steps(1_000, 600, 20))
    with closing(Store.open(root)) as store:
        ask = of_store(store)
        found = ask(stability.measured, ask(runs.cluster_of, "7", None), "7")
    (row,) = stability.answer(found).table("beside_episodes").values
    assert row[:2] == (600, "n2 XID 79 (1 min before)")
    assert row[2] == 1
    window_s = 600 + 20 * 20
    assert row[3] == pytest.approx(window_s / (6 * 3600), abs=1e-3)


def test_where_no_event_is_stored_none_beside_an_episode_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "sacct").write_text(JOBS)
    options = Options(cluster="c", timezone="UTC")
    ingest_files(tmp_path / "store", "sacct", [str(tmp_path / "sacct")], options)
    log(tmp_path / "store", steps(1_000, 600, 20))
    with closing(Store.open(tmp_path / "store")) as store:
        found = of_store(store)(stability.measured, "c", "7")
    (row,) = stability.answer(found).table("beside_episodes").values
    assert row[:4] == (600, None, None, None)


def test_a_run_is_named_by_its_cluster_where_two_have_one_of_its_name(root: Path) -> None:
    log(root, steps(100, 50, 1))
    text = steps(100, 50, 1)
    (root.parent / "other.csv").write_text(text)
    options = Options(cluster="d", job_id="7")
    ingest_files(root, "training-metrics", [str(root.parent / "other.csv")], options)
    with closing(Store.open(root)) as store:
        with pytest.raises(DataError, match="c, d have a run 7: name one by --cluster NAME"):
            runs.cluster_of(store, "7", None)
        assert runs.cluster_of(store, "7", "d") == "d"
        with pytest.raises(DataError, match="no run 8 of cluster c logged"):
            runs.cluster_of(store, "8", "c")


def test_a_list_of_runs_that_is_cut_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log(root, steps(100, 50, 1))
    with closing(Store.open(root)) as store:
        assert runs.answer(of_store(store), Selection()).notes == ()
        monkeypatch.setattr("data.queries.training.MOST_RUNS", 1)
        assert runs.answer(of_store(store), Selection()).notes == (runs.LIMITED,)
