"""What was never collected limits what is said: on records that the demo cannot make."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from app.actions import Options, ingest_files
from app.answers.failures import incidents, summary
from app.answers.fleet import overview
from app.answers.reliability import mttf
from app.ask import of_store
from data.filters import MTTF_MIN_GPUS, Selection
from data.ingest.readers.schedulers.sacct_fields import PRESETS
from data.queries import detection
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.answers.content import Answer

BASE = datetime(2026, 1, 5, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
EVERYTHING = Selection()


@pytest.fixture
def rows(random_rows: Callable[[int], Any]) -> Any:
    """No rows yet; GPU nodes of 8."""
    return type(random_rows(0))(gpus_per_node={"gpu": 8})


@pytest.fixture
def ask_of(store_of: Callable[[Any], Store]) -> Callable[..., Answer]:
    """The answer of MTTF on rows."""

    def answer(rows: Any, selection: Selection = EVERYTHING) -> Answer:
        return mttf.answer(of_store(store_of(rows)), selection)

    return answer


def jobs(rows: Any, n_days: int, **values: Any) -> None:
    """One 8-GPU job a day that fails without a cause, another that completes."""
    for day in range(n_days):
        start_at = BASE + day * DAY
        ran = {"start_at": start_at, "end_at": start_at + 12 * HOUR}
        rows.job(f"f{day}", ("n0",), state="FAILED", **ran, **values)
        rows.job(f"c{day}", ("n1",), **ran, **values)


def checked(rows: Any, days: range, **values: Any) -> None:
    """A check that passes, on a node that runs nothing, once a day."""
    for day in days:
        rows.health_events.append(
            {"cluster": "gpu", "event_id": f"e{day}", "node": "n9", "severity": "info",
             "source": "health_check", "check_name": "ok",
             "observed_at": BASE + day * DAY + HOUR} | values
        )  # fmt: skip


def test_on_accounting_alone_no_failure_could_be_seen(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    for index in range(1000):
        rows.job(f"f{index}", state="FAILED", start_at=BASE, end_at=BASE + DAY)
    ask = of_store(store_of(rows))
    answer = mttf.answer(ask, EVERYTHING)
    found = answer.record
    assert (found["failures"], found["exposure_node_days"]) == (None, 1000.0)
    assert (found["detectable_exposure_node_days"], found["unexplained_failures"]) == (0.0, 1000)
    rate = found["rate_per_1000_node_days"]
    assert (rate.value, rate.lower, rate.n) == (None, 0.0, 0)
    assert rate.upper == found["rate_if_unexplained_count"].upper > 1000.0
    assert found["rate_if_unexplained_count"].value == 1000.0
    assert found["projection"][0]["mttf_hours"].value is None
    assert found["mttf_hours"].lower == pytest.approx(24_000.0 / rate.upper)
    head = overview.answer(ask, EVERYTHING)
    assert head.sentence.startswith(
        "Cannot be judged: no infrastructure failure could be seen, and 1,000 failures are "
        "unexplained: at most "
    )
    assert answer.sentence.endswith(": no failure could be seen.")
    assert found["reason"].startswith(
        "cannot be judged: no failure could be seen, as no kernel log"
    )
    for notes in (answer.notes, head.notes):
        (note,) = (note for note in notes if note.startswith("Accounting alone"))
        assert "faultline ingest kernel-log" in note


def test_failures_and_incidents_say_what_was_not_collected_and_nothing_of_a_rate(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    jobs(rows, 80)
    rows.job("again", state="NODE_FAIL", attempt=2, restarts=2, start_at=BASE, end_at=BASE + HOUR)
    checked(rows, range(40, 80))
    ask = of_store(store_of(rows))
    others = (
        summary.answer(ask, EVERYTHING),
        incidents.answer(ask, EVERYTHING, incidents.Kind()),
    )
    for answer in others:
        seen, requeued = answer.notes
        assert answer.record["notes"] == answer.notes
        assert seen.startswith("Failures could be seen during 40.0 of 80.0 node-days")
        assert "40 of 80 unexplained failures fell then. `faultline ingest" in seen
        assert requeued in mttf.answer(ask, EVERYTHING).notes
    (listed, _) = incidents.listing(
        ask, EVERYTHING, incidents.Kind(), first="latest", limit=5
    ).notes
    assert listed == seen


def test_where_no_attempt_failed_accounting_alone_knows_a_bound_and_no_rate_of_zero(
    rows: Any, ask_of: Callable[..., Answer]
) -> None:
    for index in range(10):
        rows.job(f"c{index}", start_at=BASE, end_at=BASE + DAY)
    rate = ask_of(rows).record["rate_per_1000_node_days"]
    assert (rate.value, rate.lower) == (None, 0.0)
    assert rate.upper == pytest.approx(299.57, abs=0.01)


def test_lost_nodes_on_accounting_alone_are_the_least_and_the_unexplained_the_most(
    rows: Any, ask_of: Callable[..., Answer]
) -> None:
    jobs(rows, 40)
    for index in range(3):
        rows.job(f"n{index}", state="NODE_FAIL", start_at=BASE, end_at=BASE + 12 * HOUR)
    answer = ask_of(rows)
    rate, most = (answer.record[name] for name in
                  ("rate_per_1000_node_days", "rate_if_unexplained_count"))  # fmt: skip
    assert rate.value == pytest.approx(3000 / 41.5)
    assert most.value == pytest.approx(43_000 / 41.5)
    assert rate.lower < rate.value < most.value < rate.upper == most.upper
    assert answer.record["rate_given_over"] == "range"


def test_checks_of_the_second_half_say_the_rate_of_the_second_half(
    rows: Any, ask_of: Callable[..., Answer]
) -> None:
    jobs(rows, 80)
    checked(rows, range(40, 80))
    for day in range(40, 80, 4):  # hardware ended these, and the check says so
        at = BASE + day * DAY + 12 * HOUR
        rows.health_events.append(
            {"cluster": "gpu", "event_id": f"x{day}", "node": "n0", "severity": "critical",
             "source": "kernel", "check_name": "xid", "xid": 79, "observed_at": at}
        )  # fmt: skip
    answer = ask_of(rows)
    found = answer.record
    assert (found["failures"], found["exposure_node_days"]) == (10, 80.0)
    assert found["detectable_exposure_node_days"] == 40.0
    assert found["unexplained_failures"] == 70
    assert found["rate_given_over"] == "detectable"
    assert found["rate_per_1000_node_days"].value == pytest.approx(1000 * 10 / 40.0)
    (note,) = (note for note in answer.notes if note.startswith("Failures could be seen"))
    assert "during 40.0 of 80.0 node-days" in note
    assert "40 of 70 unexplained failures fell then" in note


def test_weeks_in_which_nothing_could_be_seen_are_of_unknown_rate(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    from app.answers.reliability import rate_by_group

    jobs(rows, 28)
    checked(rows, range(14, 28))
    weeks = rate_by_group.rates(store_of(rows), EVERYTHING, "week")
    assert [week.estimate.rate.value for week in weeks] == [None, None, 0.0, 0.0]
    assert all(week.estimate.rate.upper > 0 for week in weeks)


def test_a_failed_attempt_that_its_user_ended_or_whose_cause_is_known_is_not_unexplained(
    rows: Any, ask_of: Callable[..., Answer]
) -> None:
    ran = {"start_at": BASE, "end_at": BASE + DAY}
    rows.job("unexplained", state="FAILED", **ran)
    rows.job("cancelled", state="CANCELLED", flags="REQUEUE", **ran)
    rows.job("too much memory", state="OUT_OF_MEMORY", **ran)
    rows.job("lost", state="NODE_FAIL", **ran)
    rows.job("small", state="FAILED", n_gpus=1, **ran)
    assert ask_of(rows).record["unexplained_failures"] == 2
    large = Selection(min_gpus=8, by_size_min_gpus=8)
    assert ask_of(rows, large).record["unexplained_failures"] == 1


def test_a_year_of_nothing_is_neither_a_failure_nor_health(
    rows: Any, ask_of: Callable[..., Answer]
) -> None:
    jobs(rows, 20)
    checked(rows, range(20))
    rows.job("a year later", start_at=BASE + 385 * DAY, end_at=BASE + 386 * DAY)
    year = Selection(from_at=BASE + 19 * DAY, to_at=BASE + 384 * DAY)
    nothing = ask_of(rows, Selection(from_at=BASE + 30 * DAY, to_at=BASE + 380 * DAY))
    assert nothing.record["rate_per_1000_node_days"].value is None
    assert nothing.record["detectable_exposure_node_days"] == 0.0
    assert nothing.sentence.startswith(
        "How often the fleet fails cannot be judged: no failure could"
    )
    (note,) = (n for n in ask_of(rows, year).notes if n.startswith("No record of a job of gpu"))
    assert "on 364 days" in note
    assert "sacct -a -P --duplicates" in note


def test_a_weekend_without_jobs_is_no_gap(rows: Any, ask_of: Callable[..., Answer]) -> None:
    for day in (day for day in range(60) if day % 7 < 5):
        rows.job(f"c{day}", start_at=BASE + day * DAY, end_at=BASE + day * DAY + HOUR)
    assert not any(note.startswith("No record of a job") for note in ask_of(rows).notes)


def test_restarted_attempts_without_predecessors_ask_for_duplicates(
    rows: Any, ask_of: Callable[..., Answer]
) -> None:
    ran = {"start_at": BASE, "end_at": BASE + DAY}
    rows.job("7a", job_id="7", restarts=0, state="REQUEUED", **ran)
    rows.job("7b", job_id="7", restarts=1, start_at=BASE + DAY, end_at=BASE + 2 * DAY)
    complete = ask_of(rows).notes
    assert not any("requeued" in note for note in complete)
    rows.job("8b", job_id="8", restarts=2, **ran)
    (note,) = (note for note in ask_of(rows).notes if "requeued" in note)
    assert note.startswith("Of 2 attempts that had been requeued 1 ")
    assert "--duplicates" in note


def test_a_cluster_without_gpus_is_counted_in_node_hours_and_says_so(
    rows: Any, ask_of: Callable[..., Answer]
) -> None:
    rows.gpus_per_node = {}
    rows.job("a", cluster="cpu", n_gpus=0, n_nodes=4, start_at=BASE, end_at=BASE + DAY)
    answer = ask_of(rows, Selection(min_gpus=MTTF_MIN_GPUS))
    assert answer.record["exposure_node_days"] == 4.0
    assert answer.record["clusters_counted_in_node_hours"] == ("cpu",)
    assert "96.0 node-hours" in answer.sentence
    (number,) = (each for each in answer.numbers if each.unit == "node-hours")
    assert (number.term.label, number.exact) == ("Running time (node-hours)", 96.0)
    assert any(note.startswith("No job of cpu states GPUs") for note in answer.notes)


@pytest.mark.slow
def test_where_no_large_job_ran_all_sizes_count_and_the_answer_says_so(
    rows: Any, ask_of: Callable[..., Answer]
) -> None:
    checked(rows, range(2))
    rows.job("small", state="NODE_FAIL", start_at=BASE, end_at=BASE + DAY)
    default = Selection(min_gpus=MTTF_MIN_GPUS)
    answer = ask_of(rows, default)
    assert (answer.record["min_gpus"], answer.record["exposure_node_days"]) == (0, 1.0)
    assert any("No job of 129 GPUs or more ran" in note for note in answer.notes)
    rows.job("large", n_gpus=256, start_at=BASE, end_at=BASE + DAY)
    answer = ask_of(rows, default)
    assert (answer.record["min_gpus"], answer.record["exposure_node_days"]) == (129, 32.0)
    assert any("jobs of 129 GPUs and more, as the paper" in note for note in answer.notes)
    labels = [number.term.label for number in answer.numbers]
    assert "Failures per 1,000 node-days, 129+ GPUs" in labels
    assert ask_of(rows).record["min_gpus"] == 0


def test_whose_export_holds_every_attempt_is_told_by_its_columns_not_its_path(
    tmp_path: Path,
) -> None:
    columns = PRESETS["xdmod"]
    of = {
        "jobid": "1", "jobidraw": "1", "cluster": "a", "state": "COMPLETED", "nnodes": "1",
        "submit": "2026-01-05T00:00:00", "start": "2026-01-05T00:00:00",
        "end": "2026-01-06T00:00:00", "alloctres": "gres/gpu=8", "nodelist": "n1",
    }  # fmt: skip
    line = "|".join(of.get(name, "") for name in columns) + "\n"
    path = tmp_path / "xdmod.txt"
    for header, options, unknown in (
        ("", Options(columns=columns, timezone="UTC"), ()),
        ("|".join(columns) + "\n", Options(timezone="UTC"), ("a",)),
    ):
        path.write_text(header + line)
        root = tmp_path / f"store-{bool(header)}"
        ingest_files(root, "sacct", [str(path)], options)
        with closing(Store.open(root)) as store:
            assert detection.restarts_unknown(store, Selection()) == unknown
