"""Every command answers from a store of reduced records as from one of the records themselves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from app.actions import Options, ingest_files
from app.actions.demo import _load_traces
from app.cli import main
from data.publish import writer
from data.queries.job_ends import JobEnds
from data.store import Store
from data.synthetic import DemoSpec, demo_cluster
from tests.app.cli.golden import lines, said
from tests.data.reduce.samples import asked, reduced, written

N_NODES, N_JOBS, HOURS, STEP_S = 192, 3_000, 26, 60
OF_STORE = {"info", "ingests", "audit"}
"""Commands that tell what was read, which is another thing."""
TIMES = {"seconds", "read_seconds"}
JOBS_COMPARED = 6


class Source(NamedTuple):
    """Records of one kind, in both ways."""

    raw: Callable[[Path, Path], None]
    """Feeds a store with the records of a folder."""
    reduced: Callable[[Path, Path], None]
    """Feeds one with what they are reduced to."""


def metrics_of(root: Path, folder: Path) -> None:
    """A day and two hours of samples of all nodes, as written in two files; some nodes go slow."""
    ((last_at,),) = asked(root, "SELECT max(end_at) FROM jobs")[0:1][0]
    (nodes,) = asked(root, "SELECT DISTINCT node FROM job_nodes ORDER BY ALL")
    chance = np.random.default_rng(0)
    n = HOURS * 3600 // STEP_S
    begin = pd.Timestamp(last_at).floor("min") - pd.Timedelta(hours=HOURS)
    frames = []
    for number, (node,) in enumerate(nodes):
        at = begin + pd.to_timedelta(np.arange(n) * STEP_S + chance.integers(0, 9, n), unit="s")
        for metric in ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_XID_ERRORS", "errors_total"):
            value = np.round(500 + 5 * chance.normal(size=n))
            if metric == "errors_total":
                value = np.cumsum(chance.random(n) < 0.01).astype(float)
            elif "XID" in metric:
                value = np.where(np.arange(n) > chance.integers(0, 50 * n), 79.0, 0.0)
            elif number % 50 == 7:
                value[-15:] -= 150
            frames.append(pd.DataFrame({
                "at": at, "node": node, "gpu": None if "total" in metric else "0",
                "metric": metric, "value": value,
            }))  # fmt: skip
    frame = pd.concat(frames, ignore_index=True)
    for k in range(2):
        written(frame.iloc[k::2], folder / f"{k}.parquet")


def raw_metrics(root: Path, folder: Path) -> None:
    frame = pd.concat(map(pd.read_parquet, sorted(folder.glob("*.parquet"))))
    frame = frame.rename(columns={"at": "observed_at", "value": "reading"})
    with writer(root) as building:
        building.merge({"node_metrics": pa.Table.from_pandas(frame.assign(cluster="demo"))})
        building.publish()


def reduced_metrics(root: Path, folder: Path) -> None:
    out = folder / "reduced"
    with closing(Store.open(root)) as store:
        reduced(out, *sorted(folder.glob("*.parquet")), jobs=JobEnds(store))
    ingest_files(root, "reduced-metrics", [str(out)], Options(cluster="demo"))


SOURCES = {"metrics": Source(raw_metrics, reduced_metrics)}
"""Kinds of records that are reduced; each comes into both stores."""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store fed with records, and one fed with their reductions."""
    folder = tmp_path_factory.mktemp("same")
    demo = demo_cluster(DemoSpec.of(N_JOBS, N_NODES, None, 0))
    clusters = demo.tables["clusters"]
    place = clusters.column_names.index("synthetic")
    real = clusters.set_column(place, "synthetic", pa.array([False] * len(clusters)))
    with writer(folder / "raw") as building:
        building.load(demo.tables | {"clusters": real})
        _load_traces(building, demo.traces)
        building.publish(ledger=True)
    shutil.copytree(folder / "raw", folder / "reduced")
    (folder / "metrics").mkdir()
    metrics_of(folder / "raw", folder / "metrics")
    for name, source in SOURCES.items():
        source.raw(folder / "raw", folder / name)
        source.reduced(folder / "reduced", folder / name)
    return folder / "raw", folder / "reduced"


def alike(one: Any, other: Any) -> bool:
    """Whether two say the same, apart from how long it took; numbers to 1e-12."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            key in TIMES or alike(one[key], other[key]) for key in one
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-12, nan_ok=True)
    return bool(one == other)


def answers(root: Path, folder: Path) -> Iterator[tuple[str, Any]]:
    """Each command that reads a store, with its JSON."""
    folder.mkdir()
    for line, arguments in lines(root, folder).items():
        if str(root) in arguments and line.split()[0] not in OF_STORE:
            text = said(*arguments, "--format", "json").replace(str(folder), "FILES")
            yield line, json.loads(text.replace(str(root), "STORE"))


@pytest.mark.slow
def test_every_command_says_the_same(stores: tuple[Path, Path], tmp_path: Path) -> None:
    wanted, found = (dict(answers(root, tmp_path / root.name)) for root in stores)
    assert [line for line in wanted if not alike(wanted[line], found[line])] == []
    assert len(wanted) > 40


@pytest.mark.slow
def test_machines_are_the_same_or_it_is_said_that_samples_were_not_kept(
    stores: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    raw, of_reduction = stores
    (rows,) = asked(
        raw,
        f"""SELECT job_id, n FROM (
              SELECT job_id, count(DISTINCT node) AS n, max(jobs.end_at) AS end_at
              FROM jobs JOIN job_nodes USING (cluster, attempt_key) GROUP BY job_id)
            WHERE end_at > (SELECT max(end_at) FROM jobs) - INTERVAL {HOURS - 1} HOUR
            ORDER BY n DESC, job_id""",
    )
    large = [job for job, n in rows if n >= 4][:JOBS_COMPARED]
    assert len(large) > 2
    for job in (None, *large):
        command = ["machines", "--format", "json", *(("--job", job) if job else ())]
        said_by: list[Any] = []
        for root in stores:
            code = main([*command, "--store", str(root)])
            shown = capsys.readouterr()
            said_by.append([code, json.loads(shown.out) if code == 0 else shown.err])
        assert alike(*said_by), job
    small = next(job for job, n in rows if n < 4)
    assert main(["machines", "--store", str(of_reduction), "--job", small]) == 2
    assert "were reduced and not kept" in capsys.readouterr().err
