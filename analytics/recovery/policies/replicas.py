"""Data-parallel replicas hold the state already: a failure costs a step, or a replica a while."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.recovery.groups import replica_survives, stage_survives, whole_replicas
from analytics.recovery.mechanism import Downtime, Kept
from analytics.recovery.policies.in_memory import RARE, kept_in_memory
from analytics.recovery.policy import Parameter, Policy, sooner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.recovery.mechanism import Mechanism
    from analytics.recovery.policy import Site


def _saved_after(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """Replicas that still live save when one fails: all stages must have one."""
    if site.grid.replicas < 2:
        return ground
    survives = stage_survives(site.grid, site.most_lost)
    saved = kept_in_memory(ground, survives, {"every_min": site.step_min, **values})
    if saved.kept is None:
        return ground
    fetched = sooner(saved.kept.downtime, init=values.get("init_min", saved.kept.downtime.init))
    fetched = replace(fetched, load=values["save_min"] + fetched.load)
    return replace(saved, kept=replace(saved.kept, downtime=fetched))


def _drops(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """Replicas with a lost node are left out until it is back; one must be whole."""
    if site.grid.replicas < 2:
        return ground
    back = Downtime(detect=ground.restart.detect, init=values["regroup_min"])
    kept = Kept(replica_survives(site.grid, site.most_lost), "missing", back, site.step_min)
    return replace(
        ground,
        kept=kept,
        interval_min=values["persist_min"] or ground.interval_min,
        throughput=whole_replicas(site.grid, site.most_lost),
        rejoin=Downtime(init=values["regroup_min"]),
    )


def _experts(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """Experts are placed again on the nodes that are left; their throughput is what remains."""
    if site.grid.replicas < 2:
        return ground
    nodes, most = site.hazards.nodes, site.most_lost
    back = Downtime(detect=min(ground.restart.detect, values["timeout_min"]),
                    init=values["regroup_min"])  # fmt: skip
    return replace(
        ground,
        kept=Kept(stage_survives(site.grid, most), "at once", back, site.step_min),
        interval_min=values["persist_min"] or ground.interval_min,
        throughput=tuple(1.0 - lost / nodes for lost in range(most + 1)),
        rejoin=Downtime(init=values["regroup_min"]),
    )


POLICIES = (
    Policy(
        "just-in-time", "Just-in-time checkpointing (EuroSys 24)",
        "Healthy replicas save after the failure: at most a step is lost.",
        "at least two data-parallel replicas; interception of device calls", _saved_after,
        (
            Parameter("save_min", 0.5, "min", "seconds to tens of seconds", "recalled"),
            RARE,
        ),
    ),
    Policy(
        "replica-state", "Cost-efficient failure-tolerant scheme (ICCD 23)",
        "The state is rebuilt from what replicas hold anyway.",
        "at least two data-parallel replicas", _saved_after,
        (
            Parameter("save_min", 0.5, "min", "no figure is cited for it", "assumed"),
            Parameter("steady_ratio", 0.005, "ratio", "small; no figure is cited", "assumed"),
            RARE,
        ),
    ),
    Policy(
        "checkpointless", "AWS checkpointless training",
        "Peers hand the state to the node that takes over.",
        "at least two data-parallel replicas; spare nodes", _saved_after,
        (
            Parameter("init_min", 1.75, "min", "1 min 45 s instead of 15 min", "reported"),
            Parameter("save_min", 0.0, "min", "counted in that", "derived"),
            RARE,
        ),
    ),
    Policy(
        "drop-replica", "Elastic shrink: FT-HSDP, torchft",
        "A replica with a lost node is dropped, the others go on with a smaller batch.",
        "collectives that shrink; a batch that may change", _drops,
        (Parameter("regroup_min", 0.5, "min", "no figure is cited for it", "assumed"), RARE),
    ),
    Policy(
        "lazarus", "Lazarus (mixture of experts)",
        "Lost experts are placed again on the nodes that are left.",
        "mixture of experts with several copies of each", _experts,
        (
            Parameter("timeout_min", 0.25, "min", "NCCL timeout of 10 to 20 s", "reported"),
            Parameter("regroup_min", 1.0 / 6.0, "min", "5 to 15 s to regroup", "reported"),
            RARE,
        ),
        only="a mixture of experts",
    ),
)  # fmt: skip
