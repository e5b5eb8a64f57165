"""The job that a reader asks of: the store's own values until they state others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from analytics.efficiency.expected_ettr import EttrSettings
from analytics.estimate import CONF_LEVEL, Estimate
from app.answers.efficiency import usual_job
from app.ask.cached import ask
from app.widgets import inputs
from app.words import numbers

if TYPE_CHECKING:
    from app.show.scope import Scope

HELP = {
    "gpus": "Size of the job: that of the largest run here.",
    "rate": "Failures per 1,000 node-days: as measured here; its upper bound where none was "
    "seen, RSC-1's 6.5 where it is unknown.",
    "restart": "From a start to the first step, each time.",
    "write": "How long training stands still for one checkpoint.",
    "interval": "Training between two checkpoints. Empty: as runs here do, or are taken to.",
    "queue": "Mean wait after submission and after each interruption.",
}


class Asked(NamedTuple):
    """The job of a reader."""

    settings: EttrSettings
    usual: EttrSettings
    """As the store has it."""
    rate: Estimate
    """As measured; without an interval where the reader states another."""

    @property
    def own_rate(self) -> bool:
        """Whether the rate is that of the store."""
        return self.settings.rate_per_1000_node_days == self.usual.rate_per_1000_node_days


def of_store(scope: Scope) -> Asked:
    """Inputs with the store's values, and the job that comes of them."""
    usual = usual_job.job_like_runs(ask, scope.selection)
    asked = Asked(_settings(usual), usual, usual_job.failure_rate(ask, scope.selection))
    if asked.own_rate:
        return asked
    stated = asked.settings.rate_per_1000_node_days
    return asked._replace(rate=Estimate(stated, None, None, CONF_LEVEL, 0))


def _settings(usual: EttrSettings) -> EttrSettings:
    """What the reader asks of; the store's own values until they say otherwise."""
    minutes = inputs.Within(0.0, inputs.MOST_MINUTES)
    given = (
        ("GPUs", "gpus", usual.gpus, inputs.Within(1.0, float(inputs.MOST_GPUS))),
        (
            "Failure rate",
            "rate",
            usual.rate_per_1000_node_days,
            inputs.Within(0.0, inputs.MOST_RATE),
        ),
        ("Restart (min)", "restart", usual.restart_min, minutes),
        ("Write (min)", "write", usual.write_min, minutes),
        ("Interval (min)", "interval", usual.checkpoint_min, minutes),
        ("Queue (min)", "queue", usual.queue_min, minutes),
    )
    stated: dict[str, float | None] = {}
    for column, (label, key, value, within) in zip(st.columns(len(given)), given, strict=True):
        stated[key] = inputs.number(
            label,
            within,
            key=key,
            value=None if key == "interval" else numbers.rounded(value),
            at=column,
            placeholder=numbers.number(value) if key == "interval" else None,
            format="%g",
            help=HELP[key],
        )
    exact = {key: value for _, key, value, _ in given}
    known = {
        key: exact[key] if value == numbers.rounded(exact[key]) else value
        for key, value in stated.items()
        if value is not None
    }  # the store's own value to the last digit, where the reader left it
    return EttrSettings(
        gpus=known["gpus"],
        rate_per_1000_node_days=known["rate"],
        restart_min=known["restart"],
        write_min=known["write"],
        interval_min=known.get("interval", usual.checkpoint_min),
        queue_min=known["queue"],
        gpus_per_node=usual.gpus_per_node,
    )
