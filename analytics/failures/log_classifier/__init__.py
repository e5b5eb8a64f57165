"""The first cause of a job's failure in its log: by rules, with a model's second opinion."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analytics.failures.log_classifier.device_memory import doubt_of_full
from analytics.failures.log_classifier.first_cause import (
    LEAST_CONFIDENCE,
    Finding,
    first_cause,
    watches_hardware,
)
from analytics.failures.log_classifier.lines import cleaned
from analytics.failures.log_classifier.rules import rules_version
from analytics.failures.log_classifier.second_opinion import (
    domain_chances,
    weighed,
)
from analytics.failures.log_classifier.signals import Signal, signals
from analytics.failures.taxonomy import taxonomy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RULES_VERSION = rules_version()
"""Hash of the rules: a verdict of another version is out of date."""
_MOST_EVIDENCE, _MOST_ALTERNATIVES, _SHOWN = 5, 4, 500
_MESSAGE_LINES = 4
_DOUBTED = 0.5
_MOSTLY_CHANCE = 0.5
_OF_GPUS = re.compile(r"\b(?:cuda|hip|nccl|rccl)\b", re.IGNORECASE)
_OF_THE_KERNEL = re.compile(
    r"^[^\"'`]*?(?:\bkernel: |NVRM: Xid \(|nvidia-nvswitch\d*: SXid|\bEDAC |\bmce: |\bpcieport "
    r"|\bAER: |\bamdgpu |\bbond\d+: |\bmlx5_core |\bmd/raid|\bhostbyte=|\bXFS \(|\bEXT4-fs )"
    r"|\b[Hh]ealth check failed:"
    r"|(?:^|Error: )CUDA error: uncorrectable ECC error encountered(?: \(code|$)"
)
_SURE = 10
_NO_FINER = {"user": "runtime_error", "system_software": "software", "hardware": "hardware"}
"""Causes that say no more than the domain."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of the log that bears on the verdict."""

    line: int
    """Line of the log, from 1."""
    text: str
    """The line without colours and carriage returns, cut to 500 characters."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another cause that the log does not exclude."""

    cause: str
    confidence: float
    """In [0, 1], never above that of the verdict's own cause, unless that is unknown."""
    reason: str


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """The first cause of a failure as its log shows it."""

    cause: str
    """Cause by its name in the taxonomy; ``unknown`` where the log shows none."""
    domain: str
    """``user``, ``system_software``, ``hardware`` or ``unknown``."""
    confidence: float
    """In [0, 1]; 0 where the cause is unknown."""
    method: str
    """``log_rule``, ``log_model`` where a trained classifier said it (the shipped model of
    domains, or a site's own); ``none`` where the cause is unknown."""
    evidence: tuple[LogLine, ...] = ()
    """The line of the first cause, then lines that agree with it or follow from it."""
    alternatives: tuple[Alternative, ...] = ()
    """Most likely first."""
    symptom: str | None = None
    """Symptom of the taxonomy: what was seen first of the failure, before looking behind it."""


_UNKNOWN = LogVerdict("unknown", "unknown", 0.0, "none")


def classify_log(
    lines: Sequence[str],
    *,
    starts: Sequence[int] = (0,),
    ratios: Mapping[str, float] | None = None,
) -> LogVerdict:
    """First cause of the failure that a job's log shows.

    By the rules the line of the strongest initiating kind that came first, never one that another
    failure brought about while something stands behind it. Where lines speak for several domains
    and the cause explains none of the others, or where no line speaks for any, a model trained on
    the words of whole logs weighs in (`second_opinion`).

    Parameters
    ----------
    lines : sequence of str
        The log, or its first and last part, in order; with or without line ends.
    starts : sequence of int
        Where the log is several files one after another: index of the first line of each. The
        progress that one file shows says nothing of what another one ended with.
    ratios : mapping, optional
        What a line is known by (`Signal.known_by`) -> share of its presence in logs of failed jobs
        that is not chance (`background.line_ratios`): its confidence is multiplied by it, and from
        less than half on it says nothing. Lines that are not named count in full.

    Returns
    -------
    LogVerdict
        ``unknown`` with confidence 0 where the log shows no failure, or only weak signs, which
        are then alternatives.

    Notes
    -----
    Confidence is set by rule: how often, to our judgement, such a line names the cause. It rises
    with the specificity of the line and falls where another failure rivals it. The rules read
    English messages of Python, PyTorch, NCCL, CUDA, ROCm, JAX, Slurm, MPI and Linux.

    References
    ----------
    Roles after NVIDIA/nvidia-resiliency-ext (initiating, cascade, teardown); reasons after Hu et
    al., arXiv 2403.07648, Table 3; differential diagnosis after Kokolis et al., arXiv 2410.21680,
    Section on taxonomy.

    Examples
    --------
    >>> verdict = classify_log([
    ...     "step 10 loss 2.1",
    ...     "[rank4]: Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE)",
    ...     "[rank9]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
    ... ])
    >>> verdict.cause, verdict.domain, verdict.evidence[0].line, verdict.symptom
    ('gpu_memory', 'hardware', 3, 'nccl_timeout')
    """
    seen = signals(lines, starts)
    found = [
        replace(
            signal, meaning=replace(signal.meaning, confidence=signal.meaning.confidence * ratio)
        )
        for signal in seen
        if (ratio := (ratios or {}).get(signal.known_by, 1.0)) >= _MOSTLY_CHANCE
    ]
    finding = first_cause(found)
    verdict = _UNKNOWN if finding is None else _by_rules(finding, lines, found)
    chance = {signal.index for signal in seen} - {signal.index for signal in found}
    counted = [line for index, line in enumerate(lines) if index not in chance]
    if finding is None or verdict.cause == "unknown":
        return _with_opinion(verdict, counted)
    spoken_for = {taxonomy().domain_of(signal.cause) for signal in _speaking(found)} - {"unknown"}
    if finding.behind is not None or spoken_for <= {verdict.domain}:
        return verdict
    chances = weighed(verdict.domain, verdict.confidence, domain_chances(counted), spoken_for)
    domain = max(chances, key=chances.__getitem__)
    if domain == verdict.domain or _explains(finding.signal, domain, found):
        return verdict
    return _overruled(verdict, domain, chances[domain], found)


def _with_opinion(verdict: LogVerdict, lines: Sequence[str]) -> LogVerdict:
    """An unknown cause, with what the words of the whole log suggest as an alternative."""
    chances = weighed("unknown", 0.0, domain_chances(lines), ())
    domain = max(chances, key=chances.__getitem__)
    if domain == "unknown":
        return verdict
    reason = "the words of the whole log suggest it; no line of it does"
    opinion = Alternative(_NO_FINER[domain], round(min(chances[domain], 0.99), 3), reason)
    return replace(verdict, alternatives=(*verdict.alternatives, opinion)[:_MOST_ALTERNATIVES])


def _explains(root: Signal, domain: str, found: Sequence[Signal]) -> bool:
    """Whether broken hardware, or a scheduler's own word, explains what speaks for another domain.

    A kernel that reports it explains symptoms, not an exception that names what went wrong; a
    check of computed results that names the GPU explains also the exception that it raises.
    """
    own = [one for one in _speaking(found) if taxonomy().domain_of(one.cause) == domain]
    if root.role == "end":
        return all(one.role == "end" for one in own)
    if root.role != "root" or taxonomy().domain_of(root.cause) != "hardware":
        return False
    if root.cause == "silent_corruption" and root.meaning.specificity >= _SURE:
        return True
    reported = _OF_THE_KERNEL.search(root.line.shown) is not None
    return all(
        (one.role == "symptom" and (reported or _is_of_gpus(one)))
        or (one.role == "end" and one.index >= root.index)
        or watches_hardware(one)
        for one in own
    )


def _is_of_gpus(signal: Signal) -> bool:
    """Whether a symptom is what a broken GPU or link shows as; memory that is full is none."""
    return signal.cause != "cuda_oom" and _OF_GPUS.search(signal.line.text) is not None


def _by_rules(finding: Finding, lines: Sequence[str], found: Sequence[Signal]) -> LogVerdict:
    """What the rules say."""
    alternatives = _alternatives(finding, found)
    if finding.signal.cause == "cuda_oom":
        finding, alternatives = _doubted(finding, alternatives, lines, found)
    if finding.confidence < LEAST_CONFIDENCE or finding.signal.cause == "unknown":
        return replace(_UNKNOWN, alternatives=_as_alternatives(finding, alternatives))
    cause, confidence = finding.signal.cause, round(min(finding.confidence, 0.99), 3)
    return LogVerdict(
        cause=cause,
        domain=taxonomy().domain_of(cause),
        confidence=confidence,
        method="log_rule",
        evidence=_evidence(finding, found),
        alternatives=tuple(
            replace(alternative, confidence=round(min(alternative.confidence, confidence), 3))
            for alternative in alternatives[:_MOST_ALTERNATIVES]
        ),
        symptom=_symptom((finding.behind or finding.signal).cause),
    )


def _speaking(found: Sequence[Signal]) -> list[Signal]:
    """Signals that speak for their cause: no consequence, and not that something is well."""
    return [signal for signal in found if signal.role not in ("teardown", "mended", "cascade")]


def _overruled(
    verdict: LogVerdict,
    domain: str,
    chance: float,
    found: Sequence[Signal],
) -> LogVerdict:
    """A verdict of another domain than the rules': of its signals the strongest."""
    reason = f"line {verdict.evidence[0].line}: {verdict.evidence[0].text[:120]}"
    others = (Alternative(verdict.cause, verdict.confidence, reason), *verdict.alternatives)
    own = [one for one in _speaking(found) if taxonomy().domain_of(one.cause) == domain]
    signal = max(own, key=lambda one: (one.in_traceback, one.meaning.confidence, one.index))
    cause, line = signal.cause, LogLine(signal.line.number, _shown(signal))
    confidence = round(min(chance, 0.99), 3)
    return LogVerdict(
        cause=cause,
        domain=domain,
        confidence=confidence,
        method="log_model",
        evidence=(line,),
        alternatives=tuple(
            replace(alternative, confidence=round(min(alternative.confidence, confidence), 3))
            for alternative in others[:_MOST_ALTERNATIVES]
            if alternative.cause != cause
        ),
        symptom=_symptom(cause),
    )


def _alternatives(finding: Finding, found: Sequence[Signal]) -> list[Alternative]:
    """What the line itself leaves possible, and what other lines say, most likely first."""
    own = finding.signal
    options = [Alternative(*named) for named in own.meaning.alternatives]
    for signal in found:
        counts = signal.live or signal.in_traceback or signal.role in ("root", "sign")
        if signal.role == "teardown" or not counts:
            continue
        weight = 0.5 if signal.role in ("root", "fault", "symptom", "end") else 0.35
        reason = f"line {signal.line.number}: {_shown(signal)[:120]}"
        options.append(Alternative(signal.cause, signal.meaning.confidence * weight, reason))
    best: dict[str, Alternative] = {}
    for option in options:
        known = best.get(option.cause)
        if option.cause not in (own.cause, "unknown") and (
            known is None or option.confidence > known.confidence
        ):
            best[option.cause] = option
    return sorted(best.values(), key=lambda option: (-option.confidence, option.cause))


def _as_alternatives(
    finding: Finding, alternatives: Sequence[Alternative]
) -> tuple[Alternative, ...]:
    """A cause too weak to be named, with the others."""
    own = finding.signal
    options = [*alternatives]
    if own.cause != "unknown":
        reason = f"line {own.line.number}: {_shown(own)[:120]}"
        options.append(Alternative(own.cause, round(finding.confidence, 3), reason))
    return tuple(sorted(options, key=lambda option: -option.confidence)[:_MOST_ALTERNATIVES])


def _doubted(
    finding: Finding,
    alternatives: list[Alternative],
    lines: Sequence[str],
    found: Sequence[Signal],
) -> tuple[Finding, list[Alternative]]:
    """An exhausted GPU memory that may be a faulty GPU's."""
    index = finding.signal.index
    message = [
        line.text
        for number in range(index, min(index + _MESSAGE_LINES, len(lines)))
        for line in cleaned(number + 1, lines[number])
    ]
    doubt = doubt_of_full(message)
    suspect = next(
        (signal for signal in found
         if signal.role in ("root", "sign") and taxonomy().domain_of(signal.cause) == "hardware"),
        None,
    )  # fmt: skip
    if doubt is None and suspect is None:
        return finding, alternatives
    cause, reason = "gpu_fault", doubt or ""
    if suspect is not None:
        cause, reason = suspect.cause, f"line {suspect.line.number}: {_shown(suspect)[:120]}"
    strong = Alternative(cause, 0.45, reason)
    rest = [alternative for alternative in alternatives if alternative.cause != cause]
    return replace(finding, confidence=min(finding.confidence, _DOUBTED)), [strong, *rest]


def _evidence(finding: Finding, found: Sequence[Signal]) -> tuple[LogLine, ...]:
    """The line of the cause, what agrees with it, and the first line that followed from it."""
    own = finding.signal
    agreeing = [
        signal for signal in found if signal.cause == own.cause and signal.index != own.index
    ]
    followed = [signal for signal in found if signal.role in ("cascade", "teardown", "end")][:1]
    chosen: dict[int, LogLine] = {}
    behind = [finding.behind] if finding.behind else []
    for signal in (own, *behind, *agreeing[:2], *followed):
        chosen.setdefault(signal.line.number, LogLine(signal.line.number, _shown(signal)))
    return tuple(chosen.values())[:_MOST_EVIDENCE]


def _shown(signal: Signal) -> str:
    return signal.line.shown.strip()[:_SHOWN]


def _symptom(cause: str) -> str | None:
    """Symptom of the taxonomy that a cause is seen as."""
    names = taxonomy()
    title = names.label_of("rsc", cause)
    named = [symptom for symptom in names.symptoms.values() if symptom.title == title]
    holding = [symptom for symptom in names.symptoms.values() if cause in symptom.causes]
    own = [
        symptom for symptom in holding if symptom.name != "nccl_timeout" or cause.startswith("nccl")
    ]
    return next((symptom.name for symptom in (*named, *own)), None)
