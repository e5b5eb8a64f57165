"""Severity of NVIDIA's GPU (XID) and NVSwitch (SXid) errors, from the catalog of their codes."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import Literal, cast

Severity = Literal["info", "warning", "critical", "fatal"]

_BY_ACTION: dict[str, Severity] = {
    "IGNORE": "info",
    "RESTART_APP": "warning",
    "UPDATE_SWFW": "warning",
    "RESET_GPU": "critical",
    "CONTACT_SUPPORT": "critical",
    "RESTART_BM": "fatal",
    "RESTART_VM": "fatal",
}
_BY_ACTION_FAMILY: dict[str, Severity] = {"CHECK_": "warning", "WORKFLOW_": "critical"}


def severity_of_xid(code: int) -> Severity | None:
    """Severity of an XID, by the immediate action that NVIDIA's catalog recommends.

    ``IGNORE`` is info; ``RESTART_APP``, ``CHECK_*`` and ``UPDATE_SWFW`` are warnings;
    ``RESET_GPU``, ``WORKFLOW_*`` and ``CONTACT_SUPPORT`` are critical; ``RESTART_BM`` and
    ``RESTART_VM`` are fatal.

    Parameters
    ----------
    code : int
        XID as the driver prints it, e.g. 79 in ``NVRM: Xid (PCI:0000:9b:00): 79``.

    Returns
    -------
    str or None
        ``info``, ``warning``, ``critical`` or ``fatal``; None where the catalog does not list
        the code, recommends no action (162 to 172), or makes the action depend on the message
        (XID 154).

    Notes
    -----
    One action a code: where the action depends on the driver, on a sub-code (XID 144 to 150)
    or on other XIDs nearby, the severity is that of the catalog's one immediate action.

    References
    ----------
    NVIDIA, "Xid Errors", catalog of 172 codes, https://docs.nvidia.com/deploy/xid-errors/, as
    tabulated by leptonai/gpud (Apache-2.0).

    Examples
    --------
    >>> severity_of_xid(79), severity_of_xid(119), severity_of_xid(13), severity_of_xid(63)
    ('fatal', 'critical', 'warning', 'info')
    >>> severity_of_xid(154) is None
    True
    """
    return xid_severities().get(code)


@cache
def xid_severities() -> dict[int, Severity | None]:
    """Severity of every XID of the catalog, by code: the table that a publish joins.

    Returns
    -------
    dict of int to str or None
        172 codes, 1 to 172; None where the severity is unknown. One object for all callers:
        do not change it.

    References
    ----------
    As `severity_of_xid`.

    Examples
    --------
    >>> len(xid_severities())
    172
    """
    return {
        int(row["xid"]): _severity_of_action(row["immediate_action"])
        for row in _rows("xid_catalog.csv")
    }


@cache
def sxid_severities() -> dict[int, Severity]:
    """Severity of every SXid (NVSwitch error) of the catalog, by code.

    Returns
    -------
    dict of int to str
        93 codes; ``warning`` or ``fatal``. One object for all callers: do not change it.

    References
    ----------
    NVIDIA, "Fabric Manager for NVIDIA NVSwitch Systems", appendix on NVSwitch SXid errors, as
    tabulated by leptonai/gpud (Apache-2.0).

    Examples
    --------
    >>> sxid_severities()[24007], sxid_severities()[20001]
    ('fatal', 'warning')
    """
    return {
        int(row["sxid"]): cast("Severity", row["severity"]) for row in _rows("sxid_catalog.csv")
    }


def _severity_of_action(action: str) -> Severity | None:
    """Severity of an immediate action; None where it says none."""
    if action in _BY_ACTION:
        return _BY_ACTION[action]
    for family, severity in _BY_ACTION_FAMILY.items():
        if action.startswith(family):
            return severity
    return None


def _rows(name: str) -> list[dict[str, str]]:
    """Rows of a table shipped in this package."""
    table = resources.files("analytics.failures").joinpath(name)
    return list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
