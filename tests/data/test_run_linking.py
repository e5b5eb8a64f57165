"""The store's run ids are those of the rule, whatever stood there before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from analytics.efficiency.run_rule import RunRule
from analytics.efficiency.runs import COLUMNS, link_runs
from app.cli import main
from data.publish.merge import merge
from data.stages.runs.linking import set_runs
from data.store import Store
from data.tables import tables

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = ("submit_at", "eligible_at", "start_at", "end_at")
RULES = [
    RunRule(),
    RunRule(names="apart", arrays="apart"),
    RunRule(requeue_gap_days=0.2, gap_hours=3),
    RunRule(after_completed=True, max_overlap_ratio=1, gap_hours=200),
    RunRule(name_min_gpus=8, max_overlap_ratio=0.5),
    RunRule(name_min_gpus=8, array_min_gpus=16, gap_hours=100, after_completed=True),
]


def job(job_id: str | None, start: float, end: float | None, **more: Any) -> dict[str, Any]:
    """An attempt on four nodes that failed; hours."""
    row = {
        "cluster": "c", "attempt_key": f"{job_id}/{start}", "job_id": job_id, "user": "ann",
        "name": "pretrain", "state": "FAILED", "submit_at": start, "start_at": start,
        "end_at": end, "n_nodes": 4, "n_gpus": 32,
    } | more  # fmt: skip
    for name in TIMES:
        hours = row.get(name)
        row[name] = None if hours is None else BEGIN + timedelta(hours=hours)
    return row


def store(rows: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    """A database with these attempts."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone='UTC'")
    for table in ("jobs", "job_nodes", "run_links"):
        columns = (f'"{name}" {column.type}' for name, column in tables()[table].columns.items())
        connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    add(connection, rows)
    return connection


def add(connection: duckdb.DuckDBPyConnection, rows: list[dict[str, Any]]) -> None:
    table = pd.DataFrame(rows, dtype="object")
    table["node_list"] = None
    for name in TIMES:
        table[name] = pd.to_datetime(table[name], utc=True)
    connection.register("incoming", table)
    merge(connection, "jobs", "incoming")
    connection.unregister("incoming")


def ids(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    return dict(connection.execute("SELECT attempt_key, run_id FROM jobs ORDER BY 1").fetchall())


def link(connection: duckdb.DuckDBPyConnection, rule: RunRule) -> None:
    """Links anew, as a publish does: the tables that a stage fills are empty before."""
    connection.execute("DELETE FROM run_links")
    set_runs(connection, rule)


def links(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, ...]]:
    return connection.execute("FROM run_links ORDER BY ALL").fetchall()


def test_a_new_job_is_a_run_of_its_own() -> None:
    connection = store([job("1", 0, 2), job(None, 0, 3)])
    assert ids(connection) == {"1/0": "1", "None/0": "None/0"}


def test_jobs_of_one_task_have_one_run_and_the_rule_that_joined_them() -> None:
    connection = store(
        [
            job("1", 0, 2), job("1", 3, 4), job("2", 5, 9), job("3", 50, 60, name="x"),
            job("7", 0, 1, user="bob", n_nodes=1), job("7", 5, 6, user="eve", n_nodes=1),
        ]
    )  # fmt: skip
    link(connection, RunRule())
    assert ids(connection) == {
        "1/0": "1", "1/3": "1", "2/5": "1", "3/50": "3", "7/0": "7", "7/5": "7#2",
    }  # fmt: skip
    assert links(connection) == [("c", "1", "name")]


def test_another_rule_undoes_what_the_first_joined() -> None:
    connection = store(
        [job("1", 0, 2), job("2", 5, 9), job("7", 0, 1, name="x"), job("7", 500, 501)]
    )
    before = ids(connection)
    link(connection, RunRule(requeue_gap_days=3, max_overlap_ratio=1))
    assert ids(connection) == before | {"2/5": "1", "7/500": "7#2"}
    link(connection, RunRule(names="apart"))
    assert ids(connection) == before
    assert links(connection) == []


def test_rows_of_an_older_store_without_runs_are_set_too() -> None:
    connection = store([job("1", 0, 2), job("2", 5, 9), job(None, 70, 71)])
    connection.execute("UPDATE jobs SET run_id = NULL")
    link(connection, RunRule())
    assert ids(connection) == {"1/0": "1", "2/5": "1", "None/70": "None/70"}


def test_a_second_time_changes_nothing() -> None:
    connection = store([job("1", 0, 2), job("2", 5, 9), job("3", 10, 12, state="COMPLETED")])
    link(connection, RunRule())
    found = ids(connection), links(connection)
    link(connection, RunRule())
    assert (ids(connection), links(connection)) == found


def test_a_store_without_jobs_has_no_links() -> None:
    connection = store([job("1", 0, 2)])
    connection.execute("DELETE FROM jobs")
    link(connection, RunRule())
    assert links(connection) == []


def drawn(seed: int) -> list[dict[str, Any]]:
    """Attempts of few users, names, ids and arrays, close together; many ids come again."""
    random = np.random.default_rng(seed)

    def one(*values: Any) -> Any:
        return values[random.integers(len(values))]

    rows = []
    for number in range(int(random.integers(1, 60))):
        start = one(*range(0, 900, 4))
        length = one(0, 1, 3, 7, 30, None) if random.random() < 0.9 else 700
        row = job(str(one(*range(60))), start, None if length is None else start + length)
        submit = row["start_at"] - timedelta(hours=int(one(0, 0, 1, 40)))
        array = one(None, None, None, "5", "6")
        row |= {
            "attempt_key": f"k{number:02}", "user": one("ann", "ann", "bob", None),
            "name": one("a", "b", "bash"), "partition": one("p", "p", "q"),
            "state": one("COMPLETED", "FAILED", "TIMEOUT"), "submit_at": one(submit, submit, None),
            "eligible_at": one(submit, row["start_at"], None), "n_nodes": one(1, 4, 4, None),
            "n_gpus": one(8, 32, 32, 0, None), "array_job_id": array,
            "sluid": f"s{number}", "original_sluid": one(*[f"s{number}"] * 9, "s0"),
        }  # fmt: skip
        if random.random() < 0.1:
            row["start_at"] = row["end_at"] = None
        rows.append(row)
    return rows


@pytest.mark.parametrize(
    "seed", [3, 4, *(pytest.param(n, marks=pytest.mark.slow) for n in (7, *range(100, 140)))]
)
def test_the_store_has_the_runs_of_the_rule_over_all_attempts(seed: int) -> None:
    connection = store(drawn(seed))
    if seed % 2:  # as after a publish; else as before any
        connection.execute(
            """UPDATE jobs SET attempt = new.place FROM (
                 SELECT rowid AS id, row_number() OVER (
                   PARTITION BY cluster, job_id ORDER BY submit_at, start_at, attempt_key) AS place
                 FROM jobs) new WHERE jobs.rowid = new.id"""
        )
    columns = ", ".join(f'"{name}"' for name in COLUMNS)
    table = connection.execute(f"SELECT {columns} FROM jobs").df()
    for rule in RULES:
        link(connection, rule)
        linked = link_runs(table, rule)
        expected = dict(zip(table["attempt_key"], linked["run_id"], strict=True))
        assert ids(connection) == expected, rule
        several = table.groupby(linked["run_id"])["job_id"].nunique()
        assert {row[1] for row in links(connection)} == set(several.index[several > 1])


@pytest.mark.slow
def test_the_demo_whose_jobs_are_runs_is_hardly_joined(tmp_path: Path) -> None:
    """Truth: every job is one run. Jobs on several nodes that chance makes a chain stay few."""
    assert main(["demo", "--jobs", "20000", "--store", str(tmp_path / "store")]) == 0
    columns = ", ".join(f'"{name}"' for name in COLUMNS)
    table = Store.open(tmp_path / "store").frame(f"SELECT {columns} FROM jobs")
    linked = link_runs(table)
    large = table["n_nodes"] > 1
    assert (linked["run_id"][~large] == table["job_id"][~large]).all()
    runs, jobs = linked[large]["run_id"].nunique(), table[large]["job_id"].nunique()
    assert 0.97 < runs / jobs <= 1
