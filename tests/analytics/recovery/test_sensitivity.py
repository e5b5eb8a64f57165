"""What a target takes: values put back give the target, and published what-ifs stand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.efficiency.ettr_forms import ettr_exact
from analytics.efficiency.expected_ettr import EttrSettings
from analytics.errors import OutOfRangeError
from analytics.estimate import Estimate
from analytics.recovery.sensitivity import Form, by_size, grid, sensitivity

JOB = EttrSettings(gpus=12_000, rate_per_1000_node_days=6.5, restart_min=5.0, write_min=5.0)
STATED = Estimate(6.5, None, None, 0.9, 0)


def _ettr(job: EttrSettings, form: Form = "exact") -> float:
    found = sensitivity(job, STATED, form=form).ettr.value
    assert found is not None
    return found


def test_published_what_ifs_of_twelve_thousand_gpus() -> None:
    assert _ettr(JOB, "v2") == pytest.approx(0.740, abs=5e-4)
    assert _ettr(replace(JOB, rate_per_1000_node_days=1.0), "v2") == pytest.approx(0.898, abs=5e-4)
    assert _ettr(replace(JOB, write_min=1 / 6), "v2") == pytest.approx(0.9205, abs=5e-5)


JOBS = st.builds(
    EttrSettings,
    gpus=st.integers(64, 20_000),
    rate_per_1000_node_days=st.floats(0.3, 20.0),
    restart_min=st.floats(0.5, 30.0),
    write_min=st.floats(0.05, 10.0),
    queue_min=st.one_of(st.just(0.0), st.floats(0.1, 30.0)),
    interval_min=st.one_of(st.none(), st.floats(2.0, 300.0)),
)


@given(JOBS, st.floats(0.3, 0.98), st.sampled_from(["exact", "v2"]))
def test_each_value_alone_gives_the_target(job: EttrSettings, target: float, form: Form) -> None:
    found = sensitivity(
        job, Estimate(job.rate_per_1000_node_days, None, None, 0.9, 0), target=target, form=form
    )
    assert [each.parameter for each in found.required][:4] == [
        "rate_per_1000_node_days", "write_min", "restart_min", "interval_min",
    ]  # fmt: skip
    for each in found.required:
        assert each.met == (found.ettr.value >= target)  # type: ignore[operator]
        if each.value is not None:
            changed = replace(job, **{each.parameter: each.value})  # type: ignore[arg-type]
            assert _ettr(changed, form) == pytest.approx(target, abs=1e-6)
        elif not each.met:
            assert each.best < target + 1e-6


def test_bounds_are_those_of_the_rate_and_what_moves_most_comes_first() -> None:
    found = sensitivity(JOB, Estimate(6.5, 5.0, 8.0, 0.9, 200))
    at = [
        float(ettr_exact(1500 * rate / 1440e3, 5.0, (10.0 / (1500 * rate / 1440e3)) ** 0.5,
                         write_min=5.0))
        for rate in (8.0, 6.5, 5.0)
    ]  # fmt: skip
    ettr = found.ettr
    assert [ettr.lower, ettr.value, ettr.upper] == pytest.approx(at)
    widths = [each.ettr_high - each.ettr_low for each in found.moved]
    assert widths == sorted(widths, reverse=True)
    (rate,) = [each for each in found.moved if each.measured]
    assert (rate.low, rate.high) == (5.0, 8.0)
    gains = [each.won for each in found.halved]
    assert [each.value for each in gains] == sorted((each.value for each in gains), reverse=True)
    for each in gains:
        assert each.lower <= each.value <= each.upper  # type: ignore[operator]
        assert each.n == 200


def test_sizes_and_the_heat_map_are_the_same_form() -> None:
    here, larger = by_size(JOB, [12_000, 24_000], STATED)
    assert here.value == pytest.approx(_ettr(JOB))
    assert larger.value < here.value  # type: ignore[operator]
    cells = grid(replace(JOB, interval_min=30.0), [30.0, 60.0], [5.0])  # type: ignore[arg-type]
    assert cells[0, 0] == pytest.approx(_ettr(replace(JOB, interval_min=30.0)))


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match="nothing is to be gained"):
        sensitivity(replace(JOB, rate_per_1000_node_days=0.0), STATED)
    with pytest.raises(OutOfRangeError, match="target"):
        sensitivity(JOB, STATED, target=1.5)
