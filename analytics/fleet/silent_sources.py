"""Sources that brought records regularly and stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from analytics.fleet.coverage import Coverage

REGULAR_RATIO = 0.5
"""Share of its days on which a source has records, from which on it is regular."""
LEAST_DAYS = 4
"""Days from its first to its last record below which nothing is regular."""
SILENT_DAYS = 2.0
"""Days without a record after which a regular source is told."""
DAY = pd.Timedelta(days=1)


def silent_sources(known: Coverage) -> pd.DataFrame:
    """Sources that brought records regularly and have none at the end of the records.

    A source of a cluster is regular where at least half of the days from its first to its last
    record have one, and these are four or more. It is silent where other sources of the cluster
    have records two or more days after its last one, and it is not known to have been collected
    since: a quiet day that was collected is no silence.

    Returns
    -------
    DataFrame
        Columns cluster, source, last_day (UTC), days_silent; the longest silence first.
    """
    sources = known.sources
    if sources.empty:
        return pd.DataFrame({"cluster": [], "source": [], "last_day": [], "days_silent": []})
    quiet = known.quiet.groupby(["cluster", "source"])["day"].max().rename("quiet_at")
    rows = sources.merge(quiet, how="left", on=["cluster", "source"])
    last = rows["last_at"].dt.floor("D")
    seen = last.where(~(rows["quiet_at"] > last), rows["quiet_at"])
    days = (last - rows["first_at"].dt.floor("D")) / DAY + 1
    regular = (days >= LEAST_DAYS) & (rows["days_with_rows"] >= REGULAR_RATIO * days)
    ends = last.groupby(rows["cluster"]).transform("max")
    rows = rows.assign(last_day=seen, days_silent=(ends - seen) / DAY)
    silent = regular & (rows["days_silent"] >= SILENT_DAYS)
    found = rows.loc[silent, ["cluster", "source", "last_day", "days_silent"]]
    return found.sort_values(["days_silent", "cluster", "source"], ascending=[False, True, True],
                             ignore_index=True)  # fmt: skip
