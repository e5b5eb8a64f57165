"""When and where a run straggles, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from app.components import straggler_words, verbatim
from app.figures import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.questions import StragglerTrace

WHEN_HELP = (
    "A step straggles where its S is above 1.1. Autocorrelation: of a step's S with that of the "
    "next traced step, 1 where slow steps stand together, about 0 where they come at random. An "
    "onset is a step from which on steps take 3 % longer or more, by 6 standard errors."
)
WHERE_HELP = (
    "What a worker, rank, stage or node costs alone: S - 1 with all others ideal. Gini "
    "coefficient: 0 where all cost the same, near 1 where one costs all."
)


def show(found: StragglerTrace) -> None:
    """One sentence on steps, one on workers."""
    patterns = found.results.get("patterns")
    if patterns is None:
        st.markdown("Patterns are not stored with this trace: ingest it again to have them found.")
        return
    st.markdown(f"**When:** {when(patterns, found.facts['n_steps'])}", help=WHEN_HELP)
    shares = verbatim.escaped(where(found, patterns))
    st.markdown(f"**Where:** of what each costs alone, {shares}", help=WHERE_HELP)


def when(patterns: Mapping[str, Any], n_steps: int) -> str:
    """Whether all steps are slow, some, or those from one on.

    >>> when({"straggling_steps_ratio": 1.0, "autocorrelation": None, "onset": None}, 3)
    '100 % of 3 steps straggle.'
    """
    share = numbers.percent(patterns["straggling_steps_ratio"])
    said = f"{share} of {numbers.counted(n_steps, 'step')} straggle"
    onset, related = patterns["onset"], patterns["autocorrelation"]
    if onset is not None:
        rise = numbers.percent(onset["rise_ratio"])
        return f"{said}; from step {onset['step']:,} on they take {rise} longer than before."
    if related is None:
        return f"{said}."
    return f"{said}, with no onset; autocorrelation {related:.2f}."


def where(found: StragglerTrace, patterns: Mapping[str, Any]) -> str:
    """Which worker, rank, stage and node has most of what parts cost alone."""
    workers, ranks, stages = (patterns[name] for name in ("workers", "dp_ranks", "stages"))
    if workers["gini"] is None:
        return "no worker has any."
    facts, node_of = found.facts, found.nodes.node_of
    parts = [
        _share(straggler_words.worker(*workers["top"], node_of), workers, facts["n_workers"]),
        _share(f"dp {ranks['top'][0]}", ranks, facts["dp"]),
        _share(f"stage {stages['top'][0]}", stages, facts["pp"]),
    ]
    nodes = found.node_concentration
    if nodes is not None:
        name, spread = nodes
        record = {"gini": spread.gini, "top_share_ratio": spread.top_share_ratio}
        parts.append(_share(f"node {name}", record, spread.excess.size))
    return "; ".join(part for part in parts if part) + "."


def _share(name: str, spread: Mapping[str, Any], n: int) -> str:
    """Share of the part with most; empty where there is one part alone, or none costs anything."""
    if n < 2 or spread["gini"] is None:
        return ""
    return (
        f"{name} has {numbers.percent(spread['top_share_ratio'])} (Gini {spread['gini']:.2f} "
        f"over {n:,})"
    )
