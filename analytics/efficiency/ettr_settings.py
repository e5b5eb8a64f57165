"""What an expected ETTR is asked of: a job, its failure rate and its costs, validated once."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from analytics import validate
from analytics.efficiency.checkpoint_interval import daly_young_interval
from analytics.errors import OutOfRangeError

MINUTES_PER_DAY = 1440.0
LEAST, MOST = 1e-9, 1e9
"""Between these lies every number that means something and is not 0: nothing overflows."""
SIZES = (
    ("gpus", "pass the GPUs of the job"),
    ("gpus_per_node", "pass the GPUs of one node, e.g. 8"),
)
COSTS = (
    ("rate_per_1000_node_days", "pass e.g. 6.5"),
    ("restart_min", "pass minutes from start to the first step, e.g. 5"),
    ("write_min", "pass the minutes that a checkpoint stops training, 0 where it does not"),
    ("queue_min", "pass the mean wait in minutes, 0 for none"),
)


@dataclass(frozen=True, kw_only=True)
class EttrSettings:
    """A job run, how often its nodes fail, and what checkpoints, restarts and waits cost.

    Times are in minutes, the run in days; inside, all is minutes and failures per minute.

    Raises
    ------
    OutOfRangeError
        For a size, interval or run that is not > 0, a rate or cost that is negative, and what is
        no number from a billionth to a billion. Where writes cost nothing the interval may be 0.

    Examples
    --------
    >>> job = EttrSettings(gpus=16_384, rate_per_1000_node_days=6.5, restart_min=5.0, write_min=5.0)
    >>> round(job.mttf_hours, 3), round(job.checkpoint_min, 1)
    (1.803, 32.9)
    """

    gpus: float
    rate_per_1000_node_days: float
    """Failures per 1,000 node-days of scheduled time."""
    restart_min: float
    """u0: from the start of an attempt to its first step, each time."""
    gpus_per_node: float = 8.0
    write_min: float = 0.0
    """w: how long training stands still for one checkpoint."""
    interval_min: float | None = None
    """dt: training between two checkpoints, writes not counted; None for Daly-Young's."""
    queue_min: float = 0.0
    """q: mean wait after submission and after each interruption."""
    run_days: float | None = None
    """R: training that the run needs, days; None for a long run."""

    def __post_init__(self) -> None:
        for name, remedy in SIZES:
            validate.positive(name, getattr(self, name), remedy)
        for name, remedy in COSTS:
            validate.nonnegative(name, getattr(self, name), remedy)
        if self.run_days is not None:
            validate.positive("run_days", self.run_days, "pass days, or leave it out: a long run")
        if self.interval_min is not None:
            check = validate.positive if self.write_min > 0 else validate.nonnegative
            check("interval_min", self.interval_min, "pass minutes, or leave it out: Daly-Young")
        for field in fields(self):
            value = getattr(self, field.name)
            if value and not LEAST <= value <= MOST:
                rule = f"0 or from {LEAST:g} to {MOST:g}"
                raise OutOfRangeError(field.name, rule, value, "nothing real lies beyond")

    @property
    def failures_per_min(self) -> float:
        """lambda: nodes x rate, failures of the job per minute of scheduled time."""
        nodes = self.gpus / self.gpus_per_node
        return nodes * self.rate_per_1000_node_days / 1000.0 / MINUTES_PER_DAY

    @property
    def mttf_hours(self) -> float | None:
        """Mean time to failure of the job, hours of scheduled time; None where nothing fails."""
        rate = self.failures_per_min
        return 1.0 / (60.0 * rate) if rate > 0 else None

    @property
    def checkpoint_min(self) -> float:
        """The interval that counts: the one given, else Daly-Young's; without one of those its
        limit, 0 where writes cost nothing and endless where nothing fails."""
        if self.interval_min is not None:
            return self.interval_min
        if self.write_min == 0:
            return 0.0
        best = float(daly_young_interval(self.failures_per_min, self.write_min))
        return math.inf if math.isnan(best) else best

    @property
    def run_min(self) -> float:
        """R in minutes, endless for a long run."""
        return math.inf if self.run_days is None else self.run_days * MINUTES_PER_DAY
