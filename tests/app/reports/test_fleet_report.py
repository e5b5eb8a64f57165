"""The fleet report says what the numbers support, and the same everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics.estimate import Estimate, unknown
from analytics.frames import CountedFailures
from analytics.reliability.failure_rate import RateEstimate
from analytics.reliability.mttf import MttfReport
from app.answers.efficiency import ledger
from app.answers.failures import incidents, verdicts
from app.answers.fleet import overview
from app.answers.reliability import mttf
from app.ask import of_store
from app.reports import kinds
from app.reports.reliability import NODES
from app.words import numbers
from data.filters import Selection
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from app.reports.report import Report

EVERYTHING = Selection()
ROOT = Path(__file__).resolve().parents[3]


def _report(store: Path, selection: Selection = EVERYTHING, **options: object) -> Report:
    with closing(Store.open(store)) as opened:
        return kinds.report(opened, "fleet", selection, **options)


@pytest.mark.slow
def test_its_numbers_are_those_of_the_questions(
    demo_store: Path, reports: dict[str, Report]
) -> None:
    report = reports["fleet"]
    with closing(Store.open(demo_store)) as store:
        measured = mttf.measured(store, Selection())
        failures = verdicts.summarised(store, Selection())
        counted = incidents.summarised(store, Selection(), incidents.Kind())
        lost = ledger.measured(store, Selection()).bucket("lost_work")
    shown = {headline.term.label: headline for headline in report.headlines}
    rate = shown["Failures per 1,000 node-days"]
    assert rate.exact == measured.rate.rate_per_1000_node_days
    assert rate.value == numbers.number(measured.rate.rate_per_1000_node_days.value)
    assert shown["Cause unknown"].exact == failures.unknown_ratio
    assert shown["Lost: failures, GPU-h"].exact == lost.gpu_hours
    assert counted.ledger_gpu_hours == pytest.approx(lost.gpu_hours.value)
    tables = {table.key: table for table in report.tables}
    counts = [column.title for column in tables["causes"].columns].index("Failed attempts")
    assert sum(row[counts] for row in tables["causes"].rows) == failures.n_failed
    assert sum(row[1] for row in tables["rate_by_week"].rows) == measured.rate.failures
    losses = [row[4] for row in tables["incidents"].values]
    assert losses == sorted(losses, reverse=True)


def test_it_tells_the_mttf_of_a_job_as_overview_and_the_page_of_mttf_do(
    demo_store: Path, reports: dict[str, Report]
) -> None:
    with closing(Store.open(demo_store)) as store:
        ask = of_store(store)
        page = mttf.answer(ask, Selection())
        (shown,) = {
            (number.term.label, number.value, number.basis)
            for number in (
                page.numbers[0],
                overview.answer(ask, Selection()).numbers[1],
                *(each for each in reports["fleet"].headlines if "MTTF, " in each.term.label),
            )
        }
        largest = page.record["by_size"][-1]["mttf_hours"]
    assert largest.n < page.record["job_mttf_hours"].n, "no class of its own decides"
    assert shown[2].endswith(f"n = {page.record['job_mttf_hours'].n:,}; all sizes")
    assert reports["fleet"].answer.endswith(page.sentence[1:])


def test_every_headline_and_domain_is_defined(reports: dict[str, Report]) -> None:
    for report in reports.values():
        defined = dict(report.definitions)
        assert all(headline.term.label in defined for headline in report.headlines)
        assert all(defined.values())


def test_it_is_about_the_period_asked_for(demo_store: Path) -> None:
    period = Selection(
        from_at=datetime(2025, 12, 8, tzinfo=UTC), to_at=datetime(2025, 12, 15, tzinfo=UTC)
    )
    report = _report(demo_store, period)
    assert report.period == "Week 50, 8-14 December 2025 (UTC)"
    (weeks,) = (table for table in report.tables if table.key == "rate_by_week")
    assert [row[0] for row in weeks.rows] == [datetime(2025, 12, 8)]  # noqa: DTZ001 - a day
    assert any("in the quarter before" in sentence for sentence in report.summary)


def _rate(lower: float | None, value: float | None, upper: float | None, n: int = 9) -> Estimate:
    return Estimate(value, lower, upper, 0.9, n)


def _of_rate(per_1000: Estimate) -> MttfReport:
    rate = RateEstimate(per_1000.n, 1000.0, per_1000.scaled(1 / 1000), None)
    nothing = unknown(0.9, 0)
    return MttfReport(
        rate,
        rate,
        nothing,
        nothing,
        (),
        (),
        "gpu_time",
        8.0,
        None,
        None,
        0,
        CountedFailures({}, 0, 0, 0),
    )


CHANGES = {
    "rose": (_rate(8, 9, 10), _rate(1, 2, 3), "The rate rose"),
    "fell": (_rate(1, 2, 3), _rate(8, 9, 10), "The rate fell"),
    "overlap": (_rate(1, 2, 5), _rate(4, 6, 8), "No change is shown"),
    "touch": (_rate(1, 2, 4), _rate(4, 6, 8), "No change is shown"),
    "none before": (_rate(8, 9, 10), _rate(0, 0, 3, 0), "The rate rose"),
    "no bound": (_rate(None, 2, None), _rate(4, 6, 8), "In the quarter before"),
}


@pytest.mark.parametrize("case", CHANGES.values(), ids=CHANGES)
def test_a_change_is_named_only_where_the_intervals_do_not_overlap(
    case: tuple[Estimate, Estimate, str],
) -> None:
    now, before, said = case
    assert mttf.change_in_words(_of_rate(now), _of_rate(before)).startswith(said)


@pytest.mark.parametrize("before", [None, _rate(None, None, None)], ids=["none", "unknown"])
def test_without_a_quarter_before_no_change_is_spoken_of(before: Estimate | None) -> None:
    earlier = None if before is None else _of_rate(before)
    assert mttf.change_in_words(_of_rate(_rate(1, 2, 3)), earlier) == ""


def test_an_empty_store_says_that_nothing_is_known(empty_store: Path) -> None:
    report = _report(empty_store)
    assert report.answer.startswith(
        "How often the fleet fails cannot be judged: no failure could be"
    )
    assert {headline.value for headline in report.headlines} <= {"unknown", "not computed yet"}
    assert report.missing
    assert all(not len(table) for table in report.tables)
    assert {block.title for part in report.sections for block in part.blocks} >= {"All causes"}


def test_the_report_says_where_the_gpu_hours_went(reports: dict[str, Report]) -> None:
    tables = {table.key: table for table in reports["fleet"].tables}
    buckets = tables["gpu_hours"]
    assert len(buckets.rows) == 12
    productive = dict(zip(buckets.headers, buckets.printed[0], strict=True))
    assert productive["Bucket"] == "Productive"
    assert productive["At least (GPU-h)"] != ""
    idle = dict(zip(buckets.headers, buckets.printed[-1], strict=True))
    assert (idle["Bucket"], idle["At least (GPU-h)"]) == ("Idle", "")
    assert {row[0] for row in tables["lost_work"].rows} >= {"Lost to failures"}


def test_without_a_ledger_the_report_names_the_command(awkward_store: Path) -> None:
    section = next(
        part for part in _report(awkward_store).sections if part.title == "Where the GPU-hours went"
    )
    assert not section.blocks
    assert "`faultline ledger` builds it" in section.sentences[0]


def test_filters_stand_in_the_report(awkward_store: Path) -> None:
    selection = Selection(cluster="c", partition="gpu", account="physics", min_gpus=8)
    report = _report(awkward_store, selection)
    assert report.filters == "cluster c, partition gpu, account physics, jobs of 8 GPUs and more"
    assert report.title == "Fleet reliability: c"


@pytest.mark.slow
def test_the_same_store_has_the_same_hash_elsewhere(demo_store: Path, tmp_path: Path) -> None:
    here = _report(demo_store)
    copy = tmp_path / "another place"
    shutil.copytree(demo_store, copy)
    (copy / "state.sqlite").unlink(missing_ok=True)
    assert _report(copy).content_sha256 == here.content_sha256
    program = (
        "import sys; from pathlib import Path; from data.store import Store\n"
        "from app.reports import kinds\n"
        "print(kinds.report(Store.open(Path(sys.argv[1])), 'fleet').content_sha256)"
    )
    for zone, locale, seed in (
        ("Asia/Kathmandu", "C", "1"),
        ("America/New_York", "de_DE.UTF-8", "2"),
    ):
        environment = os.environ | {"TZ": zone, "LC_ALL": locale, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program, str(copy)],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == here.content_sha256


@pytest.mark.slow
def test_the_hash_follows_filters_configuration_and_level(
    awkward_store: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "store"
    shutil.copytree(awkward_store, copy)
    hashes = [
        _report(copy).content_sha256,
        _report(copy, Selection(min_gpus=16)).content_sha256,
        _report(copy, conf_level=0.8).content_sha256,
        _report(copy, Selection(to_at=datetime(2026, 1, 13, tzinfo=UTC))).content_sha256,
    ]
    (copy / "site.toml").write_text("# another configuration\n")
    hashes.append(_report(copy).content_sha256)
    assert len(set(hashes)) == len(hashes)


def test_the_key_of_pseudonyms_is_not_in_the_hash(awkward_store: Path, tmp_path: Path) -> None:
    copies = [tmp_path / name for name in ("one", "two")]
    made = []
    for copy in copies:
        shutil.copytree(awkward_store, copy, ignore=shutil.ignore_patterns("state.sqlite*"))
        with closing(Store.open(copy)) as store:
            made.append(kinds.report(store, "node", Selection(), about="n2", redact=True))
    assert made[0].content_sha256 == made[1].content_sha256
    one, two = ([table.printed for table in report.tables] for report in made)
    assert one != two
    assert State(copies[0]).redaction_key() != State(copies[1]).redaction_key()


def test_trend_forecast_availability_and_lifetimes_have_a_section_each(
    reports: dict[str, Report],
) -> None:
    titles = ("Trend", "What comes next", "Availability", "How long nodes run in jobs")
    known = {part.title: part for part in reports["fleet"].sections}
    places = [known[title].shown_on for title in titles]
    assert [place and place.page for place in places] == ["trend", "trend", "availability", "mttf"]
    tables = {table.key: table for table in reports["fleet"].tables}
    quantities = {row[0]: row[1] for row in tables["availability"].printed}
    assert quantities["Availability"].endswith("%")
    assert len(tables["by_node"]) <= NODES
