"""Every command answers from a store of reduced records as from one of the records themselves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
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
from data.synthetic import DemoCluster, DemoSpec, demo_cluster
from tests.app.cli.golden import lines, said
from tests.data.reduce import accounts, events
from tests.data.reduce.samples import asked, reduced, written

N_NODES, N_JOBS, HOURS, STEP_S = 192, 3_000, 26, 60
OF_STORE = {"info", "ingests", "audit"}
"""Commands that tell what was read, which is another thing."""
TIMES = {"seconds", "read_seconds"}
JOBS_COMPARED = 6


class Source(NamedTuple):
    """Records of one kind, as files and in both ways."""

    write: Callable[[Path, DemoCluster, Path], None]
    """Writes them to a folder; the store so far and the demo say of what."""
    raw: Callable[[Path, Path], None]
    """Feeds a store with the records of a folder."""
    reduced: Callable[[Path, Path], None]
    """Feeds one with what they are reduced to."""


DUMP = """COPY (
  WITH seen AS (
    SELECT *, coalesce(start_at <= $at, false) AS begun, coalesce(end_at <= $at, false) AS over,
      '%Y-%m-%dT%H:%M:%S' AS as_sacct FROM told WHERE submit_at <= $at),
  attempt AS (
    SELECT job_id AS JobID, job_id_raw AS JobIDRaw, sluid AS SLUID, original_sluid AS OriginalSLUID,
      cluster AS Cluster, partition AS Partition, account AS Account, "user" AS "User", qos AS QOS,
      name AS JobName, CASE WHEN over THEN state_raw WHEN begun THEN 'RUNNING' ELSE 'PENDING' END
        AS State, CASE WHEN over THEN concat(coalesce(CAST(exit_code AS INT), 0), ':',
        coalesce(CAST(exit_signal AS INT), 0)) ELSE '0:0' END AS ExitCode, reason AS Reason,
      failed_node AS FailedNode, CAST(restarts AS INT) AS Restarts,
      strftime(submit_at, as_sacct) AS Submit, strftime(eligible_at, as_sacct) AS Eligible,
      CASE WHEN begun THEN strftime(start_at, as_sacct) ELSE 'Unknown' END AS Start,
      CASE WHEN over THEN strftime(end_at, as_sacct) ELSE 'Unknown' END AS "End",
      CASE WHEN over THEN CAST(elapsed_s AS BIGINT) WHEN begun THEN
        epoch_us($at - start_at) // 1000000 ELSE 0 END AS ElapsedRaw,
      CAST(timelimit_s // 60 AS BIGINT) AS TimelimitRaw, CAST(n_nodes AS BIGINT) AS NNodes,
      CAST(n_cpus AS BIGINT) AS NCPUS,
      CASE WHEN begun THEN concat('gres/gpu=', CAST(n_gpus AS BIGINT)) END AS AllocTRES,
      CASE WHEN begun THEN node_list END AS NodeList, submit_line AS SubmitLine,
      CAST(priority AS BIGINT) AS Priority, begun FROM seen)
  SELECT * EXCLUDE (begun) FROM attempt
  UNION ALL
  SELECT * EXCLUDE (begun) REPLACE (JobID || '.batch' AS JobID, NULL AS "User")
  FROM attempt WHERE begun
) TO {path} (FORMAT csv, DELIMITER '|', QUOTE '', ESCAPE '', HEADER)"""
"""What sacct -P prints at a time of the attempts `told` and their steps."""


def write_jobs(_: Path, demo: DemoCluster, folder: Path) -> None:
    """Two dumps of the demo's attempts: what the second saw end ran when the first was made."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("told", demo.tables["jobs"])
        ((last,),) = connection.execute("SELECT max(end_at) FROM told").fetchall()
        for name, at in (("first", last - timedelta(hours=20)), ("second", last)):
            connection.execute(DUMP.replace("{path}", f"'{folder / name}.txt'"), {"at": at})


def raw_jobs(root: Path, folder: Path) -> None:
    ingest_files(root, "sacct", [*map(str, sorted(folder.glob("*.txt")))], Options())


def reduced_jobs(root: Path, folder: Path) -> None:
    out = folder / "reduced"
    accounts.reduced(out, *sorted(folder.glob("*.txt")))
    ingest_files(root, "reduced-jobs", [str(out)], Options())


def write_events(_: Path, demo: DemoCluster, folder: Path) -> None:
    """The demo's events, and storms on nodes of its own in the last hours."""
    told = demo.tables["health_events"].to_pandas()[events.COLUMNS].astype({"xid": "Int64"})
    storms = events.events(seed=3)
    names = demo.tables["nodes"].column("node").to_pylist()
    nodes = dict(
        zip((*events.NODES, "N4", "gate"), [*names[:6], names[3].upper(), "gate"], strict=True)
    )
    later = pd.Timestamp(told["observed_at"].max()) - pd.Timedelta(hours=12) - events.BEGIN
    storms = storms.assign(
        node=storms["node"].map(nodes), observed_at=storms["observed_at"] + later
    )
    for number, frame in enumerate((told, storms)):
        written(frame.astype({"severity": object}), folder / f"{number}.parquet")


def raw_events(root: Path, folder: Path) -> None:
    frame = pd.concat(map(pd.read_parquet, sorted(folder.glob("*.parquet"))))
    with writer(root) as building:
        building.merge({"health_events": events.raw(frame, "demo")})
        building.publish()


def reduced_events(root: Path, folder: Path) -> None:
    out = folder / "reduced"
    events.reduced(out, *sorted(folder.glob("*.parquet")))
    ingest_files(root, "reduced-events", [str(out)], Options(cluster="demo"))


def write_metrics(root: Path, _: DemoCluster, folder: Path) -> None:
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


SOURCES = {
    "jobs": Source(write_jobs, raw_jobs, reduced_jobs),
    "events": Source(write_events, raw_events, reduced_events),
    "metrics": Source(write_metrics, raw_metrics, reduced_metrics),
}
"""Kinds of records that are reduced; each comes into both stores. Metrics are those of jobs."""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store fed with records, and one fed with their reductions."""
    folder = tmp_path_factory.mktemp("same")
    demo = demo_cluster(DemoSpec.of(N_JOBS, N_NODES, None, 0))
    clusters = demo.tables["clusters"]
    place = clusters.column_names.index("synthetic")
    real = clusters.set_column(place, "synthetic", pa.array([False] * len(clusters)))
    others = demo.tables.keys() - {"jobs", "job_nodes", "health_events"}
    with writer(folder / "raw") as building:
        building.load({name: demo.tables[name] for name in others} | {"clusters": real})
        _load_traces(building, demo.traces)
        building.publish()
    shutil.copytree(folder / "raw", folder / "reduced")
    for name, source in SOURCES.items():
        (folder / name).mkdir()
        source.write(folder / "raw", demo, folder / name)
        source.raw(folder / "raw", folder / name)
        source.reduced(folder / "reduced", folder / name)
    for fed in ("raw", "reduced"):
        assert main(["ledger", "--store", str(folder / fed), "--format", "json"]) == 0
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
