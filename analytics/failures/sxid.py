"""The catalog of NVIDIA's NVSwitch errors (SXid): meaning, domain, cause, severity, sources."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, cast

from analytics.failures.taxonomy import taxonomy

if TYPE_CHECKING:
    from analytics.failures.xid_severity import Severity

_SOURCE = (
    "NVIDIA, Fabric Manager for NVIDIA NVSwitch Systems, appendix on SXid errors (as tabulated "
    "by leptonai/gpud, Apache-2.0)"
)


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
    """``warning`` or ``fatal``."""
    potentially_fatal: bool | None
    """Whether NVIDIA says that it may be fatal; None where it does not say."""
    always_fatal: bool | None
    source: str = _SOURCE


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
    table = resources.files("analytics.failures").joinpath("sxid_catalog.csv")
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    return {int(row["sxid"]): _entry(row) for row in rows}


@cache
def sxid_severities() -> dict[int, Severity]:
    """Severity of every SXid (NVSwitch error) of the catalog, by code.

    Returns
    -------
    dict of int to str
        93 codes; ``warning`` or ``fatal``. One object for all callers: do not change it.

    References
    ----------
    As `sxid_entries`.

    Examples
    --------
    >>> sxid_severities()[24007], sxid_severities()[20001]
    ('fatal', 'warning')
    """
    return {code: entry.severity for code, entry in sxid_entries().items()}


@cache
def sxid_causes() -> dict[int, str]:
    """Cause of every SXid of the catalog, by code.

    Returns
    -------
    dict of int to str
        93 codes. One object for all callers: do not change it.

    Examples
    --------
    >>> sxid_causes()[24007], sxid_causes()[10004]
    ('nvlink', 'cooling')
    """
    return {code: entry.cause for code, entry in sxid_entries().items()}


def _entry(row: dict[str, str]) -> SxidEntry:
    """One row of the catalog."""
    stated = {"true": True, "false": False}
    return SxidEntry(
        code=int(row["sxid"]),
        title=row["title"],
        domain=taxonomy().domain_of(row["cause"]),
        cause=row["cause"],
        severity=cast("Severity", row["severity"]),
        potentially_fatal=stated.get(row["potentially_fatal"]),
        always_fatal=stated.get(row["always_fatal"]),
    )
