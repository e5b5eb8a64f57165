"""Whether the jobs of one user, and not the node, may be why jobs fail on a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from scipy import special

if TYPE_CHECKING:
    from analytics.arrays import Floats, Ints
    from analytics.nodes.episodes import Episodes
    from analytics.nodes.records import NodeRecords

LEAST_FAILED: Final = 2
SPARED: Final = 0.1
"""Chance below which a faulty node would hardly have spared the jobs of all others."""
ELSEWHERE: Final = 0.05
"""Chance below which a user's jobs fail on a node more than their own faults explain."""


@dataclass(frozen=True)
class OneUser:
    """Failures of a node that lie on one user."""

    n_failed: int
    """Occasions on which jobs of this user alone failed."""
    n_all: int
    """Occasions on which any job failed."""
    others_days: float | None
    """Node-days that jobs of others ran there; None where not known."""


@dataclass(frozen=True)
class Users:
    """Whose jobs failed and ran on which node, to doubt the nodes one by one."""

    found: Episodes
    failed_place: Ints
    failed_user: Ints
    """Numbers as `found.users` has them; -1 for whoever is not named there."""
    failed_share: Floats
    used_place: Ints | None
    """None where nobody knows who used which node."""
    used_user: Ints
    used: Floats
    """Node-days and attempts; shape (rows, 2)."""

    @classmethod
    def of(cls, records: NodeRecords, found: Episodes) -> Users:
        """Of some occasions among the records."""
        names = pd.Index(found.users)
        failed = records.events[records.events["signal"] == "job_failure"]
        uses = records.uses
        return cls(
            found,
            failed["place"].to_numpy(dtype=np.int64),
            names.get_indexer(pd.Index(failed["user"])),
            failed["share"].to_numpy(dtype=float),
            None if uses is None else uses["place"].to_numpy(dtype=np.int64),
            np.empty(0, dtype=np.int64)
            if uses is None
            else names.get_indexer(pd.Index(uses["user"])),
            np.empty((0, 2)) if uses is None else uses[["node_days", "n_attempts"]].to_numpy(float),
        )

    def doubted(self, place: int) -> OneUser | None:
        """What lays the failures of a node on one user; None where it does not, or the node is
        shown.

        .. math:: P(B_1 \\ge k), \\; B_1 \\sim Bin(n, s), \\qquad
            P(B_2 \\ge k), \\; B_2 \\sim Bin(k + f, h)

        The user has k of n occasions with failed jobs and the share s of the use of the node. A
        faulty node hits its users by their use: where the first chance is 0.1 or less it spared all
        others, whose jobs ran well. Else the user's jobs elsewhere decide, of which f failed: with
        the share h of their use on this node, the node is shown where the second is 0.05 or less.
        Use is time or attempts, whichever is the larger share. Where the use is not known, nothing
        clears the user.
        """
        here = (self.found.place == place) & (self.found.kind == 0)
        owners, n = self.found.owner[here], int(here.sum())
        named = owners[owners >= 0]
        owner = int(np.bincount(named, minlength=1).argmax())
        k = int((named == owner).sum())
        if k < LEAST_FAILED or 2 * k <= n:
            return None
        if self.used_place is None:
            return OneUser(k, n, None)
        of_place, of_user = self.used_place == place, self.used_user == owner
        by_user, by_all, everywhere = (
            self.used[which].sum(axis=0) for which in (of_place & of_user, of_place, of_user)
        )
        elsewhere = (self.failed_user == owner) & (self.failed_place != place)
        f = int(np.floor(self.failed_share[elsewhere].sum()))
        spared = special.bdtrc(k - 1, n, _share(by_user, by_all))
        own_fault = special.bdtrc(k - 1, k + f, _share(by_user, everywhere))
        if spared > SPARED and own_fault <= ELSEWHERE:
            return None
        return OneUser(k, n, max(float(by_all[0] - by_user[0]), 0.0))


def _share(part: Floats, whole: Floats) -> float:
    """Larger share; 1 where nothing is known to have run."""
    known = whole > 0
    return min(float((part[known] / whole[known]).max()), 1.0) if known.any() else 1.0
