"""The catalogs of XID and SXid codes: severity, domain, cause, actions, sources."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from analytics.failures.taxonomy import taxonomy
from analytics.failures.xid import (
    action_meanings,
    sxid_entries,
    xid_entries,
)

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
    assert xid_entries()[code].severity == severity


@pytest.mark.parametrize("code", [154, 162, 172])
def test_a_code_without_a_plain_action_has_no_severity(code: int) -> None:
    assert xid_entries()[code].severity is None


def test_the_table_lists_every_code_of_the_catalog_once() -> None:
    assert sorted(xid_entries()) == list(range(1, 173))
    counts = Counter(entry.severity for entry in xid_entries().values())
    assert counts == {"info": 21, "warning": 51, "critical": 86, "fatal": 2, None: 12}


def test_switch_errors_are_warning_or_fatal() -> None:
    severities = {code: entry.severity for code, entry in sxid_entries().items()}
    assert len(severities) == 93
    assert (severities[24007], severities[20001], severities[12028]) == (
        "fatal",
        "warning",
        "fatal",
    )
    assert set(severities.values()) == {"warning", "fatal"}


def test_sources_that_contradict_one_another_are_both_told() -> None:
    entries = sxid_entries()
    assert [code for code, entry in entries.items() if entry.disagreement] == [
        10003, 11004, 12028, 19084,
    ]  # fmt: skip
    told = "NVIDIA calls it non-fatal, leptonai/gpud rates it fatal"
    assert entries[12028].disagreement == told
    assert [source.says for source in entries[12028].sources] == ["non-fatal", "severity fatal"]
    assert [source.says for source in entries[11001].sources] == ["severity fatal"]
    assert [source.says for source in entries[20001].sources] == ["non-fatal", "severity warning"]


@pytest.mark.skipif(not CATALOG.exists(), reason="no ../shared/data/xid here")
def test_shipped_tables_say_what_the_public_catalogs_say() -> None:
    with (CATALOG / "xid_catalog.csv").open(newline="") as lines:
        codes = {int(row["xid"]) for row in csv.DictReader(lines)}
    with (CATALOG / "sxid_catalog.csv").open(newline="") as lines:
        switch = {int(row["sxid"]): row["severity"] for row in csv.DictReader(lines)}
    assert set(xid_entries()) == codes
    assert {code: entry.severity for code, entry in sxid_entries().items()} == switch


@pytest.mark.skipif(not CATALOG.exists(), reason="no ../shared/data/xid here")
def test_what_may_be_fatal_is_what_the_public_catalog_says() -> None:
    stated = {"true": True, "false": False, "": None}
    with (CATALOG / "sxid_catalog.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            entry = sxid_entries()[int(row["sxid"])]
            found = (entry.potentially_fatal, entry.always_fatal)
            assert found == (stated[row["potentially_fatal"]], stated[row["always_fatal"]])


@pytest.mark.skipif(not CATALOG.exists(), reason="no ../shared/data/xid here")
def test_actions_and_possible_causes_are_those_of_the_public_catalog() -> None:
    with (CATALOG / "xid_catalog.csv").open(newline="") as lines:
        rows = {int(row["xid"]): row for row in csv.DictReader(lines)}
    for code, entry in xid_entries().items():
        row = rows[code]
        assert (entry.immediate_action or "") == row["immediate_action"]
        assert (entry.investigatory_action or "") == row["investigatory_action"]
        assert "|".join(entry.possible_causes) == row["possible_causes"]
        assert entry.mnemonic == row["mnemonic"]


@pytest.mark.parametrize(
    ("codes", "domain", "cause"),
    [
        ((13, 31, 43, 137), "user", "illegal_memory_access"),
        ((48, 63, 64, 92, 94, 95, 171), "hardware", "gpu_memory"),
        ((172,), "hardware", "gpu_sram"),
        ((74, 144, 145, 146, 147, 148, 149, 150), "hardware", "nvlink"),
        ((79,), "hardware", "gpu_unavailable"),
        ((62,), "hardware", "gpu_fault"),
        ((119, 120), "system_software", "gpu_driver"),
        ((45,), "user", "unknown"),
        ((109, 8, 32, 68, 154, 162), "unknown", "unknown"),
    ],
)
def test_codes_of_the_field_have_the_domain_that_sources_support(
    codes: tuple[int, ...], domain: str, cause: str
) -> None:
    for code in codes:
        assert (xid_entries()[code].domain, xid_entries()[code].cause) == (domain, cause), code


def test_every_entry_has_a_title_a_known_cause_and_explained_actions() -> None:
    known, meanings = taxonomy(), action_meanings()
    for entry in xid_entries().values():
        assert entry.title
        assert entry.cause in known.causes
        for action in (entry.immediate_action, entry.investigatory_action):
            assert action is None or action in meanings, action
        assert entry.sources[0].name.startswith("NVIDIA")
    for switch in sxid_entries().values():
        assert switch.title
        assert switch.domain == known.domain_of(switch.cause) == "hardware"


def test_a_code_on_which_sources_disagree_shows_what_each_says() -> None:
    disputed = {code for code, entry in xid_entries().items() if entry.disagreement}
    assert disputed == {45, 109}
    entry = xid_entries()[109]
    assert "RESET_GPU" in entry.sources[0].says
    assert "not critical" in entry.sources[1].says
    assert all("not critical" in xid_entries()[code].sources[1].says for code in (13, 31, 43, 63))
