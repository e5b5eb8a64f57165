"""Causes as plain values, ready for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analytics.training.stragglers.causes import StragglerCause


def causes_record(causes: tuple[StragglerCause, ...]) -> list[dict[str, Any]]:
    """Causes with the keys `cause`, `target`, `gain_ratio`, `alone_ratio` and `evidence`."""
    return [
        {
            "cause": found.cause,
            "target": None if found.target is None else dict(found.target),
            "gain_ratio": found.gain_ratio,
            "alone_ratio": found.alone_ratio,
            "evidence": dict(found.evidence),
        }
        for found in causes
    ]
