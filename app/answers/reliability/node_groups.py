"""How many failures nodes of each driver, rack or batch have had on average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.estimate import CONF_LEVEL
from analytics.reliability.mean_by_group import (
    FALSE_ALARMS,
    FEWEST_FAILURES,
    FEWEST_NODES,
    GroupMean,
    means_by_group,
)
from app.answers.content import Answer, Chart
from app.answers.described import Rows, field
from app.answers.reliability import sight, trend
from app.words import numbers
from data.errors import DataError
from data.queries import node_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.reliability.sight import Sight
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

WHICH = "Which nodes have had more failures"
MOST = 50
"""Groups of the table."""
MOST_DRAWN = 6
GROUPS = (
    field("level", "Level", of="name"),
    field("nodes", "Nodes", "count", "at_once.n_nodes"),
    field("failures", "Failures", "count", "at_once.n_events"),
    field("failures_per_node", "Failures of a node", "rate", "last", unit="failures"),
    field(
        "others_per_node", "Of one of the others then", "rate", "last_of_others", unit="failures"
    ),
    field("unlike", "Unlike all others", "flag", none="cannot be told"),
)


@dataclass(frozen=True)
class Measured:
    """Failures of a node by group."""

    groups: tuple[GroupMean, ...]
    without: int
    """Nodes of which the fact is not known."""
    sight: Sight


def measured(
    store: Store, selection: Selection, fact: str, *, conf_level: float = CONF_LEVEL
) -> Measured:
    """Failures of a node by level of a fact, as it was when the period ended."""
    seen = sight.sight(store, selection)
    nodes, there, node, at_s = trend.failures_of_nodes(store, selection, seen)
    level = {row[:2]: row[2] for row in node_steps.levels(store, selection, fact)}
    names = [level.get(name) for name in nodes]
    groups = means_by_group(there, node, at_s, names, conf_level=conf_level)
    return Measured(groups, names.count(None), seen)


def named_fact(fact: str) -> str:
    """The key of a fact as the store has it.

    Raises
    ------
    DataError
        Where none is named.
    """
    if not fact.strip():
        raise DataError("a fact has a name: driver, firmware, batch, gpu_model, rack or another")
    return fact.strip().lower()


def answer(ask: Ask, selection: Selection, fact: str, *, conf_level: float = CONF_LEVEL) -> Answer:
    """Which nodes have had more failures than others, by a fact?"""
    fact = named_fact(fact)
    found = ask(measured, selection, fact, conf_level=conf_level)
    words, groups = fact.replace("_", " "), found.groups
    rows = Rows(GROUPS, groups)
    if found.sight.none:
        said = sight.refused(WHICH, found.sight)
    elif selection.partition is not None or selection.account is not None:
        said = f"{WHICH} is told of whole clusters, not of a partition or an account."
    elif len(groups) < 2:
        all_ = f"all have {groups[0].name}" if groups else f"no {words} is known of any"
        said = f"Nodes are not told apart by {words}: when the period ended {all_}."
    else:
        apart = [each for each in groups if each.unlike]
        named = ", ".join(each.name for each in apart[:3])
        if apart:
            said = f"Nodes of {words} {named} have had another number of failures than all others."
        elif all(each.unlike is None for each in groups):
            said = f"Whether nodes of some {words} have had more failures cannot be told."
        else:
            said = f"Nodes of each {words} have had as many failures, as far as can be told."
    shown = groups[:MOST_DRAWN]
    drawn = Chart(
        "reliability.mean_by_group",
        f"Failures that a node has had, by {words}",
        f"Averages over the nodes of {numbers.counted(len(shown), 'level')}, with the most first.",
        (shown,),
        rows=rows,
    )
    several = len(groups) > 1 and not found.sight.none
    return Answer(
        said,
        blocks=(drawn, Rows(GROUPS, groups[:MOST]).table("by_level", f"By {words}"))
        if several
        else (),
        notes=tuple(_notes(found, words)) if several else (),
        record={"by": fact, "groups": rows.records(), **sight.record(found.sight)},
        sheet=rows.sheet(),
    )


def _notes(found: Measured, words: str) -> Iterator[str]:
    yield (
        "Each is compared with all others together while both had nodes, at a false-discovery rate "
        f"of {numbers.percent(FALSE_ALARMS)}. Of {FEWEST_FAILURES - 1} failures or "
        f"{FEWEST_NODES - 1} nodes and fewer "
        f"that cannot be told. The {words} is that of the end of the period."
    )
    yield from sight.notes(found.sight, WHICH[0].lower() + WHICH[1:])
    if len(found.groups) > MOST:
        yield f"{MOST} of {numbers.counted(len(found.groups), 'group')}; all are in JSON and CSV."
    if found.without:
        yield f"{numbers.counted(found.without, 'node')} of unknown {words} left out."
