"""Why is a traced run slow: its causes in words, when and where, and what fixing them gives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from analytics.training.stragglers.fixes import HALF_WAVE_STEPS
from app.answers.columns import KNOWN, columns
from app.answers.content import Table
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_training

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from analytics.training.stragglers.analysis import StragglerAnalysis
    from analytics.training.stragglers.causes import (
        Concentration,
        StragglerCause,
        StragglerPatterns,
    )
    from app.answers.training.trace import StragglerTrace
    from app.words.terms import Term

MOST_NAMED: Final = 3
"""Workers that a sentence names."""
WHOLE = "the whole run"
"""Where a cause is that is of no part."""
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


NOT_STORED: Final = "{} are not stored with this trace: ingest it again to have them found."
COLUMNS: Final = (
    Column("cause", "Cause"),
    Column("where", "Where"),
    replace(KNOWN["node"], title="Slowest node", none="unknown, or none alone"),
    Column("gain_ratio", "Gives back", "ratio",
           help=of_training.GIVES_BACK.definition),
    Column("evidence", "Evidence"),
    *columns(hidden=("cluster",)),
)  # fmt: skip


def title(cause: str) -> str:
    """Name of a cause.

    >>> title("dp_link"), title("another")
    ('slow data-parallel link', 'another')
    """
    return CAUSES.get(cause, (cause, ""))[0]


def sentence(analysis: StragglerAnalysis, node_of: Mapping[tuple[int, int], str]) -> str:
    """Who slows the run, what would fixing it give?"""
    slowdown = numbers.number(analysis.slowdowns.slowdown)
    straggles = analysis.slowdowns.straggles
    if not analysis.found_causes:
        if straggles:
            return f"The run takes {slowdown} times as long as without stragglers; no cause found."
        return f"The run does not straggle: it takes {slowdown} times as long as without."
    first = analysis.found_causes[0]
    fix = CAUSES.get(first.cause, ("", "fixing it"))[1]
    several = first.cause in ("pause", "sequence_length")
    subject, gain = _subject(first, node_of), numbers.percent(first.gain_ratio)
    if not straggles:
        return (
            f"The run does not straggle: {slowdown} times its ideal. {subject} "
            f"{'cost' if several else 'costs'} most: {fix} gives back {gain}."
        )
    return (
        f"{subject} {'slow' if several else 'slows'} the run to {slowdown} times its ideal; {fix} "
        f"gives back {gain}."
    )


def table(found: StragglerTrace) -> Table:
    """All causes, strongest first, with the evidence for each."""
    node_of = found.nodes.node_of
    return Table(
        "straggler_causes",
        "Causes",
        COLUMNS,
        tuple(
            (
                title(each.cause),
                target(each, node_of),
                node_of.get(each.workers[0]) if each.workers else None,
                each.gain_ratio,
                evidence(each),
                found.facts["cluster"],
            )
            for each in found.analysis.causes or ()
        ),
        NOT_STORED.format("Causes"),
        wrapped=True,
    )


def target(cause: StragglerCause, node_of: Mapping[tuple[int, int], str]) -> str:
    """What a cause is about, with nodes where they are known."""
    stages = "" if cause.stage is None else f"stage {cause.stage}"
    if cause.stages:
        stages = f"stages {' and '.join(map(str, cause.stages))}"
    if cause.dp is not None and cause.stage is not None:
        return worker(cause.dp, cause.stage, node_of)
    if cause.dp is not None:
        return ", ".join(filter(None, (f"dp {cause.dp}", stages)))
    if stages:
        return stages
    named = [worker(dp, stage, node_of) for dp, stage in cause.workers[:MOST_NAMED]]
    more = cause.n_workers - len(named)
    return "; ".join([*named, *([f"{more:,} more"] if more > 0 else [])]) or WHOLE


def worker(dp: int, stage: int, node_of: Mapping[tuple[int, int], str]) -> str:
    """A worker with its node.

    >>> worker(3, 2, {(3, 2): "gpu7"}), worker(3, 2, {})
    ('dp 3, stage 2 (gpu7)', 'dp 3, stage 2')
    """
    node = node_of.get((dp, stage))
    return f"dp {dp}, stage {stage}" + (f" ({node})" if node else "")


def evidence(cause: StragglerCause) -> str:
    """Numbers by which a cause was recognised.

    >>> from analytics.training.stragglers.causes import StragglerCause
    >>> known = {"forward_ratio": 1.35, "n_dp_ranks": 8, "last_stage": True}
    >>> evidence(StragglerCause("stage", {"stage": 3}, 0.1, None, known))
    'forward 1.35 times, on 8 dp ranks, the last stage'
    >>> known = {"slow_steps_ratio": 0.5, "steps_between": None, "another_s": 2.0}
    >>> evidence(StragglerCause("pause", None, 0.1, None, known))
    'slow in 50 % of steps, another s 2.00'
    """
    return ", ".join(
        EVIDENCE.get(name, f"{name.replace('_', ' ')} {{}}").format(_value(name, value))
        for name, value in cause.evidence.items()
        if value is not None and value is not False
    )


def _value(name: str, value: Any) -> str:
    if isinstance(value, int):
        return numbers.count(value)
    if isinstance(value, float):
        return numbers.percent(value) if name in SHARES else numbers.number(value)
    return str(value)


def _subject(cause: StragglerCause, node_of: Mapping[tuple[int, int], str]) -> str:
    """What begins the sentence."""
    where = target(cause, node_of)
    if cause.cause == "worker" and cause.stage is not None:
        return f"Worker {where}"
    if cause.cause == "stage":
        return where[0].upper() + where[1:]
    name = title(cause.cause)
    return f"{name[0].upper()}{name[1:]}" + (f" ({where})" if where != WHOLE else "")


def patterns(found: StragglerTrace) -> dict[Term, str]:
    """When and where the run straggles, or that this is not stored with the trace."""
    known = found.analysis.patterns
    if known is None:
        return {of_training.STRAGGLES_WHEN: NOT_STORED.format("Patterns")}
    return {of_training.STRAGGLES_WHEN: _when(known, found.facts["n_steps"]),
            of_training.STRAGGLES_WHERE:
                f"of what each costs alone, {_where(known, found)}"}  # fmt: skip


def _when(patterns: StragglerPatterns, n_steps: int) -> str:
    """Whether all steps are slow, some, or those from one on."""
    share = numbers.percent(patterns.straggling_steps_ratio)
    straggling = f"{share} of {numbers.counted(n_steps, 'step')} straggle"
    if patterns.onset is not None:
        rise = numbers.percent(patterns.onset.rise_ratio)
        return (
            f"{straggling}; from step {patterns.onset.step:,} on they take {rise} longer than "
            "before."
        )
    if patterns.autocorrelation is None:
        return f"{straggling}."
    return f"{straggling}, with no onset; autocorrelation {patterns.autocorrelation:.2f}."


def _where(known: StragglerPatterns, found: StragglerTrace) -> str:
    """Which worker, rank, stage and node has most of what parts cost alone."""
    if known.workers.gini is None:
        return "no worker has any."
    dp, stage = known.workers.top
    parts = [
        _share(worker(dp, stage, found.nodes.node_of), known.workers),
        _share(f"dp {known.dp_ranks.top[0]}", known.dp_ranks),
        _share(f"stage {known.stages.top[0]}", known.stages),
    ]
    if found.node_concentration is not None:
        node, spread = found.node_concentration
        parts.append(_share(f"node {node}", spread))
    return "; ".join(part for part in parts if part) + "."


def _share(name: str, spread: Concentration) -> str:
    """Share of the part with most; empty where there is one part alone, or none costs anything.

    >>> from analytics.training.stragglers.causes import Concentration
    >>> _share("dp 1", Concentration(8, 0.75, (1,), 0.9))
    'dp 1 has 90 % (Gini 0.75 over 8)'
    """
    if spread.n_parts < 2 or spread.gini is None:
        return ""
    return (
        f"{name} has {numbers.percent(spread.top_share_ratio)} (Gini {spread.gini:.2f} "
        f"over {spread.n_parts:,})"
    )


LEAST_LAUNCH: Final = 0.995
"""Launch slowdown below which operations ran before what they wait for had ended."""
LONGEST_STEP_S: Final = 120.0
"""Mean step time from which on milliseconds in place of seconds are likelier."""


def doubts(analysis: StragglerAnalysis) -> Iterator[str]:
    """Clocks set right, steps shorter than their operations, other units, steps of one moment."""
    offsets = analysis.clock_offsets
    for one in offsets[:MOST_NAMED]:
        label = "" if one.rank is None else f" (rank {one.rank})"
        side = "ahead of" if one.offset_ms > 0 else "behind"
        drift = f", drifting by {numbers.number(one.drift_ms)} ms," if one.drift_ms else ""
        yield (
            f"The clock of dp rank {one.dp_rank}, stage {one.stage}{label} was "
            f"{numbers.number(abs(one.offset_ms))} ms {side} the others{drift} and was set right: "
            "transfers end on all their members at once."
        )
    if len(offsets) > MOST_NAMED:
        yield f"{numbers.counted(len(offsets) - MOST_NAMED, 'more clock')} set right."
    slow = analysis.slowdowns
    if slow.launch_slowdown < LEAST_LAUNCH:
        yield (
            f"The traced step is {numbers.percent(1.0 - slow.launch_slowdown)} shorter than its "
            f"operations take one after the other (launch slowdown {slow.launch_slowdown:.3f}, "
            "below 1): some ran before what they wait for had ended. Clocks that differ, or "
            "starts and durations that do not belong together, make it so."
        )
    step = float(slow.traced_seconds.mean())
    if step > LONGEST_STEP_S:
        yield (
            f"A traced step takes {numbers.number(step)} s on average. Times must be seconds: "
            "where the trace has milli- or microseconds, divide them, and analyse it again."
        )
    if slow.steps[-1] - slow.steps[0] < HALF_WAVE_STEPS:
        yield (
            f"The traced steps lie within {HALF_WAVE_STEPS} of each other: they saw the run at one "
            "moment. How far S is from that of other steps cannot be judged."
        )
