"""Causes and patterns as plain values, ready for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.training.stragglers.causes import causes
from analytics.training.stragglers.patterns import patterns

if TYPE_CHECKING:
    from analytics.training.stragglers.causes import StragglerCause
    from analytics.training.stragglers.patterns import Concentration, StragglerPatterns
    from analytics.training.stragglers.slowdown import StragglerAnalysis


def findings_record(analysis: StragglerAnalysis) -> dict[str, Any]:
    """Why, when and where a job straggles: `causes`, strongest first, and `patterns`."""
    return {
        "causes": causes_record(causes(analysis)),
        "patterns": patterns_record(patterns(analysis)),
    }


def causes_record(causes: tuple[StragglerCause, ...]) -> list[dict[str, Any]]:
    """Causes with the keys `cause`, `target`, `gain_ratio`, `alone_ratio` and `evidence`."""
    return [
        {
            "cause": found.cause,
            "target": None if found.target is None else dict(found.target),
            "gain_ratio": found.gain_ratio,
            "alone_ratio": found.alone_ratio,
            "evidence": dict(found.evidence),
        }
        for found in causes
    ]


def patterns_record(found: StragglerPatterns) -> dict[str, Any]:
    """When: `autocorrelation`, `straggling_steps_ratio` and `onset` (`step`, `rise_ratio`).

    Where: `gini`, `top_share_ratio` and `top` of `workers`, `dp_ranks` and `stages`; `top` as
    (dp_rank, stage), (dp_rank) or (stage).
    """
    temporal = found.temporal
    return {
        "autocorrelation": temporal.autocorrelation,
        "straggling_steps_ratio": temporal.straggling_steps_ratio,
        "onset": None if temporal.onset is None else vars(temporal.onset),
        "workers": _concentration(found.workers),
        "dp_ranks": _concentration(found.dp_ranks),
        "stages": _concentration(found.stages),
    }


def _concentration(found: Concentration) -> dict[str, Any]:
    return {
        "gini": found.gini,
        "top": list(found.top),
        "top_share_ratio": found.top_share_ratio,
    }
