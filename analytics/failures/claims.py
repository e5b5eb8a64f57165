"""Which attempt a line about one process belongs to, in spite of clocks that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.failures.precedence import Weights

AGREEING = 3
"""Lines that must agree on the error of a clock."""


def dismiss(rows: pd.DataFrame, which: NDArray[np.bool_] | pd.Series, role: str, why: str) -> None:
    """Takes rows that still count as a cause out of the weighing."""
    chosen = np.asarray(which, dtype=bool) & rows["role"].eq("cause").to_numpy()
    if chosen.any():
        rows.loc[chosen, ["role", "why"]] = [role, why]
        rows.loc[chosen, "weight"] = 0.0


def claim_processes(rows: pd.DataFrame, table: Weights) -> None:
    """A line about one process counts for one attempt: the one named, else the nearest end."""
    own = rows["scope"].eq("process")
    if not own.any():
        return
    named = rows["job_named"]
    other = own & named.eq(False)
    dismiss(rows, other, "excluded", "names another job")
    far = own & ~(rows["offset_s"].ge(-table.before_s) & rows["offset_s"].le(table.after_s))
    dismiss(rows, far & ~named.eq(True), "excluded", "too long before or after the end")
    open_ = rows[own & rows["role"].eq("cause")]
    apart = (open_["offset_s"] - clock_offsets(open_)).abs()
    order = open_.assign(named=open_["job_named"].ne(True), apart=apart).sort_values(
        ["cluster", "key", "named", "apart", "attempt"]
    )
    beaten = order.index[order.duplicated(["cluster", "key"])]
    dismiss(rows, rows.index.isin(beaten), "excluded", "another attempt ended nearer to it")


def clock_offsets(pairs: pd.DataFrame, *, bin_s: float = 5.0) -> pd.Series:
    """Seconds by which the clock of observations runs ahead of the scheduler's.

    Lines about a process are written as it dies, so their offsets from the right ends pile up at
    one value, those from other ends spread evenly. The value is the fullest of overlapping bins,
    of the node where at least three lines and half of all agree, else of its cluster, else 0.

    Parameters
    ----------
    pairs : DataFrame
        Columns cluster, node, key (of the line), offset_s; one row for each end that a line may
        belong to.
    bin_s : float
        Width of a bin, seconds.

    Returns
    -------
    Series
        Seconds, of each pair.

    Misleads where each line has a clock error of its own: then no bin holds half, and 0 stands.

    Examples
    --------
    >>> pairs = pd.DataFrame({"cluster": "a", "node": "n", "key": [1, 1, 2, 3, 4],
    ...     "offset_s": [58.0, -4.0, 57.5, 59.0, 58.5]})
    >>> clock_offsets(pairs).tolist()
    [57.5, 57.5, 57.5, 57.5, 57.5]
    """
    found = pd.Series(0.0, index=pairs.index)
    if pairs["key"].nunique() < AGREEING:
        return found
    for keys in (["cluster"], ["cluster", "node"]):
        bins = pd.concat(
            [
                pairs.assign(bin=np.floor((pairs["offset_s"] + shift) / bin_s) * bin_s - shift)
                for shift in (0.0, bin_s / 2)
            ]
        )
        lines = bins.drop_duplicates([*keys, "key", "bin"])
        counts = lines.groupby([*keys, "bin"], dropna=False).size().rename("n").reset_index()
        counts["apart"] = (counts["bin"] + bin_s / 2).abs()
        best = counts.sort_values(["n", "apart", "bin"], ascending=[False, True, True])
        best = best.drop_duplicates(keys).set_index(keys)
        total = pairs.groupby(keys, dropna=False)["key"].nunique()
        sure = best[best["n"].ge(AGREEING) & best["n"].mul(2).ge(total.reindex(best.index))]
        middle = pairs[keys].join(sure["bin"] + bin_s / 2, on=keys)["bin"]
        found = middle.fillna(found)
    return found
