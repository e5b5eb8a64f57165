"""What the ledger of GPU-hours leaves open, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def uncounted_sentences(notes: Mapping[str, Any]) -> tuple[str, ...]:
    """What the ledger could not count."""
    sentences = []
    if names := notes.get("clusters_without_jobs"):
        sentences.append(f"No GPU-time is known of {', '.join(names)}: no job of it was recorded.")
    if n := notes["attempts_without_gpus"]:
        ran = (
            "attempt that ran states no GPUs and is"
            if n == 1
            else ("attempts that ran state no GPUs and are")
        )
        sentences.append(f"{n:,} {ran} not counted.")
    return tuple(sentences)


def excess_sentences(notes: Mapping[str, Any]) -> tuple[str, ...]:
    """That jobs held more than there was."""
    seconds = notes["excess_gpu_seconds"]
    told = (
        f"Jobs held {seconds / 3600:,.0f} GPU-hours more than the nodes known then have (all "
        "time): records of nodes are incomplete, or jobs shared GPUs."
    )
    return (told,) if seconds else ()


def no_state_sentences(clusters: Sequence[str], *, several: bool) -> tuple[str, ...]:
    """Clusters of which no record says nodes' states; nothing where there are none.

    `several`: whether other clusters have such records.

    Examples
    --------
    >>> no_state_sentences(["b"], several=True)[0][:53]
    'No record says when nodes of b were out of service: s'
    """
    if not clusters:
        return ()
    of = f" of {', '.join(clusters)}" if several else ""
    said = f"No record says when nodes{of} were out of service"
    return (f"{said}: such time is not told from idle time. Node events say it.",)
