"""The catalogs of NVIDIA's errors of GPUs (XID) and switches (SXid): meaning, cause, severity."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, cast

from analytics.failures.taxonomy import shipped_document, taxonomy

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
_NVIDIA = (
    "NVIDIA, Xid Errors, https://docs.nvidia.com/deploy/xid-errors/ (as tabulated by "
    "leptonai/gpud, Apache-2.0)"
)
_GCM = "facebookresearch/gcm (MIT)"
_NVIDIA_SXID = (
    "NVIDIA, Fabric Manager for NVIDIA NVSwitch Systems, appendix on SXid errors (as tabulated "
    "by leptonai/gpud, Apache-2.0)"
)
_GPUD = "leptonai/gpud (Apache-2.0)"
_NVIDIA_RATINGS: dict[tuple[bool | None, bool | None], str] = {
    (False, False): "non-fatal",
    (True, False): "potentially fatal",
    (True, True): "always fatal",
}
"""What NVIDIA calls an SXid, by whether it may be fatal and whether it always is."""
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
    """By the immediate action, as `severity_of_action`."""
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


@dataclass(frozen=True, slots=True)
class SxidEntry:
    """What is known of one SXid."""

    code: int
    title: str
    """In plain words."""
    domain: str
    cause: str
    """Cause of the taxonomy."""
    severity: Severity
    """``warning`` or ``fatal``; leptonai/gpud rates it so by what NVIDIA says is to be done."""
    potentially_fatal: bool | None
    """Whether NVIDIA says that it may be fatal; None where it does not say."""
    always_fatal: bool | None
    sources: tuple[Source, ...]
    disagreement: str | None
    """Where sources contradict one another, what each says; else None."""


def severity_of_action(action: str) -> Severity | None:
    """Severity of an immediate action of NVIDIA's catalogs; None where it says none.

    ``IGNORE`` is info; ``RESTART_APP``, ``CHECK_*`` and ``UPDATE_SWFW`` are warnings;
    ``RESET_GPU``, ``WORKFLOW_*`` and ``CONTACT_SUPPORT`` are critical; ``RESTART_BM`` and
    ``RESTART_VM`` are fatal.

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


@cache
def xid_entries() -> dict[int, XidEntry]:
    """All that is known of every XID of the catalog, by code.

    Returns
    -------
    dict of int to XidEntry
        172 codes, 1 to 172. The severity is None where the catalog recommends no action (162 to
        172), or makes it depend on the message (154). One object for all callers: do not change
        it.

    Notes
    -----
    One action a code: where the action depends on a sub-code (XID 144 to 150) or on other XIDs
    nearby, see `nvlink5_readings` and `resolve_sequence`.

    A code has a cause where NVIDIA's action and the possible causes that facebookresearch/gcm
    lists point the same way; it is ``unknown`` where they leave open who is at fault (e.g. 109), or
    the code only accompanies another (45, 154). 13, 31 and 137 are typically a program's mistake,
    seldom hardware.

    References
    ----------
    NVIDIA, "Xid Errors", catalog of 172 codes, https://docs.nvidia.com/deploy/xid-errors/, as
    tabulated by leptonai/gpud (Apache-2.0); facebookresearch/gcm (MIT) for possible causes.

    Examples
    --------
    >>> entry = xid_entries()[109]
    >>> entry.severity, entry.immediate_action
    ('critical', 'RESET_GPU')
    >>> entry.disagreement
    'NVIDIA asks for RESET_GPU, facebookresearch/gcm counts it as not critical'
    """
    return {int(row["xid"]): _xid_entry(row) for row in catalog_rows("xid_catalog.csv")}


@cache
def sxid_entries() -> dict[int, SxidEntry]:
    """All that is known of every SXid of the catalog, by code.

    Returns
    -------
    dict of int to SxidEntry
        93 codes. One object for all callers: do not change it.

    References
    ----------
    NVIDIA, "Fabric Manager for NVIDIA NVSwitch Systems", appendix on NVSwitch SXid errors, as
    tabulated by leptonai/gpud (Apache-2.0). It lists no actions.

    Examples
    --------
    >>> sxid_entries()[20034].title
    'Link training failed and the link went down'
    """
    return {int(row["sxid"]): _sxid_entry(row) for row in catalog_rows("sxid_catalog.csv")}


@cache
def action_meanings() -> dict[str, str]:
    """What the action codes of NVIDIA's catalogs ask for, in plain words, by code.

    Examples
    --------
    >>> action_meanings()["RESTART_BM"]
    'Restart the whole node.'
    """
    return shipped_document("xid_actions.toml")


def catalog_rows(name: str) -> list[dict[str, Any]]:
    """Rows of a table that this package ships."""
    text = resources.files("analytics.failures").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _xid_entry(row: dict[str, str]) -> XidEntry:
    """One row of the catalog of XIDs."""
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
        f"{kind} action {row[f'{kind}_action']}"
        for kind in ("immediate", "investigatory")
        if row[f"{kind}_action"]
    ]
    sources = [Source(_NVIDIA, ", ".join(actions) or "no action")]
    of_gcm = [row["gcm_level"]] if row["gcm_level"] else []
    if row["possible_causes"]:
        of_gcm.append("possible causes " + row["possible_causes"].replace("|", ", "))
    if of_gcm:
        sources.append(Source(_GCM, "; ".join(of_gcm)))
    return tuple(sources)


def _sxid_entry(row: dict[str, str]) -> SxidEntry:
    """One row of the catalog of SXids."""
    stated = {"true": True, "false": False}
    severity = cast("Severity", row["severity"])
    potentially = stated.get(row["potentially_fatal"])
    always = stated.get(row["always_fatal"])
    of_nvidia = _NVIDIA_RATINGS.get((potentially, always))
    contradicted = (severity, of_nvidia) in (("fatal", "non-fatal"), ("warning", "always fatal"))
    return SxidEntry(
        code=int(row["sxid"]),
        title=row["title"],
        domain=taxonomy().domain_of(row["cause"]),
        cause=row["cause"],
        severity=severity,
        potentially_fatal=potentially,
        always_fatal=always,
        sources=(Source(_NVIDIA_SXID, of_nvidia), Source(_GPUD, f"severity {severity}"))
        if of_nvidia
        else (Source(_NVIDIA_SXID, f"severity {severity}"),),
        disagreement=f"NVIDIA calls it {of_nvidia}, leptonai/gpud rates it {severity}"
        if contradicted
        else None,
    )
