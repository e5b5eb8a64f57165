"""Fleets made record by record, by rules that are not the model of the score.

Rates of healthy nodes are lognormal, users and jobs uneven, records of one occasion come together
or alone, large jobs fall to a node that nobody names, outages are planned, racks are updated, file
systems fail for many nodes at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analytics.nodes.records import SIGNALS, NodeRecords

KINDS = ("crashes", "degraded", "repaired often", "flapping", "throws codes", "loses jobs")
"""What a lemon can be: which records its occasions leave."""
LEAVES = {
    None: (0.5, 0.6, 0.35, 0.4),
    "crashes": (0.9, 0.9, 0.5, 0.2),
    "degraded": (0.3, 0.4, 0.3, 0.9),
    "repaired often": (0.4, 0.8, 1.0, 0.3),
    "flapping": (0.1, 1.0, 0.1, 0.1),
    "throws codes": (0.2, 0.2, 0.1, 1.0),
    "loses jobs": (1.0, 0.1, 0.05, 0.05),
}
"""Chances of a failed job, an outage, a ticket and a code at an occasion; one at least is left."""
COLUMNS = (
    "place", "day", "until_day", "signal", "share", "user", "evident", "n_nodes",
    "lost_gpu_hours", "reason",
)  # fmt: skip


@dataclass(frozen=True)
class Made:
    records: NodeRecords
    lemons: dict[int, str]
    """Place -> kind."""
    after: NodeRecords
    """The 28 days that follow."""


def made(
    seed: int,
    n_nodes: int = 2000,
    n_lemons: int = 0,
    events: float | tuple[float, float] = (6, 20),
    days: float = 28.0,
) -> Made:
    """A fleet; lemons have so many occasions in 28 days on average."""
    rng = np.random.default_rng(seed)
    busy = np.clip(rng.beta(6, 1.5, n_nodes), 0.05, 1) * days
    busy[rng.random(n_nodes) < 0.03] *= 0.1
    attempts = rng.poisson(busy * rng.lognormal(2.0, 0.6, n_nodes))
    rate = 0.0065 * rng.lognormal(-0.045, 0.3, n_nodes)  # occasions of a healthy node a day in jobs
    where = rng.choice(n_nodes, n_lemons, replace=False).tolist()
    lemons = {at: KINDS[number % len(KINDS)] for number, at in enumerate(where)}
    low, high = events if isinstance(events, tuple) else (events, events)
    more = {at: rng.uniform(low, high) for at in where}
    nodes = pd.DataFrame({
        "node": [f"n{i:04d}" for i in range(n_nodes)], "present_days": days, "busy_days": busy,
        "n_attempts": attempts, "n_single": attempts // 2, "role": "compute", "holds_jobs": True,
        "rack": [f"r{i // 8}" for i in range(n_nodes)], "pod": [f"p{i // 160}" for i in range(n_nodes)],
        "switch": None, "pdu": None,
    })  # fmt: skip
    spans = [
        NodeRecords("made", days, nodes, _events(rng, busy, rate, lemons, more, days),
                    frozenset(SIGNALS))
        for _ in range(2)
    ]  # fmt: skip
    return Made(spans[0], lemons, spans[1])


def _events(rng, busy, rate, lemons, more, days) -> pd.DataFrame:  # type: ignore[no-untyped-def]
    rows: list[tuple[object, ...]] = []
    n = len(busy)
    for at in range(n):
        mean = rate[at] * busy[at] + 0.03 * days / 28
        kind = lemons.get(at)
        for _ in range(rng.poisson(mean)):
            rows += _occasion(rng, at, None, days, n)
        if kind:
            for _ in range(rng.poisson(max(more[at] - mean, 0) * days / 28)):
                rows += _occasion(rng, at, kind, days, n)
    for _ in range(rng.poisson(n * days / 900)):  # large jobs end, and nobody knows by which node
        size = int(rng.choice([8, 32, 128]))
        day, user = rng.uniform(0, days), f"u{rng.integers(40)}"
        for at in rng.choice(n, min(size, n), replace=False):
            rows.append(
                (int(at), day, np.nan, "job_failure", 1 / size, user, False, size, 4.0, None)
            )
    for at in rng.choice(n, rng.poisson(n * 0.01)):  # people shun nodes on hearsay
        rows.append((int(at), rng.uniform(0, days), np.nan, "excluded", 1.0, f"u{rng.integers(40)}",
                     False, 0, 0.0, None))  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS)).assign(n_records=1)


def _occasion(rng, at, kind, days, n) -> list[tuple[object, ...]]:  # type: ignore[no-untyped-def]
    day, leaves = rng.uniform(0, days), rng.random(4) < LEAVES[kind]
    if not leaves.any():
        leaves[int(np.argmax(LEAVES[kind]))] = True
    user, size = f"u{int(40 * rng.random() ** 2)}", int(rng.choice([1, 1, 1, 2, 4, 16, 64]))
    rows: list[tuple[object, ...]] = []
    lost = 8 * size * min(0.5, rng.exponential(2.0))
    if leaves[0]:
        rows.append((at, day, np.nan, "job_failure", 1.0, user, True, size, lost, None))
    if leaves[1]:
        begin = day + rng.exponential(0.05)
        rows.append((at, begin, begin + rng.lognormal(-1.5, 0.8), "out", 1.0, None, True, 0, 0.0,
                     "Not responding"))  # fmt: skip
    if leaves[2]:
        rows.append(
            (at, day + rng.exponential(0.2), np.nan, "ticket", 1.0, None, True, 0, 0.0, "gpu")
        )
    if leaves[3]:
        rows.append(
            (at, day, np.nan, "xid", 1.0, None, True, 0, 0.0, str(rng.choice([48, 79, 95])))
        )
    return rows
