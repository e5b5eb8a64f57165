"""Series that ranks of a run logged, and where its ranks ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from numpy.typing import NDArray

    from data.store import Store

    Columns = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]

_STEPS = """training_metrics
   WHERE cluster = $cluster AND coalesce(run_id, job_id) = $run AND step IS NOT NULL
     AND checkpoint_event IS NULL"""
"""A job is a run of its own, named by its id, until it is joined to others."""
_ATTEMPT = f"""coalesce(
   list_position((SELECT list(DISTINCT attempt_key) FROM {_STEPS}), attempt_key), 0)::DOUBLE"""
_ORDER = "ORDER BY logged_at NULLS FIRST, attempt_key NULLS FIRST, line_no, step, rank"
COLUMNS = ("loss", "grad_norm")
"""Series that have a column of their own."""


def logged(
    store: Store, cluster: str, run_id: str, wanted: Callable[[str], str | None]
) -> dict[str, Columns]:
    """Steps, ranks, values and attempts of each series of a run that is wanted, in the order of
    time.

    Parameters
    ----------
    wanted
        Of the name of a series what it is; None where it is not wanted. Of what is a checksum the
        values are texts, None where unknown; all others are numbers. A rank that the source does
        not state is NaN. Attempts are numbered in no order, 0 where unknown.
    """
    asked = {"cluster": cluster, "run": run_id}
    found = {}
    for name in COLUMNS:
        if wanted(name) is not None:
            found[name] = _column(store, name, asked)
    for name in _names(store, asked):
        kind = wanted(name)
        if kind is not None and name not in found:
            path = "/" + name.replace("~", "~0").replace("/", "~1")
            text = "json_extract_string(series, $path)"
            value = text if kind == "checksum" else f"try_cast({text} AS DOUBLE)"
            found[name] = _column(store, value, asked | {"path": path})
    return {name: columns for name, columns in found.items() if len(columns[0])}


def _names(store: Store, asked: dict[str, Any]) -> list[str]:
    """Names of the further series of a run."""
    rows = store.rows(
        f"SELECT DISTINCT unnest(json_keys(series)) AS name FROM {_STEPS} ORDER BY name", asked
    )
    return [name for (name,) in rows]


def _column(store: Store, value: str, asked: dict[str, Any]) -> Columns:
    """Steps, ranks, values and attempts of the rows that hold a value."""
    columns = store.columns(
        f"""SELECT step::DOUBLE AS step, rank::DOUBLE AS rank, {value} AS value,
              {_ATTEMPT} AS attempt FROM {_STEPS} AND ({value}) IS NOT NULL {_ORDER}""",
        asked,
    )
    return columns["step"], columns["rank"], columns["value"], columns["attempt"]


def allocation(
    store: Store, cluster: str, run_id: str, step: int
) -> tuple[str | None, int | None] | None:
    """Node list and GPUs of the last attempt that logged a step of a run; None where the step is of
    no attempt that the store knows."""
    rows = store.rows(
        f"""SELECT jobs.node_list, jobs.n_gpus FROM jobs JOIN (
              SELECT DISTINCT attempt_key FROM {_STEPS} AND step = $step) AS steps
              USING (attempt_key)
            WHERE jobs.cluster = $cluster ORDER BY jobs.start_at DESC NULLS LAST LIMIT 1""",
        {"cluster": cluster, "run": run_id, "step": step},
    )
    return rows[0] if rows else None


def logged_at(
    store: Store, cluster: str, run_id: str, steps: tuple[int, int]
) -> tuple[datetime | None, datetime | None]:
    """When the first rank logged the first of two steps, and the last rank the second; None where
    no row states a time."""
    ((first, last),) = store.rows(
        f"""SELECT min(logged_at) FILTER (step = $first), max(logged_at) FILTER (step = $last)
            FROM {_STEPS} AND step IN ($first, $last)""",
        {"cluster": cluster, "run": run_id, "first": steps[0], "last": steps[1]},
    )
    return first, last
