"""Thresholds from healthy pulls, and the order of metrics from labelled ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analytics.errors import AnalysisError
from analytics.nodes.machines.asked import Doubts, asked_metrics
from analytics.nodes.machines.priority import learnt_order
from analytics.nodes.machines.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.nodes.machines.asked import Asked
    from analytics.nodes.machines.samples import Samples
    from analytics.nodes.machines.views import View

HEALTHY_RATIO = 0.995
"""Share of healthy pulls that must stay below a threshold."""
STRIDE = 30
"""Every so many windows are shown to the tree: those beside each other say the same."""
MOST_SCORE = 100.0
"""Beyond it a score is no surer."""


@dataclass(frozen=True)
class Labelled:
    """A pull of which somebody said what happened."""

    samples: Samples
    since_at: float | None
    """Since when a machine was faulty, seconds since 1970; None of a healthy pull."""


def calibrated(healthy: Sequence[Samples], settings: Settings | None = None) -> Settings:
    """The thresholds that healthy pulls stay below.

    Of each pull and view the highest threshold is taken at which some machine would be faulty by
    some metric; a threshold is the `HEALTHY_RATIO` quantile over pulls, which with few is their
    largest.

    Raises
    ------
    AnalysisError
        Where no pull is given.
    """
    settings = settings or Settings()
    if not healthy:
        raise AnalysisError("thresholds need healthy pulls, got none: label some")
    highest: dict[View, list[float]] = {"change": [], "level": []}
    for samples in healthy:
        near = [each for asked in _asked(samples, settings) for each in asked.nearest()]
        for view, scores in highest.items():
            scores.append(max((each.score for each in near if each.view == view), default=0.0))
    change, level = (
        float(np.quantile(highest[view], HEALTHY_RATIO, method="higher"))
        for view in ("change", "level")
    )
    return replace(settings, change_threshold=max(change, 1.0), level_threshold=max(level, 1.0))


def prioritised(pulls: Sequence[Labelled], settings: Settings | None = None) -> Settings:
    """The order of metrics in which a decision tree tells faulty windows from healthy ones.

    Raises
    ------
    AnalysisError
        Where no pull, or none of both kinds, is given.
    """
    settings = settings or Settings()
    if not pulls:
        raise AnalysisError("an order needs labelled pulls, got none: label some")
    metrics = tuple(pulls[0].samples.values)
    scores, faulty = [], []
    for pull in pulls:
        of_metric = {
            asked.metric: np.minimum(asked.highest_scores[::STRIDE], MOST_SCORE)
            for asked in _asked(pull.samples, settings)
        }
        n = max(map(len, of_metric.values()), default=0)
        scores.append(np.column_stack([of_metric.get(m, np.zeros(n)) for m in metrics]))
        at = pull.samples.start_at + STRIDE * np.arange(n) * pull.samples.step_seconds
        faulty.append(at >= (np.inf if pull.since_at is None else pull.since_at))
    order = learnt_order(metrics, np.concatenate(scores), np.concatenate(faulty))
    return replace(settings, order=order)


def _asked(samples: Samples, settings: Settings) -> Iterator[Asked]:
    """Each metric of a pull."""
    return asked_metrics(samples, settings, Doubts.of_samples(samples, settings))
