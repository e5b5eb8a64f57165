"""Incidents as people arranged them: some are one, some attempts are of another or of none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.failures.columns import overlaps, taken
from analytics.failures.incidents.grouping import as_one, outage_keys
from analytics.failures.incidents.identity import IncidentTables
from analytics.failures.incidents.members import Given, Members, members_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from analytics.arrays import Bools
    from analytics.failures.incidents.members import IncidentOptions
    from analytics.frames import Columns

    Names = NDArray[np.object_]


@dataclass(frozen=True)
class Move:
    """An attempt that people took out of an incident, or put into one."""

    cluster: str
    attempt_key: str
    from_id: str | None
    """The incident that holds it by the records; None where none does."""
    to_id: str | None
    """The one that it is of; None where it is of none."""


def one_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Which incident stands for each that is the same as another, from pairs of ids.

    The second of a pair stands for the first, and for all that the first stood for. A pair that
    would close a circle says nothing new and changes nothing.

    >>> one_of([("a", "b"), ("b", "c"), ("c", "a")])
    {'a': 'c', 'b': 'c'}
    """
    stands_for: dict[str, str] = {}
    for one, other in pairs:
        first, last = _last(one, stands_for), _last(other, stands_for)
        if first != last:
            stands_for[first] = last
    return {incident_id: _last(incident_id, stands_for) for incident_id in stands_for}


def _last(one: str, stands_for: Mapping[str, str]) -> str:
    """The end of a chain."""
    while one in stands_for:
        one = stands_for[one]
    return one


def arranged(
    records: Given, held: pd.DataFrame, moves: Iterable[Move], options: IncidentOptions
) -> IncidentTables:
    """Incidents of records by what people said of them: causes, counts, nodes and losses anew.

    What one incident says follows from the records that it holds, by the rules of `incidents`.
    With an attempt that moves go what its requeue preempted, and the critical bursts and outages in
    its window at its nodes that lie in no window of an attempt that stays. Context is looked for
    anew in the windows of what each incident holds.

    Parameters
    ----------
    records : Given
        All records of the incidents concerned, and of attempts that move into them.
    held : DataFrame
        cluster, kind, key, incident_id: the members of these incidents, those of one that is the
        same as another under the id of that.
    moves : iterable of Move
        Attempts of which people said whose they are, each once.
    options : IncidentOptions
        As in the derivation.

    Returns
    -------
    IncidentTables
        Of what still has a seed; an id of `held` without a row has none left.
    """
    everything = np.ones(len(records.failures["cluster"]), dtype=bool)
    records = records._replace(failures={**records.failures, "counted": everything})
    members = members_of(records, options)
    owner = _owners(members, held)
    moved, target = _moved(members, moves)
    owner = _along(members, owner, moved, target, options)
    context = _known(members.mild, held)
    found = [
        as_one(_records(records, members, owner == incident_id, context), incident_id, options)
        for incident_id in sorted({*owner[pd.notna(owner)]})
    ]
    kept = [tables for tables in found if tables is not None]
    if not kept:
        return IncidentTables(pd.DataFrame(columns=["incident_id"]), pd.DataFrame())
    return IncidentTables(
        pd.concat([tables.incidents for tables in kept], ignore_index=True),
        pd.concat([tables.members for tables in kept], ignore_index=True),
    )


def _owners(members: Members, held: pd.DataFrame) -> Names:
    """Incident of each candidate by the records; None where it has none."""
    names = ("cluster", "kind", "key", "incident_id")
    known = {row[:3]: row[3] for row in zip(*(held[name] for name in names), strict=True)}
    outages = members.first[members.n_seeds :]
    asked = (
        ("failure", members.failures, members.failures["attempt_key"]),
        ("health_event", members.severe, members.severe["burst_id"]),
        ("node_event", members.outages, outage_keys(members.outages, outages)),
    )
    found = [
        known.get((cluster, kind, key))
        for kind, table, keys in asked
        for cluster, key in zip(table["cluster"], keys, strict=True)
    ]
    return _objects(found)


def _moved(members: Members, moves: Iterable[Move]) -> tuple[Bools, Names]:
    """Of each failure, whether it moves, and to which incident; None where to none."""
    targets = {(move.cluster, move.attempt_key): move.to_id for move in moves}
    failures = members.failures
    keys = list(zip(failures["cluster"], failures["attempt_key"], strict=True))
    moved = np.array([key in targets for key in keys], dtype=bool)
    return moved, _objects([targets.get(key) for key in keys])


def _along(
    members: Members,
    owner: Names,
    moved: Bools,
    target: Names,
    options: IncidentOptions,
) -> Names:
    """Owners after the moves: a moved attempt takes with it what only it explains."""
    others = np.arange(members.n_failures, members.n)
    failure, place = members.of_attempts
    windows = members.at(failure, place, options.window)
    one, other = overlaps(windows, members.at(others, members.place[others]).known())
    failure, record = windows.member[one], others[other]
    same = (owner[failure] == owner[record]) & pd.notna(owner[record])
    failure, record = failure[same], record[same]
    found = owner.copy()
    found[: members.n_failures] = np.where(moved, target, owner[: members.n_failures])
    leaving = np.setdiff1d(record[moved[failure]], record[~moved[failure]])
    for each in leaving:
        found[each] = target[failure[record == each].min()]
    return found


def _known(mild: Columns, held: pd.DataFrame) -> Columns:
    """Those of the milder bursts that are context of an incident concerned."""
    bursts = held[held["kind"] == "health_event"]
    known = {*zip(bursts["cluster"], bursts["key"], strict=True)}
    rows = zip(mild["cluster"], mild["burst_id"], strict=True)
    return taken(mild, np.array([row in known for row in rows], dtype=bool))


def _records(records: Given, members: Members, own: Bools, context: Columns) -> Given:
    """The records of one incident; all have the context, for windows choose among it."""
    failures, severe, outages = np.split(own, [members.n_failures, members.n_seeds])
    bursts = [taken(members.severe, severe), context]
    return Given(
        failures=taken(members.failures, failures),
        attempt_nodes=records.attempt_nodes,
        bursts={name: np.concatenate([columns[name] for columns in bursts]) for name in context},
        node_events=taken(members.outages, outages),
        nodes=records.nodes,
        preempted=taken(members.preempted, failures[members.preempted_by]),
    )


def _objects(values: list[str | None]) -> Names:
    """As an array of objects, also where there is none."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
