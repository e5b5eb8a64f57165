"""What did one run get out of its time, attempt by attempt?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.efficiency.ettr import in_hours
from analytics.efficiency.run_ettr import (
    WINDOW_S,
    RunEttr,
    ettr_over_time,
    expected_of_run,
    run_attempts,
    run_ettr,
    run_notes,
)
from analytics.efficiency.training_log import attempt_progress
from analytics.estimate import CONF_LEVEL
from app.answers.columns import columns
from app.answers.content import Answer, Chart, Number, Table, estimated
from app.answers.efficiency.ettr import in_words
from app.answers.failures.taxonomy import cause_titles
from app.words import numbers, terms
from app.words.cells import Column
from app.words.glossary import of_efficiency
from data.errors import DataError
from data.queries import efficiency

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.ask import Ask
    from data.store import Store

HOURS = ("waited", "ran", "startup", "checkpoint", "lost", "productive")
ATTEMPTS = (
    *columns("job_id", "attempt", "state", "cause", "domain", "node", "n_gpus",
             wide=("domain", "node", "n_gpus")),
    Column("waited_h", "Waited (h)", "number", none="unknown since when it waited"),
    Column("ran_h", "Ran (h)", "number"),
    Column("startup_h", "Start-up (h)", "number"),
    Column("checkpoint_h", "Checkpoints (h)", "number"),
    Column("lost_h", "Lost work (h)", "number"),
    Column("productive_h", "Productive (h)", "number"),
    Column("basis", "Measured by", help=of_efficiency.MEASURED_BY.definition),
    *columns("submit_at", "start_at", "end_at", "incident_id", "user", "account", "partition",
             "name", "cluster", hidden=("attempt_key",),
             wide=("submit_at", "start_at", "end_at", "incident_id", "user", "account",
                   "partition", "name", "cluster")),
)  # fmt: skip
INTERRUPTIONS = (
    *columns("job_id", "attempt", "state"),
    Column("title", "Cause", none="no evidence of a cause"),
    Column("lost_min", "Work lost (min)", "number"),
    *columns("incident_id", hidden=("cluster",)),
)


def measured(
    store: Store,
    run_id: str,
    *,
    cluster: str | None = None,
    window_s: float = WINDOW_S,
    conf_level: float = CONF_LEVEL,
) -> RunEttr:
    """ETTR of one run, up to each moment and in each window.

    Raises
    ------
    DataError
        Where no cluster has such a run, several have, or no attempt of it ran with GPUs.
    LedgerMissingError
        Where the ledger, which joins attempts to runs, is not built.
    """
    notes = efficiency.ledger_notes(store)
    name = _cluster_of(store, run_id, cluster)
    recorded = efficiency.attempts_of(store, name, run_id)
    started = recorded[recorded["start_at"].notna()].assign(run_id=run_id)
    progress = attempt_progress(efficiency.metrics_of(store, name, run_id), started)
    attempts = run_attempts(recorded, notes=notes, progress=progress)
    if not attempts["ran_s"].any():
        raise DataError(
            f"run {run_id}: no attempt of it ran with GPUs, so it has no ETTR: "
            "`faultline ettr` lists those that have"
        )
    return RunEttr(
        cluster=name,
        run_id=run_id,
        ettr=run_ettr(attempts, conf_level=conf_level),
        expected=expected_of_run(attempts, notes, conf_level=conf_level),
        attempts=attempts,
        over_time=ettr_over_time(attempts, window_s=window_s),
        notes=run_notes(attempts, notes),
    )


def answer(
    ask: Ask, run_id: str, cluster: str | None = None, *, conf_level: float = CONF_LEVEL
) -> Answer:
    """One run: when it waited, started, trained and lost work, and what interrupted it."""
    run = ask(measured, run_id, cluster=cluster, conf_level=conf_level)
    titles = ask(cause_titles)
    return Answer(
        sentence(run),
        (
            estimated(of_efficiency.RUN_ETTR, "ettr", run.ettr),
            estimated(terms.EXPECTED_ETTR, "ettr", run.expected),
            Number(of_efficiency.OVER_ELAPSED, numbers.decimals(run.elapsed_ratio),
                   exact=run.elapsed_ratio, unit="ratio"),
        ),
        (timeline(run, titles), interruptions(run, titles), attempts(run, titles)),
        run.notes,
        record=record(run),
        sheet=run.attempts,
        about=about(run),
    )  # fmt: skip


def sentence(run: RunEttr) -> str:
    """What did the run get out of its time?"""
    if run.ettr.value is None:
        return f"Run {run.run_id}: its ETTR is unknown."
    return (
        f"Run {run.run_id} trained {in_words(run.ettr, 'its')}, with "
        f"{numbers.counted(run.ettr.n, 'interruption')} in "
        f"{numbers.counted(len(run.attempts), 'attempt')}."
    )


def about(run: RunEttr) -> str:
    """What the run was: cluster, name, user, size."""
    last = run.attempts.iloc[-1]
    named = (last[column] for column in ("name", "user", "account", "partition"))
    measured_by = sorted({str(basis) for basis in run.attempts["basis"]})
    parts = [
        f"cluster {run.cluster}",
        *(text for text in named if isinstance(text, str) and text),
        numbers.counted(run.n_gpus, "GPU"),
        f"parts from {', '.join(measured_by).replace('_', ' ')}",
        "all attempts, whatever the period",
    ]
    return " · ".join(parts)


def timeline(run: RunEttr, titles: Mapping[str, str]) -> Chart:
    """Attempts and ETTR on one axis."""
    return Chart(
        "efficiency.run_timeline",
        "Where did the time of each attempt go, and what was the ETTR by then?",
        "ETTR divides productive time by the time the run waited and ran. Over all time since it "
        "first became eligible, pauses between submissions included, it is "
        f"{numbers.decimals(run.elapsed_ratio)}.",
        (run.attempts, run.over_time),
        options={"titles": titles},
        captioned=True,
        zoned=True,
        whole=True,
        rows=run.over_time.table(),
    )


def interruptions(run: RunEttr, titles: Mapping[str, str]) -> Table:
    """What ended attempts before their time, and about how much work that lost."""
    ended = run.interruptions
    rows = ended.assign(
        title=[titles.get(cause, cause) for cause in ended["cause"]],
        lost_min=ended["lost_s"] / 60,
    )
    return Table("interruptions", "Interruptions", INTERRUPTIONS, rows, "No attempt of it.")


def attempts(run: RunEttr, titles: Mapping[str, str]) -> Table:
    """All attempts, times in hours."""
    rows = in_hours(run.attempts, HOURS)[[column.key for column in ATTEMPTS]]
    named = rows["cause"].map(titles).fillna(rows["cause"])
    return Table("run_attempts", "Attempts", ATTEMPTS, rows.assign(cause=named))


def record(run: RunEttr) -> dict[str, Any]:
    """The JSON of the command; the ETTR at each breakpoint and moments between."""
    over_time = run.over_time
    curves = zip(
        over_time.at_s.tolist(),
        over_time.cumulative.tolist(),
        over_time.sliding.tolist(),
        over_time.elapsed.tolist(),
        strict=True,
    )
    return {
        "run_id": run.run_id,
        "cluster": run.cluster,
        "ettr": run.ettr,
        "expected": run.expected,
        "attempts": run.attempts,
        "window_s": over_time.window_s,
        "over_time": [
            {"at_s": at, "cumulative": whole, "sliding": window, "productive_over_elapsed": elapsed}
            for at, whole, window, elapsed in curves
        ],
        "notes": run.notes,
    }


def _cluster_of(store: Store, run_id: str, cluster: str | None) -> str:
    """The cluster of a run; refuses one that is not there, or that several clusters have."""
    clusters = efficiency.clusters_of(store, run_id)
    if cluster is None and len(clusters) > 1:
        raise DataError(f"run {run_id!r} is in {', '.join(clusters)}: choose one cluster")
    if clusters and (cluster is None or cluster in clusters):
        return cluster or clusters[0]
    near = [run for _, run in efficiency.run_of_job(store, run_id)]
    remedy = f"job {run_id} is part of run {near[0]}" if near else "`faultline ettr` lists runs"
    raise DataError(f"run {run_id!r} is not in the store: {remedy}")
