"""The simulation and the exact form find the same ETTR, each by its own road."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import qmc

from analytics.efficiency.expected_ettr import EttrSettings, expected_ettr
from analytics.efficiency.simulated_ettr import BLOCK, MAX_DRAWS, simulated_ettr
from analytics.errors import AnalysisError

REFERENCES = Path(__file__).resolve().parents[2] / "references"
# Of each axis of the grid: name, lowest, highest value; drawn evenly over the logarithm.
AXES = (
    ("gpus", 64, 100_000),
    ("rate_per_1000_node_days", 1.0, 10.0),
    ("restart_min", 1.0, 30.0),
    ("write_min", 0.1, 10.0),
    ("interval_min", 5.0, 120.0),
    ("queue_min", 0.1, 60.0),
)
BUSY = EttrSettings(
    gpus=40_000, rate_per_1000_node_days=6.5, restart_min=8.0, write_min=2.0, interval_min=25.0,
    queue_min=6.0,
)  # fmt: skip


def grid(n: int, seed: int) -> list[EttrSettings]:
    names, low, high = zip(*AXES, strict=True)
    unit = qmc.LatinHypercube(d=len(AXES), seed=seed).random(n)
    drawn = np.exp(qmc.scale(unit, np.log(low), np.log(high)))
    return [EttrSettings(**{k: float(v) for k, v in zip(names, row, strict=True)}) for row in drawn]


def reference(name: str) -> list[dict[str, str]]:
    lines = (REFERENCES / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def told_minute_by_minute(job: EttrSettings, generator: np.random.Generator) -> float:
    """ETTR of one run, event by event in plain Python: another road to the same number."""
    left, wall = job.run_days * 1440.0, job.queue_min
    to_failure = generator.exponential(1.0 / job.failures_per_min)
    needed, after, part = job.restart_min, "restart", 0.0
    while left > 1e-9 or after == "restart":
        if to_failure < needed:
            wall += to_failure + job.queue_min
            to_failure = generator.exponential(1.0 / job.failures_per_min)
            needed, after = job.restart_min, "restart"
            continue
        wall, to_failure = wall + needed, to_failure - needed
        left -= part if after == "write" else 0.0
        part = min(job.interval_min, left)
        needed, after = part + job.write_min, "write"
    return job.run_days * 1440.0 / wall


@pytest.mark.parametrize("number", range(50))
def test_the_simulation_agrees_with_the_exact_form_over_a_grid(number: int) -> None:
    job = grid(50, seed=2410)[number]
    found = simulated_ettr(job, 200_000, seed=number)
    exact = expected_ettr(job).exact
    assert found.standard_error is not None
    assert abs(found.ettr.value - exact) <= 3.0 * found.standard_error
    assert found.ettr.n == 200_000
    assert found.of == "interruptions"


@pytest.mark.parametrize("row", reference("simulated_ettr.csv"), ids=lambda row: row["gpus"])
def test_the_simulation_lies_beside_the_closed_form_as_published(row: dict[str, str]) -> None:
    names = [axis[0] for axis in AXES]
    job = EttrSettings(**{name: float(row[name]) for name in names})
    found = simulated_ettr(job, 1_000_000)
    closed = getattr(expected_ettr(job), row["form"])
    assert found.ettr.value == pytest.approx(float(row["simulated"]), abs=0.0025)
    assert closed == pytest.approx(float(row["closed"]), abs=0.0005)
    apart = 100 * (closed / found.ettr.value - 1.0)
    assert apart == pytest.approx(float(row["difference_percent"]), abs=0.35)


@pytest.mark.parametrize("days", [0.013, 0.4, 2.0])
def test_runs_have_the_ettr_that_plain_events_give(days: float) -> None:
    job = replace(BUSY, run_days=days)
    generator = np.random.default_rng(7)
    told = np.array([told_minute_by_minute(job, generator) for _ in range(600)])
    found = simulated_ettr(job, 60_000, seed=1)
    error = math.hypot(told.std(ddof=1) / math.sqrt(len(told)), found.standard_error)
    assert abs(found.ettr.value - told.mean()) <= 3.0 * error
    assert (found.of, found.ettr.n) == ("runs", 60_000)


@pytest.mark.parametrize("number", range(10))
def test_long_runs_come_to_the_exact_form_of_a_run_from_above(number: int) -> None:
    job = replace(grid(50, seed=2410)[number], run_days=60.0)
    found, exact = simulated_ettr(job, 2000, seed=number), expected_ettr(job).exact_of_run
    spread = found.standard_error * math.sqrt(2000) / found.ettr.value
    assert found.ettr.value - exact >= -3.0 * found.standard_error
    assert found.ettr.value - exact <= 3.0 * found.standard_error + 2.0 * exact * spread**2


def test_free_writes_leave_the_restart_alone_in_long_and_short_runs() -> None:
    free = replace(BUSY, write_min=0.0, interval_min=None, queue_min=0.0)
    lasting = math.exp(-free.failures_per_min * free.restart_min)
    found = simulated_ettr(free, 300_000)
    assert abs(found.ettr.value - lasting) <= 3.0 * found.standard_error
    runs = simulated_ettr(replace(free, run_days=200.0), 300)
    assert runs.ettr.value == pytest.approx(lasting, abs=0.002)


def test_the_full_form_is_near_runs_of_common_length_while_failures_are_rare() -> None:
    jobs = [replace(job, run_days=3.0) for job in grid(200, seed=54)]
    rare = [job for job in jobs if job.failures_per_min * job.interval_min < 0.1
            and job.failures_per_min * (job.restart_min + job.write_min) < 0.05]  # fmt: skip
    assert len(rare) > 40
    apart = []
    for job in rare:
        simulated = simulated_ettr(job, 4000).ettr.value
        apart.append(expected_ettr(job).full / simulated - 1.0)
    assert max(map(abs, apart)) < 0.02


def test_an_interval_holds_the_exact_value_as_often_as_it_says() -> None:
    exact = expected_ettr(BUSY).exact
    held = 0
    for seed in range(400):
        ettr = simulated_ettr(BUSY, 500, seed=seed, conf_level=0.8).ettr
        held += ettr.lower <= exact <= ettr.upper
    assert 0.8 * 400 - 3 * 8 <= held <= 0.8 * 400 + 3 * 8


def test_one_seed_has_one_result_whatever_the_blocks() -> None:
    assert simulated_ettr(BUSY, 1000, seed=3) == simulated_ettr(BUSY, 1000, seed=3)
    assert simulated_ettr(BUSY, 1000, seed=3) != simulated_ettr(BUSY, 1000, seed=4)
    runs = replace(BUSY, run_days=1.0)
    assert simulated_ettr(runs, 1000, seed=3) == simulated_ettr(runs, 1000, seed=3)
    assert simulated_ettr(BUSY, BLOCK + 1).ettr.n == BLOCK + 1


def test_where_nothing_fails_nothing_is_left_to_chance() -> None:
    safe = replace(BUSY, rate_per_1000_node_days=0.0)
    assert simulated_ettr(safe, 5).ettr.value == pytest.approx(25 / 27)
    runs = simulated_ettr(replace(safe, run_days=1.0, interval_min=60.0), 5).ettr
    assert runs.value == runs.lower == runs.upper == pytest.approx(1440 / (24 * 62 + 8 + 6))


def test_too_little_seen_has_no_interval() -> None:
    stuck = simulated_ettr(replace(BUSY, gpus=2_000_000, interval_min=60.0), 1000)
    assert (stuck.ettr.value, stuck.ettr.lower, stuck.ettr.upper) == (0.0, None, None)
    quiet = replace(BUSY, gpus=8, run_days=1.0)
    assert simulated_ettr(quiet, 20).standard_error is None
    assert simulated_ettr(BUSY, 1).ettr.upper is None
    assert any("too little" in note for note in expected_ettr(quiet, simulations=20).notes)


def test_what_would_take_too_long_is_not_simulated_and_said_so() -> None:
    endless = replace(BUSY, gpus=2_000_000, interval_min=60.0, run_days=30.0)
    for job, n in ((endless, 1), (BUSY, MAX_DRAWS + 1), (replace(BUSY, run_days=1.0), MAX_DRAWS)):
        found = simulated_ettr(job, n)
        assert (found.ettr.value, found.ettr.n, found.standard_error) == (None, 0, None)
    assert any("Not simulated" in note for note in expected_ettr(endless, simulations=1).notes)


def test_what_is_no_number_of_simulations_or_level_is_refused() -> None:
    with pytest.raises(AnalysisError, match="simulations must be a finite number > 0, got 0"):
        simulated_ettr(BUSY, 0)
    with pytest.raises(AnalysisError, match=r"pass 0.9 for 90 %"):
        simulated_ettr(BUSY, 10, conf_level=90)
    with pytest.raises(AnalysisError, match="simulations must be a finite number >= 0, got -1"):
        expected_ettr(BUSY, simulations=-1)
