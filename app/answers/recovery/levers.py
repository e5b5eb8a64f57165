"""What changes if nodes are drained, jobs save and restart otherwise, and spares stand ready?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate
from analytics.nodes.records import WINDOW_DAYS
from analytics.recovery.levers import Levers, levers
from analytics.recovery.spares import enough_for
from app.answers.content import Answer, Missing
from app.answers.described import Rows, field
from app.answers.nodes.judged_nodes import verdicts
from app.answers.recovery import sites
from app.answers.reliability import availability
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.efficiency.expected_ettr import EttrSettings
    from app.ask import Ask
    from data.filters import Selection

MOST_SPARES = 5
SWAP_MIN = 1.0
"""Until a spare that stands ready is in place: ByteRobust's 46 to 65 s."""
CANNOT = "What draining nodes and moving intervals would change cannot be judged"


class Played(NamedTuple):
    """The levers of a job, and the nodes of its cluster."""

    found: Levers
    names: tuple[str, ...]
    """Nodes to drain, the worst first."""
    n_nodes: int


def played(
    ask: Ask, selection: Selection, settings: EttrSettings, rate: Estimate
) -> Played | Missing:
    """Every place of the levers; what is missing where rate, nodes or interval are not known."""
    if not rate.value:
        return Missing("levers", f"{CANNOT}: {sites.why_not(rate)}",
                       "State a failure rate above.")  # fmt: skip
    if not 0 < settings.checkpoint_min < np.inf:
        return Missing("levers", f"{CANNOT}: the job saves at no interval.",
                       "State a write and an interval above.")  # fmt: skip
    judged = [
        node
        for cluster in ask(verdicts, selection, days=WINDOW_DAYS, conf_level=CONF_LEVEL)
        for node in cluster.nodes
    ]
    known = [
        (node.ratio.value, node.expected, node.node)
        for node in judged
        if node.ratio is not None and node.ratio.value is not None
    ]
    if len(known) < 2:
        return Missing("levers", f"{CANNOT}: no node is known.", "List the nodes:",
                       ("faultline ingest nodes sinfo.txt",))  # fmt: skip
    out = ask(availability.measured, selection).ratios.unplanned
    nodes = max(1, round(settings.gpus / settings.gpus_per_node))
    most = 0 if out.value is None else min(MOST_SPARES, nodes)
    ready = [enough_for(nodes, spares, out.value or 0.0) for spares in range(1, most + 1)]
    ratios, weights, named = zip(*known, strict=True)
    found = levers(
        settings, rate, ratios=ratios, weights=weights,
        enough=[0.0, *ready], swap_min=SWAP_MIN,
    )  # fmt: skip
    order = np.argsort(-np.asarray(ratios), kind="stable")
    names = tuple(named[at] for at in order[: len(found.rates) - 1])
    return Played(found, names, len(judged))


def answer(known: Played | Missing, settings: EttrSettings) -> Answer:
    """What draining alone gives; the page moves the others too."""
    if isinstance(known, Missing):
        nothing: dict[str, Any] = {"drained": []}
        return Answer(
            known.finding, blocks=(known,), record=nothing, sheet=Rows(DRAINED, []).sheet()
        )
    found = known.found
    now = (len(found.intervals_min) // 2, len(found.restarts_min) // 2)
    rows = Rows(
        DRAINED,
        [
            {
                "drained": drained,
                "node": known.names[drained - 1] if drained else None,
                "rate_per_1000_node_days": found.rates[drained],
                "mttf_hours": found.mttf_hours[drained],
                "ettr": _estimate(found, drained, now),
            }
            for drained in range(len(found.rates))
        ],
    )
    return Answer(
        _sentence(found, settings),
        blocks=(rows.table("drained", "Nodes drained, all else as it is"),),
        notes=tuple(_notes(known, settings)),
        record={"drained": rows.records()},
        sheet=rows.sheet(),
    )


DRAINED = (
    field("drained", "Drained", "count"),
    field("node", "The last of them", none="nobody"),
    field("rate_per_1000_node_days", "Failures per 1,000 node-days", "rate"),
    field("mttf_hours", "MTTF of the job (h)", "mttf"),
    field("ettr", "Expected ETTR", "ettr"),
)


def _estimate(found: Levers, drained: int, now: tuple[int, ...]) -> Estimate:
    """ETTR with so many drained, all else as it is."""
    value, lower, upper = found.ettr[drained, 0, now[0], now[1]].tolist()
    rate = found.rates[drained]
    low, high = (None if np.isnan(each) else each for each in (lower, upper))
    return Estimate(value, low, high, rate.conf_level, rate.n)


def _sentence(found: Levers, settings: EttrSettings) -> str:
    drained = min(3, len(found.rates) - 1)
    before, after = (found.mttf_hours[at].value for at in (0, drained))
    return (
        f"Draining {numbers.counted(drained, 'node')} takes the MTTF of "
        f"{numbers.gpu_count(settings.gpus)} from {numbers.duration(before)} to "
        f"{numbers.duration(after)}."
    )


def _notes(known: Played, settings: EttrSettings) -> Iterator[str]:
    yield (
        f"Of {known.n_nodes:,} nodes those of the highest rate are drained first, as Lemons knows "
        "it: each counts by as much as its rate differs by more than chance."
    )
    yield (
        f"A spare that stands ready is in place within {numbers.number(SWAP_MIN)} min, for the "
        f"share of the time for which spares are enough; else the job queues "
        f"{numbers.number(settings.queue_min)} min."
    )
    if len(known.found.spares) == 1:
        yield "For how much of their time nodes are out is not known: no spare is played."
    yield "The interval of ETTR and MTTF is that of the failure rate alone."
