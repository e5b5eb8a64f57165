"""What stands in place of a ledger of no GPU-hours: why, and what would fill it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import loaders
from app.components import empty_state, page_head

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.questions import Coverage


def show(held: Coverage, scope: Scope) -> None:
    """Nothing ran in the selection, no attempt says its GPUs, or no job is known at all."""
    page_head.show("No GPU-hours are known in this selection.", held, scope)
    everything = loaders.Selection(cluster=scope.selection.cluster)
    if loaders.ledger(everything).total_gpu_seconds:
        empty_state.nothing_ran(scope.filters)
    elif "jobs" in set(loaders.coverage(everything).sources["source"]):
        empty_state.show(
            "No attempt says how many GPUs it had.",
            remedy="The ledger divides GPU-hours, and there are none to divide. With AllocTRES in "
            "the export the same records fill it:",
            commands=(
                "sacct -a -P --duplicates -S now-90days --format=ALL > sacct.txt",
                "faultline ingest sacct sacct.txt --cluster NAME",
            ),
        )
    else:
        empty_state.show(
            "Failures of nodes are known here, but no jobs.",
            remedy="Where GPU-hours went needs the scheduler's records:",
            commands=(
                "sacct -a -P --duplicates -S now-90days --format=ALL > sacct.txt",
                "faultline ingest sacct sacct.txt --cluster NAME",
            ),
        )
