"""Verdicts of a selection, those alike on a day together: from kept sums where these tell them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from data.filters import Filter
from data.queries.exposure import EVER, whole_days
from data.running_time import local_day
from data.said import FAILED_ATTEMPTS
from data.verdict_days import ALIKE, EACH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.filters import Selection
    from data.store import Store

_FAILED = Filter(within="failed_at")
_SUMMED = Filter(columns=("cluster", "partition"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    first, until = (0, 0) if store.has_decisions else whole_days(store, selection)
    parts = [
        f"""SELECT {EACH} FROM failed_attempt JOIN clusters USING (cluster)
            WHERE failed_at IS NOT NULL AND {_FAILED.where(selection)} AND {rows}"""
        for rows in _rows(selection, has_sums=first < until)
    ]
    if first < until:
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
        | {"first_day": first, "until_day": until}
        | {"first_at": _at(first + 1), "until_at": _at(until - 1)},
    )


def _at(day: int) -> datetime | None:
    """When a day, a number since 1970-01-01, begins in UTC; None of one that no record reaches."""
    return None if abs(day) >= EVER[1] - 1 else _EPOCH + timedelta(days=day)


def _rows(selection: Selection, *, has_sums: bool) -> Iterator[str]:
    """Conditions for the failures that only rows tell: all, or those of the days at the ends of the
    period, each with a range of time that the database need not look through."""
    if not has_sums:
        yield "true"
        return
    if selection.from_at is not None:
        yield f"failed_at < $first_at AND {local_day('failed_at')} < $first_day"
    if selection.to_at is not None:
        yield f"failed_at >= $until_at AND {local_day('failed_at')} >= $until_day"
