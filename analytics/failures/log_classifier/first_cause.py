"""Which of a log's signals is the first cause."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.failures.log_classifier.rules import VAGUE
from analytics.failures.log_classifier.signals import LEAST_SPECIFIC
from analytics.failures.log_classifier.tracebacks import exception_meaning
from analytics.failures.taxonomy import taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analytics.failures.log_classifier.signals import Signal

LEAST_CONFIDENCE = 0.4
"""Below it the cause is unknown, and what was found is an alternative."""
_LOST_GPUS = frozenset({"gpu_unavailable", "gpu_fault", "gpu_memory", "gpu_sram", "pcie"})
_GPU_SYMPTOMS = frozenset({"cuda_oom", "cuda_error", "illegal_memory_access", "gpu_unavailable",
                           "nccl_error", "nvlink", "system_service"})  # fmt: skip
_OWN_DEATHS = _GPU_SYMPTOMS - {"nccl_error"} | {"host_oom", "program_crash", "model_loading"}
_REPORT = "NVRM: Xid ("
_LINKS = frozenset({"ib_link", "ethernet_link", "network", "nic"})
_OF_FILES = frozenset({"file_not_found", "os_error", "import_error", "permission_denied"})
_OF_DISKS = frozenset({"filesystem_mount", "disk"})
_UNANSWERED = re.compile(r"refused|reset|disconnected|max retries|connection attempts", re.I)
_STRONG_CASCADE, _SPECIFIC, _SURE = 6, 8, 9
_WENT_ON = 3
_NEAR = 6
"""Lines of progress after which a line in passing no longer explains an exception."""
_BY_TYPE = 6
"""Specificity of an exception whose type alone says what went wrong."""
_WATCHES = re.compile(r"slow|straggl|throttl|thermal|temperature|health|gpu", re.IGNORECASE)
_PERFORMANCE = re.compile(
    r"\b(?:throughput|bandwidth|tok\w*/s|tflops|straggl\w*)\b.{0,40}\b(?:below|under|low|fail\w*)\b",
    re.IGNORECASE,
)
"""Words of an exception that a program raises because it watches its GPUs, or how fast they are."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The signal of the first cause."""

    signal: Signal
    confidence: float
    behind: Signal | None = None
    """The signal that was seen first, where the cause stands behind it."""


def first_cause(found: Sequence[Signal]) -> Finding | None:
    """The first cause; None where the log shows no failure.

    Roots count wherever they stand; of faults and symptoms the first; a symptom gives way to a
    root, a cascade to everything that may stand behind it, before or after. A line in passing
    after which the job went on gives way to the exception that ended it. What came after the
    scheduler ended the job is aftermath.
    """
    found = [signal for signal in _without_mended(found) if signal.live or not _is_vague(signal)]
    live = _without_survived([signal for signal in found if signal.live])
    live = [signal for signal in live if not _is_merely_announced(signal, live)]
    ended = _first(live, "end")
    before = [
        signal
        for signal in live
        if ended is None or signal.index < ended.index or signal.role == "root"
    ]
    lead = _lead_of(before)
    root = _best_root(before)
    if ended is not None and lead is not None and _weaker_than_end(lead):
        died = any(
            signal.role == "teardown" and lead.index <= signal.index < ended.index
            for signal in live
        )
        lead = lead if died and ended.cause == "requeued" else None
    explained = root is not None and ended is not None and _is_reason_of(root, ended)
    if root is not None and (
        ended is None or root.index < ended.index or lead is not None or explained
    ):
        return _root_or_lead(root, lead, found, ended if explained else None)
    if lead is not None:
        return _lead(lead, found)
    earlier = (signal for signal in before if ended is None or signal.index < ended.index)
    ends = [signal for signal in live if signal.role == "end"]
    cascades = [signal for signal in earlier if signal.role == "cascade"]
    hung = any(signal.cause == "nccl_timeout" for signal in cascades)
    if cascades and (hung or not ends):
        return _behind_cascade(cascades[0], found)
    if ends:
        ends += [
            signal for signal in found if signal.role == "end" and signal.cause == "maintenance"
        ]
        telling = max(ends, key=lambda signal: (signal.meaning.specificity, -signal.index))
        return Finding(telling, telling.meaning.confidence)
    return _weak(found)


def _without_survived(live: list[Signal]) -> list[Signal]:
    """What may have ended the job, without lines that its end shows it survived.

    An exception whose type explains itself, such as a KeyError, needs no hardware behind it; one
    that leaves its cause open does not outweigh a specific line. A job that made progress until
    the scheduler ended it had survived whatever came before that progress.
    """
    ended = next((signal for signal in reversed(live) if signal.role == "end"), None)
    if ended is not None:
        live = [
            signal for signal in live
            if signal.index >= ended.index or signal.role == "end"
            or signal.n_progress_after - ended.n_progress_after < _WENT_ON
        ]  # fmt: skip
    if any(_ends_after_start(signal) for signal in live):
        without_gpu = any(
            signal.cause in _GPU_SYMPTOMS and signal.role == "symptom" and not signal.before_start
            for signal in live
        )
        live = [
            signal for signal in live
            if not signal.before_start or _lasts(signal) or (without_gpu and _loses_gpu(signal))
        ]  # fmt: skip
    fatal = [
        signal for signal in live
        if signal.in_traceback and signal.role in ("fault", "symptom")
        and signal.n_progress_after < _WENT_ON
    ]  # fmt: skip
    if not fatal:
        return live
    return [signal for signal in live if not any(_survived(signal, last) for last in fatal)]


def _ends_after_start(signal: Signal) -> bool:
    """Whether a line tells of an end of a program that had set out."""
    if signal.before_start:
        return False
    return signal.role in ("fault", "end") or (signal.role == "symptom" and signal.in_traceback)


def _is_vague(signal: Signal) -> bool:
    """Whether only a thing and its state say it, in words that no rule knows."""
    return signal.role == "sign" and signal.meaning.specificity == VAGUE


def _lasts(signal: Signal) -> bool:
    """Whether what a line says holds for a start after it too, such as a missing mount."""
    system = taxonomy().domain_of(signal.cause) == "system_software"
    return signal.role == "end" or (signal.role == "root" and system)


def _loses_gpu(signal: Signal) -> bool:
    """Whether a GPU was reported lost or broken."""
    return signal.role == "root" and signal.cause in _LOST_GPUS


def _without_mended(found: Sequence[Signal]) -> list[Signal]:
    """Without what a later line says is well again, after which the job went on."""
    last = {
        _mended_with(signal): signal.index for signal in found
        if signal.role == "mended"
        and (signal.n_progress_after or signal.file_end - signal.index > _WENT_ON)
    }  # fmt: skip
    return [
        signal for signal in found
        if signal.role != "mended"
        and (signal.in_traceback or signal.index > last.get(_mended_with(signal), -1))
    ]  # fmt: skip


def _mended_with(signal: Signal) -> str:
    """A cause, or that all links share."""
    return "link" if signal.cause in _LINKS else signal.cause


def _is_merely_announced(end: Signal, live: Sequence[Signal]) -> bool:
    """Whether a maintenance was only told of: what came next is an exception of the program."""
    if end.role != "end" or end.cause != "maintenance":
        return False
    following = next(
        (signal for signal in live if signal.index > end.index and signal.role != "sign"), None
    )
    return following is not None and following.in_traceback and following.role != "cascade"


def _survived(signal: Signal, last: Signal) -> bool:
    """Whether the job made progress between a line in passing and an exception."""
    if signal.in_traceback or signal.file_end != last.file_end:
        return False
    if signal.n_progress_after - last.n_progress_after < _WENT_ON:
        return False
    vague = signal.role in ("fault", "symptom") and signal.meaning.specificity < _SPECIFIC
    hardware = taxonomy().domain_of(signal.cause) == "hardware"
    explained = last.role == "fault" and last.meaning.specificity == _BY_TYPE
    if hardware and explained and signal.role in ("root", "symptom"):
        return True
    return vague and exception_meaning(signal.line.text) is None


def _first(found: Iterable[Signal], *roles: str) -> Signal | None:
    return next((signal for signal in found if signal.role in roles), None)


def _lead_of(found: Sequence[Signal]) -> Signal | None:
    """The first failure; what only sounds like hardware yields to one that names itself,
    a refused connection to the exception of the program that should have answered.
    """
    lead = _first(found, "fault", "symptom")
    if lead is None or lead.role == "fault":
        return lead
    if lead.meaning.confidence < LEAST_CONFIDENCE:
        return next((signal for signal in found if _is_surer(signal, lead)), lead)
    if lead.cause == "cuda_error":
        return next((signal for signal in found if _is_finer(signal, lead)), lead)
    if lead.cause == "connection_error":
        served = next((signal for signal in found if _died_of_itself(signal)), None)
        if served and _UNANSWERED.search(lead.line.text):
            return served
    if lead.cause == "ib_link":
        return next((signal for signal in found if _ended_a_peer(signal)), lead)
    if lead.in_traceback:
        return lead
    vague = lead.meaning.specificity < _SPECIFIC and taxonomy().domain_of(lead.cause) == "hardware"
    return (_first(found, "fault") if vague else None) or lead


def _is_surer(signal: Signal, lead: Signal) -> bool:
    """Whether another line says with more confidence what a vague one left open."""
    known = signal.meaning.confidence >= LEAST_CONFIDENCE
    return known and signal.cause == lead.cause and signal.role in ("fault", "symptom")


def _died_of_itself(signal: Signal) -> bool:
    """Whether a process says why it ended, so that others no longer reach it."""
    if signal.role == "fault" and signal.in_traceback:
        return True
    return signal.role == "symptom" and signal.cause in _OWN_DEATHS


def _ended_a_peer(signal: Signal) -> bool:
    """Whether a process died of itself: its peers then meet a link that does not answer."""
    crashed = signal.cause == "program_crash" and signal.role in ("fault", "symptom")
    return crashed or (signal.role == "fault" and signal.in_traceback)


def _is_finer(signal: Signal, lead: Signal) -> bool:
    """Whether a line right after a CUDA error says which one it was."""
    near = lead.index < signal.index <= lead.index + _NEAR
    return (
        near
        and signal.role in ("fault", "symptom")
        and signal.cause in _GPU_SYMPTOMS - {lead.cause}
    )


def _best_root(found: Sequence[Signal]) -> Signal | None:
    """The most specific root, of several the first; a driver's yields to the hardware's.

    Of lines of the same cause the driver's own report says more than one that repeats it.
    """
    roots = [signal for signal in found if signal.role == "root"]
    hardware = [signal for signal in roots if taxonomy().domain_of(signal.cause) == "hardware"]
    best = max(roots, key=_telling, default=None)
    if best is None:
        return None
    if best.cause == "gpu_driver" and _coded(best) and hardware:
        best = max(hardware, key=_telling)
    reports = (
        signal for signal in roots
        if signal.cause == best.cause and _REPORT in signal.line.text
        and signal.meaning.specificity == best.meaning.specificity
    )  # fmt: skip
    return next(reports, best)


def _telling(root: Signal) -> tuple[int, int]:
    """How much a root says, the earlier of equals first."""
    return root.meaning.specificity, -root.index


def _coded(signal: Signal) -> bool:
    """Whether an XID alone says it."""
    return "xid" in signal.line.text.lower()


def _is_reason_of(root: Signal, ended: Signal) -> bool:
    """Whether a maintenance was called for because hardware is broken, as the next lines say."""
    near = root.index - ended.index <= _NEAR
    hardware = taxonomy().domain_of(root.cause) == "hardware"
    return ended.cause == "maintenance" and hardware and near


def _weaker_than_end(lead: Signal) -> bool:
    """Whether the scheduler's own word counts for more than a line in passing."""
    specific = lead.meaning.specificity >= _SPECIFIC
    return lead.role == "symptom" and not lead.in_traceback and not specific


def _root_or_lead(
    root: Signal, lead: Signal | None, found: Sequence[Signal], explained: Signal | None
) -> Finding:
    """A fault that came before a root needs no root; anything else does.

    A file that is not found needs one too: its file system may be lost.
    """
    unread = lead is not None and lead.cause in _OF_FILES and root.cause in _OF_DISKS
    if lead is not None and lead.role == "fault" and lead.index < root.index and not unread:
        return _lead(lead, found)
    seen = _first(
        [signal for signal in found if signal.index < root.index and signal.live],
        "cascade",
        "symptom",
    )
    return Finding(root, root.meaning.confidence, explained or seen)


def _lead(lead: Signal, found: Sequence[Signal]) -> Finding:
    """The first fault or symptom, unless its GPU had shown a fault long before.

    An exception of a program's own type that speaks of a GPU or of slowness tells what a watch
    saw: a hardware sign explains it.
    """
    if watches_hardware(lead):
        sign = _hardware_sign(found)
        if sign is not None:
            return Finding(sign, sign.meaning.confidence, lead)
    if lead.cause in ("gpu_unavailable", "cuda_error"):
        hidden = next(
            (signal for signal in found if signal.role == "sign" and _hides_gpus(signal)), None
        )
        if hidden is not None and hidden.index < lead.index:
            return Finding(hidden, lead.meaning.confidence, lead)
    lead = _as_raised(lead, found)
    if lead.role == "symptom" and lead.cause in _GPU_SYMPTOMS | {"node_lost"}:
        root = _best_root([signal for signal in found if _lately(signal)])
        if root is not None and taxonomy().domain_of(root.cause) == "hardware":
            return Finding(root, root.meaning.confidence * 0.75, lead)
    return Finding(lead, lead.meaning.confidence * (0.85 if _is_rivalled(lead, found) else 1))


def _as_raised(lead: Signal, found: Sequence[Signal]) -> Signal:
    """The exception that tells the same cause as a line in passing before it."""
    if lead.in_traceback:
        return lead
    raised = (
        signal for signal in found
        if signal.in_traceback and signal.live and signal.cause == lead.cause
        and signal.role == lead.role
    )  # fmt: skip
    return next(raised, lead)


def watches_hardware(signal: Signal) -> bool:
    """Whether an exception is a program's own that watches how well its GPUs do."""
    if signal.cause == "python_exception":
        return _WATCHES.search(signal.line.text) is not None
    return signal.in_traceback and _PERFORMANCE.search(signal.line.text) is not None


def _lately(signal: Signal) -> bool:
    """Whether the job went on after it, but not for hours."""
    return signal.passed and not signal.hours_before


def _hides_gpus(signal: Signal) -> bool:
    """Whether a script leaves its programs no GPU."""
    return "visible_devices" in signal.line.text.lower()


def _is_rivalled(lead: Signal, found: Sequence[Signal]) -> bool:
    """Whether another failure of another cause may have ended the job as well."""
    return any(
        signal.live and signal.role in ("fault", "symptom") and signal.cause != lead.cause
        for signal in found
    )


def _behind_cascade(cascade: Signal, found: Sequence[Signal]) -> Finding:
    """What stands behind a cascade: a root passed long before, a sign; else nothing."""
    root = _best_root([signal for signal in found if _lately(signal) and signal.role == "root"])
    if root is not None:
        return Finding(root, root.meaning.confidence * 0.8, cascade)
    sign = _hardware_sign(found)
    if sign is not None:
        return Finding(sign, sign.meaning.confidence, cascade)
    strongest = max(
        (signal for signal in found if signal.role == "cascade" and signal.live),
        key=lambda signal: (signal.meaning.specificity >= _STRONG_CASCADE, -signal.index),
    )
    return Finding(strongest, strongest.meaning.confidence)


def _diverged(found: Sequence[Signal]) -> Finding | None:
    """A loss that is no number in the last lines of a log which says nothing else."""
    last = (
        signal for signal in found
        if signal.cause == "non_finite_loss" and signal.live and "loss" in signal.line.text.lower()
        and signal.file_end - signal.index <= _WENT_ON
    )  # fmt: skip
    end = next(last, None)
    return None if end is None else Finding(end, end.meaning.confidence)


def _outlived(found: Sequence[Signal]) -> Finding | None:
    """Hardware that was reported lost, in a log that goes on after it and shows no end.

    Other ranks may have written what came after.
    """
    root = _best_root([signal for signal in found if _lately(signal) and signal.role == "root"])
    if root is None or root.meaning.specificity < _SURE:
        return None
    fatal = taxonomy().domain_of(root.cause) == "hardware" and root.cause not in _LINKS
    return Finding(root, root.meaning.confidence * 0.6) if fatal else None


def _hardware_sign(found: Sequence[Signal]) -> Signal | None:
    """The surest observation of hardware, of several the first."""
    hardware = [
        signal for signal in found
        if signal.role == "sign" and signal.meaning.specificity > 1
        and taxonomy().domain_of(signal.cause) == "hardware"
    ]  # fmt: skip
    return max(
        hardware, key=lambda signal: (signal.meaning.confidence, -signal.index), default=None
    )


def _weak(found: Sequence[Signal]) -> Finding | None:
    """Signs and deaths alone: a cause only where the log also shows that the job died."""
    died = [signal for signal in found if signal.role == "teardown" and signal.live]
    specific = [signal for signal in died if signal.meaning.specificity > LEAST_SPECIFIC]
    died = [
        signal for signal in died
        if signal in specific
        or (specific and signal.index < specific[-1].index and not signal.n_progress_after)
    ]  # fmt: skip
    if not died:
        return _diverged(found) or _outlived(found)
    passed = [
        signal
        for signal in found
        if signal.in_traceback and not signal.live and signal.role != "teardown"
    ]
    signs = [signal for signal in found if signal.role == "sign"]
    best = max((*died, *signs), key=lambda signal: (signal.meaning.confidence, -signal.index))
    if passed and best.meaning.confidence < LEAST_CONFIDENCE:
        return Finding(passed[-1], passed[-1].meaning.confidence * 0.6)
    return Finding(best, best.meaning.confidence)
