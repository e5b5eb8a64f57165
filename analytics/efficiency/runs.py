"""Job runs: all attempts and jobs of one logical task, chains of jobs among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from analytics.efficiency.run_rule import RunRule
from analytics.failures.columns import NEVER, codes, microseconds, require

if TYPE_CHECKING:
    from analytics.arrays import Bools, Ints

    Links: TypeAlias = tuple[Ints, Ints]

JOINED_BY: Final = ("single", "lineage", "requeue", "array", "name")
"""Why rows are one run, from the strongest rule to the weakest; single: nothing joined them."""
COLUMNS: Final = (
    *("cluster", "attempt_key", "job_id", "sluid", "original_sluid", "array_job_id", "user"),
    *("account", "partition", "name", "state", "submit_at", "eligible_at", "start_at", "end_at"),
    *("n_nodes", "n_gpus"),
)
"""What `link_runs` reads of each attempt."""
_DAY, _HOUR = 86_400_000_000, 3_600_000_000
"""Microseconds."""
NO_LINKS: Final = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
_BEGINS = ("submit", "eligible", "start")
"""What may lie within the gap after the one before ended."""
_LATEST = int(np.iinfo(np.int64).max)
"""Beyond any time: unknown times sort behind all others, open ends last."""


def link_runs(attempts: pd.DataFrame, rule: RunRule | None = None) -> pd.DataFrame:
    """The run of each attempt, and the rule that joined it to the run's first attempt.

    Attempts are nodes of a graph; each rule adds edges, the strongest rule first, and a run is a
    connected component. With s, e for start and end:

    1. lineage: attempts of one SLUID lineage (`original_sluid`, else `sluid`).
    2. requeue: attempts of one cluster and job id in order of time, unless the user is another,
       or one begins more than `requeue_gap_days` after all before it ended: ids come again.
    3. array: tasks of one array and size on several nodes, where no two of its tasks ran at once
       and s_(i+1) - e_i <= `gap_hours`.
    4. name: jobs on several nodes of one user, name, account, partition and size, where neither
       ran while another of them ran and the next was submitted, eligible or started within
       `gap_hours` after e_i; never where it was eligible before the one before it started (both
       waited at once, as in a sweep), nor within one array, nor for a name that is generic.

    Rules 3 and 4 do not go on after a COMPLETED job, unless `after_completed`. A job between its
    attempts counts as running there.

    Parameters
    ----------
    attempts : DataFrame
        Columns `COLUMNS`; one row an attempt, `attempt_key` unique within its cluster. Times are
        null where unknown; an attempt without start is in no chain, one without end ends none.
    rule : RunRule, optional
        The site's rule, else the default one.

    Returns
    -------
    DataFrame
        One row an attempt, indexed as `attempts`. run_id: job id of the run's first attempt
        (its attempt_key where it has none), `<job id>#2` and so on where that id came again as
        another run; unique within a cluster. joined_by: one of `JOINED_BY`, the strongest set of
        rules that connects the attempt to the run's first one, named by its weakest; `single` for
        the first itself. The weakest over a run's rows says why it is one run.

    Raises
    ------
    ShapeError
        Where a column is missing.

    Notes
    -----
    What a script does between two jobs is not recorded: a restart that starts from scratch looks
    like one that goes on. Components of one heterogeneous job stay runs of their own. The result
    does not depend on the order of rows.

    References
    ----------
    Kokolis et al., arXiv 2410.21680, section II-D: a job run is all Slurm jobs of one logical
    task. Slurm, sacct(1): Submit is reset and a new SLUID given when a job is requeued.

    Examples
    --------
    >>> frame = pd.DataFrame(index=range(2), columns=COLUMNS, data=None).assign(
    ...     cluster="c", attempt_key=["a", "b"], job_id=["7", "9"], user="ann", name="pretrain",
    ...     state=["TIMEOUT", "RUNNING"], n_nodes=4, n_gpus=32,
    ...     start_at=pd.to_datetime(["2026-01-01T00Z", "2026-01-02T01Z"]),
    ...     end_at=pd.to_datetime(["2026-01-02T00Z", None]))
    >>> link_runs(frame).values.tolist()
    [['7', 'single'], ['7', 'name']]
    """
    require("attempts", attempts, COLUMNS)
    rule = rule or RunRule()
    order = _order(attempts)
    rows = attempts.iloc[order].reset_index(drop=True)
    stages = [np.arange(len(rows))]
    for join in (_lineage, _requeues, _array_links, _name_links):
        stages.append(_joined(stages[-1], join(rows, stages[-1], rule)))
    _, firsts, run = np.unique(stages[-1], return_index=True, return_inverse=True)
    first = firsts[run]
    by = np.argmax(np.stack([stage == stage[first] for stage in stages]), axis=0)
    joined = pd.DataFrame(
        {
            "run_id": _ids(rows, firsts)[run],
            "joined_by": np.array(JOINED_BY, dtype=object)[by],
        }
    )
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return joined.iloc[back].set_axis(attempts.index)


def _order(attempts: pd.DataFrame) -> Ints:
    """Rows in order of time: start, else submission, then end; keys settle what is left."""
    start, submit = microseconds(attempts["start_at"]), microseconds(attempts["submit_at"])
    end = microseconds(attempts["end_at"])
    at = np.where(start != NEVER, start, np.where(submit != NEVER, submit, _LATEST))
    keys = [pd.factorize(attempts[name], sort=True)[0] for name in ("attempt_key", "cluster")]
    return np.asarray(np.lexsort((*keys, np.where(end != NEVER, end, _LATEST), at)))


def _joined(label: Ints, links: Links) -> Ints:
    """Labels after joining the parts that rows of each pair are in."""
    left, right = links
    n = len(label)
    edges = coo_array((np.ones(len(left), dtype=bool), (label[left], label[right])), shape=(n, n))
    parts: Ints = connected_components(edges, directed=False)[1].astype(np.int64)
    return parts[label]


def _lineage(rows: pd.DataFrame, _label: Ints, _rule: RunRule) -> Links:
    """Neighbours of one SLUID lineage; of different users never."""
    lineage = rows["original_sluid"].where(rows["original_sluid"].notna(), rows["sluid"])
    group = _grouped(rows["cluster"], lineage)
    left, right = _neighbours(group)
    user = _known_user(rows["user"], group)
    same = user[left] == user[right]
    return left[same], right[same]


def _requeues(rows: pd.DataFrame, _label: Ints, rule: RunRule) -> Links:
    """Neighbours of one job id that are not too far apart; of different users never."""
    group = _grouped(rows["cluster"], rows["job_id"])
    left, right = _neighbours(group)
    submit, start = microseconds(rows["submit_at"]), microseconds(rows["start_at"])
    end = microseconds(rows["end_at"])
    begin = np.where(submit != NEVER, submit, start)
    last = np.where(end != NEVER, end, np.where(start != NEVER, start, submit))
    until = pd.Series(last).groupby(group).cummax().to_numpy()
    known = (begin[right] != NEVER) & (until[left] != NEVER)
    gap = np.where(known, begin[right], 0) - np.where(known, until[left], 0)
    user = _known_user(rows["user"], group)
    same = (user[left] == user[right]) & (gap <= rule.requeue_gap_days * _DAY)
    return left[same], right[same]


def _grouped(cluster: pd.Series, key: pd.Series) -> Ints:
    """Code of cluster and key; -1 where the key is unknown."""
    group = codes(pd.DataFrame({"cluster": cluster, "key": key}), ["cluster", "key"])
    return np.where(key.notna(), group, -1)


def _known_user(user: pd.Series, group: Ints) -> Ints:
    """Code of each row's user, where unknown of the one before, else of the next in its group."""
    number = pd.Series(pd.factorize(user)[0], dtype="float64")
    number = number.where(number >= 0)
    filled = number.groupby(group).ffill()
    return np.asarray(filled.groupby(group).bfill().fillna(-1).to_numpy().astype(np.int64))


def _neighbours(group: Ints, *by: Ints) -> Links:
    """Pairs of rows that follow each other in one group, sorted by the last key of `by` first."""
    order = np.lexsort((*by, group))
    same = (group[order][1:] == group[order][:-1]) & (group[order][1:] >= 0)
    return order[:-1][same], order[1:][same]


def _ids(rows: pd.DataFrame, firsts: Ints) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    """Id of each run by its first row, numbered in order of time where an id came again."""
    head = rows.iloc[firsts][["cluster", "job_id", "attempt_key"]]
    owner = head["job_id"].astype(object).where(head["job_id"].notna(), head["attempt_key"])
    in_time = head.assign(owner=owner).sort_index()
    place = in_time.groupby(["cluster", "owner"], dropna=False).cumcount().loc[head.index]
    again = owner + "#" + (place + 1).astype(str)
    ids: np.ndarray[tuple[int], np.dtype[np.object_]] = owner.where(place == 0, again).to_numpy(
        dtype=object
    )
    return ids


def _array_links(rows: pd.DataFrame, label: Ints, rule: RunRule) -> Links:
    """Tasks of one array that ran one after the other, as `--array=0-9%1` makes them.

    `rows` are in order of time, `label` says what is joined so far; pairs of rows.
    """
    tasks = rows["array_job_id"].notna().to_numpy()
    if rule.arrays == "apart" or not tasks.any():
        return NO_LINKS
    parts = _parts(rows, label)
    parts = parts[tasks[parts["row"]] & _large(parts, rule.array_min_gpus)]
    whole = codes(parts, ("cluster", "user", "array_job_id"))
    at_once = np.bincount(whole, weights=_crossed(parts, whole), minlength=1)[whole] > 0
    group = codes(parts, ("cluster", "user", "array_job_id", "size"))
    left, right = _neighbours(group, *_in_time(parts))
    good = ~at_once[left] & _goes_on(parts, left, right, rule)
    row = parts["row"].to_numpy()
    return row[left[good]], row[right[good]]


def _name_links(rows: pd.DataFrame, label: Ints, rule: RunRule) -> Links:
    """Jobs of one user, name and size that ran one after the other: segments and restarts.

    `rows` are in order of time, `label` says what is joined so far; pairs of rows.
    """
    if rule.names == "apart" or rows.empty:
        return NO_LINKS
    parts = _parts(rows, label)
    parts = parts[_large(parts, rule.name_min_gpus) & _named(parts, rule)]
    of_name = codes(parts, ("cluster", "user", "name"))
    many = np.bincount(of_name, minlength=1)
    share = np.bincount(of_name, weights=_crossed(parts, of_name), minlength=1) / many.clip(min=1)
    group = codes(parts, ("cluster", "user", "name", "account", "partition", "size"))
    crossed = _crossed(parts, group)
    left, right = _neighbours(group, *_in_time(parts))
    array = pd.factorize(parts["array_job_id"])[0]
    eligible, start = parts["eligible"].to_numpy(), parts["start"].to_numpy()
    waited_at_once = (eligible[right] != NEVER) & (eligible[right] < start[left])
    good = (
        _goes_on(parts, left, right, rule)
        & ~(crossed[left] | crossed[right] | waited_at_once)
        & (share[of_name[left]] <= rule.max_overlap_ratio)
        & ((array[left] < 0) | (array[left] != array[right]))
    )
    row = parts["row"].to_numpy()
    return row[left[good]], row[right[good]]


def _parts(rows: pd.DataFrame, label: Ints) -> pd.DataFrame:
    """What is joined so far and has started: one row each, of its first attempt that did.

    With `size`, GPUs or, where unknown, less than no nodes; `row` of that attempt; microseconds of
    `submit`, `eligible`, `start` (`NEVER` where unknown) and of the last `end`, beyond any time
    while an attempt is pending or running, or its end unknown; and `completed`, whether the last
    attempt that started is COMPLETED.
    """
    times = {name: microseconds(rows[f"{name}_at"]) for name in _BEGINS}
    end, start = microseconds(rows["end_at"]), times["start"]
    until = np.full(int(label.max(initial=0)) + 1, NEVER)
    np.maximum.at(until, label, np.where(end == NEVER, _LATEST, np.maximum(end, start)))
    ran = np.flatnonzero(start != NEVER)
    named, place = np.unique(label[ran], return_index=True)
    _, from_last = np.unique(label[ran][::-1], return_index=True)
    first, last = ran[place], ran[::-1][from_last]
    gpus = pd.to_numeric(rows["n_gpus"]).to_numpy(dtype=float)[first]
    nodes = pd.to_numeric(rows["n_nodes"]).to_numpy(dtype=float)[first]
    return rows.iloc[first].assign(
        size=np.where(gpus > 0, gpus, -nodes),
        n_gpus=gpus,
        n_nodes=nodes,
        row=first,
        end=until[named],
        completed=rows["state"].eq("COMPLETED").to_numpy(dtype=bool)[last],
        **{name: values[first] for name, values in times.items()},
    )


def _in_time(parts: pd.DataFrame) -> tuple[Ints, ...]:
    """Keys of `lexsort` by start, then end, then row: it takes the first of them last."""
    return tuple(parts[name].to_numpy() for name in ("row", "end", "start"))


def _large(rows: pd.DataFrame, min_gpus: int | None) -> Bools:
    """On several nodes, or of at least so many GPUs."""
    large = rows["n_nodes"] > 1 if min_gpus is None else rows["n_gpus"] >= min_gpus
    return large.to_numpy(dtype=bool)


def _named(rows: pd.DataFrame, rule: RunRule) -> Bools:
    """With a user and a name that says something."""
    generic = {"", *(name.casefold() for name in rule.generic_names)}
    name = rows["name"].astype(object)
    known = name.notna() & rows["user"].notna()
    plain = name.where(known, "").astype(str).str.strip().str.casefold()
    return (known & ~plain.isin(generic)).to_numpy(dtype=bool)


def _crossed(parts: pd.DataFrame, group: Ints) -> Bools:
    """Which ran while another of their group ran."""
    order = np.lexsort((*_in_time(parts), group))
    start, end = parts["start"].to_numpy()[order], parts["end"].to_numpy()[order]
    until = pd.Series(end).groupby(group[order]).cummax().to_numpy()
    same = group[order][1:] == group[order][:-1]
    crossed = np.zeros(len(order), dtype=bool)
    crossed[order[1:]] = same & (start[1:] < until[:-1])
    crossed[order[:-1]] |= same & (start[1:] < end[:-1])
    return crossed


def _goes_on(parts: pd.DataFrame, left: Ints, right: Ints, rule: RunRule) -> Bools:
    """Whether the right one may go on where the left one ended."""
    end = parts["end"].to_numpy()[left]
    limit = end + np.minimum(int(rule.gap_hours * _HOUR), _LATEST - end)
    begins = [parts[name].to_numpy()[right] for name in _BEGINS]
    soon = np.any([(begin >= end) & (begin <= limit) for begin in begins], axis=0)
    good: Bools = soon & (begins[-1] >= end)
    return good if rule.after_completed else good & ~parts["completed"].to_numpy()[left]
