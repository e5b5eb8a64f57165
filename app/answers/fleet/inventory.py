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
        """What is said beside idle GPU-hours: nothing where inventories list all of the time."""
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


def record(found: Known) -> dict[str, object]:
    """The JSON of the command."""
    return {
        "nodes_known": found.clusters.drop(columns="basis"),
        "inventory_contradicted": found.contradicted,
    }


def notes(found: Known) -> Iterator[str]:
    """What is assumed of nodes and their GPUs, and what contradicts it."""
    several = len(found.clusters) > 1
    for row in found.clusters.to_dict("records"):
        of = f" of {row['cluster']}" if several else ""
        if _unknown(row["basis"]) and row["n_listed"]:
            yield (
                f"No job of {row['cluster']} is known, whose inventory lists "
                f"{numbers.counted(row['n_listed'], 'node')}: where they are another cluster's, "
                "`--cluster` says whose."
            )
        if row["basis"] != "gpu_time":
            continue
        yield from _observed(row, of)
        yield from _listed(row, of)
    yield from _contradictions(found, several=several)


def _observed(row: Mapping[Any, Any], of: str) -> Iterator[str]:
    """Nodes that no inventory lists."""
    if not row["n_observed"]:
        return
    rest = "" if not row["n_listed"] + row["n_stated"] else " more"
    nodes = numbers.counted(row["n_observed"], "node")
    named = f"{nodes}{of}{rest} {_are(row['n_observed'])} in no inventory"
    if not _unknown(row["gpus_per_node"]):
        stated = f"{row['gpus_per_node']:.0f} GPUs that site.toml states"
        yield f"{named}: each counts with the {stated}."
        return
    none = row["n_observed"] - row["n_showing"]
    without = f"; {none:,} on which none held any {'has' if none == 1 else 'have'} none"
    yield (
        f"{named}: each counts with the most GPUs that jobs held there at once, from its first "
        f"record to its last{without if none else ''}. Nodes that no record names are unknown, not "
        f"idle. {EXPORT} says what there is."
    )


def _listed(row: Mapping[Any, Any], of: str) -> Iterator[str]:
    """Nodes of an inventory: what it is taken for where it does not speak."""
    if row["n_unstated"] and _unknown(row["gpus_per_node"]):
        nodes = numbers.counted(row["n_unstated"], "node")
        yield (
            f"Inventories do not say how many GPUs {nodes}{of} "
            f"{_have(row['n_unstated'])}: the most that jobs held there at once counts."
        )
    if row["n_back"]:
        yield (
            f"The inventory{of} of {numbers.day(row['first_listed_at'])} is taken to hold from the "
            f"first record on for {numbers.counted(row['n_back'], 'node')} with GPUs: nobody "
            "looked before."
        )
    if row["n_off"]:
        yield (
            f"{numbers.counted(row['n_off'], 'node')}{of} with GPUs {_are(row['n_off'])} powered "
            "down or planned in the last inventory: while inventories show that, only what jobs "
            "held there counts."
        )
    if row["n_shown_out"]:
        nodes = numbers.counted(row["n_shown_out"], "node")
        yield (
            f"{nodes}{of} {_count(row['n_shown_out'])} as out of service from when the "
            "reason was given to the last inventory with that reason; what nobody looked at in "
            "between is not known."
        )
    if row["n_went"]:
        yield (
            f"{numbers.counted(row['n_went'], 'node')}{of} {_are(row['n_went'])} in an earlier "
            "inventory and not in the last: counted up to the first one that lacks it, or the last "
            "record that names it."
        )
    if row["n_observed"] and row["n_unused"] == row["n_listed_gpus"] > 0:
        nodes = numbers.counted(row["n_listed_gpus"], "node")
        yield (
            f"No job ran on any of the {nodes} with GPUs that the inventory{of} lists: is it "
            "another cluster's? `--cluster` says whose it is."
        )


def _contradictions(found: Known, *, several: bool) -> Iterator[str]:
    """Where jobs or site.toml say other than the inventory."""
    rows = found.contradicted.to_dict("records")
    if rows:
        told = [f"{row['node']} ({row['n_gpus']} held, {row['gpus']} listed)" for row in rows]
        yield (
            f"On {numbers.counted(len(rows), 'node')} jobs held more GPUs than the inventory of "
            f"that time lists: {first_few(told, _TOLD)}. What they held counts."
        )
    for row in found.differing.to_dict("records"):
        of = f" of {row['cluster']}" if several else ""
        yield (
            f"{numbers.counted(row['n_nodes'], 'listed node')}{of} {_have(row['n_nodes'])} "
            f"{row['gpus']:,} GPUs, where site.toml states {row['stated']:.0f} for each: the "
            "ledger counts what is listed, rates what site.toml states."
        )


def _unknown(value: object) -> bool:
    """Whether a cell is empty."""
    return value is None or value != value


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _count(n: int) -> str:
    return "counts" if n == 1 else "count"


def _have(n: int) -> str:
    return "has" if n == 1 else "have"
