"""What people say of which incidents are one and whose an attempt is: checked before it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.errors import DataError
from data.queries import incidents, targets
from data.said import INTO, NONE
from data.state import State

if TYPE_CHECKING:
    from data.store import Store


def checked_merge(store: Store, one: str, other: str) -> str:
    """The incident that another one is said to be the same as.

    Raises
    ------
    DataError
        Where it is the same already, leads elsewhere, is none any more or of another cluster.
    """
    if one == other:
        raise DataError(f"incident {one} cannot be merged into itself: name another one")
    incident, target = _standing(store, one), _standing(store, other)
    if target.superseded_by == one:
        raise DataError(
            f"incident {other} was merged into {one} before, both ways are a circle"
            f"{_taken_back(store, other)}"
        )
    _require_living(store, target)
    if incident.superseded_by is not None:
        raise DataError(
            f"incident {one} was merged into {incident.superseded_by} before"
            f"{_taken_back(store, one) or ': say it of that one'}"
        )
    _require_living(store, incident)
    if incident.cluster != target.cluster:
        raise DataError(
            f"incident {one} is of cluster {incident.cluster} and {other} of {target.cluster}: "
            "only incidents of one cluster can be merged"
        )
    return other


def checked_place(store: Store, attempt: str, value: str) -> str:
    """The incident that an attempt (`<cluster>/<attempt_key>`) is said to be of, or `none`.

    Raises
    ------
    DataError
        Where the attempt did not fail or is of it already, or the incident leads elsewhere, is
        none any more or of another cluster.
    """
    cluster, _, key = attempt.partition("/")
    present = incidents.of_attempt(store, cluster, key)["incident_id"].tolist()
    if value == NONE:
        if not present:
            raise DataError(f"attempt {attempt} is of no incident: there is none to take it out of")
        return value
    target = _standing(store, value)
    if value not in store.arranged.emptied:
        _require_living(store, target)
    if not incidents.has_failed(store, cluster, key):
        raise DataError(f"attempt {attempt} did not fail: only failures are of an incident")
    if value in present:
        raise DataError(f"attempt {attempt} is of incident {value} already: name another one")
    if target.cluster != cluster:
        raise DataError(
            f"attempt {attempt} is of cluster {cluster} and incident {value} of "
            f"{target.cluster}: name one of its own cluster"
        )
    return value


def _standing(store: Store, incident_id: str) -> incidents.Standing:
    """What became of an incident; refuses an id that the store does not know."""
    found = incidents.standing(store, incident_id)
    if found is None:
        near = targets.nearest(store, "incident", incident_id) if incident_id else []
        remedy = f"did you mean {near[0]}?" if near else "`faultline incidents` lists them"
        raise DataError(f"incident {incident_id!r} is not in the store: {remedy}")
    return found


def _require_living(store: Store, incident: incidents.Standing) -> None:
    """Refuses an incident that is none any more."""
    if incident.superseded_by is not None:
        raise DataError(
            f"incident {incident.incident_id} was merged into {incident.superseded_by}: name "
            f"{incident.superseded_by} instead"
        )
    if incident.incident_id in store.arranged.emptied:
        raise DataError(
            f"incident {incident.incident_id} is empty, people took every failure out of it: put "
            "one back into it first, or name one that `faultline incidents` lists"
        )
    if incident.retired:
        raise DataError(
            f"incident {incident.incident_id} is retired, its members are no incident any more: "
            "name one that `faultline incidents` lists"
        )


def _taken_back(store: Store, incident_id: str) -> str:
    """How to take the merge of an incident back, where people said it."""
    for annotation_id, target, _, _, field, _ in State(store.root).annotations():
        if (target, field) == (f"incident:{incident_id}", INTO):
            return f": `faultline annotate --undo {annotation_id}` takes that back"
    return ""
