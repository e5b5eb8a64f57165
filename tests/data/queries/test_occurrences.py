"""How often a cause struck: what counts once, and what is looked at for mass failures."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analytics.failures.mass_failures import mass_failures
from app.answers.fleet import changed, overview, risen
from app.answers.fleet.actions import listed
from app.answers.fleet.actions.rows import of_mass_failures
from app.ask import of_store
from data.filters import Selection
from data.queries import occurrences

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.store import Store

BASE = datetime(2026, 1, 5, tzinfo=UTC)
BASE_DAY = timedelta(days=1)


@pytest.fixture
def crowded(rows_of: Callable[..., Any], store_of: Callable[[Any], Store]) -> Store:
    """Four weeks: a node lost twice in the first half and daily in the second; one user with 60
    failures within two minutes, another with one a day."""
    rows = rows_of(gpus_per_node={"gpu": 8})
    for day in range(28):
        at = BASE + day * BASE_DAY
        rows.job(f"long{day}", (f"n{day}",), start_at=at, end_at=at + BASE_DAY, n_gpus=800)
        rows.job(f"own{day}", (f"m{day}",), user="ann", state="FAILED", start_at=at,
                 end_at=at + BASE_DAY / 4)  # fmt: skip
        if day >= 14 or day in (3, 9):
            rows.job(f"lost{day}", (f"k{day}",), user="bob", state="NODE_FAIL",
                     failed_node=f"k{day}", start_at=at, end_at=at + BASE_DAY / 2)  # fmt: skip
    for n in range(60):
        start = BASE + 20.5 * BASE_DAY + timedelta(seconds=2 * n)
        rows.job(f"crowd{n}", user="eve", state="FAILED", start_at=start,
                 end_at=start + timedelta(minutes=1))  # fmt: skip
    return store_of(rows)


def test_a_crowd_of_one_user_counts_once_and_a_node_lost_each_day_rose(crowded: Store) -> None:
    frame = occurrences.occurrences(crowded, Selection())
    unknown = frame[frame["cause"] == "unknown"]
    assert (unknown["n"].sum(), unknown["failures"].sum()) == (29, 88)
    found = {each.cause: each for each in risen.compared(crowded, Selection()).causes}
    assert (found["node_lost"].now, found["node_lost"].before) == (14, 2)
    assert found["node_lost"].risen
    assert (found["unknown"].now, found["unknown"].before, found["unknown"].risen) == (
        15,
        14,
        False,
    )


def test_the_period_before_is_compared_where_something_ran_in_it(crowded: Store) -> None:
    later = Selection(from_at=BASE + 14 * BASE_DAY, to_at=BASE + 28 * BASE_DAY)
    compared = risen.compared(crowded, later)
    assert (compared.halves, compared.split_at) == (False, later.from_at)
    assert compared.from_at == BASE
    earlier = Selection(from_at=BASE - BASE_DAY, to_at=BASE + 14 * BASE_DAY)
    assert risen.compared(crowded, earlier).halves, "nothing ran before"
    assert risen.compared(crowded, Selection(to_at=BASE)).causes == ()


def test_the_crowd_is_found_and_said_in_words(crowded: Store) -> None:
    rows = occurrences.crowded_failures(crowded, Selection())
    assert set(rows["user"]) == {"eve"}, "of all others no mass failure can be"
    (found,) = mass_failures(rows)
    assert (found.by, found.name, found.failures) == ("user", "eve", 60)
    assert found.held_gpu_hours == pytest.approx(60 * 8 / 60)
    (row,) = of_mass_failures(of_store(crowded), Selection(), "UTC")
    assert row.what == "60 failures of user eve within 2 minutes"
    assert (row.gpu_hours, row.stake_basis) == (None, "not known; they held 8.00 GPU-hours")
    assert row.named["from"] == "2026-01-25T11:51"


ALL = """SELECT cluster, failed_at, "user", failures.node, cause, job_id,
      CAST(n_gpus * epoch(end_at - start_at) AS DOUBLE) AS held_gpu_seconds
    FROM failures JOIN jobs USING (cluster, attempt_key) ANTI JOIN (
      SELECT cluster, key AS attempt_key FROM incident_members JOIN incidents USING (incident_id)
    ) USING (cluster, attempt_key) ORDER BY failed_at, cluster, attempt_key"""


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_out_as_never_crowded_is_no_mass_failure(
    rows_of: Callable[..., Any], store_of: Callable[[Any], Store], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = rows_of(gpus_per_node={"gpu": 8})
    begins = rng.uniform(0, 400_000, 12)
    for n in range(700):
        # Of twelve crowds each is of one user or, without one, of one cause; the rest is anywhere.
        crowd = int(rng.integers(24))
        of_crowd = crowd < 12
        at = rng.normal(begins[crowd], 60 * (1 + crowd % 4)) if of_crowd else rng.uniform(0, 4e5)
        who = crowd if of_crowd else int(rng.integers(12))
        start = BASE + timedelta(seconds=float(at))
        rows.job(f"j{n}", (f"n{who % 5}",), user=f"user{who % 7}" if who % 3 else None,
                 state="FAILED" if who % 3 else "OUT_OF_MEMORY", start_at=start,
                 end_at=start + timedelta(seconds=30))  # fmt: skip
    store = store_of(rows)
    found = mass_failures(occurrences.crowded_failures(store, Selection()))
    assert found == mass_failures(store.frame(ALL))
    assert {each.by for each in found} >= {"user", "cause"}


def test_causes_that_could_not_be_seen_before_are_said_to_be_left_out(crowded: Store) -> None:
    later = Selection(from_at=BASE + 14 * BASE_DAY, to_at=BASE + 28 * BASE_DAY)
    of_all = risen.compared(crowded, later)
    few_logs = replace(of_all, not_alike=("job_logs",))
    said = (
        "Causes that only job_logs show are left out: before, these cover less than half as large a "
        "share of the days."
    )
    assert risen.note(few_logs).endswith(said)
    assert "left out" not in risen.note(of_all)

    def ask(question: Any, *arguments: Any, **options: Any) -> Any:
        return few_logs if question is risen.compared else question(crowded, *arguments, **options)

    assert said in changed.answer(ask, later).notes


def test_two_days_of_two_jobs_are_compared_without_a_word_too_much(
    rows_of: Callable[..., Any], store_of: Callable[[Any], Store]
) -> None:
    rows = rows_of(gpus_per_node={"gpu": 8})
    rows.job("1", ("n1",), start_at=BASE, end_at=BASE + BASE_DAY)
    rows.job("2", ("n1",), state="NODE_FAIL", start_at=BASE + BASE_DAY, end_at=BASE + 2 * BASE_DAY)
    store = store_of(rows)
    end = BASE + 2 * BASE_DAY + timedelta(hours=1)
    for selection in (Selection(), Selection(from_at=end - 28 * BASE_DAY, to_at=end)):
        found = risen.compared(store, selection)
        assert found.halves
        assert found.risen == ()
    before = Selection(from_at=BASE - 28 * BASE_DAY, to_at=BASE)
    assert risen.compared(store, before) == risen.NOTHING


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["all of jobs", "jobs alone", "failures of nodes alone"])
def test_any_records_have_a_verdict_and_a_list(
    kept: str,
    random_rows: Callable[[int], Any],
    rows_of: Callable[..., Any],
    store_of: Callable[[Any], Store],
) -> None:
    rows = random_rows(5)
    if kept == "all of jobs":
        rows.node_failures = []
    if kept == "jobs alone":
        rows = rows_of(gpus_per_node=rows.gpus_per_node, jobs=rows.jobs, job_nodes=rows.job_nodes)
    elif kept == "failures of nodes alone":
        rows = rows_of(node_failures=rows.node_failures)
    ask = of_store(store_of(rows))
    for selection in (Selection(), Selection(to_at=BASE + 900 * BASE_DAY, from_at=BASE + BASE_DAY)):
        said = overview.answer(ask, selection).sentence
        assert (
            said.partition(":")[0] in ("Well", "Watch", "Act", "Not clear yet", "Unknown")
            or "unknown" in said
        )
        found = listed.answer(ask, selection, BASE + 40 * BASE_DAY)
        kinds = {row["kind"] for row in found.record["actions"]}
        assert ("source" in kinds) == (kept != "failures of nodes alone")
