"""Whether the jobs of one user, and not the node, may be why jobs fail on a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

if TYPE_CHECKING:
    import pandas as pd

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


def doubted(records: NodeRecords, found: Episodes, place: int) -> OneUser | None:
    """What lays the failures of a node on one user; None where it does not, or the node is shown.

    .. math:: P(B_1 \\ge k), \\; B_1 \\sim Bin(n, s), \\qquad
        P(B_2 \\ge k), \\; B_2 \\sim Bin(k + f, h)

    The user has k of n occasions with failed jobs and the share s of the use of the node. A faulty
    node hits its users by their use: where the first chance is 0.1 or less it spared all others,
    whose jobs ran well. Else the user's jobs elsewhere decide, of which f failed: with the
    share h of their use on this node, the node is shown where the second is 0.05 or less. Use is
    time or attempts, whichever is the larger share. Where the use is not known, nothing clears
    the user.
    """
    here = (found.place == place) & (found.kind == 0)
    owners, n = found.owner[here], int(here.sum())
    named = owners[owners >= 0]
    owner = int(np.bincount(named, minlength=1).argmax())
    k = int((named == owner).sum())
    if k < LEAST_FAILED or 2 * k <= n:
        return None
    if records.uses is None:
        return OneUser(k, n, None)
    failed = records.events[records.events["signal"] == "job_failure"]
    user = found.users[owner]
    use = records.uses
    by_user = _use(use[(use["place"] == place) & (use["user"] == user)])
    by_all = _use(use[use["place"] == place])
    everywhere = _use(use[use["user"] == user])
    elsewhere = failed[(failed["user"] == user) & (failed["place"] != place)]
    f = int(np.floor(elsewhere["share"].sum()))
    spared = special.bdtrc(k - 1, n, _share(by_user, by_all))
    own_fault = special.bdtrc(k - 1, k + f, _share(by_user, everywhere))
    if spared > SPARED and own_fault <= ELSEWHERE:
        return None
    return OneUser(k, n, max(by_all[0] - by_user[0], 0.0))


def _use(rows: pd.DataFrame) -> tuple[float, float]:
    """Node-days and attempts."""
    return float(rows["node_days"].sum()), float(rows["n_attempts"].sum())


def _share(part: tuple[float, float], whole: tuple[float, float]) -> float:
    """Larger share; 1 where nothing is known to have run."""
    shares = [one / all_of for one, all_of in zip(part, whole, strict=True) if all_of > 0]
    return min(max(shares, default=1.0), 1.0)
