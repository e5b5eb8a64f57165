"""Linking attempts to runs: which jobs may be one run, by SQL; which are, by the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from analytics.efficiency.runs import COLUMNS, JOINED_BY, link_runs

if TYPE_CHECKING:
    import duckdb

    from analytics.efficiency.run_rule import RunRule

_JOB = "coalesce(job_id, attempt_key)"
_ROW = f"jobs.rowid AS id, attempt, {_JOB} AS job, " + ", ".join(f'"{name}"' for name in COLUMNS)
_LINEAGE = "coalesce(original_sluid, sluid)"
_MOVED = "original_sluid IS DISTINCT FROM sluid"
_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
_OPEN = 2**62


def set_runs(connection: duckdb.DuckDBPyConnection, rule: RunRule) -> None:
    """Sets `jobs.run_id` by the rule, and fills `run_links`, which is empty before.

    The rule decides anew: what it joins no more goes back to a run of its own. Only jobs that may
    be joined to another, or whose id may have come again, pass through
    `analytics.efficiency.runs.link_runs`; every other job is one run, named by its id.
    """
    _rows(connection, rule)
    _parts(connection, rule)
    _candidates(connection, rule)
    attempts = connection.execute(
        "SELECT * FROM run_rows SEMI JOIN run_candidates USING (cluster, job)"
    ).df()
    linked = link_runs(attempts, rule)
    connection.register(
        "linked_rows",
        pa.table({"id": pa.array(attempts["id"], pa.int64()),
                  "run_id": pa.array(linked["run_id"], pa.string()),
                  "joined_by": pa.array(linked["joined_by"], pa.string())}),
    )  # fmt: skip
    connection.execute("CREATE OR REPLACE TEMP TABLE linked AS FROM linked_rows")
    connection.unregister("linked_rows")
    _write(connection)


def _write(connection: duckdb.DuckDBPyConnection) -> None:
    """Changes the attempts whose run is another now; fills `run_links`."""
    connection.execute(
        f"""UPDATE jobs SET run_id = {_JOB} WHERE run_id IS DISTINCT FROM {_JOB}
            AND rowid NOT IN (SELECT id FROM linked)"""
    )
    connection.execute(
        """UPDATE jobs SET run_id = linked.run_id FROM linked
           WHERE jobs.rowid = linked.id AND jobs.run_id IS DISTINCT FROM linked.run_id"""
    )
    connection.execute(
        """INSERT INTO run_links BY NAME
           SELECT cluster, run_id, ($rules)[max(list_position($rules, joined_by))] AS joined_by
           FROM linked JOIN run_rows USING (id)
           GROUP BY ALL HAVING count(DISTINCT job) > 1 ORDER BY ALL""",
        {"rules": list(JOINED_BY)},
    )


def _rows(connection: duckdb.DuckDBPyConnection, rule: RunRule) -> None:
    """Temporary tables run_rows and run_seeds: attempts that a rule may concern, whole jobs.

    Seeds are jobs that the rules of lineage and requeue may join or part, and those that only
    some of their attempts make large.
    """
    large, rows = _large(rule), "CREATE OR REPLACE TEMP TABLE run_rows AS"
    connection.execute(f"{rows} SELECT {_ROW} FROM jobs WHERE {large} OR {_MOVED}")
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE run_again AS
            SELECT cluster, job_id, min("user") AS first_user, max("user") AS last_user,
              min(least(submit_at, start_at)) AS first_at,
              max(greatest(submit_at, start_at, end_at)) AS last_at,
              bool_or({large}) AS some_large, bool_and({large}) AS all_large
            FROM jobs WHERE attempt IS DISTINCT FROM 1 AND job_id IS NOT NULL GROUP BY ALL"""
    )
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE run_seeds AS
            SELECT cluster, job_id AS job FROM run_again
            WHERE first_user <> last_user OR last_at - first_at > to_seconds($gap_s)
              OR some_large <> all_large
            UNION
            SELECT cluster, job_id FROM jobs JOIN run_again USING (cluster, job_id)
            WHERE attempt = 1 AND ("user" <> first_user OR ({large}) <> some_large
              OR last_at - least(submit_at, start_at) > to_seconds($gap_s)
              OR greatest(submit_at, start_at, end_at) - first_at > to_seconds($gap_s))""",
        {"gap_s": rule.requeue_gap_days * 86400},
    )
    _lineages(connection)
    connection.execute(
        f"""INSERT INTO run_rows SELECT {_ROW} FROM jobs
            SEMI JOIN run_seeds ON jobs.cluster = run_seeds.cluster AND {_JOB} = run_seeds.job
            WHERE rowid NOT IN (SELECT id FROM run_rows)"""
    )


def _lineages(connection: duckdb.DuckDBPyConnection) -> None:
    """Adds the jobs of lineages that go over several jobs to the seeds."""
    moved = connection.execute(f"SELECT 1 FROM run_rows WHERE {_MOVED} LIMIT 1").fetchall()
    if not moved:
        return
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE run_lineages AS
            SELECT cluster, lineage FROM (SELECT cluster, {_JOB} AS job, {_LINEAGE} AS lineage
              FROM jobs) WHERE lineage IN (SELECT {_LINEAGE} FROM run_rows WHERE {_MOVED})
            GROUP BY ALL HAVING count(DISTINCT job) > 1"""
    )
    connection.execute(
        f"""INSERT INTO run_seeds SELECT DISTINCT cluster, {_JOB} FROM jobs
            SEMI JOIN run_lineages
            ON jobs.cluster = run_lineages.cluster AND {_LINEAGE} = lineage"""
    )


def _large(rule: RunRule) -> str:
    """SQL of an attempt that a chain may hold; true or false."""
    stated = [n for n in (rule.array_min_gpus, rule.name_min_gpus) if n is not None]
    several = ["n_nodes > 1"] if len(stated) < 2 else []
    least = [f"n_gpus >= {min(stated)}"] if stated else []
    return f"coalesce({' OR '.join([*several, *least])}, false)"


def _parts(connection: duckdb.DuckDBPyConnection, rule: RunRule) -> None:
    """Temporary table run_parts: jobs that a chain may hold.

    Each has the values of its first attempt that started, and the state of the last.
    """
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE run_parts AS
            WITH started AS (
              SELECT cluster, job, "user", account, partition, name, array_job_id, attempt_key,
                {_large(rule)} AS large,
                CASE WHEN n_gpus > 0 THEN n_gpus ELSE -n_nodes END AS size,
                epoch_us(start_at) AS start_us,
                epoch_us(least(submit_at, eligible_at, start_at)) AS ready_us,
                coalesce(epoch_us(end_at), {_OPEN}) AS end_us, coalesce(state, '') AS state
              FROM run_rows WHERE start_at IS NOT NULL),
            again AS (
              SELECT cluster, job,
                max(CASE WHEN end_at IS NULL THEN {_OPEN}
                  ELSE epoch_us(greatest(start_at, end_at)) END) AS until_us
              FROM run_rows GROUP BY ALL HAVING count(*) > 1),
            placed AS (
              SELECT started.*, until_us,
                row_number() OVER (job_rows ORDER BY start_us, end_us, attempt_key) AS place,
                first(state) OVER (
                  job_rows ORDER BY start_us DESC, end_us DESC, attempt_key DESC) AS last_state
              FROM started JOIN again USING (cluster, job)
              WINDOW job_rows AS (PARTITION BY cluster, job))
            SELECT * EXCLUDE (place, last_state) REPLACE (last_state AS state)
            FROM placed WHERE place = 1 AND large
            UNION ALL BY NAME
            SELECT *, greatest(start_us, end_us) AS until_us
            FROM started ANTI JOIN again USING (cluster, job) WHERE large"""
    )


def _candidates(connection: duckdb.DuckDBPyConnection, rule: RunRule) -> None:
    """Temporary table run_candidates: seeds, and jobs of whose array or name a chain is possible.

    Arrays and the names of a user count as a whole: whether their jobs overlap is part of the rule.
    """
    connection.execute("CREATE OR REPLACE TEMP TABLE run_candidates AS FROM run_seeds")
    if rule.arrays == "chain":
        known = "array_job_id IS NOT NULL"
        _chains(connection, rule, ("user", "array_job_id"), ("size",), known, share=1.0)
    if rule.names == "chain":
        known = '"user" IS NOT NULL AND name IS NOT NULL'
        alike = ("account", "partition", "size")
        _chains(connection, rule, ("user", "name"), alike, known, share=rule.max_overlap_ratio)


def _chains(
    connection: duckdb.DuckDBPyConnection,
    rule: RunRule,
    whole: tuple[str, ...],
    alike: tuple[str, ...],
    known: str,
    *,
    share: float,
) -> None:
    """Adds the jobs of each `whole` that holds a candidate, or two jobs that may be a chain."""
    wide = ", ".join(f'"{name}"' for name in ("cluster", *whole))
    narrow = ", ".join([wide, *alike])
    same = " AND ".join(
        f'run_parts."{name}" IS NOT DISTINCT FROM chosen."{name}"' for name in ("cluster", *whole)
    )
    order = "ORDER BY start_us, until_us, attempt_key"
    connection.execute(
        f"""INSERT INTO run_candidates
            WITH part AS (
              SELECT *, lag(until_us) OVER one AS before_us, lag(state) OVER one AS before,
                coalesce(start_us < max(until_us) OVER (PARTITION BY {wide} {order}
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false)
                  OR coalesce(lead(start_us) OVER many < until_us, false) AS crossed
              FROM run_parts WHERE {known}
              WINDOW one AS (PARTITION BY {narrow} {order}), many AS (PARTITION BY {wide} {order})),
            chosen AS (
              SELECT {wide} FROM part GROUP BY ALL
              HAVING bool_or(start_us >= before_us AND ready_us - $gap_us <= before_us
                  AND ($after_completed OR before <> 'COMPLETED'))
                AND count(*) FILTER (crossed) / count(*) <= $share
              UNION
              SELECT {wide} FROM run_rows SEMI JOIN run_candidates USING (cluster, job)
              WHERE {known})
            SELECT cluster, job FROM run_parts SEMI JOIN chosen ON {same}""",
        {"gap_us": int(rule.gap_hours * _HOUR), "after_completed": rule.after_completed,
         "share": share},
    )  # fmt: skip
