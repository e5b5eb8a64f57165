"""What ran on clusters none of whose jobs states GPUs, which no GPU-hour tells?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.reliability.mttf import counted_in_nodes
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping


def sentence(node_hours: Mapping[str, float], unknown: str) -> str:
    """How long their nodes ran, and what of it is not known.

    >>> sentence({"cpu": 48.0}, "where they went")
    'No job of cpu states GPUs: time is counted in node-hours (nodes x running time), 48.0 in this \
selection; where they went is not known.'
    """
    ran = numbers.number(sum(node_hours.values()))
    return f"{counted_in_nodes(node_hours)}, {ran} in this selection; {unknown} is not known."


def notes(node_hours: Mapping[str, float], unknown: str) -> tuple[str, ...]:
    """The same where the selection has such clusters."""
    return (sentence(node_hours, unknown),) if node_hours else ()
