"""Stored dumps of ranks: flight recorders and stacks of a job, by the attempt that they are of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.training.hangs.dump import Entry, GroupConfig, GroupStatus, RankDump
from analytics.training.hangs.stacks import Frame, RankStack

if TYPE_CHECKING:
    from datetime import datetime

    from data.store import Store

EARLY, LATE = "INTERVAL 1 MINUTE", "INTERVAL 5 MINUTE"
"""By how much a dump may lie outside of its attempt: clocks differ."""


@dataclass(frozen=True)
class DumpedAttempt:
    """An attempt of a job of which dumps are stored; what is not known of it is None."""

    cluster: str
    job_id: str
    attempt_key: str | None
    attempt: int | None
    n_gpus: int | None
    node_list: str | None
    start_at: datetime | None
    dumped_at: datetime | None
    """Last time that a dump holds."""
    n_ranks: int
    """Ranks of which a dump or a stack is stored."""


_PLACED = f"""
  dumped AS (
    SELECT dump_id, cluster, job_id, rank, dumped_at, 'ring' AS kind FROM flight_dumps
    UNION ALL SELECT dump_id, cluster, job_id, rank, dumped_at, 'stack' FROM rank_stacks),
  fitted AS (
    SELECT dumped.*, attempt_key, attempt, n_gpus, node_list, start_at,
      coalesce(dumped_at BETWEEN start_at - {EARLY}
        AND coalesce(end_at, 'infinity') + {LATE}, false) AS fits
    FROM dumped
    LEFT JOIN jobs ON dumped.cluster = jobs.cluster AND dumped.job_id = jobs.job_id
      AND jobs.start_at IS NOT NULL),
  compared AS (
    SELECT *, bool_or(fits AND kind = 'ring') OVER of_attempt AS has_dumps,
      bool_or(fits) OVER of_rank AS has_rank
    FROM fitted
    WINDOW of_attempt AS (PARTITION BY cluster, job_id, attempt_key),
      of_rank AS (PARTITION BY cluster, job_id, attempt_key, rank, kind)),
  placed AS (
    SELECT * FROM compared
    QUALIFY row_number() OVER (
      PARTITION BY dump_id, cluster, job_id ORDER BY
        fits DESC, NOT fits AND has_dumps DESC, fits OR has_rank,
        start_at DESC NULLS LAST, attempt_key) = 1)"""


def attempts(
    store: Store, *, job_id: str | None = None, cluster: str | None = None,
    run_id: str | None = None,
) -> list[DumpedAttempt]:  # fmt: skip
    """Attempts of which dumps are stored, the last dumped first: of a job, a run, or all.

    A dump is of the attempt of its job during which the rank last did something. One that holds no
    such time is of an attempt of which other ranks have dumps and its own has none, else of the
    last of them, else of the last attempt.
    """
    rows = store.rows(
        f"""WITH {_PLACED}
            SELECT cluster, job_id, attempt_key, attempt, n_gpus, node_list, start_at,
              max(dumped_at) AS dumped_at, count(DISTINCT rank) AS n_ranks
            FROM placed
            WHERE ($job IS NULL OR job_id = $job) AND ($cluster IS NULL OR cluster = $cluster)
              AND ($run IS NULL OR job_id = $run OR attempt_key IN (
                SELECT attempt_key FROM jobs
                WHERE run_id = $run AND ($cluster IS NULL OR cluster = $cluster)))
            GROUP BY ALL ORDER BY dumped_at DESC NULLS LAST, cluster, job_id, attempt_key""",
        {"job": job_id, "cluster": cluster, "run": run_id},
    )
    return [DumpedAttempt(*row) for row in rows]


def dumps_of(store: Store, attempt: DumpedAttempt) -> tuple[list[RankDump], list[RankStack]]:
    """Of each rank of an attempt its last flight recorder, and the stack of its main thread."""
    of = {"cluster": attempt.cluster, "job": attempt.job_id, "attempt": attempt.attempt_key}
    chosen = f"""WITH {_PLACED}
      SELECT dump_id FROM placed WHERE cluster = $cluster AND job_id = $job
        AND attempt_key IS NOT DISTINCT FROM $attempt"""
    dumps = store.rows(
        f"""SELECT dump_id, rank, host, version, nccl_version, process_groups FROM flight_dumps
            WHERE cluster = $cluster AND job_id = $job AND dump_id IN ({chosen})
            QUALIFY row_number() OVER (
              PARTITION BY rank ORDER BY dump_id IN (SELECT dump_id FROM collectives) DESC,
                dumped_at DESC NULLS LAST, dump_id) = 1
            ORDER BY rank""",
        of,
    )
    entries = _entries(store, [row[0] for row in dumps])
    stacks = store.rows(
        f"""SELECT rank, frames, thread, state FROM rank_stacks
            WHERE cluster = $cluster AND job_id = $job AND dump_id IN ({chosen})
            QUALIFY row_number() OVER (
              PARTITION BY rank ORDER BY dumped_at DESC NULLS LAST, thread_no, dump_id) = 1
            ORDER BY rank""",
        of,
    )
    return (
        [_dump(row, entries.get(row[0], ())) for row in dumps],
        [RankStack(rank, tuple(Frame(**frame) for frame in json.loads(frames)), *rest)
         for rank, frames, *rest in stacks],
    )  # fmt: skip


def _entries(store: Store, dump_ids: list[str]) -> dict[str, tuple[Entry, ...]]:
    """Dump -> its operations in the order of the ring."""
    rows = store.rows(
        """SELECT dump_id, process_group, seq, operation, state, is_p2p, retired, record_id,
             input_sizes, output_sizes, input_dtypes, output_dtypes, created_ns, started_ns,
             completed_ns
           FROM collectives WHERE list_contains($dumps, dump_id) ORDER BY dump_id, place""",
        {"dumps": dump_ids},
    )
    known: dict[str | None, Any] = {None: None}
    found: dict[str, list[Entry]] = {}
    for dump_id, *row in rows:
        row[7:11] = [_tuple(text, known) for text in row[7:11]]
        found.setdefault(dump_id, []).append(Entry(*row))
    return {dump_id: tuple(held) for dump_id, held in found.items()}


def _tuple(text: str | None, known: dict[str | None, Any]) -> Any:
    """A JSON array as tuples; each text is read once."""
    if text not in known:
        held = json.loads(text or "[]")
        known[text] = tuple(tuple(one) if isinstance(one, list) else one for one in held)
    return known[text]


def _dump(row: tuple[Any, ...], entries: tuple[Entry, ...]) -> RankDump:
    _, rank, host, version, nccl_version, stated = row
    groups = json.loads(stated)
    return RankDump(
        rank,
        tuple(
            GroupConfig(
                each["name"],
                each["desc"],
                each["ranks"] and tuple(each["ranks"]),
                each.get("unread", 0),
            )
            for each in groups
        ),
        {
            each["name"]: GroupStatus(each["enqueued"], each["started"], each["completed"])
            for each in groups
            if "enqueued" in each
        },
        entries,
        host,
        version,
        nccl_version,
    )


def incident_of(store: Store, cluster: str, attempt_key: str) -> tuple[str, str | None] | None:
    """The incident that an attempt belongs to, and its cause; None where it has none."""
    rows = store.rows(
        """SELECT incident_id, cause FROM incident_members JOIN incidents USING (incident_id)
           WHERE kind = 'failure' AND key = $attempt AND superseded_by IS NULL
             AND incidents.cluster = $cluster
           ORDER BY incidents.start_at LIMIT 1""",
        {"attempt": attempt_key, "cluster": cluster},
    )
    return rows[0] if rows else None
