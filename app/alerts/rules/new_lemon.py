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
    """Times at which a node failed more than three times as often as the fleet did; days on which
    fewer kinds of records were collected than on the day that is judged are no reference."""
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
        return Found(
            blind=f"{WHAT} cannot be judged: {numbers.counted(n_nodes, 'node')} make no fleet"
        )
    sources, _ = figures.seen_by(ask, watch, looked.days)
    found = standing_out(
        number[within],
        hour[within],
        looked.by_day,
        watch.hours_to_bound(n_nodes),
        n_hours=looked.n,
        held=lambda one: _in_service(ask, watch, looked, str(names[one])),
        sources=sources,
    )
    told = [
        each
        for one, changed in found.items()
        for each in figures.episodes(
            changed, looked, watch, partial(_episode, watch, looked, str(names[one]))
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


def _episode(watch: Watch, looked: Hours, node: str, change: Change, **times: Any) -> Episode:
    cluster = watch.selection.cluster or ""
    ratio, bounds = figures.so_many_times(change.figure, change.usual)
    since, until = times["since_at"], times["ended_at"] or looked.ends_at
    days = max(1, round((until - since) / figures.DAY))
    return Episode(
        target("node", cluster, node),
        sentence=f"{node} failed {numbers.counted(change.figure.n, 'time')} in "
        f"{numbers.counted(days, 'day')} since {numbers.day(since)}, {ratio} times the "
        f"fleet's rate ({bounds})",
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
    weight=3.0,
)
