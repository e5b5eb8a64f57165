"""What moves the expected ETTR most: derivatives of the exact form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.efficiency.ettr_forms import ettr_exact

if TYPE_CHECKING:
    from analytics.efficiency.ettr_settings import EttrSettings

NEAR_ZERO = 1e-4
"""Failures expected in an interval below which a difference of large numbers is its series."""


@dataclass(frozen=True)
class EttrSensitivity:
    """How the exact expected ETTR answers to one of its parameters, all others kept."""

    parameter: str
    """As `EttrSettings` names it."""
    value: float
    derivative: float | None
    """Of the ETTR by the parameter in its own unit; None where it has no bound."""
    elasticity: float
    """Percent of ETTR per percent of the parameter; 0 where the parameter is 0."""


def ettr_sensitivities(settings: EttrSettings) -> tuple[EttrSensitivity, ...]:
    """Partial derivatives of the exact form E by rate, restart, write, interval and queue.

    .. math:: \\frac{\\partial \\ln E}{\\partial u_0} = -\\lambda, \\quad
        \\frac{\\partial \\ln E}{\\partial q} = \\frac{-\\lambda}{1 + \\lambda q}, \\quad
        \\frac{\\partial \\ln E}{\\partial w} = \\frac{-\\lambda}{1 - e^{-\\lambda \\tau}}, \\quad
        \\frac{\\partial \\ln E}{\\partial \\Delta t} = \\frac{1}{\\Delta t} +
        \\frac{\\partial \\ln E}{\\partial w}

    .. math:: \\frac{\\partial \\ln E}{\\partial \\lambda} = \\frac{1}{\\lambda} - u_0 -
        \\frac{\\tau}{1 - e^{-\\lambda \\tau}} - \\frac{q}{1 + \\lambda q}

    with tau = dt + w and the symbols of `ettr_exact`; the rate is in failures per 1,000 node-days.
    An interval that was left to Daly-Young is kept where the others move: near the optimum that
    changes nothing in first order. Empty where the interval is endless (nothing fails).

    Notes
    -----
    Derived here. Slopes at one point: they say nothing of large changes.

    Examples
    --------
    >>> from analytics.efficiency.ettr_settings import EttrSettings
    >>> job = EttrSettings(gpus=8000, rate_per_1000_node_days=6.5, restart_min=5.0, interval_min=60)
    >>> {found.parameter: round(found.elasticity, 3) for found in ettr_sensitivities(job)}
    {'rate_per_1000_node_days': -0.164, 'restart_min': -0.023, 'write_min': 0.0,
     'interval_min': -0.142, 'queue_min': 0.0}
    """
    interval, write = settings.checkpoint_min, settings.write_min
    if np.isinf(interval):
        return ()
    rate, queue = settings.failures_per_min, settings.queue_min
    value = float(
        ettr_exact(rate, settings.restart_min, interval, write_min=write, queue_min=queue)
    )
    cycle = interval + write
    lost_share = _mean_loss(rate * cycle)
    by_write = -rate * lost_share - 1.0 / cycle if cycle else None
    by_interval = (write / interval if interval else 0.0) / cycle if cycle else 0.0
    by_interval -= rate * lost_share
    by_rate = -settings.restart_min - cycle * lost_share - queue / (1.0 + rate * queue)
    per_min = settings.gpus / settings.gpus_per_node / 1000.0 / 1440.0
    slopes = {
        "rate_per_1000_node_days": by_rate * per_min,
        "restart_min": -rate,
        "write_min": by_write,
        "interval_min": by_interval,
        "queue_min": -rate / (1.0 + rate * queue),
    }
    points = {name: getattr(settings, name) for name in slopes} | {"interval_min": interval}
    return tuple(
        EttrSensitivity(
            name,
            points[name],
            None if slope is None else value * slope,
            0.0 if slope is None else slope * points[name] + 0.0,  # never -0.0
        )
        for name, slope in slopes.items()
    )


def _mean_loss(failures: float) -> float:
    """1 / (1 - exp(-x)) - 1 / x: 1/2 where failures are rare, 1 where every interval has one."""
    if failures < NEAR_ZERO:
        return 0.5 + failures / 12.0
    return float(-1.0 / np.expm1(-failures) - 1.0 / failures)
