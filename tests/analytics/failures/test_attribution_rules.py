"""What the shipped rules read in the names of checks and in their messages."""

from __future__ import annotations

import pytest

from analytics.failures.precedence import weights


@pytest.mark.parametrize(
    ("check", "text", "cause"),
    [
        ("check-ib", "port 1 is down", "ib_link"),
        ("check_iblink", "polling", "ib_link"),
        ("ibstat", "state: Initializing", "ib_link"),
        ("InfiniBand health", "link flapped", "ib_link"),
        ("node_event", "check-ib: port 1 state DOWN", "ib_link"),
        ("check-library", "error: version mismatch", None),
        ("gpu-visibility", "state: not visible", None),
        ("fan calibration", "error", None),
        ("node_event", "CPU 3 internal fault", "cpu"),
        ("node_event", "cpu governor is not the default", None),
    ],
)
def test_a_name_within_another_word_names_no_cause(
    check: str, text: str, cause: str | None
) -> None:
    assert weights().cause_of(check, text) == cause
