"""Knowing sooner what failed: the same checkpoints, less time until the job starts again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.recovery.policy import Parameter, Policy, sooner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.recovery.mechanism import Mechanism
    from analytics.recovery.policy import Site


def _by_hand(ground: Mechanism, _site: Site, values: Mapping[str, float]) -> Mechanism:
    """A timeout tells that the job hangs, somebody submits it again: no faster than the site is."""
    restart = replace(
        ground.restart,
        detect=max(ground.restart.detect, values["detect_min"]),
        init=max(ground.restart.init, values["init_min"]),
    )
    queue = max(ground.requeue_min, values["queue_min"])
    return replace(ground, restart=restart, requeue_min=queue)


def _sooner(ground: Mechanism, _site: Site, values: Mapping[str, float]) -> Mechanism:
    """Each part takes at most what the system reports."""
    most = {
        part: values[f"{part}_min"]
        for part in ("detect", "isolate", "init", "load")
        if f"{part}_min" in values
    }
    return replace(ground, restart=sooner(ground.restart, **most))


def _shorter(ground: Mechanism, _site: Site, values: Mapping[str, float]) -> Mechanism:
    """Each part takes a share of what it took."""
    parts = zip(("detect", "isolate", "init", "load"), ground.restart.parts, strict=True)
    times = {part: minutes * values.get(f"{part}_ratio", 1.0) for part, minutes in parts}
    return replace(ground, restart=replace(ground.restart, **times))


def _unicron(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """In-band detection, and a process that failed is started again where it was."""
    return replace(_sooner(ground, site, values), in_place=True)


REPORTED_68 = "2401.00134: 68 min = 30 timeout + 9 submit and queue + 14 environment + 15 recompute"
POLICIES = (
    Policy(
        "by-hand", "Restart by hand (Unicron's baseline)",
        "A timeout finds the hang, somebody submits the job again.",
        "nothing", _by_hand,
        (
            Parameter("detect_min", 30.0, "min", REPORTED_68, "reported"),
            Parameter("queue_min", 9.0, "min", REPORTED_68, "reported"),
            Parameter("init_min", 14.0, "min", REPORTED_68, "reported"),
        ),
    ),
    Policy(
        "megascale", "MegaScale (NSDI 24)",
        "Heartbeats and RDMA traffic find the fault, the job starts up fast.",
        "heartbeats, traffic counters, diagnostics before a restart; fast initialisation", _sooner,
        (
            Parameter("detect_min", 10.0, "min", "NSDI 24: detection and diagnosis below 10 min",
                      "reported"),
            Parameter("isolate_min", 0.0, "min", "counted in detection", "derived"),
            Parameter("init_min", 0.5, "min", "NSDI 24: below 30 s on over 10,000 GPUs",
                      "reported"),
        ),
    ),
    Policy(
        "c4", "C4 (2406.04594)",
        "Telemetry of collectives finds the node that hangs or is slow.",
        "an instrumented collective library; a steering service that replaces nodes", _shorter,
        (
            Parameter("detect_ratio", 0.05 / 3.41, "ratio", "downtime 3.41 to .05 %", "recalled"),
            Parameter("isolate_ratio", 0.73 / 19.65, "ratio", "downtime 19.65 to .73 %",
                      "recalled"),
            Parameter("init_ratio", 0.15 / 0.60, "ratio", "downtime .60 to .15 %", "recalled"),
        ),
    ),
    Policy(
        "unicron", "Unicron (2401.00134)",
        "In-band detection by class of failure; processes restart in place.",
        "an agent in every node; error handling by severity", _unicron,
        (Parameter("detect_min", 5.6 / 60.0, "min", "2401.00134: .3 to 5.6 s", "reported"),),
    ),
    Policy(
        "llama3-recorder", "Llama 3 (2407.21783), PyTorch flight recorder",
        "The ring buffer of collectives tells the rank that hangs.",
        "flight recorder on, dumps collected", _sooner,
        (Parameter("isolate_min", 1.0, "min", "no figure is cited for it", "assumed"),),
    ),
    Policy(
        "minder", "Minder (2411.01791)",
        "Metrics of all machines are compared: the outlier is the faulty one.",
        "metrics of every machine each second", _sooner,
        (Parameter("isolate_min", 3.6 / 60.0, "min", "2411.01791: 3.6 s a call", "reported"),),
    ),
)  # fmt: skip
