"""Occasions on which something was wrong with a node: records of one occasion count once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from analytics.arrays import Bools, Floats, Ints
    from analytics.nodes.records import NodeRecords

KINDS: Final = ("job_failure", "out", "ticket", "xid", "warning")
"""Kinds of an occasion, by the gravest of its records."""
TOLD_BY_ONE: Final = ("job_failure", "xid")
"""Kinds of records that one user, or a check at fault, can bring about alone."""
OF_HARDWARE: Final = ("xid", "warning")
"""Kinds of records that no user brings about, unless checks alone tell them."""
LASTS_DAYS: Final = 0.5
"""Records within half a day of the first are of one occasion, and those while the node is out."""
FOLLOWS_DAYS: Final = 3.0
"""Days within which a ticket is written of what happened."""
LEAST_LIVE: Final = 0.1
"""Least share of the window that is taken for left between occasions."""
WEEK_DAYS: Final = 7.0
_NOBODY: Final = -1


@dataclass(frozen=True)
class Episodes:
    """Occasions of all nodes in order of node and time; arrays of one length.

    Attributes
    ----------
    place
        Node, index into the records' nodes.
    day
        When it began, days since the window began.
    until_day
        Until when records are still of it.
    kind
        Index into `KINDS`.
    weight
        1; of job failures that no record lays on one node the sum of their shares, below 1.
    user
        Number of the one user whose jobs failed where nothing but their state shows it, or of
        health checks where they alone tell it; -1 else.
    owner
        Number of the one user whose jobs failed, also where the node was lost with them; -1 where
        jobs of several did or none, or where an event of the hardware shows the fault.
    """

    place: Ints
    day: Floats
    until_day: Floats
    kind: Ints
    weight: Floats
    user: Ints
    owner: Ints
    users: tuple[str, ...]
    """Names of users, by number."""

    def where(self, kept: Bools | Ints) -> Episodes:
        """Some of them, in this order."""
        return Episodes(
            self.place[kept],
            self.day[kept],
            self.until_day[kept],
            self.kind[kept],
            self.weight[kept],
            self.user[kept],
            self.owner[kept],
            self.users,
        )

    def with_failures(self, place: Ints, day: Floats) -> Episodes:
        """These and further failed jobs."""
        n = len(place)
        nobody, kind = np.full(n, _NOBODY), np.zeros(n, dtype=np.int64)
        more = Episodes(place, day, day, kind, np.ones(n), nobody, nobody, self.users)
        joined = Episodes(
            np.append(self.place, more.place),
            np.append(self.day, more.day),
            np.append(self.until_day, more.until_day),
            np.append(self.kind, more.kind),
            np.append(self.weight, more.weight),
            np.append(self.user, more.user),
            np.append(self.owner, more.owner),
            self.users,
        )
        return joined.where(np.lexsort((joined.day, joined.place)))

    def at(self, place: Ints, day: Floats) -> Ints:
        """Occasion of each record, by its node and time."""
        length = max(float(self.day.max(initial=0)), float(day.max(initial=0))) + 1
        begins = self.place * length + self.day
        found: Ints = np.searchsorted(begins, place * length + day, side="right") - 1
        return found

    def of_records(self, events: pd.DataFrame, chosen: Bools) -> Bools:
        """Records of the chosen occasions."""
        rows: Bools = events["signal"].isin(KINDS).to_numpy()
        places, days = events["place"].to_numpy(dtype=np.int64), events["day"].to_numpy()
        rows[rows] = chosen[self.at(places[rows], days[rows])]
        return rows

    def begun_by(self, events: pd.DataFrame, rows: Bools) -> Bools:
        """Occasions of which one of these records is the first."""
        chosen = events[rows & events["signal"].isin(KINDS).to_numpy()]
        at = self.at(chosen["place"].to_numpy(dtype=np.int64), chosen["day"].to_numpy())
        found = np.zeros(len(self.place), dtype=bool)
        found[at[self.day[at] == chosen["day"].to_numpy()]] = True
        return found

    def live_share(self, n_nodes: int, days: float) -> Floats:
        """Share of the window in which a further occasion of each node would have counted."""
        lasted = np.minimum(self.until_day, days) - np.maximum(self.day, 0.0)
        taken = np.bincount(self.place, lasted.clip(0.0), minlength=n_nodes)
        share: Floats = np.maximum(1 - taken / days, LEAST_LIVE)
        return share

    def counts(self, n_nodes: int) -> Ints:
        """Occasions by node and kind, shape (n_nodes, kinds); shares count by the whole ones."""
        cell = self.place * len(KINDS) + self.kind
        summed = np.bincount(cell, self.weight, minlength=n_nodes * len(KINDS))
        whole: Ints = np.floor(summed + 1e-9).astype(np.int64)
        return whole.reshape(n_nodes, len(KINDS))

    def worst_week_as_one(self) -> Episodes:
        """The first alone of the seven days in which each node had most, and those outside."""
        kept = np.ones(len(self.place), dtype=bool)
        for first, last in self._of_nodes():
            day, weight = self.day[first:last], self.weight[first:last]
            inside = (day >= day[:, None]) & (day < day[:, None] + WEEK_DAYS)
            worst = int((inside * weight).sum(axis=1).argmax())
            kept[first:last] = ~inside[worst]
            kept[first + worst] = True
        return self.where(kept)

    def without_top_user(self) -> Episodes:
        """Those that do not rest on the one user whom each node cost most, or on checks."""
        return self.where(~self._of_top(self.user))

    def without_top_owner(self) -> Episodes:
        """Those on which not only jobs of the user failed who lost most of them on each node."""
        return self.where(~self._of_top(self.owner))

    def _of_top(self, users: Ints) -> Bools:
        """Occasions of the user who has most of each node's."""
        found = np.zeros(len(self.place), dtype=bool)
        for first, last in self._of_nodes():
            user, weight = users[first:last], self.weight[first:last]
            named = user >= 0
            if named.any():
                top = np.bincount(user[named], weight[named]).argmax()
                found[first:last] = user == top
        return found

    def _of_nodes(self) -> list[tuple[int, int]]:
        """First and last row of each node with several occasions."""
        begins = np.flatnonzero(np.diff(self.place, prepend=-1))
        ends = np.append(begins[1:], len(self.place))[: len(begins)]
        return [(b, e) for b, e in zip(begins.tolist(), ends.tolist(), strict=True) if e - b > 1]


def episodes(records: NodeRecords) -> Episodes:
    """Occasions of all nodes.

    Records of a node belong to one occasion where they lie within half a day of its first, or
    before the end of an outage that it holds, tickets within three days. So a failure,
    the outage that follows, the XID that shows it and its ticket count once, as the gravest of
    them.
    """
    rows = records.events[records.events["signal"].isin(KINDS)]
    rows = rows.sort_values(["place", "day"], kind="stable")
    kind = rows["signal"].map({name: number for number, name in enumerate(KINDS)})
    owner, users = pd.factorize(rows["user"])
    user = np.where(rows["evident"], _NOBODY, owner)
    columns = (rows["place"], rows["day"], rows["until_day"], kind, rows["share"], user, owner)
    found: list[_Episode] = []
    for place, *record in zip(*(np.asarray(column).tolist() for column in columns), strict=True):
        if not found or place != found[-1].place or not found[-1].holds(record[0], record[2]):
            found.append(_Episode(place, record[0], record[0] + LASTS_DAYS))
        found[-1].take(*record[1:])
    return Episodes(
        np.array([one.place for one in found], dtype=np.int64),
        np.array([one.day for one in found], dtype=np.float64),
        np.array([one.reach_day for one in found], dtype=np.float64),
        np.array([one.kind for one in found], dtype=np.int64),
        np.array([one.weight for one in found], dtype=np.float64),
        np.array([one.user for one in found], dtype=np.int64),
        np.array([one.owner for one in found], dtype=np.int64),
        tuple(users),
    )


def of_checks(events: pd.DataFrame) -> pd.Series:
    """Records that health checks alone tell."""
    return (events["user"] == "checks") & ~events["evident"].astype(bool)


@dataclass
class _Episode:
    """An occasion as its records come in."""

    place: int
    day: float
    reach_day: float
    share: float = 0.0
    others: int = len(KINDS)
    """Gravest record that is no job failure."""
    users: set[int] = field(default_factory=set)
    owners: set[int] = field(default_factory=set)
    hardware: bool = False
    """Whether an event of the hardware is among its records."""

    def holds(self, day: float, kind: int) -> bool:
        """Whether a record is of it; a ticket is, soon after whatever else happened."""
        follows = KINDS[kind] == "ticket" and self.others != kind
        return day < self.reach_day or (follows and day < self.day + FOLLOWS_DAYS)

    def take(self, until_day: float, kind: int, share: float, user: int, owner: int) -> None:
        """A record of it."""
        if until_day > self.reach_day:
            self.reach_day = until_day
        if KINDS[kind] in TOLD_BY_ONE:
            self.users.add(user)
        if KINDS[kind] == "job_failure":
            self.share += share
            self.owners.add(owner)
        else:
            self.others = min(self.others, kind)
            self.hardware |= KINDS[kind] in OF_HARDWARE and user == _NOBODY

    @property
    def whole(self) -> bool:
        """Whether job failures of this node alone are among its records."""
        return self.share >= 1 - 1e-9

    @property
    def kind(self) -> int:
        """The gravest: shares of failures count behind what is the node's own."""
        return 0 if self.whole or self.others == len(KINDS) else self.others

    @property
    def weight(self) -> float:
        """1, or the shares."""
        return 1.0 if self.whole or self.others < len(KINDS) else self.share

    @property
    def user(self) -> int:
        """The one user, or checks, on whom it rests; an outage after that shows nothing more."""
        shown = self.others < len(KINDS) and KINDS[self.others] not in ("out", "xid")
        return next(iter(self.users)) if len(self.users) == 1 and not shown else _NOBODY

    @property
    def owner(self) -> int:
        """The one user whose jobs failed, where no hardware shows a fault."""
        return next(iter(self.owners)) if len(self.owners) == 1 and not self.hardware else _NOBODY
