"""Sub-codes of the NVLink 5 errors XID 144 to 150, which driver 575 numbers anew."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from analytics.errors import AnalysisError
from analytics.failures.xid import SEVERITY_RANK, Severity, catalog_rows, severity_of_action

Layout = Literal["V1", "V2"]

FIRST_CODE, LAST_CODE = 144, 150
FIRST_DRIVER_OF_V2 = 575
"""Branch of the driver from which the sub-codes are numbered by layout V2."""
_MESSAGE = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_/]+) (?P<severity>Nonfatal|Fatal|Link Fatal)\b"
    r"(?:[^(]*?\bLink (?P<link>\d+))?"
    r".*?\((?P<words>0x[0-9a-fA-F]{1,8}(?: 0x[0-9a-fA-F]{1,8})*)\)"
)
_DRIVER = re.compile(r"\s*[rR]?(\d{3})(?:\.\d+)*\s*")


@dataclass(frozen=True, slots=True)
class NvlinkRule:
    """One row of the decode table."""

    xid: int
    unit: str
    """Names of the unit, separated by `/`."""
    pattern_v1: str
    """Bits 31 to 0 of the first word before driver 575; `-` is any."""
    pattern_v2: str
    """The same from driver 575."""
    error_status: int
    """Second word."""
    severity: str
    """As NVIDIA writes it: Non-fatal, Fatal, Link Fatal."""
    origin: str
    """HW, SW, FW, HW/SW or NA."""
    immediate_action: str
    investigatory_action: str
    further_action: str | None


@dataclass(frozen=True, slots=True)
class NvlinkMessage:
    """What a line of XID 144 to 150 says."""

    unit: str
    fatal: bool
    link: int | None
    intrinfo: int
    """First word: unit and sub-code."""
    error_status: int | None
    """Second word; None where the line has one only."""


@dataclass(frozen=True, slots=True)
class NvlinkReading:
    """What the words mean in one layout."""

    layout: Layout
    unit: str | None
    """Unit by the first word; None where the table does not know it."""
    agrees: bool
    """Whether that is the unit that the line names."""
    rules: tuple[NvlinkRule, ...]
    """Rows that fit; several where the error status leaves it open, none where nothing fits."""

    @property
    def severity(self) -> Severity | None:
        """Severity of the strongest action of the rows; None where they ask to see XID 154."""
        found = [severity_of_action(rule.immediate_action) for rule in self.rules]
        return max(found, key=lambda one: SEVERITY_RANK[one], default=None)

    @property
    def immediate_actions(self) -> tuple[str, ...]:
        """Actions of the rows, each once."""
        return tuple(dict.fromkeys(rule.immediate_action for rule in self.rules))


def layout_of_driver(driver: str) -> Layout:
    """Layout of the sub-codes by the version of the driver.

    Raises
    ------
    AnalysisError
        Where `driver` is no version, e.g. ``570.124.06``.

    Examples
    --------
    >>> layout_of_driver("570.124.06"), layout_of_driver("575.51.03"), layout_of_driver("R580")
    ('V1', 'V2', 'V2')
    """
    match = _DRIVER.fullmatch(driver)
    if match is None:
        raise AnalysisError(
            f"driver must be a version of NVIDIA's driver, got {driver!r}: "
            "write it as nvidia-smi does, e.g. 570.124.06"
        )
    return "V2" if int(match[1]) >= FIRST_DRIVER_OF_V2 else "V1"


def nvlink5_message(message: str) -> NvlinkMessage | None:
    """Unit, severity, link and words of a line of XID 144 to 150; None where it has none.

    Examples
    --------
    >>> line = "145, RLW_REMAP Nonfatal XC0 i0 Link 03 (0x00000004 0x00000040 0x00000000)"
    >>> nvlink5_message(line)
    NvlinkMessage(unit='RLW_REMAP', fatal=False, link=3, intrinfo=4, error_status=64)
    """
    match = _MESSAGE.search(message)
    if match is None:
        return None
    words = [int(word, 16) for word in match["words"].split()]
    return NvlinkMessage(
        unit=match["unit"],
        fatal=match["severity"] != "Nonfatal",
        link=int(match["link"]) if match["link"] else None,
        intrinfo=words[0],
        error_status=words[1] if len(words) > 1 else None,
    )


def nvlink5_readings(
    code: int, message: str, driver: str | None = None
) -> tuple[NvlinkReading, ...]:
    """Meaning of a line of XID 144 to 150 by the decode table.

    The first word selects the unit: it fits a row where all bits that the row's pattern states
    are equal. The second word (error status) selects among the rows of the unit: the row of
    that value, else the rows of its set bits, else those of the severity that the line names.

    Parameters
    ----------
    code : int
        144 to 150.
    message : str
        The kernel's message, e.g. ``145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 ...)``.
    driver : str, optional
        Version of the driver; before 575 the layout is V1, from it V2.

    Returns
    -------
    tuple of NvlinkReading
        Of the driver's layout; without a driver both, the one whose unit is the line's first.
        Empty where the code is none of these or the line has no words.

    Raises
    ------
    AnalysisError
        Where `driver` is no version.

    References
    ----------
    NVIDIA, "Xid Errors", decode table of XID 144 to 150, as tabulated by leptonai/gpud
    (Apache-2.0).

    Examples
    --------
    >>> line = "145, RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040 0x00000000 0x00000000)"
    >>> [(r.layout, r.unit, r.immediate_actions) for r in nvlink5_readings(145, line, "575.51")]
    [('V2', 'RLW_REMAP', ('RESET_GPU',))]
    >>> [(r.layout, r.unit, r.agrees) for r in nvlink5_readings(145, line)]
    [('V2', 'RLW_REMAP', True), ('V1', None, False)]
    """
    layouts: tuple[Layout, ...] = ("V1", "V2") if driver is None else (layout_of_driver(driver),)
    words = nvlink5_message(message) if FIRST_CODE <= code <= LAST_CODE else None
    if words is None:
        return ()
    readings = [_reading(code, words, layout) for layout in layouts]
    return tuple(sorted(readings, key=lambda reading: not reading.agrees))


@cache
def nvlink5_rules() -> tuple[NvlinkRule, ...]:
    """The decode table of XID 144 to 150: 94 rows.

    References
    ----------
    As `nvlink5_readings`.

    Examples
    --------
    >>> len(nvlink5_rules())
    94
    """
    return tuple(
        NvlinkRule(
            **row
            | {
                "xid": int(row["xid"]),
                "error_status": int(row["error_status"], 16),
                "further_action": row["further_action"] or None,
            }
        )
        for row in catalog_rows("xid_nvlink5_rules.csv")
    )


def _reading(code: int, words: NvlinkMessage, layout: Layout) -> NvlinkReading:
    """What the words mean in a layout."""
    fitting = [
        rule
        for rule in nvlink5_rules()
        if rule.xid == code
        and _fits(words.intrinfo, rule.pattern_v1 if layout == "V1" else rule.pattern_v2)
    ]
    unit = fitting[0].unit if fitting else None
    agrees = unit is not None and not {words.unit, *words.unit.split("/")}.isdisjoint(
        {unit, *unit.split("/")}
    )
    return NvlinkReading(layout, unit, agrees, tuple(_by_status(fitting, words)))


def _by_status(rules: list[NvlinkRule], words: NvlinkMessage) -> list[NvlinkRule]:
    """Rows of a unit that the error status leaves, else those of the line's severity."""
    status = words.error_status
    exact = [rule for rule in rules if rule.error_status == status]
    if exact:
        return exact
    flags = all(rule.error_status.bit_count() == 1 for rule in rules)
    if status and flags and (raised := [rule for rule in rules if rule.error_status & status]):
        return raised
    return [rule for rule in rules if rule.severity.startswith("Non") != words.fatal]


def _fits(word: int, pattern: str) -> bool:
    """Whether the bits that a pattern states are those of a word."""
    bits = f"{word:032b}"
    return all(stated in ("-", found) for found, stated in zip(bits, pattern, strict=True))
