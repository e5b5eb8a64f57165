"""Sub-codes of XID 144 to 150 decode by the version of the driver."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from analytics.errors import AnalysisError
from analytics.failures.xid import action_meanings
from analytics.failures.xid_nvlink5 import (
    layout_of_driver,
    nvlink5_message,
    nvlink5_readings,
    nvlink5_rules,
)

RULES = Path(__file__).parents[4] / "shared" / "data" / "xid" / "xid_nvlink5_rules.csv"
PREFIX = "NVRM: Xid (PCI:0018:01:00): "


def line(code: int, unit: str, severity: str, intrinfo: int, status: int) -> str:
    return (
        f"{PREFIX}{code}, {unit} {severity} XC0 i0 Link 03 "
        f"(0x{intrinfo:08x} 0x{status:08x} 0x00000000 0x00000000 0x00000000 0x00000000)"
    )


@pytest.mark.parametrize(
    ("driver", "layout"),
    [("535.104.05", "V1"), ("574.99", "V1"), ("575.51.03", "V2"), ("580", "V2"), ("R570", "V1")],
)
def test_driver_575_is_the_first_of_the_new_layout(driver: str, layout: str) -> None:
    assert layout_of_driver(driver) == layout


@pytest.mark.parametrize("driver", ["", "latest", "12", "570-open"])
def test_what_is_no_driver_version_is_refused(driver: str) -> None:
    with pytest.raises(AnalysisError, match=r"driver must be a version .*e\.g\. 570"):
        layout_of_driver(driver)


@pytest.mark.parametrize(
    ("message", "driver", "unit", "severity", "actions"),
    [
        (line(144, "SAW_MVB", "Fatal", 0x1, 0x2), "575.1", "SAW_MVB", "critical", ("RESET_GPU",)),
        (line(144, "SAW_MVB", "Nonfatal", 0x1, 0x4), "575.1", "SAW_MVB", "info", ("IGNORE",)),
        (
            line(145, "RLW_REMAP", "Nonfatal", 0x4, 0x1),
            "575.1",
            "RLW_REMAP",
            None,
            ("XID_154_EVAL",),
        ),
        (line(145, "RLW_REMAP", "Fatal", 0x82, 0x40), "570.1", "RLW_REMAP", "critical", ("RESET_GPU",)),
        (line(146, "TLW_RX_PIPE1", "Fatal", 0xB, 0x4), "580", "TLW_RX/TLW_RX_PIPE1", "critical", ("RESET_GPU",)),
        (line(149, "NETIR_BER_EVENT", "Nonfatal", 0x86226, 0x1), "570.1", "NETIR_BER_EVENT", "info", ("IGNORE",)),
        (
            line(149, "NETIR_LINK_DOWN", "Fatal", 0x02600011, 0x0),
            "580",
            "NETIR_LINK_EVT/NETIR_LINK_DOWN",
            "info",
            ("IGNORE",),
        ),
        (
            line(149, "NETIR_LINK_DOWN", "Fatal", 0x00100011, 0x0),
            "580",
            "NETIR_LINK_EVT/NETIR_LINK_DOWN",
            "critical",
            ("RESET_GPU",),
        ),
        (line(150, "MSE_WATCHDOG", "Fatal", 0x0, 0x0), "570", "MSE_WATCHDOG", "critical", ("RESET_GPU",)),
    ],
)  # fmt: skip
def test_unit_and_status_select_the_action(
    message: str, driver: str, unit: str, severity: str | None, actions: tuple[str, ...]
) -> None:
    code = int(message.removeprefix(PREFIX)[:3])
    (reading,) = nvlink5_readings(code, message, driver)
    assert reading.agrees
    assert (reading.unit, reading.severity, reading.immediate_actions) == (unit, severity, actions)


def test_without_a_driver_both_readings_are_given_the_fitting_one_first() -> None:
    message = line(145, "RLW_RXPIPE", "Nonfatal", 0x6, 0x8)
    first, second = nvlink5_readings(145, message)
    assert (first.layout, first.unit, first.agrees) == ("V2", "RLW_RXPIPE", True)
    assert (second.layout, second.unit, second.agrees, second.severity) == ("V1", None, False, None)


def test_the_layouts_disagree_about_the_same_word() -> None:
    message = line(149, "NETIR_INT", "Fatal", 0x6, 0x0)
    (old,) = nvlink5_readings(149, message, "570.1")
    (new,) = nvlink5_readings(149, message, "575.1")
    assert (old.unit, new.unit) == ("NETIR/NETIR_INT", None)


def test_several_set_bits_of_the_status_take_the_strongest_action() -> None:
    (reading,) = nvlink5_readings(145, line(145, "RLW_REMAP", "Fatal", 0x4, 0xAB), "575.1")
    assert {rule.error_status for rule in reading.rules} == {0x1, 0x2, 0x8, 0x20, 0x80}
    assert reading.severity == "critical"


def test_a_status_that_no_row_lists_leaves_the_rows_of_the_severity() -> None:
    message = line(149, "NETIR_MFDE_EVENT", "Fatal", 0x14, 0x99)
    (reading,) = nvlink5_readings(149, message, "575.1")
    assert reading.immediate_actions == ("RESET_GPU",)


def test_a_line_without_words_or_of_another_code_has_no_reading() -> None:
    assert nvlink5_readings(145, PREFIX + "145, RLW_REMAP Nonfatal") == ()
    assert nvlink5_readings(79, line(145, "RLW_REMAP", "Fatal", 0x4, 0x40)) == ()


def test_the_link_is_read_from_the_line() -> None:
    found = nvlink5_message(line(149, "NETIR_LINK_DOWN", "Fatal", 0x02500011, 0x0))
    assert found is not None
    assert (found.link, found.fatal) == (3, True)


def test_one_word_alone_is_enough_for_the_unit() -> None:
    message = PREFIX + "149, NETIR_LINK_DOWN Nonfatal XC1 i2 Link 17 (0x00000011)"
    (reading,) = nvlink5_readings(149, message, "575.1")
    assert reading.unit == "NETIR_LINK_EVT/NETIR_LINK_DOWN"


@pytest.mark.skipif(not RULES.exists(), reason="no ../shared/data/xid here")
def test_shipped_rules_are_the_public_ones() -> None:
    with RULES.open(newline="") as lines:
        public = list(csv.DictReader(lines))
    assert [
        (r.xid, r.unit, r.pattern_v1, r.pattern_v2, r.severity, r.origin, r.immediate_action, r.investigatory_action, r.further_action or "")
        for r in nvlink5_rules()
    ] == [
        (int(r["Xid"]), r["Unit"], r["IntrinfoPatternV1"], r["IntrinfoPatternV2"], r["Severity"].rstrip("*?"), r["HwSw"], r["Resolution"], r["Investigatory"], r["Action2"])
        for r in public
    ]  # fmt: skip


def test_rules_of_one_unit_and_pattern_differ_in_status_and_explain_their_actions() -> None:
    keys = [(r.xid, r.pattern_v2, r.error_status) for r in nvlink5_rules()]
    assert len(set(keys)) == len(keys)
    for rule in nvlink5_rules():
        assert {rule.immediate_action, rule.investigatory_action} <= set(action_meanings())
