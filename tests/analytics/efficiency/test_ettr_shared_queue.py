"""How often the interval of an ETTR holds where runs share a queue.

Nothing here is drawn as the interval takes it: waits follow waves of congestion (an autoregression
in time) or outages that end and hold all runs of that time, lengths are log-normal or Pareto. The
truth is the ETTR of thousands of fleets of the same kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from analytics.efficiency.group_ettr import ettr_of_groups

N_FLEETS, N_TRUTH = 200, 2000
STEP_DAYS = 0.125
OUTAGES_PER_DAY = 0.09
MEDIAN_WAIT_DAYS = 0.06
BEGIN = pd.Timestamp("2026-01-05", tz="UTC")


@dataclass(frozen=True)
class Kind:
    """What runs share, and how long they are."""

    days: float = 90.0
    wave_days: float | None = None
    """Time in which congestion fades to 1 / e; None for a queue without waves."""
    outages: bool = False
    pareto: bool = False

    def drawn(self, n_fleets: int, n_runs: int, seed: int) -> pd.DataFrame:
        """Runs of fleets, one fleet after the other."""
        rng = np.random.default_rng([seed, n_runs])
        shape = (n_fleets, n_runs)
        begin = rng.random(shape) * self.days
        ran = rng.lognormal(0.3, 0.9, shape)
        if self.pareto:
            ran = np.minimum(0.3 * (1 - rng.random(shape)) ** (-1 / 1.3), 60.0)
        gpus = 8 * 2 ** rng.integers(1, 7, shape)
        n_failures = np.minimum(rng.poisson(0.0015 * gpus * ran), 40)
        congestion = self._congestion(rng, n_fleets, self.days + float(ran.max()))

        def wait(at: np.ndarray) -> np.ndarray:
            level = np.take_along_axis(congestion, (at / STEP_DAYS).astype(int), axis=1)
            own = rng.normal(size=shape)
            return MEDIAN_WAIT_DAYS * np.exp(1.2 * level + (0.8 if self.wave_days else 1.3) * own)

        waited, lost = wait(begin), np.zeros(shape)
        for turn in range(n_failures.max()):
            struck = turn < n_failures
            waited += struck * wait(begin + ran * rng.random(shape))
            lost += struck * np.minimum(0.08 * rng.random(shape), ran / 2)
        for _ in range(rng.poisson(OUTAGES_PER_DAY * self.days) if self.outages else 0):
            at = rng.random((n_fleets, 1)) * (self.days + 5)
            struck = (begin < at) & (at < begin + ran)
            held = rng.lognormal(-1.5, 1.0, (n_fleets, 1))
            waited += struck * held * (1 + 0.1 * rng.random(shape))
            lost += struck * 0.15 * rng.random(shape)
            n_failures = n_failures + struck
        productive = np.maximum(ran - lost - 0.01 * (1 + n_failures), 0.02 * ran) * 86_400
        return pd.DataFrame({
            "fleet": np.repeat(np.arange(n_fleets), n_runs), "n_gpus": gpus.ravel(),
            "first_start_at": BEGIN + pd.to_timedelta(begin.ravel(), unit="D"),
            "queued_s": waited.ravel() * 86_400, "scheduled_s": ran.ravel() * 86_400,
            "productive_s": productive.ravel(), "lower_productive_s": productive.ravel(),
            "upper_productive_s": productive.ravel(), "variance_productive_s2": 0.0,
            "shared_productive_s": 0.0, "n_attempts": 1 + n_failures.ravel(),
            "n_interruptions": n_failures.ravel(),
        })  # fmt: skip

    def _congestion(self, rng: np.random.Generator, n_fleets: int, until: float) -> np.ndarray:
        """Logarithm of how full the queue is, by time; 0 without waves."""
        n_steps = int(until / STEP_DAYS) + 1
        if self.wave_days is None:
            return np.zeros((n_fleets, n_steps))
        kept = np.exp(-STEP_DAYS / self.wave_days)
        level = rng.normal(size=(n_fleets, n_steps)) * np.sqrt(1 - kept**2)
        level[:, 0] = rng.normal(size=n_fleets)
        for at in range(1, n_steps):
            level[:, at] += kept * level[:, at - 1]
        return level

    def truth(self, n_fleets: int = N_TRUTH) -> float:
        """ETTR of runs of this kind."""
        many = self.drawn(n_fleets, 60, 99)
        gpus = many["n_gpus"]
        return float((gpus * many["productive_s"]).sum()
                     / (gpus * (many["queued_s"] + many["scheduled_s"])).sum())  # fmt: skip


def held(runs: pd.DataFrame, truth: float) -> tuple[float, float]:
    """How often 90 % intervals of fleets hold the truth; the share of fleets that have one."""
    code = runs["fleet"].to_numpy()
    names = [str(fleet) for fleet in range(code.max() + 1)]
    found = [each.ettr for each in ettr_of_groups(runs, code, names, conf_level=0.9)]
    bounds = [(each.lower, each.upper) for each in found if each.lower is not None]
    inside = [low <= truth <= high for low, high in bounds if high is not None]
    return float(np.mean(inside)), len(inside) / len(found)


KINDS = {
    "alone": Kind(),
    "waves of half a day": Kind(wave_days=0.5),
    "waves of two days": Kind(wave_days=2.0),
    "waves of a day, a month": Kind(days=30.0, wave_days=1.0),
    "waves, long tails": Kind(wave_days=2.0, pareto=True),
    "outages": Kind(outages=True),
    "outages, long tails": Kind(outages=True, pareto=True),
}


def test_the_interval_of_runs_that_share_a_queue_holds_as_often_as_it_says() -> None:
    """Runs taken one by one, as if nothing were shared, held in .81 of these fleets."""
    waves = KINDS["waves of two days"]
    share, judged = held(waves.drawn(100, 60, 2), waves.truth(200))
    assert judged == 1.0
    assert 0.82 <= share <= 0.98  # three standard errors of 100 fleets


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_nine_in_ten_intervals_hold_the_ettr_of_runs_that_share_a_queue(name: str) -> None:
    truth = KINDS[name].truth()
    for n_runs in (8, 20, 60, 200):
        share, judged = held(KINDS[name].drawn(N_FLEETS, n_runs, 1), truth)
        print(f"{name}, {n_runs} runs: {share:.3f}, judged {judged:.2f}")
        assert 0.85 - 0.03 <= share <= 0.95 + 0.03  # and two standard errors of 200 fleets
