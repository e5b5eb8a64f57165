"""The numbers of the paper's artifact for its three public traces."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analytics.training.stragglers.analysis import analyse_trace, analysis_record
from analytics.training.stragglers.slowdown import slowdowns, slowest_first
from analytics.training.stragglers.step_model import StepModel

RELATIVE = 2e-6
NAMES = ("AR", "SE", "ST")
METHODS = Path(__file__).resolve().parents[4] / "METHODS.md"
TABLE = re.findall(
    r"\| (AR|SE|ST) \| (\w+) \| (-?[\d.]+) \| (-?[\d.]+) \|", METHODS.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_the_artifact_is_reproduced(name, public_trace, public_results):
    record = analysis_record(analyse_trace(StepModel.of(public_trace(name))))
    expected = {key: value for key, value in public_results[name].items() if key != "job_meta"}
    for key, value in expected.items():
        if isinstance(value, list):
            np.testing.assert_allclose(record[key], value, rtol=RELATIVE)
        elif isinstance(value, dict):
            assert record[key] == pytest.approx(value, rel=RELATIVE, abs=1e-9), key
        else:
            assert record[key] == pytest.approx(value, rel=RELATIVE, abs=1e-9), key


@pytest.mark.parametrize("name", NAMES)
def test_order_of_rows_and_labels_of_workers_change_nothing(name, public_rows, public_trace):
    rows = public_rows(name)
    order = np.random.default_rng(1).permutation(len(rows))
    labels = np.random.default_rng(2).permutation(int(rows.rank.max()) + 1)
    columns = {
        key: np.array(value)[order] for key, value in vars(rows).items() if value is not None
    }
    shuffled = replace(rows, **columns | {"rank": labels[columns["rank"]]})
    trace = public_trace(name)
    found = analysis_record(analyse_trace(StepModel.of_rows(shuffled, dsp_size=trace.dsp_size)))
    expected = analysis_record(analyse_trace(StepModel.of(trace)))
    for record in (found, expected):
        targets = [cause["target"] or {} for cause in record["causes"]]
        named = [worker for target in targets for worker in target.get("workers", ())]
        for worker in (*record["slowest_workers"], *targets, *named):
            worker.pop("rank", None)
    assert found == expected


def test_seconds_since_1970_give_the_same(public_rows, public_trace):
    rows = public_rows("ST")
    start = rows.start_ts.astype(np.float64) + 1_700_000_000.0 + rows.step * 60.0
    found = slowdowns(StepModel.of_rows(replace(rows, start_ts=start)))
    expected = slowdowns(StepModel.of(public_trace("ST")))
    assert found.slowdown == pytest.approx(expected.slowdown, rel=RELATIVE)
    np.testing.assert_allclose(found.by_worker, expected.by_worker, rtol=RELATIVE)
    np.testing.assert_allclose(found.by_worker_exact, expected.by_worker_exact, rtol=RELATIVE)


def test_the_exact_slowdown_of_a_worker_differs_from_the_approximation_as_measured(public_trace):
    slow = slowdowns(StepModel.of(public_trace("SE")))
    assert (slow.by_worker - slow.by_worker_exact).max() == pytest.approx(0.145, abs=0.001)
    assert slow.by_worker_exact.max() == pytest.approx(1.192, abs=0.001)
    last_stage = slowdowns(StepModel.of(public_trace("ST")))
    assert last_stage.by_worker_exact.max() == pytest.approx(1.232, abs=0.001)


def test_fixing_the_slow_worker_alone_mends_the_job_that_it_slows(public_trace):
    analysis = slowdowns(StepModel.of(public_trace("AR")))
    assert slowest_first(analysis.by_worker)[0].tolist() == [0, 0]
    assert analysis.slowest.fixed_ratio[1] == pytest.approx(1.0, abs=0.01)
    assert len(analysis.slowest.workers) == 1


@pytest.mark.parametrize(("name", "key", "artifact", "ours"), TABLE)
def test_the_table_of_methods_holds(name, key, artifact, ours, public_trace):
    record = analysis_record(analyse_trace(StepModel.of(public_trace(name))))
    value = record[key] if key == "S" else record[key]["rem"]
    assert f"{value:.5f}" == ours == artifact


def test_the_table_of_methods_is_found():
    assert len(TABLE) == 9
