"""Running time of attempts, day by day where their cluster stands: SQL that queries, which sum
rows, share with the stage that keeps the sums.
"""

from __future__ import annotations

from typing import Final

DAY_US: Final = 86_400_000_000
LEAST_JOBS = 20_000
"""Attempts from which on sums by day are kept: of fewer the rows are as quick, and a publish of a
small store is spared them."""


def local(at: str) -> str:
    """A time as the clocks of its cluster show it; the column `timezone` is that of `clusters`."""
    return f"timezone(timezone, {at})"


def local_day(at: str) -> str:
    """Number, since 1970-01-01, of the calendar day of a time where its cluster stands."""
    return f"(CAST({local(at)} AS DATE) - DATE '1970-01-01')"


def midnight_us(day: str) -> str:
    """When a calendar day begins where the cluster stands, microseconds since the epoch."""
    return f"epoch_us({local(f'make_timestamp(({day}) * {DAY_US})')})"


def day_of(at_us: str) -> str:
    """Number of the day in UTC of a time in microseconds, before 1970 too: DuckDB's // truncates.

    >>> day_of("at")
    '(at // 86400000000 - CAST(at % 86400000000 < 0 AS BIGINT))'
    """
    return f"({at_us} // {DAY_US} - CAST({at_us} % {DAY_US} < 0 AS BIGINT))"


def _midnight(day: str) -> str:
    """The same of a day of an attempt, looked up in `calendar`."""
    return f"midnights[place * n_days + {day} - day_0]"


SPANS = f"""
calendar_day AS MATERIALIZED (
  SELECT cluster, day, {midnight_us("day")} AS from_us, {midnight_us("day + 1")} AS until_us
  FROM clusters, unnest(range(
    (SELECT min(begin_us) // {DAY_US} - 2 FROM attempt),
    (SELECT max(end_us) // {DAY_US} + 3 FROM attempt))) AS days(day)),
calendar AS MATERIALIZED (
  SELECT list(from_us ORDER BY cluster, day) AS midnights,
    (SELECT list(cluster ORDER BY cluster) FROM clusters) AS clusters,
    max(day) - min(day) + 1 AS n_days, max(day) AS day_0
  FROM calendar_day),
span AS (
  SELECT attempt.*,
    list_position(clusters, attempt.cluster) AS place,
    {day_of("begin_us")} AS begin_day, {day_of("end_us")} AS end_day,
    CASE WHEN begin_us < {_midnight("begin_day")} THEN begin_day - 1
      WHEN begin_us >= {_midnight("begin_day + 1")} THEN begin_day + 1 ELSE begin_day
    END AS first_day,
    CASE WHEN end_us <= {_midnight("end_day")} THEN end_day - 1
      WHEN end_us > {_midnight("end_day + 1")} THEN end_day + 1 ELSE end_day
    END AS last_day
  FROM attempt, calendar WHERE end_us > begin_us)
"""
"""Attempts that ran, with the first and last day on which they did where their cluster stands.

Days of a zone differ from those of UTC by one at most; one on which clocks change has 23 or 25
hours. `calendar` holds when days begin as one list, cluster by cluster: on four million attempts
a list costs a third of joins.
"""


def days_held(kind: str) -> str:
    """Common tables up to `held`: microseconds that attempts alike ran on each day.

    `kind` are the columns of `attempt` that make attempts alike, the cluster among them. Attempts
    are summed by their first and last day before they are split into days, of which there are then
    few.
    """
    return f"""{SPANS},
alike AS (
  SELECT {kind}, first_day, last_day, count(*) AS n,
    sum(begin_us) AS begin_us, sum(end_us) AS end_us
  FROM span GROUP BY ALL),
held AS (
  SELECT {kind}, day, sum(CASE WHEN day = last_day THEN end_us ELSE n * until_us END
    - CASE WHEN day = first_day THEN begin_us ELSE n * from_us END) AS running_us
  FROM (SELECT *, unnest(range(first_day, last_day + 1)) AS day FROM alike)
  JOIN calendar_day USING (cluster, day)
  GROUP BY ALL)
"""
