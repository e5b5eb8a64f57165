"""What is said of a traced run: who slows it, and what fixing it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from app.figures import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.questions import StragglerTrace

STRAGGLING: Final = 1.1
"""S above which a job is said to straggle (Lin et al.)."""
NO_BREAK = "\N{NO-BREAK SPACE}"
MOST_NAMED = 3
"""Workers that a sentence names."""
CAUSES: Final = {
    "worker": ("slow worker", "fixing it"),
    "stage": ("slow stage", "levelling the stages"),
    "sequence_length": ("uneven sequence lengths", "balancing micro-batches"),
    "pause": ("pauses", "avoiding them"),
    "dp_link": ("slow data-parallel link", "fixing it"),
    "pp_link": ("slow pipeline link", "fixing it"),
    "optimizer": ("slow optimizer", "fixing it"),
    "data_loading": ("waiting for data", "loading ahead"),
    "none": ("no cause found", ""),
    "unknown": ("cause not stored", ""),
}
"""Cause -> its name, and what gives the time back."""


def title(cause: str) -> str:
    """Name of a cause.

    >>> title("dp_link"), title("another")
    ('slow data-parallel link', 'another')
    """
    return CAUSES.get(cause, (cause, ""))[0]


def verdict(found: StragglerTrace) -> str:
    """Who slows the run, what would fixing it give?"""
    slowdown = numbers.number(found.slowdown.value)
    causes = [each for each in found.results.get("causes") or () if each["cause"] != "none"]
    straggles = (found.slowdown.value or 0.0) > STRAGGLING
    if not causes:
        if straggles:
            return f"The run takes {slowdown} times as long as without stragglers; no cause found."
        return f"The run does not straggle: it takes {slowdown} times as long as without."
    first = causes[0]
    subject = _subject(first, found.nodes.node_of)
    fix = CAUSES.get(first["cause"], ("", "fixing it"))[1]
    times = numbers.number(1.0 / (1.0 - first["gain_ratio"]))
    verb = "make" if first["cause"] in ("pause", "sequence_length") else "makes"
    gain = numbers.percent(first["gain_ratio"]).replace(" ", NO_BREAK)
    text = f"{subject} {verb} the run {times} times slower: {fix} gives back {gain} of the time"
    return f"{text}." if straggles else f"{text}; S is {slowdown}, so it does not straggle."


def basis(found: StragglerTrace) -> str:
    """What was traced."""
    facts = found.facts
    n_gpus = "GPUs unknown" if found.n_gpus is None else numbers.counted(found.n_gpus, "GPU")
    parts = [
        str(facts["name"]),
        *([f"cluster {facts['cluster']}"] if facts["cluster"] else []),
        n_gpus,
        f"{facts['dp']:,} data-parallel ranks x {facts['pp']:,} stages"
        + (f" x {facts['vpp']:,} chunks" if facts["vpp"] > 1 else ""),
        numbers.counted(facts["n_steps"], "step"),
        *([f"{facts['n_dropped_steps']:,} left out"] if facts["n_dropped_steps"] else []),
    ]
    return " · ".join(parts)


def workers(cause: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The workers (dp_rank, stage) that a cause is about; none where it is about more than those.

    >>> workers({"target": {"dp_rank": 3, "stage": 2}}), workers({"target": {"stage": 2}})
    ([(3, 2)], [])
    """
    found = cause["target"] or {}
    named = found.get("workers") or [found]
    return [
        (each["dp_rank"], each["stage"])
        for each in named[:MOST_NAMED]
        if each.get("dp_rank") is not None and each.get("stage") is not None
    ]


def target(cause: Mapping[str, Any], node_of: Mapping[tuple[int, int], str]) -> str:
    """What a cause is about, with nodes where they are known; empty for the whole job."""
    found = cause["target"] or {}
    if found.get("dp_rank") is not None and found.get("stage") is not None:
        return worker(found["dp_rank"], found["stage"], node_of)
    workers = found.get("workers") or []
    if found.get("dp_rank") is not None:
        return f"dp {found['dp_rank']}" + _stages(found)
    if found.get("stage") is not None or found.get("stages"):
        return _stages(found).removeprefix(", ")
    named = [worker(w["dp_rank"], w["stage"], node_of) for w in workers[:MOST_NAMED]]
    more = found.get("n_workers", len(workers)) - len(named)
    return "; ".join([*named, *([f"{more:,} more"] if more > 0 else [])])


def worker(dp: int, stage: int, node_of: Mapping[tuple[int, int], str]) -> str:
    """A worker with its node.

    >>> worker(3, 2, {(3, 2): "gpu7"}), worker(3, 2, {})
    ('dp 3, stage 2 (gpu7)', 'dp 3, stage 2')
    """
    node = node_of.get((dp, stage))
    return f"dp {dp}, stage {stage}" + (f" ({node})" if node else "")


def evidence(cause: Mapping[str, Any]) -> str:
    """Numbers by which a cause was recognised."""
    return ", ".join(
        f"{name.replace('_', ' ')} {_value(name, value)}"
        for name, value in cause["evidence"].items()
        if value is not None and value is not False
    )


def _value(name: str, value: Any) -> str:
    if value is True:
        return "yes"
    if isinstance(value, int):
        return numbers.count(value)
    if isinstance(value, float):
        return numbers.percent(value) if name.startswith("share") else numbers.number(value)
    return str(value)


def _stages(found: Mapping[str, Any]) -> str:
    if found.get("stages"):
        return f", stages {' and '.join(str(each) for each in found['stages'])}"
    return "" if found.get("stage") is None else f", stage {found['stage']}"


def _subject(cause: Mapping[str, Any], node_of: Mapping[tuple[int, int], str]) -> str:
    """What begins the sentence."""
    where = target(cause, node_of)
    if cause["cause"] == "worker" and (cause["target"] or {}).get("stage") is not None:
        return f"Worker {where}"
    if cause["cause"] == "stage":
        return where[0].upper() + where[1:]
    name = title(cause["cause"])
    return f"{name[0].upper()}{name[1:]}" + (f" ({where})" if where else "")
