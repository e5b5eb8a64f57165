"""Accounting of a few weeks as a site dumps it: again and again, in windows that overlap."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from data.ingest.formats.source import opened
from data.ingest.reader import Options
from data.ingest.readers import known_readers
from data.publish.merge import merge
from data.reduce.inputs import Partition
from data.reduce.kinds import JOBS
from data.reduce.manifest import Surveyed, load
from data.reduce.records import reduce_records
from data.reduce.running import Reduced, Request
from data.tables import tables

Row = dict[str, str]
BEGIN = datetime(2026, 1, 5, 20, tzinfo=UTC)
COLUMNS = (
    "JobID", "JobIDRaw", "Cluster", "User", "Account", "Partition", "JobName", "State", "ExitCode",
    "Submit", "Eligible", "Start", "End", "ElapsedRaw", "TimelimitRaw", "NNodes", "NCPUS",
    "AllocTRES", "NodeList", "Restarts", "SubmitLine",
)  # fmt: skip
ENDS = ["COMPLETED"] * 5 + ["FAILED", "CANCELLED by 1000", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"]
Attempt = dict[str, Any]


def attempts(seed: int, n_jobs: int = 60) -> list[Attempt]:
    """What ran: arrays, heterogeneous jobs and requeues among it, half of it one user's."""
    chance = random.Random(seed)
    found: list[Attempt] = []
    for number in range(1, n_jobs + 1):
        form = chance.choice(["{n}"] * 4 + ["{n}_7", "{n}_[2-9]", "{n}+0", "{n}+1"])
        submit = BEGIN + timedelta(minutes=chance.randrange(4 * 24 * 60))
        for restart in range(chance.choice([1, 1, 1, 2, 3])):
            start = submit + timedelta(minutes=chance.randrange(600))
            end = start + timedelta(minutes=chance.randrange(1, 4_000))
            found.append(
                {"job": form.format(n=100 + number // 2 if "_" in form else 1000 + number),
                 "raw": str(1000 + number), "cluster": chance.choice(["a", "a", "b"]),
                 "user": chance.choice(["ann", "ann", "bob", "eve"]), "restart": restart,
                 "submit": submit, "start": start, "end": end, "state": chance.choice(ENDS),
                 "nodes": chance.randrange(1, 5), "name": chance.choice(["a", "b c", "d;e"])}
            )  # fmt: skip
            submit = end + timedelta(seconds=chance.randrange(90))  # a requeue begins another
            if chance.random() < 0.4:
                submit = found[-1]["submit"]  # Slurm of old kept it
    return found


def seen(attempt: Attempt, at: datetime, *, named: bool) -> list[Row]:
    """The records that sacct prints of an attempt and its steps at a time."""
    if at < attempt["submit"]:
        return []
    begun, over = at >= attempt["start"], at >= attempt["end"]

    def time(value: datetime) -> str:
        return f"{value:%Y-%m-%dT%H:%M:%S}"

    until = attempt["end"] if over else at
    row = dict.fromkeys(COLUMNS, "") | {
        "JobID": attempt["job"], "JobIDRaw": attempt["raw"], "Cluster": attempt["cluster"],
        "User": attempt["user"], "Account": "x", "Partition": "gpu", "JobName": attempt["name"],
        "State": attempt["state"] if over else "RUNNING" if begun else "PENDING",
        "ExitCode": "1:9" if over and attempt["state"] == "FAILED" else "0:0",
        "Submit": time(attempt["submit"]), "Eligible": time(attempt["submit"]),
        "Start": time(attempt["start"]) if begun else "Unknown",
        "End": time(attempt["end"]) if over else "Unknown",
        "ElapsedRaw": str(int((until - attempt["start"]).total_seconds()) if begun else 0),
        "TimelimitRaw": "1440", "NNodes": str(attempt["nodes"]), "NCPUS": "64",
        "AllocTRES": f"cpu=64,gres/gpu={8 * attempt['nodes']},node={attempt['nodes']}"
        if begun else "", "NodeList": f"n[1-{attempt['nodes']}]" if begun else "None assigned",
        "Restarts": str(attempt["restart"]), "SubmitLine": "sbatch --exclude=n9 run.sh",
    }  # fmt: skip
    if named:
        row["SLUID"] = f"s{attempt['raw']}{attempt['restart']}"
    steps = [row | {"JobID": f"{attempt['job']}.{step}", "User": ""} for step in ("batch", "0")]
    return [row, *(steps if begun and "[" not in attempt["job"] else [])]


def dumps(seed: int, n_jobs: int = 60, n_dumps: int = 4) -> list[list[Row]]:
    """Dumps day after day of two days each, those of later ones with SLUID; some records twice.

    A record that cannot be one stands in each: no state of Slurm, no time, no id, a header.
    """
    chance, made = random.Random(seed), attempts(seed, n_jobs)
    found = []
    for number in range(n_dumps):
        at = BEGIN + timedelta(days=1.4 * (number + 1))
        since = at - timedelta(days=2.5)
        rows = [
            row
            for attempt in made
            if attempt["end"] >= since
            for row in seen(attempt, at, named=number >= n_dumps // 2)
        ]
        names = [*COLUMNS, *(["SLUID"] if number >= n_dumps // 2 else [])]
        rows = [dict.fromkeys(names, "") | row for row in rows]
        rows += chance.sample(rows, min(5, len(rows)))
        bad = [{"State": "GONE"}, {"Submit": "yesterday"}, {"JobID": "x1"}, {"NNodes": "many"}]
        rows += [rows[0] | one for one in bad] + [{name: name for name in names}]
        rows += [
            rows[0] | {"JobID": f"9{number}", "Submit": "Unknown"} | dict.fromkeys(names[21:], "")
        ]
        chance.shuffle(rows)
        found.append(rows)
    return found


def written(rows: list[Row], path: Path) -> Path:
    """A dump in the form that its name says."""
    if path.suffix == ".txt":
        lines = ["|".join(rows[0]), *("|".join(row.values()) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    elif path.suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def reduced(out: Path, *inputs: Path, **stated: Any) -> Reduced:
    """What becomes of some partitions; all records have become something."""
    result = reduce_records(Request(tuple(map(str, inputs)), out, JOBS, **stated))
    counts = result.counts
    assert counts["rows_read"] == sum(
        counts[f"rows_{what}"] for what in ("kept", "skipped", "rejected")
    )
    assert counts["rows_kept"] == result.manifest.rows_out("jobs")
    assert not list(out.glob(".aside-*"))
    return result


def one_more(survey: Callable[..., Surveyed]) -> Callable[..., Surveyed]:
    """A survey that counts one record more of each day than there is."""

    def told(engine: Any, partition: Partition) -> Surveyed:
        found = survey(engine, partition)
        hours = {begin: n + 1 for begin, n in found.hours.items()}
        return replace(found, rows=found.rows + len(hours), hours=hours)

    return told


def attempts_of(source: str, *inputs: Path, **stated: Any) -> list[tuple[Any, ...]]:
    """Rows of the table jobs that inputs make, merged one after the other as a store does."""
    columns = {name: column.type for name, column in tables()["jobs"].columns.items()}
    reader = known_readers()[source]
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone='UTC'")
        for table in ("jobs", "job_nodes"):
            of_table = tables()[table].columns.items()
            named = ", ".join(f'"{name}" {column.type}' for name, column in of_table)
            connection.execute(f"CREATE TABLE {table} ({named})")
        for path in inputs:
            if path.is_dir():
                assert reader.read_folder is not None
                _, batch = reader.read_folder(path, Options(**stated), connection, path)
                _merge(connection, batch)
                continue
            with opened(str(path), path.parent) as found:
                _merge(connection, reader.read(found, Options(**stated), connection))
        told = ", ".join(f'"{name}"' for name in columns)
        return connection.execute(f"SELECT {told} FROM jobs ORDER BY ALL").fetchall()


def _merge(connection: duckdb.DuckDBPyConnection, batch: Any) -> None:
    """Merges what was read."""
    assert batch.rejected.total == 0 or batch.rows_kept
    batch.tables["jobs"].create_view("rows_read")
    connection.execute("BEGIN")
    merge(connection, "jobs", "rows_read")
    connection.execute("COMMIT")
    connection.execute("DROP VIEW rows_read")


def content(out: Path) -> list[tuple[Any, ...]]:
    """All rows of a reduction."""
    manifest = load(out)
    assert manifest is not None
    files = [str(out / name) for name in manifest.files("jobs")]
    return duckdb.sql("SELECT * FROM read_parquet($files, hive_partitioning = false) ORDER BY ALL",
                      params={"files": files}).fetchall()  # fmt: skip
