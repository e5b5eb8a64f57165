"""Several XIDs of one GPU in one burst: which code leads, which follow, and what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from analytics.errors import AnalysisError, ShapeError
from analytics.failures.xid import SEVERITY_RANK, Severity, severity_of_action, xid_entries
from analytics.failures.xid_nvlink5 import nvlink5_readings

if TYPE_CHECKING:
    from collections.abc import Sequence

Role = Literal["leading", "follows", "same incident", "beside"]

_OFF_THE_BUS, _CLEANUP, _STOPPED, _RECOVERY = 79, 45, 43, 154
_PROGRAM_FAULTS = frozenset({13, 31})
_UNCORRECTABLE, _REMAPPED, _REMAP_FAILED = 48, 63, 64
_REMAP = frozenset({_REMAPPED, _REMAP_FAILED})
_CONTAINED, _UNCONTAINED = 94, 95
_MEMORY = frozenset({_UNCORRECTABLE, _CONTAINED, _UNCONTAINED, 171, 172}) | _REMAP
_LEADING_IN_MEMORY = (_UNCORRECTABLE, _UNCONTAINED, _CONTAINED, 171, 172, _REMAP_FAILED, _REMAPPED)
_OF_MEMORY = {
    _REMAPPED: "the faulty row was recorded for remapping",
    _REMAP_FAILED: "remapping the faulty row failed",
    _CONTAINED: "the error reached one program only",
    _UNCONTAINED: "the error may have reached other programs",
}
"""What a memory code adds to an incident."""
_CHANGED = re.compile(
    r"recovery action changed from 0x[0-9a-fA-F]+ \([^)]*\) to 0x(?P<code>[0-9a-fA-F]+) "
    r"\((?P<name>[^)]*)\)",
    re.IGNORECASE,
)
_ACTIONS_OF_RECOVERY = ("IGNORE", "RESET_GPU", "RESTART_BM", "RESTART_APP", "RESET_GPU")


@dataclass(frozen=True, slots=True)
class Recovery:
    """What the driver asks for in the message of XID 154."""

    code: int
    name: str
    """In the driver's words."""
    action: str | None
    """The catalog's action code; None for a number that nobody documents."""
    severity: Severity | None


@dataclass(frozen=True, slots=True)
class SequenceNote:
    """The part of one XID in a burst."""

    code: int
    role: Role
    of: int | None
    """The code that it follows or belongs to; None where it leads or stands beside."""
    reason: str


@dataclass(frozen=True, slots=True)
class XidSequence:
    """A burst of XIDs of one GPU as one finding."""

    leading: int
    """The code to act on."""
    severity: Severity | None
    action: str | None
    """The catalog's code of what to do; None where nothing says."""
    notes: tuple[SequenceNote, ...]
    """One a code, in order of first appearance."""


def recovery_action(message: str) -> Recovery | None:
    """What the driver asks for in the message of XID 154; None where it does not say.

    0 is none, 1 a reset of the GPU, 2 a restart of the node, 3 the end of peer access, which ends
    the programs that use it, 4 to empty the GPU and reset it.

    References
    ----------
    NVIDIA, NVML, ``nvmlDeviceGpuRecoveryAction_t``.

    Examples
    --------
    >>> recovery_action("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")
    Recovery(code=1, name='GPU Reset Required', action='RESET_GPU', severity='critical')
    """
    match = _CHANGED.search(message)
    if match is None:
        return None
    code = int(match["code"], 16)
    action = _ACTIONS_OF_RECOVERY[code] if code < len(_ACTIONS_OF_RECOVERY) else None
    severity = severity_of_action(action) if action else None
    return Recovery(code, match["name"], action, severity)


def resolve_sequence(
    codes: Sequence[int],
    messages: Sequence[str | None] | None = None,
    *,
    driver: str | None = None,
) -> XidSequence:
    """A burst of XIDs of one GPU as one finding: the leading code and the part of the others.

    - 79 (off the bus) leads: later codes are its consequences, whatever they say.
    - 48, 94, 95, 171, 172 with 63 or 64 are one memory incident: an uncorrectable error and the
      remapping of its row. The GPU needs a reset where 48, 64 or 95 is among them.
    - 43 follows 13 or 31. 45 follows any other code and is never escalated; alone it is a warning.
    - 154 follows, and its message decides the action and severity (the last one counts, except
      where it asks for nothing).

    Otherwise the most severe code leads, of equals the first, and the others stand beside it.

    Parameters
    ----------
    codes : sequence of int
        XIDs in order of time, at least one; the same code may come again.
    messages : sequence of str or None, optional
        The kernel's messages, as long as `codes`; read of 154 and, where they lead, of 144 to 150.
    driver : str, optional
        Version of the driver, by which 144 to 150 decode.

    Returns
    -------
    XidSequence

    Raises
    ------
    AnalysisError
        Where `codes` is empty, or `messages` has another length.

    References
    ----------
    NVIDIA, "GPU Debug Guidelines", on XID 48 with 63 and 64, and "Xid Errors", on 45 and 154.

    Examples
    --------
    >>> found = resolve_sequence([94, 63, 45])
    >>> found.leading, found.severity, found.action, [note.role for note in found.notes]
    (94, 'warning', 'RESTART_APP', ['leading', 'same incident', 'follows'])
    """
    if not codes:
        raise AnalysisError("codes must hold at least one XID, got none: give those of a burst")
    if messages is not None and len(messages) != len(codes):
        raise ShapeError(
            f"messages must be as long as codes ({len(codes)}), got {len(messages)}: "
            "give None for a code without one"
        )
    pairs = list(zip(codes, messages or [None] * len(codes), strict=True))
    distinct = list(dict.fromkeys(codes))
    leading = _leading(distinct)
    notes = tuple(_note(code, leading, distinct) for code in distinct)
    asked = [
        found
        for code, message in pairs
        if code == _RECOVERY and message and (found := recovery_action(message)) and found.code
    ]
    if asked and asked[-1].action:
        return XidSequence(leading, asked[-1].severity, asked[-1].action, notes)
    words = [message for code, message in pairs if code == leading and message]
    severity, action = _by_words(leading, words, driver) or _own_action(leading, distinct)
    return XidSequence(leading, severity, action, notes)


def _leading(codes: list[int]) -> int:
    """The code to act on."""
    if _OFF_THE_BUS in codes:
        return _OFF_THE_BUS
    candidates = [code for code in codes if code not in (_CLEANUP, _RECOVERY)]
    if _PROGRAM_FAULTS.intersection(candidates):
        candidates = [code for code in candidates if code != _STOPPED]
    if not candidates:
        return _CLEANUP if _CLEANUP in codes else codes[0]
    entries = xid_entries()
    top = max(
        candidates,
        key=lambda code: SEVERITY_RANK[entries[code].severity if code in entries else None],
    )
    if top in _MEMORY:
        return next(code for code in _LEADING_IN_MEMORY if code in codes)
    return top


def _note(code: int, leading: int, codes: list[int]) -> SequenceNote:
    """The part of a code."""
    if code == leading:
        alone = len(codes) == 1
        reason = "the only code" if alone else "the most severe code that follows no other"
        if code == _OFF_THE_BUS:
            reason = "a GPU off the bus explains what comes after it"
        elif code == _CLEANUP:
            reason = "nothing else was reported: a program ended or was killed"
        return SequenceNote(code, "leading", None, reason)
    if code == _RECOVERY:
        return SequenceNote(code, "follows", leading, "it tells what the driver asks for")
    if code == _CLEANUP:
        return SequenceNote(code, "follows", leading, "channels are removed after an error")
    if leading == _OFF_THE_BUS and codes.index(code) > codes.index(leading):
        return SequenceNote(code, "follows", leading, "the GPU was off the bus by then")
    if code == _STOPPED and (faults := [one for one in codes if one in _PROGRAM_FAULTS]):
        return SequenceNote(code, "follows", faults[0], "the program's channel stops after a fault")
    if code in _MEMORY and leading in _MEMORY:
        reason = _OF_MEMORY.get(code, "it describes the same memory error")
        return SequenceNote(code, "same incident", leading, reason)
    return SequenceNote(code, "beside", None, "no rule ties it to the leading code")


def _by_words(
    code: int, messages: list[str], driver: str | None
) -> tuple[Severity | None, str | None] | None:
    """Strongest severity and action that messages of XID 144 to 150 state; None without any."""
    found = [
        (reading.severity, action)
        for message in messages
        for reading in nvlink5_readings(code, message, driver)
        if reading.agrees
        for action in reading.immediate_actions
    ]
    return max(found, key=lambda one: SEVERITY_RANK[severity_of_action(one[1])], default=None)


def _own_action(leading: int, codes: list[int]) -> tuple[Severity | None, str | None]:
    """Severity and action of a leading code among the others."""
    if leading == _CLEANUP:
        return "warning", "RESTART_FM"
    present = _MEMORY.intersection(codes)
    if leading in _MEMORY and (
        present & {_REMAP_FAILED, _UNCONTAINED} or (_UNCORRECTABLE in present and present & _REMAP)
    ):
        return "critical", "RESET_GPU"
    entry = xid_entries().get(leading)
    return (entry.severity, entry.immediate_action) if entry else (None, None)
