"""The what-if of a trace as one result, and the record of it that is stored and printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from analytics.estimate import Estimate
from analytics.training.stragglers.alignment import DroppedStep
from analytics.training.stragglers.causes import (
    Concentration,
    Onset,
    StragglerCause,
    StragglerPatterns,
    causes,
    patterns,
)
from analytics.training.stragglers.clocks import ClockOffset
from analytics.training.stragglers.fixes import slowdown_estimate, wasted_estimate
from analytics.training.stragglers.launch import LaunchSlowdowns
from analytics.training.stragglers.slowdown import (
    Contribution,
    Slowdowns,
    SlowestWorkers,
    Worker,
    ranked,
    slowdowns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from analytics.training.stragglers.operations import Times
    from analytics.training.stragglers.step_model import StepModel

    Record: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class StragglerAnalysis:
    """How much a traced job straggles, why, when and where."""

    slowdowns: Slowdowns
    causes: tuple[StragglerCause, ...] | None
    """Strongest first; None where a store keeps a result of before they were looked for."""
    patterns: StragglerPatterns | None
    """None where a store keeps a result of before they were looked for."""
    clock_offsets: tuple[ClockOffset, ...] = ()
    """Clocks of workers that were set right, strongest first."""

    @property
    def strongest(self) -> StragglerCause | None:
        """The strongest cause, `none` where none was found; None where causes are not stored."""
        return self.causes[0] if self.causes else None

    @property
    def found_causes(self) -> tuple[StragglerCause, ...]:
        """The causes without `none`, which says that none was found."""
        return tuple(each for each in self.causes or () if each.cause != "none")


def analyse_trace(
    model: StepModel, *, on_slowdowns: Callable[[], object] | None = None
) -> StragglerAnalysis:
    """All that the what-if says of a traced job: what reader, command and page show.

    Parameters
    ----------
    model
        The job, of `StepModel.of_rows`.
    on_slowdowns
        Called once the slowdowns are there, before causes and patterns are looked for.

    Raises
    ------
    AnalysisError
        Where an ideal step takes no time.
    """
    slow = slowdowns(model)
    if on_slowdowns is not None:
        on_slowdowns()
    return StragglerAnalysis(slow, causes(model, slow), patterns(slow), model.clock_offsets)


def analysis_record(analysis: StragglerAnalysis) -> dict[str, Any]:
    """The results as plain values, ready for JSON.

    Keys as in the artifact of arXiv 2505.05713 (`S`, `S_t`, `S_dp`, `S_pp`, `S_w` by rank and
    stage, `M_W`, `M_S`, step times by step), those of parts for healthy jobs as well; and
    `S_w_exact`, `M_stages`, `M_W_curve` by number of workers, `slowest_workers`,
    `simulation_error_ratio`, `launch_S`, `dropped_steps`, `gpu_hours_wasted_ratio`,
    `clock_offsets_ms`, `causes` and `patterns`, the last two only where they are known. With
    intervals over the traced steps: `S_estimate`, `gpu_hours_wasted_ratio_estimate` and, of each
    cause, `gain_estimate`.
    """
    slow = analysis.slowdowns
    estimate = slowdown_estimate(slow.original_seconds, slow.ideal_seconds, slow.steps)
    last_stage, slowest = slow.stages[-1], slow.slowest
    record = {
        "S": slow.slowdown,
        "S_estimate": vars(estimate),
        "launch_slowdown": slow.launch_slowdown,
        "T_ideal": slow.ideal_seconds,
        "T_ideal_spread": slow.ideal_spread_seconds,
        "step_t_base": _by_step(slow, slow.traced_seconds),
        "step_t_nodelay": _by_step(slow, slow.original_seconds),
        "per_step_S": {str(step): s for step, s in slow.steps_ranked.items()},
        "S_t": dict(slow.by_type),
        "S_dp": _numbered(slow.by_dp),
        "S_pp": _numbered(slow.by_stage),
        "S_w": slow.by_worker.tolist(),
        "M_S": _contribution_record(last_stage) | {"Ms": last_stage.fixed_ratio},
        "M_W": _contribution_record(slowest.contribution)
        | {"Mw": slowest.contribution.fixed_ratio},
        "S_w_exact": slow.by_worker_exact.tolist(),
        "M_stages": [_contribution_record(stage) for stage in slow.stages],
        "M_W_curve": {str(k): ratio for k, ratio in slowest.fixed_ratio.items()},
        "slowest_workers": [_worker_record(slow, worker) for worker in slowest.workers],
        "simulation_error_ratio": slow.simulation_error,
        "launch_S": None if slow.launch is None else _launch_record(slow.launch),
        "dropped_steps": [vars(dropped) for dropped in slow.dropped_steps],
        "gpu_hours_wasted_ratio": slow.wasted_ratio,
        "gpu_hours_wasted_ratio_estimate": vars(wasted_estimate(estimate)),
        "clock_offsets_ms": [vars(offset) for offset in analysis.clock_offsets],
    }
    if analysis.causes is not None:
        record["causes"] = [_cause_record(cause) for cause in analysis.causes]
    if analysis.patterns is not None:
        record["patterns"] = _patterns_record(analysis.patterns)
    return record


def analysis_of_record(record: Record) -> StragglerAnalysis:
    """The results that a record of `analysis_record` holds, number by number."""
    steps = sorted(record["step_t_base"], key=int)
    slow = Slowdowns(
        steps=np.array(steps, dtype=np.int64),
        traced_seconds=_in_order(record["step_t_base"], steps),
        original_seconds=_in_order(record["step_t_nodelay"], steps),
        step_slowdown=_in_order(record["per_step_S"], steps),
        ideal_seconds=record["T_ideal"],
        ideal_spread_seconds=record["T_ideal_spread"],
        slowdown=record["S"],
        launch_slowdown=record["launch_slowdown"],
        by_type=record["S_t"],
        by_stage=_in_order(record["S_pp"]),
        by_dp=_in_order(record["S_dp"]),
        by_worker_exact=np.array(record["S_w_exact"]),
        stages=tuple(_contribution(stage) for stage in record["M_stages"]),
        slowest=SlowestWorkers(
            tuple(Worker(w["dp_rank"], w["stage"], w["rank"]) for w in record["slowest_workers"]),
            _contribution(record["M_W"]),
            {int(k): ratio for k, ratio in record["M_W_curve"].items()},
        ),
        launch=None if record["launch_S"] is None else _launch(record["launch_S"]),
        dropped_steps=tuple(DroppedStep(**dropped) for dropped in record["dropped_steps"]),
    )
    causes, stored = record.get("causes"), record.get("patterns")
    return StragglerAnalysis(
        slow,
        None if causes is None else tuple(map(_cause, causes)),
        None if stored is None else _patterns(stored, slow),
        tuple(ClockOffset(**offset) for offset in record.get("clock_offsets_ms", ())),
    )


def _cause_record(cause: StragglerCause) -> dict[str, Any]:
    gain = cause.gain_estimate
    return vars(cause) | {"gain_estimate": None if gain is None else vars(gain)}


def _cause(record: Record) -> StragglerCause:
    gain = record.get("gain_estimate")
    return StragglerCause(**{**record, "gain_estimate": None if gain is None else Estimate(**gain)})


def _by_step(slow: Slowdowns, values: Times) -> dict[str, float]:
    return dict(zip(map(str, slow.steps.tolist()), values.tolist(), strict=True))


def _numbered(values: Times) -> dict[str, float]:
    """Slowdowns by number, slowest first."""
    return {str(at): slowdown for at, slowdown in ranked(values).items()}


def _in_order(values: Mapping[str, float], names: Iterable[str] | None = None) -> Times:
    """Values by name; where none are given, names are numbers from 0."""
    names = map(str, range(len(values))) if names is None else names
    return np.array([values[name] for name in names], dtype=np.float64)


def _contribution_record(part: Contribution) -> dict[str, float | None]:
    """Step times and shares, under the artifact's names."""
    return {
        "trem": part.fixed_seconds,
        "tadd": part.kept_seconds,
        "tori": part.original_seconds,
        "tideal": part.ideal_seconds,
        "rem": part.fixed_ratio,
        "add": part.kept_ratio,
    }


def _contribution(record: Record) -> Contribution:
    return Contribution(record["tori"], record["tideal"], record["trem"], record["tadd"])


def _worker_record(slow: Slowdowns, worker: Worker) -> dict[str, int | float | None]:
    at = (worker.dp, worker.stage)
    return {
        "dp_rank": worker.dp,
        "stage": worker.stage,
        "rank": worker.rank,
        "S_w": float(slow.by_worker[at]),
        "S_w_exact": float(slow.by_worker_exact[at]),
    }


def _launch_record(launch: LaunchSlowdowns) -> dict[str, dict[str, float]]:
    return {
        "type": dict(launch.by_type),
        "pp": _numbered(launch.by_stage),
        "dp": _numbered(launch.by_dp),
    }


def _launch(record: Record) -> LaunchSlowdowns:
    return LaunchSlowdowns(record["type"], _in_order(record["pp"]), _in_order(record["dp"]))


def _patterns_record(shown: StragglerPatterns) -> dict[str, Any]:
    """Patterns by name; `top` as (dp_rank, stage), (dp_rank) or (stage)."""
    return {
        "autocorrelation": shown.autocorrelation,
        "straggling_steps_ratio": shown.straggling_steps_ratio,
        "onset": None if shown.onset is None else vars(shown.onset),
        **{
            name: {
                "gini": spread.gini,
                "top": list(spread.top),
                "top_share_ratio": spread.top_share_ratio,
            }
            for name, spread in (
                ("workers", shown.workers),
                ("dp_ranks", shown.dp_ranks),
                ("stages", shown.stages),
            )
        },
    }


def _patterns(record: Record, slow: Slowdowns) -> StragglerPatterns:
    def spread(name: str, parts: Times) -> Concentration:
        """Concentration over the parts of a kind."""
        of = record[name]
        return Concentration(parts.size, of["gini"], tuple(of["top"]), of["top_share_ratio"])

    onset = record["onset"]
    return StragglerPatterns(
        record["autocorrelation"],
        record["straggling_steps_ratio"],
        None if onset is None else Onset(**onset),
        workers=spread("workers", slow.by_worker_exact),
        dp_ranks=spread("dp_ranks", slow.by_dp),
        stages=spread("stages", slow.by_stage),
    )
