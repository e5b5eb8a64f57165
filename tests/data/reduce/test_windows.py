"""Around jobs raw samples are kept, so that machines are compared as by all of them; or it is told."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.alerts.rule import Found, Watch
from app.alerts.rules import faulty_machine
from app.ask import of_store
from data.errors import DataError
from data.filters import Selection
from data.publish import writer
from data.queries.job_ends import JobEnds
from data.queries.metrics import last_samples
from data.reduce.running import Reduced
from data.reduce.windows import JobWindow, Windows, _apart
from data.site_alerts import AlertSettings
from data.store import Store
from tests.data.reduce.samples import fed, reduced, written

DAY = datetime(2026, 1, 5, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NODES = [f"n{number}" for number in range(8)]
ENDED, SMALL, RUNS, OVER = "ended", "small", "runs", "over midnight"
JOBS = {
    ENDED: (NODES[:4], 10 * HOUR, 20 * HOUR + 7 * MINUTE),
    SMALL: (NODES[4:6], 10 * HOUR, 21 * HOUR),
    OVER: (NODES[:5], 23 * HOUR, 24 * HOUR + 10 * MINUTE),
    RUNS: (NODES[4:], 24 * HOUR + 10 * MINUTE, None),
}
"""Job -> nodes, begin and end; samples are of 19:00 to 25:20."""


def raw() -> pd.DataFrame:
    """Two gauges of eight nodes twice a minute, and a code that stays; times jitter, names have a
    domain, one node lost power before its job ended.
    """
    chance = np.random.default_rng(0)
    frames = []
    for node in NODES:
        for metric, level in (("power_watts", 500.0), ("clock_hertz", 1_900.0)):
            at = 19 * 3600 + np.arange(0, 380 * 60, 30) + chance.uniform(0, 2, 760)
            value = level + chance.normal(0, level / 200, at.size)
            value[(at > 19.7 * 3600) & (at < 20.5 * 3600)] -= (level / 3) * (node == "n2")
            frames.append(pd.DataFrame({"value": value, "metric": metric, "node": node, "s": at}))
        frames.append(
            pd.DataFrame({
                "value": 0.0, "metric": "DCGM_FI_DEV_XID_ERRORS", "node": node,
                "s": 19 * 3600 + np.arange(0, 380 * 60, 60),
            })
        )  # fmt: skip
    found = pd.concat(frames, ignore_index=True)
    found["at"] = [DAY + timedelta(microseconds=int(1e6 * s)) for s in found.pop("s")]
    return found.assign(gpu="0", node=found["node"] + ".cluster.local")


def with_jobs(root: Path) -> Path:
    """A store that knows the jobs alone."""
    jobs, nodes = [], []
    for job, (held, begin, end) in JOBS.items():
        key = {"cluster": "a", "attempt_key": job}
        times = {"start_at": DAY + begin, "end_at": None if end is None else DAY + end}
        state = "COMPLETED" if end else "RUNNING"
        jobs.append(key | times | {"job_id": job, "state": state, "submit_at": DAY})
        nodes += [key | times | {"node": node} for node in held]
    with writer(root) as building:
        building.load({"jobs": pd.DataFrame(jobs), "job_nodes": pd.DataFrame(nodes)})
        building.publish()
    return root


def around(store: Path, out: Path, *inputs: Path, **stated: Any) -> Reduced:
    """A reduction with the samples around a store's jobs."""
    with closing(Store.open(store)) as opened:
        return reduced(out, *inputs, jobs=JobEnds(opened), **stated)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return raw()


@pytest.fixture(scope="module")
def of_all(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of all samples."""
    root = with_jobs(tmp_path_factory.mktemp("all") / "store")
    with writer(root) as building:
        samples = frame.rename(columns={"at": "observed_at", "value": "reading"})
        building.merge({"node_metrics": samples.assign(cluster="a")})
        building.publish()
    return root


@pytest.fixture(scope="module")
def of_reduction(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of what was reduced in small pieces, with the samples around jobs."""
    folder = tmp_path_factory.mktemp("reduced")
    root = with_jobs(folder / "store")
    inputs = [written(frame.iloc[k::2], folder / f"{k}.parquet") for k in range(2)]
    around(root, folder / "out", *inputs, most_rows=4_000)
    return fed(root, folder / "out")


def machines(root: Path, job: str | None) -> Any:
    """The samples by which machines are compared."""
    with closing(Store.open(root)) as store:
        return last_samples(store, "a", job)


def alert(root: Path) -> Found:
    """What the alert of machines finds a minute after the last sample."""
    now = DAY + 26 * HOUR
    watch = Watch(Selection("a"), now - 90 * 24 * HOUR, now, AlertSettings(), 0.1)
    with closing(Store.open(root)) as store:
        return faulty_machine.RULE.find(of_store(store), watch)


@pytest.mark.parametrize("job", [None, ENDED, OVER, RUNS])
def test_machines_are_compared_by_the_samples_of_a_store_of_all(
    of_all: Path, of_reduction: Path, job: str | None
) -> None:
    wanted, found = machines(of_all, job), machines(of_reduction, job)
    assert found.machines == wanted.machines
    assert found.machines == tuple(NODES if job is None else JOBS[job][0])
    assert (found.start_at, found.step_seconds) == (wanted.start_at, wanted.step_seconds)
    for metric in wanted.values:
        np.testing.assert_array_equal(found.values[metric], wanted.values[metric])


def test_the_alert_of_machines_is_that_of_a_store_of_all(of_all: Path, of_reduction: Path) -> None:
    assert alert(of_reduction) == alert(of_all)
    assert alert(of_all).blind is None


def test_a_job_that_ended_is_compared_in_the_last_half_hour_in_which_it_ran(of_all: Path) -> None:
    start_at = datetime.fromtimestamp(machines(of_all, ENDED).start_at, UTC)
    assert timedelta() <= start_at - (DAY + 19 * HOUR + 37 * MINUTE) < MINUTE
    start_at = datetime.fromtimestamp(machines(of_all, RUNS).start_at, UTC)  # it began less ago
    assert timedelta() <= start_at - (DAY + 24 * HOUR + 50 * MINUTE) < MINUTE


def test_of_other_jobs_it_is_told_that_samples_were_not_kept(of_reduction: Path) -> None:
    told = r"nodes of job small from 2026-01-05 20:30 to 21:00 UTC were reduced and not kept, of n4"
    with pytest.raises(DataError, match=told):
        machines(of_reduction, SMALL)
    with pytest.raises(DataError, match="holds no metrics of the nodes of job none"):
        machines(of_reduction, "none")


def test_without_jobs_nothing_is_kept_and_it_is_told(tmp_path: Path, frame: pd.DataFrame) -> None:
    reduced(tmp_path / "out", written(frame, tmp_path / "a.parquet"))
    root = fed(with_jobs(tmp_path / "store"), tmp_path / "out")
    with pytest.raises(DataError, match=r"samples of nodes of a from .* were reduced and not kept"):
        machines(root, None)
    assert alert(root).blind == faulty_machine.REDUCED


@pytest.mark.slow
def test_what_is_too_much_is_left_out_and_told(tmp_path: Path, frame: pd.DataFrame) -> None:
    root = with_jobs(tmp_path / "store")
    path = written(frame, tmp_path / "a.parquet")
    # of the first day the last half hour is 960 samples, that of four nodes 480
    result = around(root, tmp_path / "out", path, most_kept=1_200)
    first, second = result.manifest.partitions.values()
    assert (first.windows["jobs"], first.windows["jobs_left_out"]) == (0, 1)
    assert first.windows["samples_left_out"] == 480
    assert (second.windows["jobs"], second.windows["jobs_left_out"]) == (1, 0)
    assert "jobs that have none therefore: 1" in "".join(result.notices)
    fed(root, tmp_path / "out")
    with pytest.raises(DataError, match=r"of the nodes of job ended .* not kept"):
        machines(root, ENDED)
    assert machines(root, OVER).machines == tuple(NODES[:5])


@pytest.mark.slow
def test_jobs_that_are_known_later_are_kept_later_or_it_is_told(
    tmp_path: Path, frame: pd.DataFrame
) -> None:
    with writer(tmp_path / "empty") as building:
        building.publish()
    path, other = written(frame, tmp_path / "a.parquet"), tmp_path / "b.csv"
    around(tmp_path / "empty", tmp_path / "out", path)
    other.write_text("at,node,metric,value\n2026-01-09T00:00:00Z,n1,x,1\n")
    root = with_jobs(tmp_path / "store")
    told = around(root, tmp_path / "out", other).notices
    assert "2 days, 2026-01-05 first, were done before all of their jobs" in told[0]
    result = around(root, tmp_path / "out", path, other)
    assert result.days_done == ["2026-01-05", "2026-01-06"]
    assert result.notices == []
    assert around(root, tmp_path / "out", path, other).days_done == []
    assert machines(fed(root, tmp_path / "out"), ENDED).machines == tuple(NODES[:4])
    with pytest.raises(DataError, match="is a reduction with --jobs: say the same"):
        reduced(tmp_path / "out", path)


@pytest.mark.slow
def test_a_store_of_all_samples_and_hours_of_them_is_not_refused(
    tmp_path: Path, of_all: Path, frame: pd.DataFrame
) -> None:
    reduced(tmp_path / "out", written(frame, tmp_path / "a.parquet"))
    root = with_jobs(tmp_path / "store")
    samples = frame.rename(columns={"at": "observed_at", "value": "reading"})
    with writer(root) as building:
        building.merge({"node_metrics": samples.assign(cluster="a")})
        building.publish()
    fed(root, tmp_path / "out")
    assert machines(root, ENDED).machines == machines(of_all, ENDED).machines


STRETCHES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 9), st.integers(0, 5)).map(
        lambda each: (each[0], each[0] + each[1], each[2])
    ),
    max_size=8,
)


@given(STRETCHES)
def test_stretches_that_overlap_become_ones_that_do_not(wanted: list[tuple[int, int, int]]) -> None:
    found = [(at, place) for begin, end, place in _apart(wanted) for at in range(begin, end)]
    least = {
        at: min(place for begin, end, place in wanted if begin <= at < end)
        for at in range(50)
        if any(begin <= at < end for begin, end, _ in wanted)
    }
    assert found == sorted(least.items())


def test_hosts_are_known_by_any_spelling_and_in_their_own_cluster_alone() -> None:
    jobs = [JobWindow("a", ["N1", "n2.old"], 5, 10), JobWindow("b", ["n1"], 20, 30)]
    windows = Windows({}, jobs, 0)
    hosts = [("", "n1.x"), ("a", "n1"), ("b", "N2"), ("", "n2")]
    found = [(*host, part.from_us, part.place) for host, part in windows.of(hosts, 0, 1)]
    assert found == [("", "n1.x", 5, 1), ("", "n1.x", 20, 2), ("a", "n1", 5, 1), ("", "n2", 5, 1)]
    assert list(windows.kept(1)) == [
        (("", "n1.x"), 5, 10), (("", "n2"), 5, 10), (("a", "n1"), 5, 10),
    ]  # fmt: skip
