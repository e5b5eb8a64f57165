"""Which policy is best: found, or said not to be told apart, on clusters whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analytics.errors import OutOfRangeError
from analytics.recovery.comparison import Counted, Ranked, Trial, outcome, ranking
from analytics.recovery.histories import Hazards
from analytics.recovery.policy import BASE, Site, policies

SITE = Site(hazards=Hazards(nodes=512, rates={"node": 6.0, "process": 3.0}), queue_min=10.0)
FEW = (BASE, "gemini", "just-in-time", "checkfreq", "minder")


def _ranked(trial: Trial, keys: tuple[str, ...] | None = None) -> tuple[Ranked, ...]:
    return ranking(trial, [outcome(trial, key) for key in keys or policies()])


def test_policies_that_do_the_same_share_a_rank_and_are_not_told_apart() -> None:
    found = {each.policy.key: each for each in _ranked(Trial(site=SITE, runs=50), FEW)}
    assert found["minder"].rank == found[BASE].rank  # nothing to isolate was stated
    assert BASE in found["minder"].tied_with
    assert found["gemini"].rank < found[BASE].rank
    assert BASE not in found["gemini"].tied_with


def test_few_failures_leave_a_wide_range_and_policies_that_are_near_together() -> None:
    many = Trial(site=SITE, counted=Counted({"node": 6000, "process": 3000}, 1e6), runs=50)
    few = Trial(site=SITE, counted=Counted({"node": 6, "process": 3}, 1000.0), runs=50)
    wide, narrow = (
        next(each for each in _ranked(trial, FEW) if each.policy.key == BASE).by_rates
        for trial in (few, many)
    )
    assert wide is not None
    assert narrow is not None
    assert wide.n == 9
    assert narrow.lower < narrow.value < narrow.upper  # type: ignore[operator]
    assert wide.upper - wide.lower > 4 * (narrow.upper - narrow.lower)  # type: ignore[operator]


def test_rates_that_are_drawn_have_the_mean_of_their_posterior() -> None:
    drawn = Counted({"node": 20.0, "rack": 0.0}, 1000.0).drawn(4000, 1)
    assert drawn.sum(axis=0).mean() == pytest.approx(20.5, rel=0.02)
    assert drawn[1].mean() == pytest.approx(20.5 * 20.5 / 21.0, rel=0.02)
    assert drawn[2].mean() == pytest.approx(20.5 * 0.5 / 21.0, rel=0.1)
    assert (drawn[[0, 3]] == 0).all()


def test_failures_that_come_together_leave_as_much_open_as_so_many_fewer() -> None:
    alone = Counted({"node": 400.0}, 1000.0).drawn(4000, 1)[1]
    together = Counted({"node": 400.0}, 1000.0, weight=0.25).drawn(4000, 1)[1]
    assert together.mean() == pytest.approx(alone.mean(), rel=0.02)
    assert together.std() == pytest.approx(2 * alone.std(), rel=0.05)


def test_what_a_policy_has_beyond_checkpoints_is_paired() -> None:
    few = Trial(site=SITE, counted=Counted({"node": 60, "process": 30}, 1e4), runs=50)
    found = {each.policy.key: each for each in _ranked(few, FEW)}
    gain, base = found["gemini"].gain, found[BASE]
    assert gain is not None
    assert gain.value == pytest.approx(found["gemini"].ettr.value - base.ettr.value)  # type: ignore[operator]
    assert gain.lower <= gain.value <= gain.upper  # type: ignore[operator]
    assert gain.n == 90
    assert base.gain is not None
    assert base.gain.value == base.gain.lower == base.gain.upper == 0.0
    assert _ranked(few, ("gemini",))[0].gain is None


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match="policies are alike"):
        Trial(site=replace(SITE, hazards=Hazards(nodes=8, rates={})))
    with pytest.raises(OutOfRangeError, match="name one"):
        outcome(Trial(site=SITE, runs=5), "nothing")


def _cluster(generator: np.random.Generator) -> Site:
    """A cluster of any size, with rates and costs of any kind."""
    kinds = generator.dirichlet([4.0, 3.0, 0.2, 0.5]) * generator.uniform(1.0, 25.0)
    names = ("node", "process", "rack", "preemption")
    return Site(
        hazards=Hazards(
            nodes=int(2 ** generator.uniform(5, 11)),
            rates=dict(zip(names, kinds.tolist(), strict=True)),
            rack_nodes=int(generator.integers(2, 12)),
            repair_hours=float(generator.uniform(1, 60)),
        ),
        restart_min=float(generator.uniform(2, 20)),
        write_min=float(generator.uniform(0.2, 10)),
        queue_min=float(generator.uniform(0, 40)),
        detect_min=float(generator.uniform(0, 15)),
        load_min=float(generator.uniform(0, 5)),
        pipeline_nodes=int(generator.choice([4, 8, 16])),
    )


@pytest.mark.slow
def test_the_best_policy_is_found_or_not_told_apart_on_fifty_clusters() -> None:
    """The cluster is known by what failed in some node-days; the truth is its own rates."""
    generator = np.random.default_rng(11)
    right, apart, differing = 0, 0, 0
    for seed in range(50):
        truth = _cluster(generator)
        days = float(generator.uniform(2e4, 2e5))
        counts = {
            k: float(generator.poisson(r * days / 1000)) for k, r in truth.hazards.rates.items()
        }
        rates = {kind: n / days * 1000 for kind, n in counts.items()}
        seen = replace(truth, hazards=replace(truth.hazards, rates=rates))
        runs = int(np.clip(1e5 / Trial(site=truth).expected, 50, 1500))
        of_truth = _ranked(Trial(site=truth, runs=runs, seed=1000 + seed))
        found = _ranked(Trial(site=seen, counted=Counted(counts, days), seed=seed))
        best, first = of_truth[0].policy.key, found[0]
        right += best == first.policy.key or best in first.tied_with
        true = {each.policy.key: each.ettr.value or 0.0 for each in of_truth}
        pairs = [
            (a, b)
            for a in found
            for b in found
            if a.rank < b.rank and abs(true[a.policy.key] - true[b.policy.key]) > 0.02
        ]
        told = sum(b.policy.key not in a.tied_with for a, b in pairs)
        differing += bool(pairs)
        apart += bool(pairs) and told >= 0.99 * len(pairs)
    print(f"best or not told apart {right} of 50; told apart {apart} of {differing} that differ")
    assert right >= 47
    assert differing >= 45
    assert apart >= 40 / 50 * differing


def test_a_job_that_fails_all_day_is_played_for_fewer_days_over_which_its_time_is_shared_alike() -> (
    None
):
    site = replace(SITE, hazards=Hazards(nodes=2000, rates={"node": 50.0}))
    whole = Trial(site=site, days=20, runs=100)
    cut = replace(whole, a_run=300.0)
    assert (whole.lasts, cut.lasts) == (20, pytest.approx(3.0))
    assert replace(whole, a_run=1e6).lasts == 20
    for long, short in zip(_ranked(whole, FEW), _ranked(cut, FEW), strict=True):
        error = np.hypot(*(each.ettr.upper - each.ettr.value for each in (long, short)))  # type: ignore[operator]
        assert long.policy == short.policy
        assert short.ettr.value == pytest.approx(long.ettr.value, abs=2 * error)
        assert short.lost_node_hours == pytest.approx(long.lost_node_hours, rel=0.02)
