"""Checkpoints on persistent storage: how long training stands still, and when they can be used."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.recovery.policy import BASE, Parameter, Policy, sooner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.recovery.mechanism import Mechanism
    from analytics.recovery.policy import Site


def _stalls(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """Training stands still for a part of the write alone; the rest is written behind it."""
    write = ground.write_min / max(values.get("speedup", 1.0), 1.0)
    stall = min(write, values.get("stall_min", write), write * values.get("stall_ratio", 1.0))
    return _every(ground, site, stall, lag=max(write - stall, 0.0))


def _every(ground: Mechanism, site: Site, stall: float, *, lag: float) -> Mechanism:
    """Checkpoints as often as their stall makes best, one written at a time."""
    interval = max(site.best_interval(stall), lag)
    return replace(ground, interval_min=interval, write_min=stall, lag_min=lag)


def _checkfreq(ground: Mechanism, _site: Site, values: Mapping[str, float]) -> Mechanism:
    """So often that the stall is at most a share of training, and never two writes at once."""
    stall = min(ground.write_min, values["stall_min"])
    lag = max(ground.write_min - stall, 0.0)
    least = stall / values["overhead_ratio"] if values["overhead_ratio"] > 0 else 0.0
    interval = max(least, lag) or ground.interval_min
    return replace(ground, interval_min=interval, write_min=stall, lag_min=lag)


def _differential(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """A differential, quantised checkpoint writes a part of the bytes behind a short snapshot."""
    write = ground.write_min / max(values["fewer_bytes"], 1.0)
    stall = min(write, values["stall_min"])
    return _every(ground, site, stall, lag=max(write - stall, 0.0))


def _byte_checkpoint(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """An asynchronous save of stated length, and a load that reshards."""
    stall = min(ground.write_min, values["stall_min"])
    lag = min(max(ground.write_min - stall, 0.0), values["save_min"])
    every = _every(ground, site, stall, lag=lag)
    return replace(every, restart=sooner(every.restart, load=values["load_min"]))


def _same(ground: Mechanism, _site: Site, _values: Mapping[str, float]) -> Mechanism:
    """Nothing changes."""
    return ground


PARALLEL = "parallel file system or object storage"
POLICIES = (
    Policy(
        BASE, "Young/Daly, DeepSpeed",
        "Training stands still while a checkpoint is written, every Daly-Young interval.",
        PARALLEL, _same, builds_on=None,
    ),
    Policy(
        "torchsnapshot", "TorchSnapshot",
        "All ranks write a part each, in chunks: the stall is shorter.",
        "sharded writes by all ranks; " + PARALLEL, _stalls,
        (Parameter("speedup", 2.0, "times", "no figure is cited for it", "assumed"),),
    ),
    Policy(
        "checkfreq", "CheckFreq (FAST 21)",
        "A snapshot, then a write behind training; as often as a share of overhead allows.",
        "host memory for one snapshot; two-phase checkpoints in the training loop", _checkfreq,
        (
            Parameter("overhead_ratio", 0.035, "ratio", "FAST 21: overhead at most 3.5 %",
                      "reported"),
            Parameter("stall_min", 0.1, "min", "the snapshot to host memory", "assumed"),
        ),
    ),
    Policy(
        "check-n-run", "Check-N-Run (NSDI 22)",
        "Differential and quantised checkpoints: fewer bytes, behind a short snapshot.",
        "sparse updates (embeddings), quantised state", _differential,
        (
            Parameter("fewer_bytes", 6.0, "times", "NSDI 22: write bandwidth over 6 to 17",
                      "reported"),
            Parameter("stall_min", 7.0 / 60.0, "min", "NSDI 22: stall below 7 s", "reported"),
        ),
    ),
    Policy(
        "deepfreeze", "DeepFreeze (CCGRID 20)",
        "Layers are copied as they are ready and flushed through several levels of storage.",
        "node-local storage; layer-wise copies", _stalls,
        (Parameter("stall_min", 0.1, "min", "no figure is cited for it", "assumed"),),
    ),
    Policy(
        "datastates", "DataStates-LLM (2406.10707)",
        "State is copied to the host during forward and backward passes: hardly a stall.",
        "pinned host memory for the state", _stalls,
        (
            Parameter("stall_ratio", 1.0 / 48.0, "ratio", "up to 48 times faster", "recalled"),
        ),
    ),
    Policy(
        "fastpersist", "FastPersist (2406.13768)",
        "Parallel writes to local NVMe: so fast that every step could be saved.",
        "NVMe in every node, also readable once the node is lost", _stalls,
        (Parameter("speedup", 116.0, "times", "up to 116 times", "recalled"),),
    ),
    Policy(
        "bytecheckpoint", "ByteCheckpoint",
        "Asynchronous saves; a load that reshards to any parallelism.",
        "host memory for one checkpoint; " + PARALLEL, _byte_checkpoint,
        (
            Parameter("stall_min", 0.59 / 60.0, "min", "405B on 8,960 GPUs: .59 s", "reported"),
            Parameter("save_min", 51.06 / 60.0, "min", "the same: 51.06 s", "reported"),
            Parameter("load_min", 129.49 / 60.0, "min", "the same: 129.49 s", "reported"),
        ),
    ),
    Policy(
        "dcp-async", "PyTorch DCP, asynchronous",
        "A copy to host memory stalls training, the write goes on behind it.",
        "host memory for one checkpoint", _stalls,
        (Parameter("stall_ratio", 6.3 / 148.8, "ratio", "7B: 6.3 s of 148.8 s", "reported"),),
    ),
)  # fmt: skip
