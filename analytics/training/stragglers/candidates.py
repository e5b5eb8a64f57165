"""What may make a job slow: each a counterfactual, with the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.training.stragglers.counterfactual import Change

Cause: TypeAlias = Literal[
    "worker",
    "stage",
    "sequence_length",
    "pause",
    "dp_link",
    "pp_link",
    "optimizer",
    "data_loading",
    "none",
]
Number: TypeAlias = int | float | bool | str | None
Target: TypeAlias = "Mapping[str, Any]"
"""What is slow: numbers, names and lists of them, None where it is not known or is several."""


@dataclass(frozen=True)
class Candidate:
    """A cause with enough evidence to ask what fixing it gives."""

    cause: Cause
    target: Target | None
    change: Change
    """Costs without it."""
    evidence: Mapping[str, Number]
