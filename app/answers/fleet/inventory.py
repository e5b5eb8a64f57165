"""Which nodes have how many GPUs, and what says so?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.words import numbers
from app.words.plain import first_few
from data.queries import inventory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

    from data.filters import Selection
    from data.store import Store

EXPORT = "`scontrol show node > nodes.txt`, `faultline ingest scontrol-nodes nodes.txt`"
_TOLD = 3
"""Nodes that a sentence tells."""


@dataclass(frozen=True)
class Known:
    """What is known of the GPUs of nodes of the selected clusters."""

    clusters: pd.DataFrame
    """See `data.queries.inventory.by_cluster`."""
    contradicted: pd.DataFrame
    """Columns cluster, node, gpus, n_gpus, n_attempts."""
    differing: pd.DataFrame
    """Columns cluster, gpus, n_nodes, stated."""

    @property
    def idle_rests_on(self) -> str:
        """What idle GPU-hours assume; empty where inventories cover the whole time."""
        rows = self.clusters[self.clusters["basis"].eq("gpu_time")]
        parts = []
        if (rows["n_observed"] > 0).any():
            parts.append("nodes in no inventory")
        if (rows["n_back"] > 0).any():
            parts.append("time before the first inventory")
        return f"; {' and '.join(parts)} assumed" if parts else ""


def known(store: Store, selection: Selection) -> Known:
    """What is known of the GPUs of nodes, and where sources contradict."""
    return Known(
        inventory.by_cluster(store, selection),
        inventory.contradicted(store, selection),
        inventory.differing(store, selection),
    )


def record(known: Known) -> dict[str, object]:
    """The JSON of the command."""
    return {
        "nodes_known": known.clusters.drop(columns="basis"),
        "inventory_contradicted": known.contradicted,
    }


def notes(known: Known) -> Iterator[str]:
    """What is assumed of nodes and their GPUs, and what contradicts it."""
    several = len(known.clusters) > 1
    for row in known.clusters.to_dict("records"):
        of = f" of {row['cluster']}" if several else ""
        if _unknown(row["basis"]) and row["n_listed"]:
            yield (
                f"No job of {row['cluster']} is known, whose inventory lists "
                f"{numbers.counted(row['n_listed'], 'node')}: where they are another cluster's, "
                "`--cluster` says whose."
            )
        if row["basis"] == "gpu_time":
            yield from _observed(row, of)
            yield from _listed(row, of)
    yield from _contradictions(known, several=several)


def _observed(row: Mapping[Any, Any], of: str) -> Iterator[str]:
    n = row["n_observed"]
    if not n:
        return
    rest = " more" if row["n_listed"] + row["n_stated"] else ""
    named = f"{numbers.counted(n, 'node')}{of}{rest} {_be(n)} in no inventory: each counts with the"
    if not _unknown(row["gpus_per_node"]):
        yield f"{named} {row['gpus_per_node']:.0f} GPUs that site.toml states."
        return
    none = n - row["n_showing"]
    without = f"; {none:,} on which none held any {_have(none)} none" if none else ""
    yield (
        f"{named} most GPUs that jobs held there at once, from its first record to its last"
        f"{without}. Nodes that no record names are unknown, not idle. {EXPORT} says what there is."
    )


def _listed(row: Mapping[Any, Any], of: str) -> Iterator[str]:
    """Nodes of an inventory: what it is taken for where it does not speak."""

    def nodes(count: str) -> str:
        return numbers.counted(row[count], "node")

    if row["n_unstated"] and _unknown(row["gpus_per_node"]):
        yield (
            f"Inventories do not say how many GPUs {nodes('n_unstated')}{of} "
            f"{_have(row['n_unstated'])}: the most that jobs held there at once counts."
        )
    if row["n_back"]:
        yield (
            f"The inventory{of} of {numbers.day(row['first_listed_at'])} is taken to hold from the "
            f"first record on for {nodes('n_back')} with GPUs: nobody looked before."
        )
    if row["n_off"]:
        yield (
            f"{nodes('n_off')}{of} with GPUs {_be(row['n_off'])} powered down or planned in the "
            "last inventory: while inventories show that, only what jobs held there counts."
        )
    if row["n_shown_out"]:
        yield (
            f"{nodes('n_shown_out')}{of} {'counts' if row['n_shown_out'] == 1 else 'count'} as out "
            "of service from when the reason was given to the last inventory with that reason; "
            "what nobody looked at in between is not known."
        )
    if row["n_went"]:
        yield (
            f"{nodes('n_went')}{of} {_be(row['n_went'])} in an earlier inventory and not in the "
            "last: counted up to the first one that lacks it, or the last record that names it."
        )
    if row["n_observed"] and row["n_unused"] == row["n_listed_gpus"] > 0:
        yield (
            f"No job ran on any of the {nodes('n_listed_gpus')} with GPUs that the inventory{of} "
            "lists: is it another cluster's? `--cluster` says whose it is."
        )


def _contradictions(known: Known, *, several: bool) -> Iterator[str]:
    """Where jobs or site.toml say other than the inventory."""
    rows = known.contradicted.to_dict("records")
    if rows:
        held = [f"{row['node']} ({row['n_gpus']} held, {row['gpus']} listed)" for row in rows]
        yield (
            f"On {numbers.counted(len(rows), 'node')} jobs held more GPUs than the inventory of "
            f"that time lists: {first_few(held, _TOLD)}. What they held counts."
        )
    for row in known.differing.to_dict("records"):
        of = f" of {row['cluster']}" if several else ""
        yield (
            f"{numbers.counted(row['n_nodes'], 'listed node')}{of} {_have(row['n_nodes'])} "
            f"{row['gpus']:,} GPUs, where site.toml states {row['stated']:.0f} for each: the "
            "ledger counts what is listed, rates what site.toml states."
        )


def _unknown(value: object) -> bool:
    return value is None or value != value


def _be(n: int) -> str:
    return "is" if n == 1 else "are"


def _have(n: int) -> str:
    return "has" if n == 1 else "have"
