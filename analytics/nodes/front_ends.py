"""Front ends and service nodes: busy for other reasons than compute nodes, and no lemons."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

_NAMED: Final = re.compile(
    r"(^|[-_.])(login|head|mgmt|mgt|fe|frontend|front-end|gateway|gw|admin|master|ctl|slurmctld|submit)"
    r"[-_]?\d*($|[-_.])",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"(\d+)\D*$")
MOST_OUT: Final = 0.5
"""Share of its days that a node without jobs may be out and still count as one that serves."""


def front_ends(
    nodes: pd.DataFrame, out_days: NDArray[np.float64], stands_out: NDArray[np.bool_]
) -> dict[int, str]:
    """Nodes that are no compute nodes, each with what says so.

    By their role; their name (login, head, mgmt, fe and the like); jobs, where they ran in the
    cluster and never there, though the node was in service; and in a cluster whose jobs are not
    known, the first number of its names, where it has more records than is usual: the front end of
    such clusters often counts as a node.

    Parameters
    ----------
    nodes
        As in `NodeRecords`.
    out_days
        Days out of service of each.
    stands_out
        Whether it has more records than is usual.
    """
    found: dict[int, str] = {}
    has_jobs = bool(nodes["holds_jobs"].any())
    first = None if has_jobs else _first_number(nodes["node"].tolist())
    rows = nodes[["node", "role", "holds_jobs", "present_days"]].itertuples(index=False)
    for at, (node, role, holds_jobs, present_days) in enumerate(rows):
        if role in ("front end", "service"):
            found[at] = f"the inventory calls it a {role} node"
        elif _NAMED.search(node):
            found[at] = "probably a front end, by its name"
        elif has_jobs and not holds_jobs:
            if stands_out[at] and out_days[at] < MOST_OUT * present_days:
                found[at] = "probably a service node: jobs ran in the cluster, never here"
        elif at == first and stands_out[at]:
            found[at] = "probably the front end: the first number of its cluster, with more records"
    return found


def _first_number(names: list[str]) -> int | None:
    """Place of the node with the least number, where one has it alone."""
    numbers = [_NUMBER.search(name) for name in names]
    if not names or not all(numbers):
        return None
    values = [int(each.group(1)) for each in numbers if each]
    least = min(values)
    return values.index(least) if values.count(least) == 1 and least <= 1 else None
