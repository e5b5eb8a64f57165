"""Rules of training runs: a divergence, a hang and a corruption suspect, for the owner of the run."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from app.actions import Options, ingest_files
from app.alerts.rule import Watch
from app.alerts.rules import corruption_suspect, hang, run_diverges
from app.answers.fleet.actions import rows
from app.ask import of_store
from data.filters import Selection
from data.publish import writer
from data.site_alerts import AlertSettings
from data.store import Store
from tests.app.cli.test_hangs import entry, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.alerts.rule import Found, Rule

START = datetime(2026, 1, 5, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
N_STEPS = 700
USERS = {"diverges": "ann", "recovered": "bob", "nan": "cem", "sound": "dee", "over": "eve",
         "again": "gus", "set_back": "hal"}  # fmt: skip


def losses(run: str) -> np.ndarray:
    """A step a minute; what goes wrong begins at step 400."""
    loss = 2 + np.random.default_rng(3).normal(0, 0.01, N_STEPS)
    if run in ("diverges", "over"):
        loss[400:] += 1.0
    if run == "recovered":
        loss[400:550] += 1.0
    if run == "nan":
        loss[400:] = np.nan
    if run == "again":  # attempts of 60 steps, each from the last checkpoint of the one before
        loss[400:] += 1.0
    if run == "set_back":  # the attempt after begins before it, and is sound
        loss[400:460] += 1.0
    return loss


def at_steps(run: str) -> np.ndarray:
    """The step of each row: attempts that begin anew go some steps back."""
    if run not in ("again", "set_back"):
        return np.arange(N_STEPS)
    back = {"again": (460, 520, 580, 640), "set_back": (460,)}[run]
    by = 10 if run == "again" else 90
    return np.arange(N_STEPS) - by * np.sum([np.arange(N_STEPS) >= row for row in back], axis=0)


def steps(run: str) -> pd.DataFrame:
    return pd.DataFrame({
        "cluster": "c", "job_id": run, "attempt_key": run, "run_id": run,
        "step": at_steps(run), "logged_at": [START + n * MINUTE for n in range(N_STEPS)],
        "loss": losses(run),
    })  # fmt: skip


def ranks(bad: int) -> pd.DataFrame:
    """Checksums of eight ranks, of which one differs from step 60 on."""
    return pd.DataFrame([
        {"cluster": "d", "job_id": "sums", "attempt_key": "sums", "run_id": "sums", "step": step,
         "rank": rank, "logged_at": START + step * MINUTE,
         "series": json.dumps({"param_hash": f"h{step + (rank == bad and step >= 60)}"})}
        for step in range(100) for rank in range(8)
    ])  # fmt: skip


def job(run: str, cluster: str = "c", end_at: datetime | None = None) -> dict[str, Any]:
    return {
        "cluster": cluster, "attempt_key": run, "job_id": run, "user": USERS.get(run, "fay"),
        "state": "RUNNING" if end_at is None else "COMPLETED", "n_gpus": 8, "n_nodes": 2,
        "node_list": "n[1,3]", "submit_at": START, "start_at": START, "end_at": end_at,
    }  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root = tmp_path_factory.mktemp("runs") / "store"
    over_at = START + N_STEPS * MINUTE
    jobs = [job(run, end_at=over_at if run == "over" else None) for run in USERS]
    metrics = pd.concat([*(steps(run) for run in USERS), ranks(6)])
    metrics["rank"] = metrics["rank"].astype("Int32")
    with writer(root) as building:
        building.load(
            {"jobs": pd.DataFrame([*jobs, job("sums", "d")]), "training_metrics": metrics}
        )
        building.connection.execute(  # of a frame NaN is what is not known
            "UPDATE training_metrics SET loss = 'nan' WHERE run_id = 'nan' AND step >= 400"
        )
        building.publish()
    with closing(Store.open(root)) as opened:
        yield opened


def found(
    rule: Rule, store: Store, cluster: str = "c", now: datetime = START + DAY, days: float = 90
) -> Found:
    watch = Watch(Selection(cluster), now - days * DAY, now, AlertSettings(), 0.1)
    return rule.find(of_store(store), watch)


def test_runs_beyond_recovering_are_told_to_their_owners(store: Store) -> None:
    told = {each.named["run"]: each for each in found(run_diverges.RULE, store).episodes}
    assert set(told) == {"diverges", "recovered", "nan", "over", "again"}
    assert {name: each.owner for name, each in told.items()} == {name: USERS[name] for name in told}
    one = told["diverges"]
    assert one.target == rows.target("run", "c", "diverges")
    assert (one.since_at, one.raised_at) == (START + 400 * MINUTE, START + 499 * MINUTE)
    assert one.ended_at is None
    assert one.sentence == (
        "Run diverges: divergence since step 400: its loss came to 3.03 from 2.00, not recovered "
        "by step 699 (300 rows)"
    )
    again = told["again"]
    assert (again.raised_at, again.ended_at) == (START + 499 * MINUTE, None)
    assert "nor by the restart after it" in again.sentence
    assert told["nan"].raised_at == START + 402 * MINUTE
    assert told["nan"].sentence.startswith("Run nan: NaN or infinity since step 400 in its loss")


def test_what_recovered_or_ended_stands_no_more(store: Store) -> None:
    told = {each.named["run"]: each for each in found(run_diverges.RULE, store).episodes}
    ended = told["recovered"].ended_at
    assert ended is not None
    assert START + 545 * MINUTE <= ended <= START + 560 * MINUTE
    assert told["over"].ended_at == START + N_STEPS * MINUTE
    later = found(run_diverges.RULE, store, now=START + 2 * DAY, days=1)
    assert {each.named["run"] for each in later.episodes} <= {"diverges", "nan", "again"}


def test_a_rank_that_differs_from_its_replicas_is_told_with_its_evidence(store: Store) -> None:
    (one,) = found(corruption_suspect.RULE, store, "d").episodes
    assert (one.since_at, one.raised_at) == (START + 60 * MINUTE, START + 60 * MINUTE)
    assert one.owner == "fay"
    assert one.sentence.startswith("Run sums: rank 6 may compute wrongly since step 60: it logs")
    assert one.named["runs_tab"] == "Corruption"


def test_where_nothing_was_logged_nothing_is_judged(store: Store) -> None:
    for rule, why in (
        (run_diverges.RULE, "no step of a training run is stored"),
        (corruption_suspect.RULE, "no run logs a checksum, a loss or a gradient norm of each rank"),
        (hang.RULE, "no dump of a rank is stored"),
    ):
        of = found(rule, store, "elsewhere")
        assert (of.episodes, of.blind) == ((), f"cannot be judged: {why}")
    assert found(corruption_suspect.RULE, store).blind is not None
    assert found(run_diverges.RULE, store, "d").blind == run_diverges.NOTHING_LOGGED


@pytest.mark.slow
def test_a_hang_is_told_until_its_attempt_has_ended(tmp_path: Path) -> None:
    done, waits = entry(1, "completed"), entry(2, "started")
    dumps = write(tmp_path / "dumps", {rank: [done] + [waits] * (rank != 2) for rank in range(4)})
    at = datetime(2026, 1, 5, 10, tzinfo=UTC)
    with writer(tmp_path / "store") as building:
        building.load({"jobs": pd.DataFrame([
            job("4711") | {"submit_at": at, "start_at": at, "end_at": at + timedelta(hours=2)}
        ])})  # fmt: skip
        building.publish()
    ingest_files(
        tmp_path / "store", "flight-recorder", [str(dumps)], Options(cluster="c", job_id="4711")
    )
    with closing(Store.open(tmp_path / "store")) as opened:
        (one,) = found(hang.RULE, opened, now=at + DAY).episodes
        assert found(hang.RULE, opened, now=at + 5 * DAY, days=1).episodes == ()
    assert one.sentence == (
        "Run 4711 hangs: Rank 2 on n1 (GPU 2) never joined nccl:all_reduce 2 of default_pg; 3 ranks "
        "wait for it (dumps of 4 ranks)"
    )
    assert one.ended_at == at + timedelta(hours=2)
    assert (one.owner, one.page) == ("fay", "runs")
