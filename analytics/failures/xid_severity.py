"""Severity of the actions that NVIDIA's catalogs recommend."""

from __future__ import annotations

from typing import Literal

Severity = Literal["info", "warning", "critical", "fatal"]

SEVERITY_RANK: dict[Severity | None, int] = {
    None: 0,
    "info": 1,
    "warning": 2,
    "critical": 3,
    "fatal": 4,
}
"""From the least to the most severe; unknown comes first."""

_BY_ACTION: dict[str, Severity] = {
    "IGNORE": "info",
    "RESTART_APP": "warning",
    "UPDATE_SWFW": "warning",
    "RESTART_FM": "warning",
    "RESET_GPU": "critical",
    "CONTACT_SUPPORT": "critical",
    "RESTART_BM": "fatal",
    "RESTART_VM": "fatal",
}
_BY_ACTION_FAMILY: dict[str, Severity] = {"CHECK_": "warning", "WORKFLOW_": "critical"}


def severity_of_action(action: str) -> Severity | None:
    """Severity of an immediate action; None where it says none.

    Examples
    --------
    >>> severity_of_action("RESET_GPU"), severity_of_action("XID_154_EVAL")
    ('critical', None)
    """
    if action in _BY_ACTION:
        return _BY_ACTION[action]
    for family, severity in _BY_ACTION_FAMILY.items():
        if action.startswith(family):
            return severity
    return None
