"""A large job was ended by hardware."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from app.alerts import figures
from app.alerts.rule import Episode, Found, Rule
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet.actions.action import target
from app.words import moments, numbers
from app.words.plain import in_a_sentence
from data.queries import alarms, what_if

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.alerts.rule import Watch
    from app.ask import Ask
    from data.queries.alarms import LargeFailure

STANDS = timedelta(hours=24)
"""How long after the last record of it it is told."""
LEAST_GPUS, LEAST_SHARE = 128, 0.25
"""Of a job that is large where site.toml does not say it: so many, and so much of the cluster."""


def find(ask: Ask, watch: Watch) -> Found:
    """Attempts of large jobs that hardware, or the loss of a node, ended."""
    blind = figures.unseen(ask, watch, "Whether hardware ended a large job")
    known, end = figures.ends_at(ask, watch)
    if blind is None and (known is None or end is None or not known.gpus_known):
        blind = "Large jobs cannot be told: no job of this cluster states its GPUs"
    if blind is not None:
        return Found(blind=blind)
    selection = replace(watch.selection, from_at=watch.from_at - STANDS)
    failed = ask(alarms.large_failures, selection, gpus=large_gpus(ask, watch))
    titles = ask(cause_titles)
    told = [_episode(watch, titles, one) for one in failed if one.failed_at <= watch.now]
    return Found(tuple(told))


def large_gpus(ask: Ask, watch: Watch) -> int:
    """From how many GPUs on a job is large: as site.toml states, else by the size of the cluster as
    far as it is known."""
    if watch.settings.large_gpus is not None:
        return watch.settings.large_gpus
    gpus = float(ask(what_if.node_gpus, watch.selection)["gpus"].sum())
    return max(LEAST_GPUS, math.ceil(LEAST_SHARE * gpus))


def _episode(watch: Watch, titles: Mapping[str, str], one: LargeFailure) -> Episode:
    cluster = watch.selection.cluster or ""
    ended = max(one.failed_at, one.incident_end_at or one.failed_at) + STANDS
    at_node = f" on {one.node}" if one.node is not None else ""
    ran = f" after {numbers.duration(one.hours)}" if one.hours is not None else ""
    cause = in_a_sentence(titles.get(one.cause, one.cause))
    incident = None if one.incident is None else f"incident:{one.incident}"
    evidence = {"job": one.job or "", "cluster": cluster}
    if one.job is None and one.incident is not None:
        evidence = {"incident": one.incident}
    return Episode(
        incident or target("large_job", cluster, one.job or "", one.failed_at.isoformat()),
        since_at=one.failed_at,
        raised_at=one.failed_at,
        ended_at=ended if ended <= watch.now else None,
        sentence=f"Job {one.job or 'without a number'} on {numbers.gpu_count(one.gpus)} was ended "
        f"by {cause}{at_node} at {moments.minute(one.failed_at)} UTC{ran}",
        page="job" if one.job is not None else "incident",
        named=evidence,
        incident=one.incident,
        owner=one.user,
    )


RULE = Rule(
    "large_job",
    "Large job failed",
    "Hardware, or the loss of a node, ended a job of many GPUs.",
    "See whether it runs again, and keep the node out until it is tested.",
    "critical",
    find,
    told="owner",
)
