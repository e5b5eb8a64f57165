"""The catalog of NVIDIA's GPU errors (XID): meaning, domain, cause, severity, actions, sources."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from analytics.failures.sxid import sxid_causes, sxid_severities
from analytics.failures.taxonomy import taxonomy
from analytics.failures.xid_severity import Severity, severity_of_action

__all__ = [
    "Source",
    "XidEntry",
    "action_meanings",
    "severity_of_xid",
    "sxid_causes",
    "sxid_severities",
    "xid_causes",
    "xid_entries",
    "xid_severities",
]

_NVIDIA = (
    "NVIDIA, Xid Errors, https://docs.nvidia.com/deploy/xid-errors/ (as tabulated by "
    "leptonai/gpud, Apache-2.0)"
)
_GCM = "facebookresearch/gcm (MIT)"
_SERIOUS = ("critical", "fatal")


@dataclass(frozen=True, slots=True)
class Source:
    """A source and what it says of a code."""

    name: str
    says: str


@dataclass(frozen=True, slots=True)
class XidEntry:
    """What is known of one XID."""

    code: int
    mnemonic: str
    """NVIDIA's name."""
    title: str
    """In plain words."""
    domain: str
    """``unknown`` where the sources do not say."""
    cause: str
    """Cause of the taxonomy; ``unknown`` where the sources do not say."""
    severity: Severity | None
    """As `severity_of_xid`."""
    immediate_action: str | None
    """NVIDIA's code of what to do at once."""
    immediate_meaning: str | None
    investigatory_action: str | None
    """NVIDIA's code of what to do next."""
    investigatory_meaning: str | None
    possible_causes: tuple[str, ...]
    """As facebookresearch/gcm lists them, e.g. ``user_app``; empty where it lists none."""
    sources: tuple[Source, ...]
    disagreement: str | None
    """Where sources contradict one another, what each says; else None."""


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
    One action a code: where the action depends on a sub-code (XID 144 to 150) or on other XIDs
    nearby, see `nvlink5_readings` and `resolve_sequence`.

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
    return {code: entry.severity for code, entry in xid_entries().items()}


@cache
def xid_causes() -> dict[int, str]:
    """Cause of every XID of the catalog, by code.

    Returns
    -------
    dict of int to str
        172 codes; ``unknown`` where the sources leave open who is at fault (e.g. 109), or the
        code only accompanies another (45, 154). One object for all callers: do not change it.

    Notes
    -----
    A code has a cause where NVIDIA's action and the possible causes that facebookresearch/gcm
    lists point the same way. 13, 31 and 137 are typically a program's mistake, seldom hardware.

    References
    ----------
    As `severity_of_xid`; facebookresearch/gcm (MIT) for possible causes.

    Examples
    --------
    >>> xid_causes()[79], xid_causes()[48], xid_causes()[109]
    ('gpu_unavailable', 'gpu_memory', 'unknown')
    """
    return {code: entry.cause for code, entry in xid_entries().items()}


@cache
def xid_entries() -> dict[int, XidEntry]:
    """All that is known of every XID of the catalog, by code.

    Returns
    -------
    dict of int to XidEntry
        172 codes, 1 to 172. One object for all callers: do not change it.

    References
    ----------
    As `xid_causes`.

    Examples
    --------
    >>> entry = xid_entries()[109]
    >>> entry.severity, entry.immediate_action
    ('critical', 'RESET_GPU')
    >>> entry.disagreement
    'NVIDIA asks for RESET_GPU, facebookresearch/gcm counts it as not critical'
    """
    table = resources.files("analytics.failures").joinpath("xid_catalog.csv")
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    return {int(row["xid"]): _entry(row) for row in rows}


@cache
def action_meanings() -> dict[str, str]:
    """What the action codes of NVIDIA's catalogs ask for, in plain words, by code.

    Examples
    --------
    >>> action_meanings()["RESTART_BM"]
    'Restart the whole node.'
    """
    table = resources.files("analytics.failures").joinpath("xid_actions.toml")
    return tomllib.loads(table.read_text(encoding="utf-8"))


def _entry(row: dict[str, str]) -> XidEntry:
    """One row of the catalog."""
    immediate, investigatory = row["immediate_action"], row["investigatory_action"]
    severity = severity_of_action(immediate)
    contradicted = row["gcm_level"] and severity in _SERIOUS
    return XidEntry(
        code=int(row["xid"]),
        mnemonic=row["mnemonic"],
        title=row["title"],
        domain=row["domain"] or taxonomy().domain_of(row["cause"]),
        cause=row["cause"],
        severity=severity,
        immediate_action=immediate or None,
        immediate_meaning=action_meanings().get(immediate),
        investigatory_action=investigatory or None,
        investigatory_meaning=action_meanings().get(investigatory),
        possible_causes=tuple(filter(None, row["possible_causes"].split("|"))),
        sources=_sources(row),
        disagreement=f"NVIDIA asks for {immediate}, facebookresearch/gcm counts it as "
        f"{row['gcm_level']}"
        if contradicted
        else None,
    )


def _sources(row: dict[str, str]) -> tuple[Source, ...]:
    """Who says what of a code."""
    actions = [
        f"{kind} action {row[column]}"
        for kind, column in (
            ("immediate", "immediate_action"),
            ("investigatory", "investigatory_action"),
        )
        if row[column]
    ]
    sources = [Source(_NVIDIA, ", ".join(actions) or "no action")]
    of_gcm = [row["gcm_level"]] if row["gcm_level"] else []
    if row["possible_causes"]:
        of_gcm.append("possible causes " + row["possible_causes"].replace("|", ", "))
    if of_gcm:
        sources.append(Source(_GCM, "; ".join(of_gcm)))
    return tuple(sources)
