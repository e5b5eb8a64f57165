"""Severity of XID and SXid codes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from analytics.failures.xid import severity_of_xid, sxid_severities, xid_severities

CATALOG = Path(__file__).parents[4] / "shared" / "data" / "xid"


@pytest.mark.parametrize(
    ("code", "severity"),
    [
        (63, "info"),  # IGNORE
        (13, "warning"),  # RESTART_APP
        (54, "warning"),  # CHECK_MECHANICALS
        (159, "warning"),  # CHECK_UVM
        (78, "warning"),  # UPDATE_SWFW
        (109, "critical"),  # RESET_GPU, though gcm calls it harmless
        (45, "critical"),  # WORKFLOW_XID_45
        (74, "critical"),  # WORKFLOW_NVLINK_ERR
        (149, "critical"),  # WORKFLOW_NVLINK5_ERR
        (1, "critical"),  # CONTACT_SUPPORT
        (79, "fatal"),  # RESTART_BM
        (151, "fatal"),  # RESTART_VM
    ],
)
def test_the_immediate_action_of_a_code_sets_its_severity(code: int, severity: str) -> None:
    assert severity_of_xid(code) == severity


@pytest.mark.parametrize("code", [154, 162, 172, 0, 173, 999_999, -1])
def test_a_code_without_a_plain_action_has_no_severity(code: int) -> None:
    assert severity_of_xid(code) is None


def test_the_table_lists_every_code_of_the_catalog_once() -> None:
    assert sorted(xid_severities()) == list(range(1, 173))
    counts = {s: list(xid_severities().values()).count(s) for s in set(xid_severities().values())}
    assert counts == {"info": 21, "warning": 51, "critical": 86, "fatal": 2, None: 12}


def test_switch_errors_are_warning_or_fatal() -> None:
    severities = sxid_severities()
    assert len(severities) == 93
    assert (severities[24007], severities[20001], severities[12028]) == (
        "fatal",
        "warning",
        "fatal",
    )
    assert set(severities.values()) == {"warning", "fatal"}


@pytest.mark.skipif(not CATALOG.exists(), reason="no ../shared/data/xid here")
def test_shipped_tables_say_what_the_public_catalogs_say() -> None:
    with (CATALOG / "xid_catalog.csv").open(newline="") as lines:
        codes = {int(row["xid"]) for row in csv.DictReader(lines)}
    with (CATALOG / "sxid_catalog.csv").open(newline="") as lines:
        switch = {int(row["sxid"]): row["severity"] for row in csv.DictReader(lines)}
    assert set(xid_severities()) == codes
    assert sxid_severities() == switch
