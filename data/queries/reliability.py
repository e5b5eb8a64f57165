"""Failures and exposure: single failures, by day and size, by week, partition and node."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.failures.taxonomy import DOMAINS
from analytics.frames import CountedFailures, FailureCounts, sums_by_group
from data import site_file
from data.filters import Filter, equal
from data.queries.detection import evidence_days, restarts, restarts_unknown, unexplained
from data.queries.exposure import (
    attempts_of,
    chosen,
    failures_of,
    job_failures,
    node_exposure,
    node_failure_days,
    node_failures,
    node_failures_of,
    of_size,
    repair_minutes,
    runs,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import pandas as pd
    from numpy.typing import NDArray

    from analytics.arrays import Floats, Ints
    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

_RAN_WITHIN = Filter(of="jobs", overlaps=("start_at", "end_at - INTERVAL 1 MICROSECOND"))
"""Attempts that ran in the period; one that ended as it began did not."""
_SINGLE = ("cluster", "node", "failed_at", "day", "key", "incident_id")
EXPOSURE = ("cluster", "day", "exposure_node_days")


def counted(store: Store, selection: Selection) -> Selection:
    """The selection with the smallest job that counts: all sizes where no job ran that is as large
    as the default of a page or command; what was asked for stays.
    """
    least = selection.min_gpus
    if least <= selection.by_size_min_gpus:
        return selection
    for rows in (runs(store, selection), job_failures(store, selection)):
        if ((rows["n_gpus"] >= least) & ~rows["node_time"]).any():
            return selection
    return replace(selection, min_gpus=selection.by_size_min_gpus)


def failure_counts(store: Store, selection: Selection, *, by_node: bool = False) -> FailureCounts:
    """Failures and exposure of a selection by day and size, single failures; by node if asked."""
    selection = counted(store, selection)
    ran, failed, open_ = (query(store, selection) for query in (runs, job_failures, unexplained))
    failed_here, open_here = (of_size(rows, selection.min_gpus) for rows in (failed, open_))
    logged = node_failures(store, selection)
    singles = together(_SINGLE, failed_here, logged)
    exposure = together(
        EXPOSURE, of_size(ran, selection.min_gpus), node_failure_days(store, selection)
    )
    by_day, without_exposure = _of_known_exposure(_by_day(singles, exposure, open_here))
    rated = chosen(failed_here, ~np.isin(failed_here["cluster"], without_exposure))
    return FailureCounts(
        by_day=by_day,
        by_size=_by_size(ran, failed, open_, min_gpus=selection.by_size_min_gpus),
        by_node=_by_node(store, selection, failed) if by_node else None,
        starts_hours=_hours(singles["failed_at"]),
        repair_minutes=repair_minutes(store, selection),
        definition=selection.definition,
        counted=_counted(store, selection, rated, by_day),
        exposure_known=not np.isnan(by_day["exposure_node_days"]).any(),
        min_gpus=selection.min_gpus,
        evidence=evidence_days(store, selection),
        without_exposure=tuple(without_exposure),
        restarts=restarts(store, selection),
        restarts_unknown=restarts_unknown(store, selection),
        without_node=_without_node(logged, without_exposure),
        **_about(store, selection),
    )


def _counted(
    store: Store, selection: Selection, failed: Columns, by_day: Columns
) -> CountedFailures:
    """The failures of `by_day` by domain; those of a failure log by the cause that it states."""
    by_domain = Counter(failed["domain"].tolist())
    logged: list[Any] = []
    if store.n_rows("node_failures") or site_file.content(store.root):  # which may be at fault
        from data.site import load_site  # here: most stores have neither

        logged = store.rows(
            f"""SELECT source, cause, subcause, count(*) FROM node_failures
                WHERE cluster IN (SELECT unnest($rated)) AND {node_failures_of(selection)}
                GROUP BY ALL""",
            selection.parameters | {"rated": sorted(set(by_day["cluster"].tolist()))},
        )
        known = load_site(store.root).causes
        causes = known.causes_stated((source, cause, sub) for source, cause, sub, _ in logged)
        for *labels, n in logged:
            by_domain[known.domain_of(causes[tuple(labels)])] += n
    return CountedFailures(
        by_domain={domain: by_domain[domain] for domain in DOMAINS},
        lost_node=int(failed["node_lost"].sum()),
        logged=sum(n for *_, n in logged),
        unexplained=int(by_day["unexplained"].sum()),
    )


def failure_rows(store: Store, selection: Selection, limit: int) -> pd.DataFrame:
    """The failures that a rate counts, newest first."""
    return store.frame(
        f"""WITH {failures_of(selection)}
            SELECT failure.cluster, failed_at, job_id, attempt, jobs.state, n_gpus, n_nodes,
              jobs.partition, "user", account, verdict.node, cause, verdict.domain, confidence,
              method, evidence, failure.attempt_key
            FROM failure JOIN jobs USING (cluster, attempt_key)
            JOIN verdict USING (cluster, attempt_key, failed_at)
            UNION ALL BY NAME
            SELECT cluster, start_at AS failed_at, node, hit, cause, subcause, repair_minutes, text,
              'node_failures' AS method, failure_key AS attempt_key
            FROM node_failures WHERE {node_failures_of(selection)}
            ORDER BY failed_at DESC, attempt_key LIMIT {int(limit)}""",
        selection.parameters,
    )


def attempt_rows(
    store: Store, selection: Selection, *, gpus: tuple[int, int], limit: int
) -> pd.DataFrame:
    """Attempts of a size class (first and last number of GPUs, inclusive), longest first.

    They ran in the period or failed in it; `running_hours` and `failed` say what counts.
    """
    return store.frame(
        f"""WITH {attempts_of(selection)}, {failures_of(selection)},
            counted AS (
              SELECT *, greatest(0, end_us - begin_us) / 3.6e9 AS running_hours,
                (cluster, attempt_key) IN (SELECT cluster, attempt_key FROM failure) AS failed
              FROM attempt WHERE units BETWEEN $first AND $last
                AND cluster IN (SELECT cluster FROM clusters WHERE basis = 'gpu_time')),
            longest AS (
              SELECT id, running_hours, failed FROM counted WHERE running_hours > 0 OR failed
              ORDER BY running_hours DESC, cluster, attempt_key LIMIT {int(limit)})
            SELECT jobs.cluster, job_id, attempt, state, n_gpus, n_nodes, start_at, end_at,
              running_hours, partition, "user", account, failed, attempt_key
            FROM longest JOIN jobs ON jobs.rowid = longest.id
            ORDER BY running_hours DESC, cluster, attempt_key""",
        selection.by_size.parameters | {"first": gpus[0], "last": gpus[1]},
    )


def _about(store: Store, selection: Selection) -> dict[str, Any]:
    """Basis, GPUs of a node (None where clusters differ), period, attempts without GPUs."""
    clusters = store.rows(
        f"""SELECT cluster, basis, CASE WHEN basis = 'gpu_time' THEN gpus_per_node END FROM clusters
            WHERE basis IS NOT NULL AND {equal(cluster=selection.cluster)}""",
        selection.parameters,
    )
    sizes = {size for *_, size in clusters} or {None}
    first, last = selection.from_at, selection.to_at
    if first is None or last is None:
        begin, end = _extent(store, selection)
        first, last = first or begin, last or end
    return {
        "basis": "+".join(sorted({basis for _, basis, _ in clusters})) or "nothing",
        "node_time": tuple(sorted(name for name, basis, _ in clusters if basis == "node_time")),
        "gpus_per_node": None if None in sizes or len(sizes) > 1 else float(sizes.pop()),
        "from_at": first,
        "to_at": last,
        "attempts_without_gpus": _without_gpus(store, selection),
    }


def _extent(store: Store, selection: Selection) -> tuple[datetime | None, datetime | None]:
    """When what ran in the selection, or failed there without jobs, began and ended."""
    ((first, last),) = store.rows(
        f"""SELECT min(first_at), max(last_at) FROM (
              SELECT min(start_at) AS first_at, max(end_at) AS last_at
              FROM jobs WHERE start_at IS NOT NULL AND {_RAN_WITHIN.where(selection)}
              UNION ALL
              SELECT NULL, max(as_of_at) FROM clusters WHERE cluster IN (
                SELECT cluster FROM jobs WHERE start_at IS NOT NULL AND end_at IS NULL
                  AND {_RAN_WITHIN.where(selection)})
              UNION ALL
              SELECT min(start_at), max(start_at) FROM node_failures
              WHERE {node_failures_of(selection)})""",
        selection.parameters,
    )
    return first, last


def _without_gpus(store: Store, selection: Selection) -> int:
    """Attempts that ran in the selection and state no GPUs, though others of their cluster do.

    Asked by itself: where all state them, the database knows it without reading one.
    """
    ((without,),) = store.rows(
        f"""SELECT count(*) FROM jobs JOIN clusters USING (cluster)
            WHERE (n_gpus IS NULL OR n_gpus = 0) AND basis = 'gpu_time'
              AND start_at IS NOT NULL AND {_RAN_WITHIN.where(selection)}""",
        selection.parameters,
    )
    return int(without)


def together(names: Sequence[str], *tables: Columns) -> Columns:
    """The rows of tables one below the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in names}


def _without_node(logged: Columns, left_out: Sequence[str]) -> dict[str | None, int]:
    """What failures hit that name no node, and how many did; None where nothing says it."""
    rows = zip(logged["cluster"], logged["node"], logged["hit"], strict=True)
    hits = (hit for cluster, node, hit in rows if node is None and cluster not in left_out)
    return dict(sorted(Counter(hits).items(), key=lambda item: (-item[1], item[0] or "")))


def _hours(times: NDArray[np.datetime64]) -> Floats:
    """Hours since the first of the times."""
    passed = (times - times.min() if len(times) else times).astype(np.int64)
    hours: Floats = passed / 1_000_000 / 3600.0
    return hours


def _by_day(failures: Columns, exposure: Columns, open_: Columns) -> Columns:
    """Failures, incidents (by their first failure here), exposure and unexplained failures of each
    cluster and day.
    """
    first = _first_days_of_incidents(failures)
    tables = (failures, first, exposure, open_)
    names = sorted({name for table in tables for name in table["cluster"].tolist()})
    cluster, day, (failed_at, first_at, exposed_at, open_at) = _places(
        [_ordinals(table["cluster"], names) for table in tables], [t["day"] for t in tables]
    )
    n_rows = len(day)
    return {
        "cluster": np.array(names, dtype=object)[cluster],
        "day": day,
        "failures": np.bincount(failed_at, minlength=n_rows),
        "incidents": np.bincount(first_at, minlength=n_rows),
        "exposure_node_days": _sums(exposed_at, exposure["exposure_node_days"], n_rows),
        "unexplained": _sums(open_at, open_["unexplained"], n_rows).astype(np.int64),
    }


def _of_known_exposure(by_day: Columns) -> tuple[Columns, list[str]]:
    """The rows of clusters whose exposure is known, and the names of the others.

    Where it is known of none, all rows stay.
    """
    unknown = np.isnan(by_day["exposure_node_days"])
    names = sorted(set(by_day["cluster"][unknown].tolist()))
    known = ~np.isin(by_day["cluster"], names)
    return (chosen(by_day, known), names) if known.any() else (by_day, [])


def _first_days_of_incidents(failures: Columns) -> Columns:
    """The cluster of each incident, and the day on which it had its first failure.

    Where no incident is known, failures of one node within one hour are one.
    """
    hours = failures["failed_at"].astype("datetime64[h]").astype(np.int64)
    names = ("cluster", "incident_id", "node", "key", "day")
    days: dict[tuple[str, Any], Any] = {}
    for cluster, incident, node, key, day, hour in zip(
        *(failures[name].tolist() for name in names), hours.tolist(), strict=True
    ):
        item = incident or (node or key, hour)
        days[cluster, item] = min(day, days.get((cluster, item), day))
    return {
        "cluster": np.array([cluster for cluster, _ in days], dtype=object),
        "day": np.array(list(days.values()), dtype="datetime64[us]"),
    }


def _by_node(store: Store, selection: Selection, failed: Columns) -> Columns:
    """Failures of all sizes and exposure of each node that has any."""
    held = node_exposure(store, selection)
    singles = together(("cluster", "node"), failed, node_failures(store, selection))
    place = {node: at for at, node in enumerate(zip(held["cluster"], held["node"], strict=True))}
    failures = np.zeros(len(place), dtype=np.int64)
    for node in zip(singles["cluster"], singles["node"], strict=True):
        if node in place:
            failures[place[node]] += 1
    return {"failures": failures, "exposure_node_days": held["exposure_node_days"]}


def _ordinals(values: NDArray[Any], names: Sequence[str]) -> Ints:
    """The place of each value among the names."""
    ordinals = np.zeros(len(values), np.int64)
    for place, name in enumerate(names):
        ordinals[values == name] = place
    return ordinals


def _places(
    groups: Sequence[Ints], days: Sequence[NDArray[np.datetime64]]
) -> tuple[Ints, NDArray[np.datetime64], list[Ints]]:
    """All pairs of group and day, sorted, and of the rows of each table the place of theirs."""
    group = np.concatenate(groups)
    day = np.concatenate(days).astype("datetime64[D]").astype(np.int64)
    first, n_days = (day.min(), np.ptp(day) + 1) if len(day) else (0, 1)
    pairs, places = np.unique(group * n_days + (day - first), return_inverse=True)
    ends = np.cumsum([len(table) for table in groups])[:-1]
    every_day = (pairs % n_days + first).astype("datetime64[D]").astype("datetime64[us]")
    return pairs // n_days, every_day, np.split(places, ends)


def _sums(places: NDArray[np.intp], values: NDArray[Any], n_places: int) -> Floats:
    """Sum of the values at each place; NaN where one of them is."""
    sums = np.array(sums_by_group(places, values, n_places), np.float64)
    sums[places[np.isnan(values)]] = np.nan
    return sums


def _by_size(ran: Columns, failed: Columns, open_: Columns, *, min_gpus: int) -> Columns:
    """Failures, running days and unexplained failures of attempts by cluster, GPUs and day."""
    tables = [
        chosen(rows, ~rows["node_time"] & (rows["n_gpus"] >= min_gpus))
        for rows in (ran, failed, open_)
    ]
    names = sorted({name for table in tables for name in table["cluster"].tolist()})
    n_names = len(names) or 1
    pair, day, (ran_on, failed_on, open_on) = _places(
        [t["n_gpus"].astype(np.int64) * n_names + _ordinals(t["cluster"], names) for t in tables],
        [t["day"] for t in tables],
    )
    n_rows = len(day)
    return {
        "cluster": np.array(names or [""], dtype=object)[pair % n_names],
        "n_gpus": pair // n_names,
        "day": day,
        "failures": np.bincount(failed_on, minlength=n_rows),
        "running_days": _sums(ran_on, tables[0]["running_days"], n_rows),
        "unexplained": _sums(open_on, tables[2]["unexplained"], n_rows).astype(np.int64),
    }
