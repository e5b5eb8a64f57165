"""ETTR of large runs as one number among those of the fleet, where the ledger is built."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app import loaders
from app.components import ettr_numbers, glossary

if TYPE_CHECKING:
    from app.components.headline import Headline
    from app.components.scope import Scope


def large_runs(scope: Scope) -> list[Headline]:
    """ETTR of runs of 129 GPUs and more, or as many as the reader says, where any ran.

    The page does not wait for the ledger: it is built by the pages that are about it.
    """
    if not loaders.has_ledger():
        return []
    chosen = scope.selection
    least = chosen.by_size_min_gpus or loaders.MTTF_MIN_GPUS
    wide = replace(scope, selection=replace(chosen, min_gpus=least))
    report = loaders.ettr(wide.selection)
    if not report.n_runs:
        return []
    term = glossary.ettr_from(least)
    return [replace(ettr_numbers.together(report, wide), term=term)]
