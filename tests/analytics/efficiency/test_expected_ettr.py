"""The expected ETTR has the published digits, the limits of its forms, and says where they part."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.efficiency.ettr_forms import (
    ettr_exact,
    ettr_exact_run,
    ettr_full,
    ettr_v1,
    ettr_v2,
    whole_intervals,
)
from analytics.efficiency.expected_ettr import EttrSettings, ettr_sensitivities, expected_ettr
from analytics.efficiency.published_ettr import PUBLISHED_INCONSISTENCIES
from analytics.errors import AnalysisError

REFERENCES = Path(__file__).resolve().parents[2] / "references"
INPUTS = ("gpus", "rate_per_1000_node_days", "restart_min", "write_min", "interval_min",
          "queue_min")  # fmt: skip
FORMS = ("v1", "v2", "full", "exact")
NO_PART_OF = {"v1": {"write_min"}, "v2": {"queue_min"}, "full": set(), "exact": set()}
PARAMETERS = ("gpus", "rate_per_1000_node_days", "restart_min", "write_min", "queue_min")
JOB = EttrSettings(
    gpus=12_000, rate_per_1000_node_days=6.5, restart_min=5.0, write_min=5.0, queue_min=2.0
)


def reference(name: str) -> list[dict[str, str]]:
    lines = (REFERENCES / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def settings_of(row: dict[str, str], **other: float) -> EttrSettings:
    given = {name: float(row[name]) for name in INPUTS if row.get(name)}
    return EttrSettings(**({"restart_min": 0.0} | given | other))


@st.composite
def jobs(draw: st.DrawFn, least_write: float = 0.01) -> EttrSettings:
    return EttrSettings(
        gpus=draw(st.integers(8, 100_000)),
        rate_per_1000_node_days=draw(st.floats(0.1, 20.0)),
        restart_min=draw(st.floats(0.1, 30.0)),
        write_min=draw(st.floats(least_write, 10.0)),
        interval_min=draw(st.floats(1.0, 240.0)),
        queue_min=draw(st.just(0.0) | st.floats(0.01, 60.0)),
    )


@pytest.mark.parametrize(
    "row",
    reference("expected_ettr.csv"),
    ids=lambda row: f"{row['form']} {row['gpus']} GPUs {row['ettr']}",
)
def test_every_published_what_if_is_met_to_its_digits(row: dict[str, str]) -> None:
    found = getattr(expected_ettr(settings_of(row)), row["form"])
    assert found == pytest.approx(float(row["ettr"]), abs=float(row["tolerance"]))


@pytest.mark.parametrize("row", reference("mttf_projection.csv"), ids=lambda row: row["gpus"])
def test_the_mttf_of_the_job_is_the_published_one(row: dict[str, str]) -> None:
    hours = settings_of(row).mttf_hours
    assert hours == pytest.approx(float(row["mttf_hours"]), abs=float(row["tolerance"]))


def test_published_figures_that_contradict_their_own_formula_are_told() -> None:
    small, node, scale, largest, large = PUBLISHED_INCONSISTENCIES
    assert (scale.paper, scale.unit, largest.paper, largest.unit) == (10.0, "h", 15.0, "min")
    assert scale.own_formula == pytest.approx(7.21, abs=0.005)
    assert largest.own_formula == pytest.approx(17.7, abs=0.05)
    assert (small.paper, small.unit) == (7.9, "h")
    assert small.own_formula == pytest.approx(28.85, abs=0.005)
    assert (node.paper, node.unit) == (47.7, "d")
    assert node.own_formula == pytest.approx(153.8, abs=0.05)
    assert large.paper == 0.5
    assert large.own_formula == pytest.approx(0.685, abs=0.0005)
    for each in (small, node, scale, largest):
        implied = 6.5 * each.own_formula / each.paper
        assert f"{implied:#.3g} failures per 1,000 node-days" in each.remark
    needed = 0.5 / (12_500 * 0.00234 / 1440)
    assert f"u0 + dt/2 = {needed:.1f} min" in large.remark


@given(jobs(), st.sampled_from(PARAMETERS), st.floats(1.01, 3.0))
def test_the_ettr_falls_with_size_rate_restart_write_and_queue(
    job: EttrSettings, parameter: str, factor: float
) -> None:
    worse = replace(job, **{parameter: factor * getattr(job, parameter)})
    before, after = expected_ettr(job), expected_ettr(worse)
    for form in FORMS:
        lower, higher = getattr(after, form), getattr(before, form)
        assert 0.0 <= lower <= 1.0
        if parameter in NO_PART_OF[form] or not getattr(job, parameter):
            assert lower == higher
        else:
            assert lower < higher or lower == higher == 0.0


@given(jobs())
def test_v2_falls_with_the_rate_and_the_write_at_the_interval_of_daly_and_young_too(
    job: EttrSettings,
) -> None:
    job = replace(job, interval_min=None)
    before = expected_ettr(job)
    for worse in (replace(job, gpus=2 * job.gpus), replace(job, write_min=2 * job.write_min)):
        after = expected_ettr(worse)
        assert after.v2 < before.v2 or after.v2 == before.v2 == 0.0
        assert after.exact < before.exact


@given(st.floats(1e-7, 0.05), st.floats(0.0, 30.0))
def test_writes_that_cost_nothing_leave_the_restart_alone(rate: float, restart: float) -> None:
    first_order, exact = max(1.0 - rate * restart, 0.0), math.exp(-rate * restart)
    for interval, off in ((0.0, 1e-12), (1e-9, 1e-9)):
        assert float(ettr_v2(rate, restart, interval)) == pytest.approx(first_order, abs=off)
        assert float(ettr_exact(rate, restart, interval)) == pytest.approx(exact, abs=off)
        short_writes = ettr_exact(rate, restart, interval, write_min=interval * 1e-6)
        assert float(short_writes) == pytest.approx(exact, abs=off + 1e-5)


@given(jobs(), st.floats(0.5, 400.0))
def test_the_full_form_is_v1_without_writes_to_first_order_and_v2_without_a_queue(
    job: EttrSettings, days: float
) -> None:
    rate, costs = job.failures_per_min, (job.restart_min, job.checkpoint_min)
    long = ettr_full(rate, *costs, write_min=job.write_min)
    assert float(long) == pytest.approx(float(ettr_v2(rate, *costs, write_min=job.write_min)))
    full = ettr_full(rate, *costs, queue_min=job.queue_min, run_min=days * 1440)
    first = ettr_v1(rate, *costs, queue_min=job.queue_min, run_min=days * 1440)
    lost = (job.restart_min + job.queue_min) / (days * 1440) + rate * (
        job.restart_min + job.checkpoint_min + job.queue_min
    )
    assert abs(float(full) - float(first)) <= lost**2


@given(jobs())
def test_all_forms_agree_where_failures_are_rare(job: EttrSettings) -> None:
    rare = replace(job, rate_per_1000_node_days=1e-6, queue_min=0.0)
    found = expected_ettr(rare)
    assert found.full == pytest.approx(found.exact, rel=1e-3)
    assert found.v2 == pytest.approx(found.exact, rel=1e-3)


@given(jobs())
def test_the_exact_form_is_the_textbook_expression(job: EttrSettings) -> None:
    rate, interval = job.failures_per_min, job.checkpoint_min
    cost = math.expm1(rate * (interval + job.write_min))
    expected = rate * interval * math.exp(-rate * job.restart_min) / cost
    found = expected_ettr(job).exact
    assert found == pytest.approx(expected / (1 + rate * job.queue_min), rel=1e-9)


@given(jobs())
def test_the_exact_form_of_a_very_long_run_is_the_long_runs(job: EttrSettings) -> None:
    endless = replace(job, run_days=1e9)
    found = expected_ettr(endless)
    assert found.exact_of_run == pytest.approx(found.exact, rel=1e-5)


def test_the_exact_form_of_a_run_adds_up_by_hand() -> None:
    rate = 0.01

    def cost(minutes: float) -> float:
        return math.exp(rate * 5.0) * math.expm1(rate * minutes) / rate

    scheduled = math.expm1(rate * 5.0) / rate + 3 * cost(32.0) + cost(10.0 + 2.0)
    wall = scheduled * (1 + rate * 7.0) + 7.0
    found = ettr_exact_run(rate, 5.0, 30.0, write_min=2.0, queue_min=7.0, run_min=100.0)
    assert float(found) == pytest.approx(100.0 / wall)


@given(st.integers(1, 500), st.floats(0.01, 500.0))
def test_a_run_of_whole_intervals_has_no_rest(n: int, interval: float) -> None:
    whole, rest = whole_intervals(n * interval, interval)
    assert (int(whole), float(rest)) == (n, 0.0)


def test_a_map_of_settings_is_computed_at_once() -> None:
    rate, interval = np.meshgrid(np.geomspace(1e-5, 0.05, 40), np.geomspace(1.0, 300.0, 30))
    for form in (ettr_v2, ettr_exact, ettr_full):
        found = form(rate, 5.0, interval, write_min=2.0)
        assert found.shape == (30, 40)
        assert found[7, 11] == float(form(rate[7, 11], 5.0, interval[7, 11], write_min=2.0))
        assert ((found >= 0.0) & (found <= 1.0)).all()


@given(jobs(least_write=0.1))
def test_the_sensitivities_are_the_slopes_of_the_exact_form(job: EttrSettings) -> None:
    exact = expected_ettr(job).exact
    for slope in ettr_sensitivities(job):
        value = getattr(job, slope.parameter)
        step = 1e-4 * max(value, 0.01)
        up = expected_ettr(replace(job, **{slope.parameter: value + step})).exact
        down = expected_ettr(replace(job, **{slope.parameter: max(value - step, 0.0)})).exact
        numeric = (up - down) / (step + min(step, value))
        scale = exact / max(value, 0.01)
        assert slope.derivative == pytest.approx(numeric, rel=2e-3, abs=2e-4 * scale)
        assert slope.elasticity == pytest.approx(slope.derivative * value / exact, rel=1e-9)


SCALES = st.sampled_from([1e-9, 1e-3, 1.0, 60.0, 1e5, 1e9])


@given(st.tuples(*[SCALES] * 3), st.tuples(*[SCALES | st.just(0.0)] * 4), SCALES | st.none())
def test_no_settings_overflow_whatever_their_scale(
    sizes: tuple[float, ...], costs: tuple[float, ...], days: float | None
) -> None:
    names = ("gpus", "gpus_per_node", "interval_min", "rate_per_1000_node_days", "restart_min",
             "write_min", "queue_min")  # fmt: skip
    job = EttrSettings(**dict(zip(names, sizes + costs, strict=True)), run_days=days)
    for settings in (job, replace(job, interval_min=None)):
        found = expected_ettr(settings, simulations=0 if days else 20)
        simulated = found.simulated.ettr.value if found.simulated else None
        values = [found.v1, found.v2, found.full, found.exact, found.exact_of_run,
                  found.exact_at_optimum, simulated]  # fmt: skip
        assert all(value is None or 0.0 <= value <= 1.0 + 1e-9 for value in values)


def test_sensitivities_at_the_limits_are_finite_or_unknown() -> None:
    free = {s.parameter: s for s in ettr_sensitivities(replace(JOB, write_min=0.0))}
    assert free["write_min"].derivative is None
    assert free["interval_min"].derivative == pytest.approx(
        -JOB.failures_per_min / 2 * expected_ettr(replace(JOB, write_min=0.0)).exact
    )
    assert ettr_sensitivities(replace(JOB, rate_per_1000_node_days=0.0)) == ()
    safe = ettr_sensitivities(replace(JOB, rate_per_1000_node_days=0.0, interval_min=60.0))
    assert safe[0].derivative == pytest.approx(
        -(5.0 + 65.0 / 2 + 2.0) * 1500 / 1000 / 1440 * 60 / 65
    )


def test_where_nothing_fails_only_writes_and_the_start_cost() -> None:
    found = expected_ettr(replace(JOB, rate_per_1000_node_days=0.0))
    assert (found.v1, found.v2, found.full, found.exact) == (1.0, 1.0, 1.0, 1.0)
    assert (found.mttf_hours, found.interval_min, found.optimal_interval_min) == (None, None, None)
    assert any("which no record shows" in note for note in found.notes)
    assert not any("never needed" in note for note in found.notes)
    given = expected_ettr(replace(JOB, rate_per_1000_node_days=0.0, interval_min=60.0, run_days=1))
    assert given.exact == pytest.approx(60 / 65)
    assert given.exact_of_run == pytest.approx(1440 / (1440 * 65 / 60 + 5 + 2))
    assert given.full == pytest.approx(given.exact_of_run)


def test_writes_without_cost_have_no_best_interval_and_the_values_are_the_limit() -> None:
    found = expected_ettr(replace(JOB, write_min=0.0, queue_min=0.0))
    lost = JOB.failures_per_min * 5.0
    assert (found.v2, found.exact) == (pytest.approx(1 - lost), pytest.approx(math.exp(-lost)))
    assert found.interval_min == 0.0
    assert found.daly_young_interval_min is found.optimal_interval_min is None
    assert any("no best interval" in note for note in found.notes)


def test_a_first_order_form_that_is_not_positive_is_zero_and_said_to_be() -> None:
    found = expected_ettr(
        EttrSettings(gpus=10**6, rate_per_1000_node_days=6.5, restart_min=5.0, interval_min=5.0)
    )
    assert (found.v1, found.v2, found.full) == (0.0, 0.0, 0.0)
    assert 0.0 < found.exact < 0.1
    assert any("not positive" in note for note in found.notes)


def test_forms_that_part_from_the_exact_one_are_named_with_how_far() -> None:
    rows = [row for row in reference("simulated_ettr.csv") if row["gpus"] == "16000"]
    (apart,) = (n for n in expected_ettr(settings_of(rows[0])).notes if n.startswith("Apart"))
    assert "v1 0.684 (-5.0%), v2 0.684 (-5.0%), full 0.684 (-5.0%)" in apart
    near = EttrSettings(gpus=1024, rate_per_1000_node_days=6.5, restart_min=5.0, interval_min=60)
    assert not any(note.startswith("Apart") for note in expected_ettr(near).notes)


def test_daly_and_young_far_from_the_optimum_are_warned_of() -> None:
    far = expected_ettr(replace(JOB, gpus=100_000, queue_min=0.0))
    assert far.v2 == pytest.approx(0.249, abs=0.0005)
    at_best = replace(far.settings, interval_min=far.optimal_interval_first_order_min)
    assert expected_ettr(at_best).v2 == pytest.approx(0.304, abs=0.0005)
    assert any("too long" in note for note in far.notes)
    assert not any("too long" in note for note in expected_ettr(JOB).notes)


def test_a_short_run_is_told_from_a_long_one() -> None:
    found = expected_ettr(replace(JOB, run_days=0.1))
    assert found.exact_of_run < found.exact
    assert any("too short" in note for note in found.notes)


REFUSED = {
    "no GPUs": ({"gpus": 0}, r"gpus must be a finite number > 0, got 0: pass the GPUs of the job"),
    "a node of no GPUs": ({"gpus_per_node": 0}, "gpus_per_node must be a finite number > 0"),
    "a negative rate": ({"rate_per_1000_node_days": -1}, "rate_per_1000_node_days must be a"),
    "an endless restart": ({"restart_min": math.inf}, "restart_min must be a finite number >= 0"),
    "a write that is no number": ({"write_min": math.nan}, "write_min must be a finite number"),
    "a negative queue": ({"queue_min": -0.1}, "queue_min must be a finite number >= 0, got -0.1"),
    "writing all the time": ({"interval_min": 0.0}, "interval_min must be a finite number > 0"),
    "a negative interval": ({"interval_min": -1, "write_min": 0}, "interval_min must be a finite"),
    "an endless interval": ({"interval_min": math.inf}, "leave it out: Daly-Young"),
    "more than there is": ({"queue_min": 1e10}, "queue_min must be 0 or from 1e-09 to 1e"),
    "a part of a GPU": ({"gpus": 1e-12}, "gpus must be 0 or from 1e-09 to 1e"),
    "a run of nothing": ({"run_days": 0.0}, "run_days must be a finite number > 0, got 0.0"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_settings_without_meaning_are_refused(case: tuple[dict[str, float], str]) -> None:
    changed, message = case
    with pytest.raises(AnalysisError, match=message):
        replace(JOB, **changed)
