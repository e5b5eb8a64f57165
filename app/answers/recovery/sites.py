"""The job and the cluster of a plan: as the store knows them, with what a reader states."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from analytics import validate
from analytics.estimate import CONF_LEVEL
from analytics.recovery.comparison import Counted
from analytics.recovery.histories import Hazards
from analytics.recovery.mechanism import KINDS, NODE, PROCESS, RACK
from analytics.recovery.policy import Site
from analytics.reliability.failure_rate import poisson_rate
from app.answers.efficiency import ettr, usual_job
from app.answers.failures import verdicts
from app.answers.reliability import availability, mttf
from app.words import numbers
from data.errors import DataError
from data.queries import efficiency, fleet, incidents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.estimate import Estimate
    from analytics.recovery.policy import Certainty
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

SEVERAL = 2
"""Nodes of an incident from which on they failed together."""
UNKNOWN_RATE = "how often nodes of this selection fail is not known."
NONE_SEEN = "no failure was seen."


def why_not(rate: Estimate) -> str:
    """Why a rate without a value has none."""
    return NONE_SEEN if rate.upper is not None else UNKNOWN_RATE


@dataclass(frozen=True)
class Plan:
    """A job on a site, and what is known of it."""

    site: Site
    gpus_per_node: float
    counted: Counted | None
    """Failures that the rates rest on; None where a rate was stated."""
    said: tuple[str, ...]
    """What it rests on, in sentences."""
    sure: Mapping[str, Certainty]
    """How the site's own times are known, by name; those that are not in it are assumed."""
    price: tuple[float, str] | None = None
    """Of a GPU-hour, with its currency; None where not all clusters state one and the same."""

    @property
    def gpus(self) -> float:
        """Of the job."""
        return self.site.hazards.nodes * self.gpus_per_node


def stated(
    *,
    gpus: int,
    rate: float,
    gpus_per_node: float = 8.0,
    ratios: Mapping[str, float] | None = None,
    **costs: Any,
) -> Plan:
    """A job of stated size and rate; `ratios` are parts of the failures by kind, the rest take one
    node each; `costs` as `Site` and `Hazards` name them.

    Raises
    ------
    DataError
        For parts that exceed the whole.
    """
    parts = {kind: part for kind, part in (ratios or {}).items() if part}
    rest = 1.0 - sum(parts.values())
    if rest < -1e-9 or any(part < 0 for part in parts.values()):
        raise DataError(f"parts of the failures must be from 0 to 1 together, got {parts}")
    rates = {kind: rate * part for kind, part in {**parts, NODE: max(rest, 0.0)}.items() if part}
    said = [f"{numbers.number(rate)} failures per 1,000 node-days are stated: no interval."]
    if not parts:
        said.append("Each takes one node.")
    nodes = _nodes(gpus, gpus_per_node)
    said += _rounded(gpus, nodes, gpus_per_node)
    site = _site(Hazards(nodes=nodes, rates=rates), costs)
    return Plan(site, gpus_per_node, None, tuple(said), _stated(costs))


def _stated(costs: Mapping[str, Any]) -> dict[str, Certainty]:
    """Times that somebody stated."""
    return {name: "stated" for name, value in costs.items() if value is not None}


def _rounded(gpus: float, nodes: int, gpus_per_node: float) -> list[str]:
    """That a size was taken for another."""
    if nodes * gpus_per_node == gpus:
        return []
    size = numbers.gpu_count(nodes * gpus_per_node)
    return [f"{numbers.gpu_count(gpus)} are taken as whole nodes: {size}."]


def of_store(
    ask: Ask, selection: Selection, *, gpus: int | None = None, **costs: Any
) -> Plan | str:
    """The job that is as large as the largest run, else of so many GPUs, at the rates measured; why
    not, where they are unknown."""
    report = ask(mttf.measured, selection)
    rate = report.rate.rate_per_1000_node_days
    if not rate.value:
        return why_not(rate)
    usual = usual_job.job_like_runs(ask, selection)
    nodes = _nodes(gpus or usual.gpus, usual.gpus_per_node)
    kinds, rack_nodes = ask(failures_by_kind, selection)
    counts = _split(kinds, rate.n)
    node_days = 1000.0 * rate.n / rate.value
    rates = {kind: n / node_days * 1000.0 for kind, n in counts.items()}
    repair = ask(availability.measured, selection).repairs.mean_hours
    hazards = Hazards(nodes=nodes, rates=rates, rack_nodes=min(rack_nodes, nodes))
    if repair.value:
        hazards = replace(hazards, repair_hours=repair.value)
    known = {
        "restart_min": usual.restart_min,
        "write_min": usual.write_min,
        "interval_min": usual.interval_min or None,
        "queue_min": usual.queue_min,
    }
    said = (
        f"{numbers.counted(rate.n, 'failure')} in {numbers.number(node_days)} node-days: "
        + ", ".join(f"{counts[kind]:,.0f} {WORDS[kind]}" for kind in KINDS if counts.get(kind))
        + ".",
        "A failed node is back after "
        + (f"{numbers.duration(repair.value)} on average." if repair.value
           else f"{numbers.duration(hazards.repair_hours)}, as assumed: no return is known."),
        "How often single nodes are taken away is not known from records: no preemption is played.",
        *_rounded(gpus or usual.gpus, nodes, usual.gpus_per_node),
        *usual_job.assumptions(ask, selection),
    )  # fmt: skip
    given = {name: value for name, value in costs.items() if value is not None}
    habits: Certainty = SURE[ask(ettr.habits).basis]
    sure: dict[str, Certainty] = dict.fromkeys(("restart_min", "write_min", "interval_min"), habits)
    sure["queue_min"] = "measured" if ask(usual_job.waits_known, selection) else "assumed"
    return Plan(
        _site(hazards, known | given), usual.gpus_per_node,
        Counted(counts, node_days, _weight(rate, node_days)), said, sure | _stated(given),
        price(ask, selection),
    )  # fmt: skip


def price(ask: Ask, selection: Selection) -> tuple[float, str] | None:
    """The price of a GPU-hour where all clusters of the selection state one and the same."""
    asked = [selection.cluster] if selection.cluster else [*ask(fleet.clusters)["cluster"]]
    stated = ask(efficiency.prices)
    prices = {stated.get(str(cluster)) for cluster in asked}
    return prices.pop() if len(prices) == 1 else None


def _weight(rate: Estimate, node_days: float) -> float:
    """Of a failure, so that its count leaves as much open as the interval of the rate: that of
    failures which come together is wider than Poisson's."""
    alone = poisson_rate(rate.n, node_days, conf_level=rate.conf_level or CONF_LEVEL)
    widths = [
        each.upper - each.lower if each.upper is not None and each.lower is not None else 0.0
        for each in (alone.scaled(1000.0), rate)
    ]
    return min(1.0, (widths[0] / widths[1]) ** 2) if min(widths) > 0 else 1.0


SURE: Mapping[str, Certainty] = {
    "observed_runs": "measured", "configured": "stated", "assumed": "assumed",
}  # fmt: skip
"""What the habits of runs rest on -> how sure that is."""
WORDS = {
    PROCESS: "of programs alone",
    NODE: "of one node",
    RACK: "of several nodes at once",
    "preemption": "by preemption",
}


def failures_by_kind(store: Store, selection: Selection) -> tuple[dict[str, int], int]:
    """Failures of programs and of several nodes at once, and how many nodes those took (median).

    A program's: attempts that count as failed and whose cause is system software. Several nodes:
    incidents of hardware on at least two.
    """
    found = verdicts.summarised(store, selection)
    programs = sum(each.rate_per_1000_node_days.n for each in found.causes_of(("system_software",)))
    rows = incidents.incident_rows(store, selection, domain="hardware")
    sizes = [len(json.loads(nodes)) for nodes in rows["nodes"] if nodes]
    several = [size for size in sizes if size >= SEVERAL]
    return {PROCESS: programs, RACK: len(several)}, int(median(several)) if several else SEVERAL


def _split(kinds: Mapping[str, int], total: int) -> dict[str, float]:
    """Failures by kind that sum to the total; what is of no other kind took one node."""
    several = min(kinds[RACK], total)
    programs = min(kinds[PROCESS], total - several)
    counts = {PROCESS: programs, NODE: total - several - programs, RACK: several}
    return {kind: float(n) for kind, n in counts.items()}


def _nodes(gpus: float, gpus_per_node: float) -> int:
    """Nodes of a job."""
    validate.positive("gpus", gpus, "pass the GPUs of the job")
    validate.positive("gpus_per_node", gpus_per_node, "pass the GPUs of one node, e.g. 8")
    return max(1, round(gpus / gpus_per_node))


def _site(hazards: Hazards, costs: Mapping[str, Any]) -> Site:
    """A site with what is stated of it; fields of both by name."""
    given = {name: value for name, value in costs.items() if value is not None}
    of_hazards = {name: given.pop(name) for name in (*given,) if name in OF_HAZARDS}
    return Site(hazards=replace(hazards, **of_hazards), **given)


OF_HAZARDS = ("rack_nodes", "repair_hours", "preempted_hours")
