"""A node fails far more often than the fleet."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.reliability.alarms.changes import HOURS
from analytics.reliability.alarms.many import MARGIN, standing_out
from app.alerts import figures
from app.alerts.rule import Episode, Found, Rule
from app.answers.fleet.actions.action import target
from app.words import numbers
from data.queries import alarms, fleet

if TYPE_CHECKING:
    from analytics.arrays import Floats
    from analytics.reliability.alarms.changes import Change
    from app.alerts.figures import Hours
    from app.alerts.rule import Watch
    from app.ask import Ask

WHAT = "Whether a node turned lemon"
LEAST_NODES = 4
"""Nodes without which there is no fleet to compare one with."""


def find(ask: Ask, watch: Watch) -> Found:
    """Times at which a node failed more than three times as often as the fleet did."""
    blind = figures.unseen(ask, watch, WHAT)
    if blind is not None:
        return Found(blind=blind)
    looked = figures.hours(ask, watch)
    if isinstance(looked, str):
        return Found(blind=f"{WHAT} {looked}")
    rows = ask(alarms.node_hours_struck, watch.selection)
    if not len(rows["node"]):
        return Found(blind=f"{WHAT} cannot be judged: no failure names its node")
    names, number = np.unique(rows["node"].astype(str), return_inverse=True)
    hour = rows["hour"].astype(np.int64) - looked.first_day * HOURS
    within = (hour >= 0) & (hour < looked.n)
    n_nodes = max(ask(fleet.node_count, watch.selection), len(names))
    if n_nodes < LEAST_NODES:
        return Found(blind=f"{WHAT} cannot be judged: {n_nodes} nodes are no fleet")
    found = standing_out(
        number[within],
        hour[within],
        looked.by_day,
        watch.hours_per_false_alarm(n_nodes),
        n_hours=looked.n,
        held=lambda one: _in_service(ask, watch, looked, str(names[one])),
    )
    told = [
        each
        for one, changed in found.items()
        for each in figures.episodes(
            changed, looked, watch, partial(_episode, watch, str(names[one]))
        )
    ]
    return Found(tuple(sorted(told, key=lambda each: (each.raised_at, each.target))))


def _in_service(ask: Ask, watch: Watch, looked: Hours, node: str) -> Floats:
    """Node-days of each hour in which a node was in service: out of it no job can fail there."""
    held, rows = np.full(looked.n, 1.0 / HOURS), ask(alarms.outages, watch.selection)
    own, begin = rows["node"] == node, looked.first_day * HOURS
    from_hour = np.clip(np.ceil(rows["from_hour"][own] - begin), 0, looked.n).astype(int)
    to_hour = np.nan_to_num(rows["to_hour"][own].astype(float) - begin, nan=looked.n)
    for first, last in zip(from_hour, np.clip(to_hour, 0, looked.n).astype(int), strict=True):
        held[first:last] = 0.0
    return held


def _episode(watch: Watch, node: str, change: Change, **times: Any) -> Episode:
    cluster = watch.selection.cluster or ""
    now, usual = (figures.per_1000(each) for each in (change.figure, change.usual))
    return Episode(
        target("node", cluster, node),
        sentence=f"{node} failed {now} times in 1,000 days since "
        f"{numbers.day(times['since_at'])}, a node of the fleet {usual} times",
        page="node",
        named={"node": node, "cluster": cluster},
        **times,
    )


RULE = Rule(
    "new_lemon",
    "New lemon node",
    f"A node fails more than {MARGIN:g} times as often as the fleet's nodes do.",
    "Drain it and test it; give it back to jobs only after a repair.",
    "warning",
    find,
    weight=2.0,
)
