"""How a pod of Kubernetes, or a run of it, ended: in the words of Slurm."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from data.ingest.readers.kubernetes import kubernetes as k8s

if TYPE_CHECKING:
    from datetime import datetime

_BY_REASON = {
    "NodeLost": "NODE_FAIL", "NodeShutdown": "NODE_FAIL", "Shutdown": "NODE_FAIL",
    "Terminated": "NODE_FAIL", "Preempting": "PREEMPTED", "Preempted": "PREEMPTED",
    "DeadlineExceeded": "TIMEOUT", "Evicted": "FAILED", "UnexpectedAdmissionError": "LAUNCH_FAILED",
    "NodeAffinity": "LAUNCH_FAILED",
}  # fmt: skip
"""Why a pod as a whole failed. `Terminated` and `Shutdown` are a node's own shutdown."""
_BY_DISRUPTION = {
    "DeletionByTaintManager": "NODE_FAIL", "DeletionByPodGC": "NODE_FAIL",
    "PreemptionByScheduler": "PREEMPTED", "PreemptionByKubeScheduler": "PREEMPTED",
    "EvictionByEvictionAPI": "PREEMPTED",
}  # fmt: skip
"""Condition DisruptionTarget: its node went or was tainted, or it made way."""
_STATUS_UNKNOWN = "ContainerStatusUnknown"
_SIGNALS = range(129, 193)
_MESSAGE = 500


class Ending(NamedTuple):
    """An end."""

    state: str
    raw: str
    """Phase and reason."""
    reason: str | None
    exit_code: int | None
    exit_signal: int | None
    at: datetime | None


def ended(pod: dict[str, Any], terminated: dict[str, Any]) -> Ending:
    """How a run ended whose pod goes on."""
    phase = k8s.text(k8s.within(pod, "status").get("phase")) or ""
    why, code = k8s.text(terminated.get("reason")), k8s.count(terminated.get("exitCode"))
    at = k8s.instant(terminated.get("finishedAt"))
    if why == _STATUS_UNKNOWN:  # 137 stands there for want of a code
        code = None
    if why == "OOMKilled":
        state = "OUT_OF_MEMORY"
    elif code == 0:
        state = "COMPLETED"
    elif why == "DeadlineExceeded":
        state = "TIMEOUT"
    elif _was_deleted(pod, at):
        state = "CANCELLED"
    else:
        state = "FAILED"
    signal = k8s.count(terminated.get("signal"))
    if signal is None and code is not None:
        signal = code - 128 if code in _SIGNALS else 0
    reason = None if state == "COMPLETED" else k8s.told(why, _short(terminated))
    return Ending(state, f"{phase}/{why}" if why else phase, reason, code, signal, at)


def ended_as_a_pod(pod: dict[str, Any], terminated: dict[str, Any], phase: str) -> Ending:
    """How a pod ended, with the run that it was in: by its own reason, else as that container."""
    status = k8s.within(pod, "status")
    told = _telling(status, terminated, phase)
    ending = ended(pod, told)
    why = k8s.text(status.get("reason"))
    disruption = k8s.conditions(pod).get("DisruptionTarget", {})
    cause = k8s.text(disruption.get("reason")) if disruption.get("status") == "True" else None
    state = _BY_DISRUPTION.get(cause or "") or _BY_REASON.get(why or "")
    if state is None and why is not None and why.startswith("OutOf"):
        state = "LAUNCH_FAILED"
    if phase == "Succeeded":
        return ending._replace(state="COMPLETED", raw=phase, reason=None, at=_last_end(status))
    if state is not None:
        reason = k8s.told(why or cause, _short(status) or _short(disruption))
        raw = f"{phase}/{why or cause}"
        ending = ending._replace(state=state, raw=raw, reason=reason)
    elif not told and phase != "Failed":
        ending = ending._replace(state="CANCELLED", raw=f"{phase}/Deleted", reason="Deleted")
    elif not told:
        ending = ending._replace(state="FAILED", raw=phase, reason=k8s.told(why, _short(status)))
    return ending._replace(at=_last_end(status) or _deleted_at(pod))


def _telling(status: dict[str, Any], main: dict[str, Any], phase: str) -> dict[str, Any]:
    """The end of the container that counts, or, where it completed, of the first that did not."""
    if phase != "Failed" or (main and k8s.count(main.get("exitCode")) != 0):
        return main
    ends = [
        k8s.within(one, "state", "terminated")
        for kind in ("containerStatuses", "initContainerStatuses")
        for one in k8s.listed(status, kind)
    ]
    failed = [one for one in ends if one and k8s.count(one.get("exitCode")) != 0]
    failed.sort(key=lambda one: str(one.get("finishedAt")))
    return next(iter(failed), main)


def _last_end(status: dict[str, Any]) -> datetime | None:
    """When the last container ended; None where nobody says."""
    ends = [
        k8s.instant(k8s.within(one, "state", "terminated").get("finishedAt"))
        for one in k8s.listed(status, "containerStatuses")
    ]
    return max((at for at in ends if at), default=None)


def _deleted_at(pod: dict[str, Any]) -> datetime | None:
    """When a pod was to be gone."""
    return k8s.instant(k8s.within(pod, "metadata").get("deletionTimestamp"))


def _was_deleted(pod: dict[str, Any], ended_at: datetime | None) -> bool:
    """Whether somebody had asked for the deletion when a container ended."""
    at, meta = _deleted_at(pod), k8s.within(pod, "metadata")
    if at is None or ended_at is None:
        return False
    grace_s = k8s.count(meta.get("deletionGracePeriodSeconds")) or 0
    return ended_at >= at - timedelta(seconds=grace_s)


def _short(told: dict[str, Any]) -> str | None:
    return k8s.text(told.get("message"), _MESSAGE)
