"""Verdicts of a selection, those alike on a day together: from kept sums where these tell them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from data.filters import Filter
from data.queries.whole_days import NONE, whole_days
from data.running_time import local_day
from data.said import FAILED_ATTEMPTS
from data.verdict_days import ALIKE, EACH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.filters import Selection
    from data.queries.whole_days import WholeDays
    from data.store import Store

LEAST_DAYS = 7
"""Whole days from which on verdicts come from sums: their rows are few."""
_FAILED = Filter(within="failed_at")
_SUMMED = Filter(columns=("cluster", "partition"))


@dataclass(frozen=True)
class Alike:
    """SQL of verdicts alike, of jobs of all sizes, and its parameters."""

    tables: str
    """Common tables up to `alike`: the columns of the table `verdict_days`."""
    parameters: dict[str, Any]


def verdicts_alike(store: Store, selection: Selection) -> Alike:
    """Verdicts of a selection.

    Days that lie in the period whole come from the sums; those at its ends, short periods and those
    of an account from rows, and all where people decided causes: these lie over the rows.
    """
    whole = NONE if store.has_decisions else whole_days(store, selection, LEAST_DAYS)
    parts = [
        f"""SELECT {EACH} FROM failed_attempt JOIN clusters USING (cluster)
            WHERE failed_at IS NOT NULL AND {_FAILED.where(selection)} AND {rows}"""
        for rows in _rows(whole)
    ]
    if whole.found:
        parts.append(
            f"""SELECT {ALIKE}, day, n_attempts, n_started, gpu_seconds FROM verdict_days
            WHERE {_SUMMED.where(selection)}
              AND day - DATE '1970-01-01' BETWEEN $first_day AND $until_day - 1"""
        )
    tables = f"""{FAILED_ATTEMPTS},
alike AS NOT MATERIALIZED (
  {" UNION ALL BY NAME ".join(parts)})
"""
    return Alike(
        tables,
        selection.parameters
        | {"first_day": whole.first, "until_day": whole.until}
        | {"begun_at": whole.begun_at, "ended_at": whole.ended_at},
    )


def _rows(whole: WholeDays) -> Iterator[str]:
    """Conditions for the failures that only rows tell: all, or those of the days at the ends of the
    period, each with a range of time that the database need not look through."""
    if not whole.found:
        yield "true"
        return
    if whole.begun_at is not None:
        yield f"failed_at < $begun_at AND {local_day('failed_at')} < $first_day"
    if whole.ended_at is not None:
        yield f"failed_at >= $ended_at AND {local_day('failed_at')} >= $until_day"
