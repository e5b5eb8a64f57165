"""The results of a what-if as plain values, with the keys of the paper's artifact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analytics.training.stragglers.contributions import Contribution
    from analytics.training.stragglers.slowdown import StragglerAnalysis


def analysis_record(analysis: StragglerAnalysis) -> dict[str, Any]:
    """The results, ready for JSON.

    Keys as in the artifact of arXiv 2505.05713 (`S`, `S_t`, `S_dp`, `S_pp`, `S_w` by rank and
    stage, `M_W`, `M_S`, step times by step), those of parts for healthy jobs as well; and
    `S_w_exact`, `M_stages`, `M_W_curve` by number of workers, `slowest_workers`,
    `simulation_error_ratio`, `launch_S`, `dropped_steps` and `gpu_hours_wasted_ratio`.
    """
    trace, workers = analysis.what_if.trace, analysis.workers
    steps = [str(step) for step in trace.steps.tolist()]
    slowdown = dict(zip(steps, analysis.step_slowdown.tolist(), strict=True))
    return {
        "S": analysis.slowdown,
        "launch_slowdown": analysis.launch_slowdown,
        "T_ideal": float(analysis.ideal_seconds.mean()),
        "T_ideal_spread": float(analysis.ideal_seconds.max() - analysis.ideal_seconds.min()),
        "step_t_base": dict(zip(steps, analysis.traced_seconds.tolist(), strict=True)),
        "step_t_nodelay": dict(zip(steps, analysis.original_seconds.tolist(), strict=True)),
        "per_step_S": _descending(slowdown),
        "S_t": _descending(analysis.by_type),
        "S_dp": _descending(_numbered(analysis.by_dp.tolist())),
        "S_pp": _descending(_numbered(analysis.by_stage.tolist())),
        "S_w": analysis.by_worker.tolist(),
        "M_S": _contribution(analysis.stages[-1]) | {"Ms": analysis.stages[-1].fixed_ratio},
        "M_W": _contribution(workers.slowest) | {"Mw": workers.slowest.fixed_ratio},
        "S_w_exact": analysis.by_worker_exact.tolist(),
        "M_stages": [_contribution(stage) for stage in analysis.stages],
        "M_W_curve": {str(k): point.fixed_ratio for k, point in workers.points.items()},
        "slowest_workers": _slowest(analysis),
        "simulation_error_ratio": analysis.simulation_error,
        "launch_S": _launch(analysis),
        "dropped_steps": [vars(dropped) for dropped in trace.dropped_steps],
        "gpu_hours_wasted_ratio": analysis.wasted_ratio,
    }


def _numbered(values: list[float]) -> dict[str, float]:
    return {str(at): value for at, value in enumerate(values)}


def _descending(values: dict[str, float]) -> dict[str, float]:
    return dict(sorted(values.items(), key=lambda item: -item[1]))


def _contribution(part: Contribution) -> dict[str, float | None]:
    """Step times and shares, under the artifact's names."""
    return {
        "trem": part.fixed_seconds,
        "tadd": part.kept_seconds,
        "tori": part.original_seconds,
        "tideal": part.ideal_seconds,
        "rem": part.fixed_ratio,
        "add": part.kept_ratio,
    }


def _slowest(analysis: StragglerAnalysis) -> list[dict[str, int | float | None]]:
    """The workers of M_W, slowest first."""
    ranks = analysis.what_if.trace.ranks
    order = analysis.workers.order[: analysis.workers.n_slowest].tolist()
    return [
        {
            "dp_rank": dp,
            "stage": stage,
            "rank": None if ranks is None else int(ranks[dp, stage]),
            "S_w": float(analysis.by_worker[dp, stage]),
            "S_w_exact": float(analysis.by_worker_exact[dp, stage]),
        }
        for dp, stage in order
    ]


def _launch(analysis: StragglerAnalysis) -> dict[str, dict[str, float]] | None:
    """Launch slowdowns by group; None below the gate."""
    if analysis.launch is None:
        return None
    return {
        "type": _descending(dict(analysis.launch.by_type)),
        "pp": _descending(_numbered(analysis.launch.by_stage.tolist())),
        "dp": _descending(_numbered(analysis.launch.by_dp.tolist())),
    }
