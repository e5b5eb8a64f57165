"""Thresholds from healthy pulls, and the order of metrics from labelled ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from analytics.errors import AnalysisError
from analytics.nodes.machines.asked import Doubts, asked_metrics, learnt_order
from analytics.nodes.machines.detection import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.nodes.machines.asked import Asked
    from analytics.nodes.machines.samples import Array, Samples
    from analytics.nodes.machines.views import View

HEALTHY_RATIO = 0.995
"""Share of healthy pulls that must stay below a threshold."""
ENOUGH = 200
"""Healthy pulls from which on thresholds may be lower than the shipped ones: of fewer, that share
is not known."""
LEAST_THRESHOLD = 2.0
MOST_SCORE = 100.0
"""Beyond it a score is no surer."""


def calibrated(healthy: Sequence[Samples], settings: Settings | None = None) -> Settings:
    """The thresholds that healthy pulls stay below.

    Of each pull and view the highest threshold is taken at which some machine would be faulty by
    some metric; a threshold is the `HEALTHY_RATIO` quantile over pulls, which with few is their
    largest. Fewer than `ENOUGH` pulls only raise thresholds.

    Raises
    ------
    AnalysisError
        Where no pull is given.
    """
    settings = settings or Settings()
    if not healthy:
        raise AnalysisError(
            "thresholds need healthy samples, got none: name files of a healthy job"
        )
    highest: dict[View, list[float]] = {"change": [], "minute": [], "level": []}
    for samples in healthy:
        near = [each for asked in _asked(samples, settings) for each in asked.nearest()]
        for view, scores in highest.items():
            scores.append(max((each.score for each in near if each.view == view), default=0.0))
    found: dict[str, float] = {}
    for view, scores in highest.items():
        least = LEAST_THRESHOLD if len(healthy) >= ENOUGH else settings.threshold(view)
        reached = float(np.quantile(scores, HEALTHY_RATIO, method="higher"))
        found[f"{view}_threshold"] = max(least, round(reached, 3))
    return replace(
        settings,
        change_threshold=found["change_threshold"],
        minute_threshold=found["minute_threshold"],
        level_threshold=found["level_threshold"],
    )


def prioritised(
    healthy: Sequence[Samples],
    faulty: Sequence[tuple[Samples, float]],
    settings: Settings | None = None,
) -> Settings:
    """The order of metrics in which a decision tree tells faulty minutes from healthy ones.

    Parameters
    ----------
    healthy
        Pulls without a fault.
    faulty
        Pulls, and since when (seconds since 1970) a machine of each was faulty.

    Raises
    ------
    ShapeError
        Where minutes of both kinds are not given.
    """
    settings = settings or Settings()
    pulls = [*((each, np.inf) for each in healthy), *faulty]
    metrics = tuple(dict.fromkeys(metric for samples, _ in pulls for metric in samples.values))
    scores, is_faulty = [], []
    for samples, since_at in pulls:
        of_metric = {asked.metric: _minutes(asked) for asked in _asked(samples, settings)}
        known = [times for times, _ in of_metric.values() if times.size]
        if not known:
            continue
        nothing = known[0], np.zeros(known[0].size)
        scores.append(np.column_stack([of_metric.get(m, nothing)[1] for m in metrics]))
        is_faulty.append(known[0] >= since_at)
    if not scores:
        raise AnalysisError("no pull lasts long enough to learn from: name longer files")
    order = learnt_order(metrics, np.concatenate(scores), np.concatenate(is_faulty))
    return replace(settings, order=order)


def _minutes(asked: Asked) -> tuple[Array, Array]:
    """The beginning of each minute that was looked at, and the highest score of any machine."""
    looks = asked.views.get("minute")
    if looks is None:
        return np.zeros(0), np.zeros(0)
    scores = np.where(looks.found.apart > asked.settings.apart_ratio, looks.found.score, 0.0)
    begins = looks.at[:: looks.windows][: scores.size] * asked.samples.step_seconds
    return asked.samples.start_at + begins, np.minimum(scores, MOST_SCORE)


def _asked(samples: Samples, settings: Settings) -> Iterator[Asked]:
    """Each metric of a pull."""
    return asked_metrics(samples, settings, Doubts.of_samples(samples, settings))
