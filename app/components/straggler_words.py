"""What is said of a traced run: who slows it, and what fixing it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from app.figures import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.questions import StragglerTrace

STRAGGLING: Final = 1.1
"""S above which a job is said to straggle (Lin et al.)."""
MOST_NAMED = 3
"""Workers that a sentence names."""
CAUSES: Final = {
    "worker": ("slow worker", "fixing it"),
    "stage": ("slow stage", "levelling the stages"),
    "sequence_length": ("uneven sequence lengths", "balancing micro-batches"),
    "pause": ("pauses", "avoiding them"),
    "dp_link": ("slow data-parallel link", "fixing it"),
    "pp_link": ("slow pipeline link", "fixing it"),
    "optimizer": ("slow optimizer", "fixing it"),
    "data_loading": ("waiting for data", "loading ahead"),
    "none": ("no cause found", ""),
    "unknown": ("cause not stored", ""),
}
"""Cause -> its name, and what gives the time back."""
EVIDENCE: Final = {
    "time_over_peers_ratio": "computes take {} times as long as those of its peers",
    "slow_steps_ratio": "slow in {} of steps",
    "n_slow_workers": "slow workers: {}",
    "share_of_slowest_ratio": "{} of it by the slowest",
    "whole_dp_rank": "the whole dp rank",
    "time_over_usual_stage_ratio": "computes take {} times as long as on the usual stage",
    "forward_ratio": "forward {} times",
    "backward_ratio": "backward {} times",
    "n_dp_ranks": "on {} dp ranks",
    "last_stage": "the last stage",
    "correlation_raw": "forward and backward correlate by {}",
    "correlation_demeaned": "by {} without the means of workers",
    "correlation_between_stages": "by {} between stages",
    "coefficient_of_variation": "coefficient of variation {}",
    "n_pauses": "pauses: {}",
    "n_workers": "workers: {}",
    "steps_with_pause_ratio": "in {} of steps",
    "seconds_per_pause": "{} s each",
    "share_of_top_worker_ratio": "{} of it on one worker",
    "steps_between": "every {} steps",
    "operation": "{}",
    "seconds_above_usual": "{} s a step above the usual",
    "time_over_usual_ratio": "{} times the usual",
    "n_workers_slow": "slow workers: {}",
    "n_transfers": "transfers a step: {}",
    "seconds_a_step": "{} s a step",
    "late_steps_ratio": "late in {} of steps",
    "longest_seconds": "{} s at most",
    "slowest_dp_rank": "slowest dp rank {}",
    "slowest_over_median_rank_ratio": "{} times the median rank",
    "straggles": "it straggles",
}
"""Number by which a cause is recognised -> what is said of it."""
SHARES: Final = (
    "slow_steps_ratio", "share_of_slowest_ratio", "steps_with_pause_ratio",
    "share_of_top_worker_ratio", "late_steps_ratio",
)  # fmt: skip
"""Those of them that are shares."""


def title(cause: str) -> str:
    """Name of a cause.

    >>> title("dp_link"), title("another")
    ('slow data-parallel link', 'another')
    """
    return CAUSES.get(cause, (cause, ""))[0]


def verdict(found: StragglerTrace) -> str:
    """Who slows the run, what would fixing it give?"""
    slowdown = numbers.number(found.slowdown.value)
    causes = [each for each in found.results.get("causes") or () if each["cause"] != "none"]
    straggles = (found.slowdown.value or 0.0) > STRAGGLING
    if not causes:
        if straggles:
            return f"The run takes {slowdown} times as long as without stragglers; no cause found."
        return f"The run does not straggle: it takes {slowdown} times as long as without."
    first = causes[0]
    subject = _subject(first, found.nodes.node_of)
    fix = CAUSES.get(first["cause"], ("", "fixing it"))[1]
    times = numbers.number(1.0 / (1.0 - first["gain_ratio"]))
    verb = "make" if first["cause"] in ("pause", "sequence_length") else "makes"
    gain = numbers.percent(first["gain_ratio"])
    text = f"{subject} {verb} the run {times} times slower: {fix} gives back {gain} of the time"
    return f"{text}." if straggles else f"{text}; S is {slowdown}, so it does not straggle."


def basis(found: StragglerTrace) -> str:
    """What was traced."""
    facts = found.facts
    n_gpus = "GPUs unknown" if found.n_gpus is None else numbers.counted(found.n_gpus, "GPU")
    parts = [
        str(facts["name"]),
        *([f"cluster {facts['cluster']}"] if facts["cluster"] else []),
        n_gpus,
        f"{facts['dp']:,} data-parallel ranks x {facts['pp']:,} stages"
        + (f" x {facts['vpp']:,} chunks" if facts["vpp"] > 1 else ""),
        numbers.counted(facts["n_steps"], "step"),
        *([f"{facts['n_dropped_steps']:,} left out"] if facts["n_dropped_steps"] else []),
    ]
    return " · ".join(parts)


def workers(cause: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The workers (dp_rank, stage) that a cause is about; none where it is about more than those.

    >>> workers({"target": {"dp_rank": 3, "stage": 2}}), workers({"target": {"stage": 2}})
    ([(3, 2)], [])
    """
    found = cause["target"] or {}
    named = found.get("workers") or [found]
    return [
        (each["dp_rank"], each["stage"])
        for each in named[:MOST_NAMED]
        if each.get("dp_rank") is not None and each.get("stage") is not None
    ]


def target(cause: Mapping[str, Any], node_of: Mapping[tuple[int, int], str]) -> str:
    """What a cause is about, with nodes where they are known; empty for the whole job."""
    found = cause["target"] or {}
    if found.get("dp_rank") is not None and found.get("stage") is not None:
        return worker(found["dp_rank"], found["stage"], node_of)
    workers = found.get("workers") or []
    if found.get("dp_rank") is not None:
        return f"dp {found['dp_rank']}" + _stages(found)
    if found.get("stage") is not None or found.get("stages"):
        return _stages(found).removeprefix(", ")
    named = [worker(w["dp_rank"], w["stage"], node_of) for w in workers[:MOST_NAMED]]
    more = found.get("n_workers", len(workers)) - len(named)
    return "; ".join([*named, *([f"{more:,} more"] if more > 0 else [])])


def worker(dp: int, stage: int, node_of: Mapping[tuple[int, int], str]) -> str:
    """A worker with its node.

    >>> worker(3, 2, {(3, 2): "gpu7"}), worker(3, 2, {})
    ('dp 3, stage 2 (gpu7)', 'dp 3, stage 2')
    """
    node = node_of.get((dp, stage))
    return f"dp {dp}, stage {stage}" + (f" ({node})" if node else "")


def evidence(cause: Mapping[str, Any]) -> str:
    """Numbers by which a cause was recognised.

    >>> evidence({"evidence": {"forward_ratio": 1.35, "n_dp_ranks": 8, "last_stage": True}})
    'forward 1.35 times, on 8 dp ranks, the last stage'
    >>> evidence({"evidence": {"slow_steps_ratio": 0.5, "steps_between": None, "another_s": 2.0}})
    'slow in 50 % of steps, another s 2.00'
    """
    return ", ".join(
        EVIDENCE.get(name, f"{name.replace('_', ' ')} {{}}").format(_value(name, value))
        for name, value in cause["evidence"].items()
        if value is not None and value is not False
    )


def _value(name: str, value: Any) -> str:
    if isinstance(value, int):
        return numbers.count(value)
    if isinstance(value, float):
        return numbers.percent(value) if name in SHARES else numbers.number(value)
    return str(value)


def _stages(found: Mapping[str, Any]) -> str:
    if found.get("stages"):
        return f", stages {' and '.join(str(each) for each in found['stages'])}"
    return "" if found.get("stage") is None else f", stage {found['stage']}"


def _subject(cause: Mapping[str, Any], node_of: Mapping[tuple[int, int], str]) -> str:
    """What begins the sentence."""
    where = target(cause, node_of)
    if cause["cause"] == "worker" and (cause["target"] or {}).get("stage") is not None:
        return f"Worker {where}"
    if cause["cause"] == "stage":
        return where[0].upper() + where[1:]
    name = title(cause["cause"])
    return f"{name[0].upper()}{name[1:]}" + (f" ({where})" if where else "")
