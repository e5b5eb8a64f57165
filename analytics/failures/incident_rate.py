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
    ledger_gpu_hours: float | None = None
    """That failures of this cause lost, by the ledger; None where it is not built."""


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
    by_cause: tuple[IncidentCause, ...]
    """What cost most by the ledger first; where it is not built, what is most frequent."""
    ledger_gpu_hours: float | None = None
    """That failures of these causes lost, by the ledger; None where it does not say."""

    @property
    def costliest(self) -> IncidentCause | None:
        """The cause that lost most by the ledger; None where none lost anything."""
        return self.by_cause[0] if self.ledger_gpu_hours else None


def incident_summary(
    rows: pd.DataFrame,
    exposure_node_days: float | None,
    *,
    causes: Mapping[str, Cause],
    losses: Mapping[str, float] | None = None,
    conf_level: float = 0.90,
) -> IncidentSummary:
    """Number, rate and cost of incidents.

    The rate counts incidents that hit a job, per 1,000 node-days of running time, with Garwood's
    interval. What failures cost is what the ledger says.

    Parameters
    ----------
    rows : DataFrame
        Columns of the table `incidents` with status.
    exposure_node_days : float or None
        Running time of the selection; None where it is not known.
    causes : mapping
        The site's taxonomy: name -> cause.
    losses : mapping, optional
        GPU-hours that failures of each cause lost, by the ledger; None where it does not say.
    conf_level : float
        In (0, 1).
    """
    with_jobs = int(rows["n_jobs"].gt(0).sum())
    groups = rows.groupby(["cause", "domain"], sort=True)[["n_jobs"]]
    sums = groups.sum().join(groups.size().rename("n"))
    sums = _with_ledger(sums, losses, causes)
    sums = sums.sort_values(["ledger", "n"], ascending=False, kind="stable")
    rate = poisson_rate(with_jobs, exposure_node_days or 0.0, conf_level).scaled(1000.0)
    return IncidentSummary(
        n_incidents=len(rows),
        n_with_jobs=with_jobs,
        n_open=int(rows["status"].eq("open").sum()),
        n_crash_loops=int(rows["loop_failures"].gt(0).sum()),
        rate_per_1000_node_days=rate,
        by_cause=tuple(
            IncidentCause(
                cause=str(cause),
                title=causes[str(cause)].title if cause in causes else str(cause),
                domain=str(domain),
                n_incidents=int(n),
                n_jobs=int(jobs),
                ledger_gpu_hours=None if losses is None else float(ledger),
            )
            for (cause, domain), jobs, n, ledger in sums.itertuples(name=None)
        ),
        ledger_gpu_hours=None if losses is None else sum(losses.values()),
    )


def _with_ledger(
    sums: pd.DataFrame, losses: Mapping[str, float] | None, causes: Mapping[str, Cause]
) -> pd.DataFrame:
    """The sums by cause and domain with a column `ledger`; every cause of the ledger has a row.

    A cause in several domains carries its loss once, where it has most incidents.
    """
    sums = sums.assign(ledger=0.0).sort_values("n", ascending=False, kind="stable")
    rows = {str(cause): (cause, domain) for cause, domain in reversed(sums.index.tolist())}
    for cause, hours in (losses or {}).items():
        domain = causes[cause].domain if cause in causes else "unknown"
        row = rows.get(cause, (cause, domain))
        if row not in sums.index:
            sums.loc[row, :] = 0
        sums.loc[row, "ledger"] = hours
    return sums
