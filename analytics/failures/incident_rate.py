"""How often incidents happen and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.reliability.failure_rate import poisson_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from analytics.estimate import Estimate
    from analytics.failures.taxonomy import Cause


@dataclass(frozen=True)
class IncidentCause:
    """Incidents of one cause."""

    cause: str
    title: str
    domain: str
    n_incidents: int
    n_jobs: int
    lost_gpu_hours: float


@dataclass(frozen=True)
class IncidentSummary:
    """Incidents of a selection; every page, report and command prints this."""

    n_incidents: int
    n_with_jobs: int
    """Incidents that hit a job; the others are critical events on idle or surviving nodes."""
    n_open: int
    """Incidents that nobody has acknowledged or resolved."""
    n_crash_loops: int
    rate_per_1000_node_days: Estimate
    """Of incidents that hit a job."""
    lost_gpu_hours: float
    second_order_gpu_hours: float
    """The part of it lost by attempts that requeued jobs preempted."""
    n_unmeasured: int
    """Attempts whose loss is not known."""
    by_cause: tuple[IncidentCause, ...]
    """What cost most first."""

    @property
    def costliest_ratio(self) -> float | None:
        """Share of the GPU-hours lost that the costliest cause took; None where none was lost."""
        if not self.by_cause or not self.lost_gpu_hours:
            return None
        return self.by_cause[0].lost_gpu_hours / self.lost_gpu_hours


def incident_summary(
    rows: pd.DataFrame,
    exposure_node_days: float | None,
    *,
    causes: Mapping[str, Cause],
    conf_level: float = 0.90,
) -> IncidentSummary:
    """Number, rate and cost of incidents.

    The rate counts incidents that hit a job, per 1,000 node-days of running time, with Garwood's
    interval. The loss is sum of min(running time, 30 min) x GPUs over the attempts hit, which
    takes checkpoints as hourly.

    Parameters
    ----------
    rows : DataFrame
        Columns of the table `incidents` with status.
    exposure_node_days : float or None
        Running time of the selection; None where it is not known.
    causes : mapping
        The site's taxonomy: name -> cause.
    conf_level : float
        In (0, 1).

    References
    ----------
    Kokolis et al., arXiv 2410.21680, Figure 8 (goodput lost).
    """
    with_jobs = int(rows["n_jobs"].gt(0).sum())
    groups = rows.groupby(["cause", "domain"], sort=True)[["n_jobs", "lost_gpu_seconds"]]
    sums = (
        groups.sum()
        .join(groups.size().rename("n"))
        .sort_values(["lost_gpu_seconds", "n"], ascending=False, kind="stable")
    )
    rate = poisson_rate(with_jobs, exposure_node_days or 0.0, conf_level).scaled(1000.0)
    return IncidentSummary(
        n_incidents=len(rows),
        n_with_jobs=with_jobs,
        n_open=int(rows["status"].eq("open").sum()),
        n_crash_loops=int(rows["loop_failures"].gt(0).sum()),
        rate_per_1000_node_days=rate,
        lost_gpu_hours=float(rows["lost_gpu_seconds"].sum()) / 3600.0,
        second_order_gpu_hours=float(rows["second_order_gpu_seconds"].sum()) / 3600.0,
        n_unmeasured=int(rows["n_unmeasured"].sum()),
        by_cause=tuple(
            IncidentCause(
                cause=str(cause),
                title=causes[str(cause)].title if cause in causes else str(cause),
                domain=str(domain),
                n_incidents=int(n),
                n_jobs=int(jobs),
                lost_gpu_hours=float(seconds) / 3600.0,
            )
            for (cause, domain), jobs, seconds, n in zip(
                sums.index, sums["n_jobs"], sums["lost_gpu_seconds"], sums["n"], strict=True
            )
        ),
    )
