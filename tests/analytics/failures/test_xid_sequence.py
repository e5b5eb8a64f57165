"""Bursts of XIDs of one GPU: which code leads, which follow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import AnalysisError, ShapeError
from analytics.failures.xid_sequence import recovery_action, resolve_sequence

CHANGED = "NVRM: Xid (PCI:0000:05:00): 154, GPU recovery action changed from {} to {}"


@pytest.mark.parametrize(
    ("codes", "leading", "severity", "action", "following"),
    [
        ([79], 79, "fatal", "RESTART_BM", ()),
        ([79, 119, 45, 62], 79, "fatal", "RESTART_BM", (119, 45, 62)),
        ([45], 45, "warning", "RESTART_FM", ()),
        ([45, 45, 45], 45, "warning", "RESTART_FM", ()),
        ([13, 45], 13, "warning", "RESTART_APP", (45,)),
        ([45, 48, 63], 48, "critical", "RESET_GPU", (45, 63)),
        ([48, 64], 48, "critical", "RESET_GPU", (64,)),
        ([48], 48, "critical", "WORKFLOW_XID_48", ()),
        ([63, 48, 94, 45], 48, "critical", "RESET_GPU", (63, 94, 45)),
        ([94, 63], 94, "warning", "RESTART_APP", (63,)),
        ([95, 63], 95, "critical", "RESET_GPU", (63,)),
        ([94, 64], 94, "critical", "RESET_GPU", (64,)),
        ([63], 63, "info", "IGNORE", ()),
        ([48, 171], 48, "critical", "WORKFLOW_XID_48", (171,)),
        ([31, 43], 31, "warning", "RESTART_APP", (43,)),
        ([43, 13, 45], 13, "warning", "RESTART_APP", (43, 45)),
        ([43], 43, "info", "IGNORE", ()),
        ([45, 43], 43, "info", "IGNORE", (45,)),
        ([31, 119], 119, "critical", "RESET_GPU", ()),
        ([154], 154, None, "XID_154", ()),
        ([9999], 9999, None, None, ()),
    ],
)
def test_a_burst_is_one_finding(
    codes: list[int],
    leading: int,
    severity: str | None,
    action: str | None,
    following: tuple[int, ...],
) -> None:
    found = resolve_sequence(codes)
    assert (found.leading, found.severity, found.action) == (leading, severity, action)
    parts = [note.code for note in found.notes if note.role in ("follows", "same incident")]
    assert tuple(parts) == following


def test_codes_before_a_gpu_left_the_bus_do_not_follow_from_it() -> None:
    found = resolve_sequence([74, 79, 119])
    assert [(note.code, note.role) for note in found.notes] == [
        (74, "beside"),
        (79, "leading"),
        (119, "follows"),
    ]


@pytest.mark.parametrize(
    ("after", "code", "action", "severity"),
    [
        ("0x0 (None)", 0, "IGNORE", "info"),
        ("0x1 (GPU Reset Required)", 1, "RESET_GPU", "critical"),
        ("0x1 (PF FLR)", 1, "RESET_GPU", "critical"),
        ("0x2 (Node Reboot Required)", 2, "RESTART_BM", "fatal"),
        ("0x2 (OS Reboot)", 2, "RESTART_BM", "fatal"),
        ("0x3 (Drain P2P)", 3, "RESTART_APP", "warning"),
        ("0x4 (Drain and Reset)", 4, "RESET_GPU", "critical"),
        ("0x9 (Something new)", 9, None, None),
    ],
)
def test_what_the_driver_asks_for_is_read_from_154(
    after: str, code: int, action: str | None, severity: str | None
) -> None:
    asked = recovery_action(CHANGED.format("0x0 (None)", after))
    assert asked is not None
    assert (asked.code, asked.action, asked.severity) == (code, action, severity)


def test_another_message_asks_for_nothing() -> None:
    assert recovery_action("GPU has fallen off the bus.") is None


def test_the_last_request_of_154_decides_and_none_does_not() -> None:
    reset = CHANGED.format("0x0 (None)", "0x1 (GPU Reset Required)")
    reboot = CHANGED.format("0x1 (GPU Reset Required)", "0x2 (Node Reboot Required)")
    nothing = CHANGED.format("0x2 (Node Reboot Required)", "0x0 (None)")
    found = resolve_sequence([119, 154, 154, 154], [None, reset, reboot, nothing])
    assert (found.leading, found.severity, found.action) == (119, "fatal", "RESTART_BM")


def test_a_leading_nvlink_error_takes_action_and_severity_from_its_words() -> None:
    words = "145, RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040 0x00000000 0x00000000)"
    found = resolve_sequence([145, 45], [words, None], driver="575.51.03")
    assert (found.severity, found.action) == ("critical", "RESET_GPU")
    words = words.replace("0x00000040", "0x00000100").replace("Fatal", "Nonfatal")
    assert resolve_sequence([145], [words]).severity == "info"


def test_no_codes_and_messages_of_another_length_are_refused() -> None:
    with pytest.raises(AnalysisError, match="at least one XID, got none"):
        resolve_sequence([])
    with pytest.raises(ShapeError, match=r"as long as codes \(2\), got 1"):
        resolve_sequence([13, 45], ["x"])


@given(st.lists(st.integers(1, 175), min_size=1, max_size=12))
def test_every_code_has_one_part_and_one_leads(codes: list[int]) -> None:
    found = resolve_sequence(codes)
    assert [note.code for note in found.notes] == list(dict.fromkeys(codes))
    assert [note.code for note in found.notes if note.role == "leading"] == [found.leading]
    if set(codes) != {45}:
        assert found.leading != 45 or set(codes) == {45, 154}
