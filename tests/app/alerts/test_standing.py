"""What stands is the same episode at each look, ten minutes or a day apart: one alert, not several."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from app.actions import Options, ingest_files
from app.alerts.rule import Watch
from app.alerts.rules import faulty_link, hang, mass_failure, run_diverges
from app.ask import of_store
from data.filters import Selection
from data.publish import writer
from data.site_alerts import AlertSettings
from data.store import Store
from tests.app.cli.test_hangs import entry, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from app.alerts.rule import Episode, Rule

START = datetime(2026, 1, 5, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
BACK = 30 * DAY
"""How far back a look reaches, however short ago the last one was."""


def looks(
    rule: Rule, store: Store, times: Iterable[datetime], back: timedelta = BACK
) -> list[tuple[Episode, ...]]:
    """What a rule tells by each of some times."""
    ask = of_store(store)
    return [
        rule.find(ask, Watch(Selection("c"), now - back, now, AlertSettings(), 0.1)).episodes
        for now in times
    ]


def job(job_id: str, start_at: datetime, end_at: datetime | None, **more: Any) -> dict[str, Any]:
    return {
        "cluster": "c", "attempt_key": job_id, "job_id": job_id, "user": "ann",
        "state": "RUNNING" if end_at is None else "COMPLETED", "n_gpus": 8, "n_nodes": 2,
        "node_list": "n[1,3]", "submit_at": start_at, "start_at": start_at, "end_at": end_at,
    } | more  # fmt: skip


def steps(run: str, n: int, bad_from: int | None = None) -> pd.DataFrame:
    """A step a minute."""
    loss = 2 + np.random.default_rng(3).normal(0, 0.01, n)
    loss[n if bad_from is None else bad_from :] += 1.0
    return pd.DataFrame({
        "cluster": "c", "job_id": run, "attempt_key": run, "run_id": run, "step": np.arange(n),
        "logged_at": [START + at * MINUTE for at in range(n)], "loss": loss,
    })  # fmt: skip


@contextmanager
def opened(root: Path, **tables: list[dict[str, Any]] | pd.DataFrame) -> Iterator[Store]:
    with writer(root) as building:
        building.load({name: pd.DataFrame(rows) for name, rows in tables.items()})
        building.publish()
    with closing(Store.open(root)) as store:
        yield store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A run that diverged and logs no more, one that goes on, errors of a link, a mass failure."""
    crash = START + 23 * HOUR + 55 * MINUTE
    failed = [
        job(f"m{n}", crash - HOUR, crash + n * 30 * timedelta(seconds=1), user="eve",
            state="FAILED", node_list="n9", n_nodes=1)
        for n in range(40)
    ]  # fmt: skip
    quiet = [job(f"q{day}", START + day * DAY, START + day * DAY + HOUR) for day in range(5)]
    errors = [
        {"cluster": "c", "event_id": str(n), "node": "n7", "source": "kernel", "xid": 74,
         "check_name": "xid", "severity": "critical", "observed_at": START + n * 20 * HOUR}
        for n in range(5)
    ]  # fmt: skip
    running = [job(run, START, None) for run in ("stops", "goes-on")]
    with opened(
        tmp_path_factory.mktemp("standing") / "store",
        jobs=[*failed, *quiet, *running],
        health_events=errors,
        training_metrics=pd.concat([steps("stops", 560, 400), steps("goes-on", 700)]),
    ) as held:
        yield held


def test_a_diverged_run_that_logs_no_more_stands_while_another_goes_on(store: Store) -> None:
    told = looks(
        run_diverges.RULE, store, [START + n * MINUTE for n in (550, 570, 580, 700, 1_440)]
    )
    for (one,) in told:
        assert (one.named["run"], one.since_at) == ("stops", START + 400 * MINUTE)
        assert one.ended_at is None


def test_errors_of_a_link_every_twenty_hours_are_one(store: Store) -> None:
    told = looks(faulty_link.RULE, store, [START + n * HOUR for n in (21, 39, 41, 63, 79, 103)])
    for (one,) in told:
        assert (one.since_at, one.raised_at) == (START, START + 20 * HOUR)
        assert one.ended_at is None


@pytest.mark.parametrize("back", [10 * MINUTE, BACK])
def test_a_mass_failure_over_midnight_is_one_until_a_day_later(
    store: Store, back: timedelta
) -> None:
    """It keeps its name, however much of it is older than a day."""
    crash = START + 23 * HOUR + 55 * MINUTE
    over = crash + 39 * 30 * timedelta(seconds=1) + DAY
    before = looks(
        mass_failure.RULE, store, [over - hours * HOUR for hours in (23, 12, 0.2, 0.01)], back
    )
    assert len({(one.target, one.since_at, one.sentence) for (one,) in before}) == 1
    assert all(one.ended_at is None for (one,) in before)
    after, later = looks(mass_failure.RULE, store, [over + 5 * MINUTE, over + 2 * HOUR], back)
    assert {(one.target, one.ended_at) for one in after} == {(before[0][0].target, over)}
    assert len(later) == (back == BACK)


@pytest.mark.slow
def test_a_hang_that_was_dumped_an_hour_ago_stands(tmp_path: Path) -> None:
    at = START + 10 * HOUR
    done, waits = entry(1, "completed"), entry(2, "started")
    dumps = write(tmp_path / "dumps", {rank: [done] + [waits] * (rank != 2) for rank in range(4)})
    with opened(tmp_path / "store", jobs=[job("4711", at, None)]):
        pass
    ingest_files(
        tmp_path / "store", "flight-recorder", [str(dumps)], Options(cluster="c", job_id="4711")
    )
    with closing(Store.open(tmp_path / "store")) as store:
        ((first,),) = looks(hang.RULE, store, [at + DAY])
        times = [first.raised_at + HOUR + n * 10 * MINUTE for n in range(3)]
        assert looks(hang.RULE, store, times) == [(first,)] * 3
    assert first.ended_at is None
