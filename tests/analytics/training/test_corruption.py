"""Suspects by logged series: proof by checksums, scatter by persistence, and what is not seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.errors import AnalysisError
from analytics.training.corruption import Logged, suspects
from analytics.training.indicator_names import INDICATORS, indicator

NAMES = {
    # as torchtitan, Megatron-LM, NeMo, DeepSpeed, Hugging Face and own loggers write them
    "loss_metrics/global_avg_loss": "loss",
    "lm loss": "loss",
    "reduced_train_loss": "loss",
    "train/grad_norm": "grad_norm",
    "grad-norm": "grad_norm",
    "gradNorm": "grad_norm",
    "gradient_norm_before_allreduce": "grad_norm",
    "layers.11.attention.entropy": "attention_entropy",
    "attn_entropy/mean": "attention_entropy",
    "q_norm": "query_norm",
    "model.layers.0.key_norm.max": "key_norm",
    "update_cosine_similarity": "update_cosine",
    "params/sha256": "checksum",
    "weight_checksum": "checksum",
    "loss scale": None,
    "lm loss validation": None,
    "num zeros": None,
    "params norm": None,
    "qk_norm": None,
    "entropy": None,
    "aux_loss": None,
    "grad_norm_clip_threshold": None,
    "learning-rate": None,
}


def logged(table: np.ndarray, name: str = "local_loss", ranks: np.ndarray | None = None) -> Logged:
    n_steps, n_ranks = table.shape
    who = np.arange(n_ranks) if ranks is None else ranks
    return Logged(
        name, np.repeat(np.arange(float(n_steps)), n_ranks), np.tile(who.astype(float), n_steps),
        table.ravel(),
    )  # fmt: skip


def scattered(seed: int, n_steps: int = 400, n_ranks: int = 8) -> np.ndarray:
    """Losses that fall, each rank with its own level and heavy tails."""
    rng = np.random.default_rng(seed)
    level = 2 + 3 * np.exp(-np.arange(n_steps) / 80)[:, None] + rng.normal(0, 0.03, n_ranks)
    return level + 0.05 * rng.standard_t(4, (n_steps, n_ranks))


def sums(n_steps: int = 6, n_ranks: int = 4) -> np.ndarray:
    return np.array([[f"{step:016x}"] * n_ranks for step in range(n_steps)], dtype=object)


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_a_series_is_known_by_the_names_that_loggers_write(name: str, kind: str | None) -> None:
    assert indicator(name) == kind


def test_a_checksum_that_differs_is_proof_whatever_else_is_logged() -> None:
    table = sums()
    table[4:, 2] = "dead"
    found = suspects([logged(table, "weight_checksum")])
    (one,) = found.suspects
    assert (one.ranks, one.since_step, one.grade, one.n_steps) == ((2,), 4, "proof", 2)
    assert (one.p_value, found.verdict) == (None, "suspects")


def test_of_two_replicas_that_differ_either_may_be_wrong() -> None:
    table = sums(n_ranks=2)
    table[3:, 1] = "dead"
    (one,) = suspects([logged(table, "checksum")]).suspects
    assert (one.ranks, one.since_step, one.grade) == ((0, 1), 3, "proof")


def test_replicas_are_told_from_shards_by_when_they_agree() -> None:
    table = np.array([[f"{step}a", f"{step}b"] * 3 for step in range(9)], dtype=object)
    assert suspects([logged(table, "checksum")]).verdict == "none"
    table[7, 4] = "dead"
    (one,) = suspects([logged(table, "checksum")]).suspects
    assert one.ranks == (4,)
    shards = np.array([[f"{step}-{rank}" for rank in range(4)] for step in range(9)], dtype=object)
    found = suspects([logged(shards, "checksum")])
    assert found.verdict == "cannot_be_judged"
    assert found.not_seen[0].why == "shards"


def test_large_checksums_are_not_rounded() -> None:
    table = np.full((3, 3), str(2**63 + 1), dtype=object)
    table[2, 1] = str(2**63)
    (one,) = suspects([logged(table, "checksum")]).suspects
    assert (one.ranks, one.since_step) == ((1,), 2)


def test_a_number_that_is_averaged_over_ranks_must_be_alike() -> None:
    norm = np.repeat(np.random.default_rng(1).lognormal(size=(100, 1)), 4, axis=1)
    assert suspects([logged(norm, "grad_norm")]).verdict == "not_ruled_out"
    norm[96:99, 3] *= 1.5
    (one,) = suspects([logged(norm, "grad_norm")]).suspects
    assert (one.ranks, one.since_step, one.grade, one.kind) == ((3,), 96, "strong", "differs")
    norm[97:99, 3] = norm[97:99, 0]
    (one,) = suspects([logged(norm, "grad_norm")]).suspects
    assert one.grade == "weak"


def test_an_averaged_norm_is_no_sight_of_the_ranks_own() -> None:
    norm = np.repeat(np.random.default_rng(1).lognormal(size=(100, 1)), 4, axis=1)
    missing = {one.indicator: one.why for one in suspects([logged(norm, "grad_norm")]).not_seen}
    assert missing["grad_norm"] == "alike"
    assert missing["checksum"] == "not_logged"


def test_a_rank_that_moves_away_and_stays_is_found_since_when_it_does() -> None:
    found = 0
    for seed in range(10):
        table = scattered(seed)
        rank, since = seed % 8, 150 + 10 * seed
        table[since:, rank] += 0.15
        (one,) = suspects([logged(table)]).suspects or (None,)
        if one is not None:
            assert (one.ranks, one.grade, one.kind) == ((rank,), "strong", "shifted")
            assert abs(one.since_step - since) <= 32
            assert one.p_value < 0.01
            found += 1
    assert found >= 9


def test_sound_runs_of_many_kinds_have_no_suspect() -> None:
    rng = np.random.default_rng(4)
    alarms = 0
    for seed in range(60):
        table = scattered(seed, 256, 8)
        if seed % 3 == 1:  # ranks whose data change slowly
            table += np.cumsum(rng.normal(0, 0.003, table.shape), axis=0)
        if seed % 3 == 2:
            table = np.exp(rng.normal(size=table.shape))
        alarms += suspects([logged(table)]).verdict != "not_ruled_out"
    assert alarms <= 2


def test_one_value_far_outside_is_weak_and_three_are_strong() -> None:
    table = scattered(5)
    table[200, 6] += 50
    (one,) = suspects([logged(table)]).suspects
    assert (one.ranks, one.since_step, one.grade, one.kind) == ((6,), 200, "weak", "out")
    table[[250, 300], 6] += 50
    (one,) = suspects([logged(table)]).suspects
    assert (one.grade, one.n_steps) == ("strong", 3)


def test_a_rank_that_alone_logs_nan_is_named_and_all_together_are_not() -> None:
    table = scattered(6)
    table[100] = np.nan
    assert suspects([logged(table)]).suspects == ()
    table[120, 1] = np.nan
    (one,) = suspects([logged(table)]).suspects
    assert (one.ranks, one.since_step, one.grade, one.kind) == ((1,), 120, "weak", "not_finite")


def test_what_nobody_logged_cannot_be_judged() -> None:
    nothing = suspects([])
    assert nothing.verdict == "cannot_be_judged"
    assert {(one.indicator, one.why) for one in nothing.not_seen} == {
        (kind, "not_logged") for kind in INDICATORS
    }
    loss = scattered(7)[:, :1]
    for ranks, n in ((np.array([0]), 1), (np.array([np.nan]), 1), (np.array([0, 1, 2]), 3)):
        found = suspects([logged(np.repeat(loss, n, axis=1) + np.arange(n), "loss", ranks)])
        assert found.verdict == "cannot_be_judged"
        why = {one.indicator: one.why for one in found.not_seen}["loss"]
        assert why == ("few_ranks" if n == 3 else "one_rank")
    short = suspects([logged(scattered(8, 100, 8))])
    assert {one.indicator: one.why for one in short.not_seen}["loss"] == "few_steps"


def test_of_a_step_that_one_rank_logs_again_nobody_knows_what_to_compare() -> None:
    table = sums(4, 3)
    table[2, 1] = "dead"
    one = logged(table, "checksum")
    again = Logged(
        one.name, np.append(one.steps, 2.0), np.append(one.ranks, 1.0),
        np.append(one.values, table[2, 0]),
    )  # fmt: skip
    assert suspects([one]).verdict == "suspects"
    assert suspects([again]).verdict == "none"


@pytest.mark.parametrize("is_known", [True, False])
def test_ranks_are_compared_within_an_attempt(is_known: bool) -> None:
    rows = [(step, rank, 1) for step in range(101) for rank in range(4)]
    rows += [(step, rank, 2) for step in range(90, 96) for rank in range(4 if step < 95 else 3)]
    steps, ranks, attempts = np.array(rows, dtype=float).T
    texts = np.array([f"{attempt}-{step}" for step, _, attempt in rows], dtype=object)
    told = attempts if is_known else None
    assert suspects([Logged("checksum", steps, ranks, texts, told)]).verdict == "none"
    texts[-5] = "dead"  # the second time that rank 2 logs step 94
    (one,) = suspects([Logged("checksum", steps, ranks, texts, told)]).suspects
    assert (one.ranks, one.since_step, one.grade) == ((2,), 94, "proof")


def test_ranks_that_are_jobs_of_their_own_are_compared() -> None:
    table = sums(9)
    table[6:, 2] = "dead"
    one = logged(table, "checksum")
    (found,) = suspects([Logged(one.name, one.steps, one.ranks, one.values, one.ranks)]).suspects
    assert (found.ranks, found.since_step, found.grade) == ((2,), 6, "proof")


def test_a_checksum_that_never_equals_that_of_the_others_is_a_strong_suspect() -> None:
    table = sums(200)
    table[:, 2] = [f"cd{step:06x}" for step in range(200)]
    (one,) = suspects([logged(table, "checksum")]).suspects
    assert (one.ranks, one.since_step, one.grade, one.kind) == ((2,), 0, "strong", "never_equal")
    table[0, 2] = table[0, 0]
    (one,) = suspects([logged(table, "checksum")]).suspects
    assert (one.ranks, one.since_step, one.grade, one.kind) == ((2,), 1, "proof", "differs")


def test_a_rank_without_a_replica_is_named_as_not_compared() -> None:
    table = sums(40)
    table[:, [1, 3]] = [[f"b{step}", f"c{step}"] for step in range(40)]
    found = suspects([logged(table, "checksum")])
    assert (found.verdict, found.suspects) == ("not_ruled_out", ())
    assert [(one.ranks, one.n_steps) for one in found.not_compared] == [((1, 3), 40)]
    assert found.judged[0].n_ranks == 2


@pytest.mark.parametrize("n_alike", [1, 10, 150])
def test_shards_that_were_alike_at_the_start_stay_shards(n_alike: int) -> None:
    table = np.array([[f"{step}-{rank}" for rank in range(4)] for step in range(200)], dtype=object)
    table[:n_alike] = "zeros"
    assert suspects([logged(table, "checksum")]).verdict == "cannot_be_judged"
    table[n_alike:, [1, 3]] = table[n_alike:, [0, 2]]
    assert suspects([logged(table, "checksum")]).verdict == "none"
    table[180:, 3] = [f"dead{step}" for step in range(20)]
    (one,) = suspects([logged(table, "checksum")]).suspects
    assert (one.ranks, one.since_step, one.grade) == ((2, 3), 180, "proof")


def test_none_needs_checksums_of_all_ranks_throughout() -> None:
    loss = logged(scattered(3, 200, 4), "loss")

    def checked(steps: range, n_ranks: int = 4) -> Logged:
        at = np.repeat(np.array(steps, dtype=float), n_ranks)
        who = np.tile(np.arange(float(n_ranks)), len(steps))
        return Logged("param_hash", at, who, at.astype(str).astype(object))

    assert suspects([loss, checked(range(0, 200, 20))]).verdict == "none"
    seldom = suspects([loss, checked(range(50, 51), 2)])
    assert seldom.verdict == "not_ruled_out"
    assert [(one.ranks, one.n_steps) for one in seldom.not_compared] == [
        ((2, 3), 200),
        ((0, 1), 199),
    ]
    half = suspects([loss, checked(range(0, 100, 20))])
    (unseen,) = half.not_compared
    assert (unseen.ranks, unseen.since_step, unseen.until_step) == ((0, 1, 2, 3), 101, 199)


@pytest.mark.parametrize("level", [0.5, np.log(3)])
def test_a_rank_on_another_level_is_sound(level: float) -> None:
    alarms = 0
    for seed in range(20):
        table = np.random.default_rng(seed).normal(0, 0.05, (500, 8))
        table[:, 3] += level
        alarms += bool(suspects([logged(np.exp(table))]).suspects)
    assert alarms <= 1


def test_a_rank_that_scatters_more_throughout_is_sound() -> None:
    for seed in range(5):
        table = np.random.default_rng(seed).normal(0, 0.05, (400, 8))
        table[:, 3] *= 4
        assert suspects([logged(table)]).suspects == ()


def test_levels_of_ranks_hide_no_shift() -> None:
    for seed in range(10):
        table = np.random.default_rng(seed).normal(0, 0.05, (500, 8)) + 0.3 * np.arange(8)
        table[250:, 3] += np.log(1.3)
        (one,) = suspects([logged(np.exp(table))]).suspects
        assert (one.ranks, one.kind) == ((3,), "shifted")


def test_a_last_digit_is_no_other_number() -> None:
    rng = np.random.default_rng(2)
    norm = np.repeat(np.round(rng.lognormal(size=(3000, 1)), 6), 8, axis=1)
    last = norm + 1e-6 * (rng.random(norm.shape) < 0.004)
    assert suspects([logged(last, "grad_norm")]).suspects == ()
    coarse = np.round(norm, 2) + 0.01 * (rng.random(norm.shape) < 0.004)
    assert suspects([logged(coarse, "grad_norm")]).suspects == ()
    rare = norm * (1 + 0.1 * (rng.random(norm.shape) < 0.004))
    found = suspects([logged(rare, "grad_norm")]).suspects
    assert (len(found), {one.grade for one in found}) == (8, {"weak"})
    last[100:110, 3] *= 1.01
    (one,) = suspects([logged(last, "grad_norm")]).suspects
    assert (one.ranks, one.since_step, one.grade) == ((3,), 100, "strong")


def test_ranks_without_a_loss_by_design_are_no_suspects() -> None:
    table = scattered(4)
    table[:, [1, 2, 5]] = np.nan
    found = suspects([logged(table)])
    assert (found.suspects, found.judged[0].n_ranks) == ((), 5)
    table[300:, 6] = np.nan
    (one,) = suspects([logged(table)]).suspects
    assert (one.ranks, one.since_step, one.grade, one.kind) == ((6,), 300, "strong", "not_finite")


def test_a_series_that_is_constant_or_empty_is_no_suspect() -> None:
    assert suspects([logged(np.ones((300, 8)))]).suspects == ()
    empty = Logged("loss", np.empty(0), np.empty(0), np.empty(0))
    assert suspects([empty]).verdict == "cannot_be_judged"
    frozen = scattered(9)
    frozen[:, 3] = 2.0
    assert all(one.ranks == (3,) for one in suspects([logged(frozen)]).suspects)


@settings(max_examples=6)
@given(st.integers(0, 99), st.randoms(use_true_random=False))
def test_names_of_ranks_and_units_change_nothing(seed: int, chance) -> None:
    table = scattered(seed, 200, 6)
    table[90:, 2] += 0.4
    order = chance.sample(range(6), 6)
    found = suspects([logged(table)]).suspects
    others = suspects([logged(table[:, order] * 1000, ranks=np.arange(6) + 40)]).suspects
    renamed = {(40 + order.index(one.ranks[0]), one.since_step, one.grade) for one in found}
    assert renamed == {(other.ranks[0], other.since_step, other.grade) for other in others}
    assert (2,) in [one.ranks for one in found]
    values = sorted(one.p_value for one in found)
    assert sorted(other.p_value for other in others) == pytest.approx(values)


def test_nonsense_is_refused() -> None:
    with pytest.raises(AnalysisError, match=r"false_alarms must be in \(0, 1\), got 1"):
        suspects([], false_alarms=1)
    bad = Logged("loss", np.zeros(3), np.zeros(2), np.zeros(3))
    with pytest.raises(AnalysisError, match="columns of loss differ in length"):
        suspects([bad])
