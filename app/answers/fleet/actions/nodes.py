"""Nodes that should be drained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answers.fleet.actions.action import Action, target
from app.answers.nodes import lemons

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.ask import Ask
    from data.filters import Selection

REASONS = 2
"""Reasons told here; the node's page has all."""
SAVED = "that draining it saves in as many days as were looked at"


def of_lemons(ask: Ask, selection: Selection) -> Iterator[Action]:
    """Nodes that are lemons, with what draining them saves."""
    for row in lemons.ranked(ask, selection):
        if row["verdict"] == "lemon":
            saved = row["saved_gpu_hours"]
            known = saved is not None and saved.value is not None
            yield Action(
                "node",
                target("node", row["cluster"], row["node"]),
                what=f"Drain {row['node']}",
                why="; ".join(row["reasons"][:REASONS]),
                stake=saved if known else None,
                stake_basis=SAVED if known else "no GPU-hours of its failures are known",
                page="node",
                named={"node": str(row["node"]), "cluster": str(row["cluster"])},
            )
