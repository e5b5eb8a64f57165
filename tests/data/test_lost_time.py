"""What each attempt lost: together it is the ledger, and of an incident it is its cost."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, annotate, build_ledger, ingest_files
from app.answers.failures import incident
from app.answers.failures.incidents import Kind, rows
from app.ask import EVERYTHING
from data.definitions import INFRASTRUCTURE
from data.definitions import UNEXPLAINED as NOT_EXPLAINED
from data.filters import Selection
from data.queries import efficiency
from data.queries.exposure import in_the_rate
from data.said import FAILED_ATTEMPTS
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from analytics.failures.incidents.incident import Incident

COUNTS = ("gpu_seconds", "lower_gpu_seconds", "upper_gpu_seconds", "shared_gpu_seconds",
          "variance_gpu_s2")  # fmt: skip
HEADER = "JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList|FailedNode\n"
LOOP = "".join(
    f"7|c|NODE_FAIL|2026-01-05T0{2 * turn}:00:00|2026-01-05T0{2 * turn}:00:00|"
    f"2026-01-05T0{2 * turn + 1}:30:00|2|gres/gpu=16|n[1-2]|n2\n"
    for turn in range(3)
)
UNEXPLAINED = (
    "8|c|FAILED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T05:30:00|1|gres/gpu=8|n2|\n"
)
CYCLE_S = (3600**2 / 2 + 3600 * 60) / 3660
"""What an interrupted attempt of several nodes loses where nothing is known of habits."""


def test_all_attempts_together_lost_what_the_ledger_says(demo_store: Path) -> None:
    sums = ", ".join(f"sum({name})" for name in COUNTS)
    with closing(Store.open(demo_store)) as store:
        lost = store.rows(
            f"SELECT bucket, cause, count(*), {sums} FROM lost_time WHERE bucket IS NOT NULL "
            "GROUP BY ALL ORDER BY ALL"
        )
        ledger = store.rows(
            f"SELECT bucket, cause, sum(n_attempts), {sums} FROM gpu_time WHERE bucket IN "
            "('lost_work', 'lost_work_preempted', 'other') GROUP BY ALL ORDER BY ALL"
        )
    assert {row[0] for row in lost} == {"lost_work", "lost_work_preempted", "other"}
    for mine, its in zip(lost, ledger, strict=True):
        assert mine[:6] == its[:6]
        assert mine[6:] == pytest.approx(its[6:])


def _store(folder: Path, records: str) -> Path:
    (folder / "sacct.txt").write_text(HEADER + records)
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options())
    return folder / "store"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """One job lost its node three times in a row; another failed there, nobody knows why."""
    return _store(tmp_path, LOOP + UNEXPLAINED)


def _largest(root: Path) -> Incident:
    with closing(Store.open(root)) as store:
        return incident.incident(store, "largest")


def test_an_incident_lost_what_its_attempts_lost_and_until_then_it_is_not_computed(
    root: Path,
) -> None:
    before = _largest(root)
    assert (before.lost, incident.loss(before).value) == (None, "not computed yet")
    build_ledger(root)
    after = _largest(root)
    assert after.row["n_failures"] == 3
    assert after.lost is not None
    assert after.lost.value == pytest.approx(3 * 16 * CYCLE_S / 3600, rel=1e-3)
    assert after.lost.value == pytest.approx(float(after.row["lost_gpu_hours"]))
    assert (after.lost.n, after.lost.assumed) == (3, True)
    with closing(Store.open(root)) as store:
        listed = rows(store, Selection(), Kind(), limit=EVERYTHING)
        losses = efficiency.lost_attempts(store, Selection())
    assert listed["lost_gpu_hours"].sum() == pytest.approx(losses["lost_gpu_hours"].sum())


def test_what_a_failure_of_unknown_cause_lost_is_not_known(root: Path) -> None:
    build_ledger(root)
    name = str(_largest(root).row["incident_id"])
    with closing(Store.open(root)) as store:
        ((key,),) = store.rows("SELECT attempt_key FROM jobs WHERE job_id = '8'")
        ((may_be,),) = store.rows("SELECT gpu_seconds FROM lost_time WHERE bucket IS NULL")
        assert 0 < may_be <= 8 * 3600
        unexplained = efficiency.unexplained_losses(store, Selection())
    assert unexplained["gpu_seconds"].tolist() == [may_be]
    annotate(root, f"attempt:c/{key}", "incident", name)
    build_ledger(root)
    one = _largest(root)
    assert (one.row["n_failures"], one.row["n_unmeasured"]) == (4, 1)
    assert one.lost is not None
    assert one.lost.n == 3
    shown = incident.loss(one)
    assert shown.value.endswith(" and more")
    assert shown.says == f"{shown.interval}, and 1 attempt of unknown loss"
    assert "1 attempt of unknown loss" in shown.basis


@pytest.mark.parametrize(
    "selection",
    [
        Selection(),
        Selection(min_gpus=64),
        Selection(account="none"),
        Selection(
            from_at=datetime(2026, 2, 3, tzinfo=UTC),
            to_at=datetime(2026, 2, 20, tzinfo=UTC),
            partition="learn",
        ),
    ],
)
def test_unexplained_failures_may_have_lost_what_those_that_verdicts_tell_did(
    demo_store: Path, selection: Selection
) -> None:
    """Of the verdicts looked up attempt by attempt, as of the table alone."""
    with closing(Store.open(demo_store)) as store:
        ((n, seconds, most),) = store.rows(
            f"""WITH {FAILED_ATTEMPTS}
                SELECT count(*), coalesce(sum(gpu_seconds), 0), coalesce(sum(upper_gpu_seconds), 0)
                FROM failed_attempt JOIN clusters USING (cluster) LEFT JOIN (
                  SELECT cluster, attempt_key, gpu_seconds, upper_gpu_seconds FROM lost_time)
                  USING (cluster, attempt_key)
                WHERE {NOT_EXPLAINED} AND NOT {INFRASTRUCTURE} AND basis = 'gpu_time'
                  AND {in_the_rate(selection)}""",
            selection.parameters,
        )
        found = efficiency.unexplained_losses(store, selection)
    told = [found[name].tolist() for name in ("n_attempts", "gpu_seconds", "upper_gpu_seconds")]
    assert told == [[n], [seconds], [most]]
    assert n or selection != Selection()


@pytest.mark.slow
def test_an_attempt_without_gpus_has_a_loss_that_nobody_knows(tmp_path: Path) -> None:
    lost = LOOP.replace("gres/gpu=16", "").splitlines(keepends=True)[0]
    root = _store(tmp_path, lost + UNEXPLAINED)
    build_ledger(root)
    one = _largest(root)
    assert one.lost is not None
    assert (one.lost.value, incident.loss(one).value) == (None, "unknown")
