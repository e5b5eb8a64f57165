"""What the ledger and measured ETTR take for granted, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BASES: Final = {
    "observed_runs": "as training metrics of {n} show",
    "configured": "as [runs] of site.toml states",
    "assumed": "assumed after published habits: training metrics or [runs] of site.toml say better",
}
_CLASSES: Final = {"several_nodes": "Jobs on several nodes", "one_node": "Jobs on one node"}


def habit_sentences(notes: Mapping[str, Any]) -> tuple[str, ...]:
    """How jobs are taken to save and start up, one sentence a class.

    Examples
    --------
    >>> habit_sentences({"one_node": {"basis": "assumed", "n_runs": 0, "write_s": [0, 0, 0],
    ...     "interval_s": [3600, 900, 14400], "restart_s": [0, 0, 0]}})[0][:64]
    'Jobs on one node: a checkpoint every 60 min (15 to 240), no time'
    """
    return tuple(
        f"{title}: {_habit(notes[name])}, {_basis(notes[name])}."
        for name, title in _CLASSES.items()
        if name in notes
    )


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
    remedy = "`faultline ingest sacctmgr-events` reads it"
    return (f"{said}: such time is not told from idle time. {remedy}.",)


def record_sentences(notes: Mapping[str, Any]) -> tuple[str, ...]:
    """What the records leave open: time that could not be counted, causes that are not known."""
    found = []
    if names := notes.get("clusters_without_gpu_time"):
        found.append(
            f"No GPU-time is known of {', '.join(names)}: records of its jobs state no GPUs "
            "(sacct: AllocTRES with gres/gpu)."
        )
    if n := notes["attempts_without_gpus"]:
        found.append(f"{n:,} attempts that ran state no GPUs and are not counted.")
    if n := notes["failures_of_unknown_cause"]:
        hours = notes["their_rule_gpu_seconds"] / 3600
        found.append(
            f"{n:,} failed attempts have no known cause; they count as productive. Were "
            f"infrastructure at fault in all of them, {hours:,.0f} GPU-hours more would be lost "
            "(by the 30-minute rule, all time)."
        )
    if seconds := notes["excess_gpu_seconds"]:
        found.append(
            f"Jobs held {seconds / 3600:,.0f} GPU-hours more than the nodes known then have: "
            "records of nodes are incomplete, or jobs shared GPUs."
        )
    return tuple(found)


def wait_sentences(n_runs: int) -> tuple[str, ...]:
    """Runs whose waiting is not known; nothing where there are none.

    Examples
    --------
    >>> wait_sentences(0), wait_sentences(1)
    ((), ('1 run is left out: its records do not say since when it waited.',))
    """
    if not n_runs:
        return ()
    runs = "1 run is left out: its" if n_runs == 1 else f"{n_runs:,} runs are left out: their"
    waited = "it waited" if n_runs == 1 else "they waited"
    return (f"{runs} records do not say since when {waited}.",)


def _habit(known: Mapping[str, Any]) -> str:
    """Interval, write and start-up with their ranges."""
    costs = [
        f"{_minutes(known[name])} {text}"
        for name, text in (("write_s", "to write it"), ("restart_s", "to start up"))
        if any(known[name])
    ]
    spent = " and ".join(costs) or "no time counted to write it or to start up"
    return f"a checkpoint every {_minutes(known['interval_s'])}, {spent}"


def _minutes(bounds: list[float]) -> str:
    """Minutes of a value and, where they differ, its bounds."""
    value, low, high = (f"{seconds / 60:.3g}" for seconds in bounds)
    return f"{value} min" if low == high else f"{value} min ({low} to {high})"


def _basis(known: Mapping[str, Any]) -> str:
    """What it rests on."""
    n = known["n_runs"]
    return _BASES[known["basis"]].format(n="one run" if n == 1 else f"{n} runs")
