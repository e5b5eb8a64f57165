"""Availability burns its error budget: nodes are out more than the target allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analytics.estimate import Estimate
from analytics.reliability.availability import UP, began_out, by_period, clipped, ratios
from analytics.reliability.error_budget import HOURLY_PAIRS
from analytics.reliability.excess import of_batches
from app.alerts import budgets
from app.alerts.budgets import Course
from app.alerts.rule import Found, Rule
from app.answers.reliability import availability
from data.filters import Selection
from data.queries import availability as queries

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.arrays import Floats
    from analytics.reliability.availability import States
    from app.alerts.rule import Watch
    from app.ask import Ask

BLIND = "cannot be judged: no record tells when nodes were out of service"
HOUR_S = 3600
LEAST_NODE_HOURS = 24.0
"""A batch of outages counts as large from a day of one node on."""


def find(ask: Ask, watch: Watch) -> Found:
    """Times in which nodes were out of service more than the target allows."""
    aim, period = budgets.aimed(watch, "availability"), budgets.period(ask, watch)
    if aim is None or period is None:
        return Found(blind=budgets.NO_AIM if aim is None else budgets.NO_RECORD)
    selection = Selection(watch.selection.cluster, *period)
    if not ask(queries.is_recorded, selection):
        return Found(blind=BLIND)
    states = ask(availability.node_states, selection)
    if not len(states.state):
        return Found(blind=BLIND)
    return budgets.found(course(states, period[0], aim), watch)


def course(states: States, start_at: datetime, aim: float) -> Course:
    """Node-hours out and there, hour by hour."""
    edges, seconds = by_period(states, HOUR_S)
    start_s = int(start_at.timestamp())
    first = (int(edges[0]) - start_s) // HOUR_S
    hours = np.zeros((first + len(edges), seconds.shape[1]))
    hours[first:] = seconds / HOUR_S
    up, there = hours[:, UP], hours.sum(axis=1)
    began = began_out(states)
    start = (began.start_s - start_s) / HOUR_S
    end = (began.end_s - start_s) / HOUR_S
    steps, batch = np.unique(np.floor(start).astype(np.int64), return_inverse=True)

    def marks(look: int) -> Floats:
        lasted = np.minimum(end, look + 1.0) - start
        sizes = np.maximum(lasted, 0.0)
        return np.bincount(batch, sizes, minlength=len(steps)).astype(float)

    def wrong_in(first: int, last: int) -> Estimate:
        part = clipped(states, start_s + first * HOUR_S, start_s + last * HOUR_S)
        up_ = ratios(part).available
        value, lower, upper = (
            None if each is None else 1.0 - each for each in (up_.value, up_.upper, up_.lower)
        )
        return Estimate(value, lower, upper, up_.conf_level, up_.n)

    allowed = (1.0 - aim) / aim
    judge = of_batches(steps, marks, up, allowed, least=LEAST_NODE_HOURS)
    return Course("availability", aim, start_at, 1, there - up, there, judge, HOURLY_PAIRS, 72,
                  wrong_in)  # fmt: skip


RULE = Rule(
    "availability_target",
    "Availability below target",
    "Nodes are out of service for more of their time than the target allows, and chance does not "
    "explain it.",
    "See on Availability which nodes are out and which repairs are open.",
    "warning",
    find,
    weight=6.0,
    needs="targets.availability",
)
