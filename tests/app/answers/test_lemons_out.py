"""What is said of lemons that are out of service already."""

from __future__ import annotations

import pytest

from app.answers.nodes.lemons import _to_do


@pytest.mark.parametrize(
    ("lemons", "says"),
    [
        ([("a", False), ("b", False)], "Drain a, b"),
        ([("a", True)], "Keep a out of service"),
        ([("a", True), ("b", False)], "Keep a out, drain b"),
        ([("a", False), ("b", True)], "Drain a, keep b out"),
    ],
)
def test_a_lemon_that_is_out_is_kept_out(lemons: list[tuple[str, bool]], says: str) -> None:
    assert _to_do([{"node": node, "is_out": is_out} for node, is_out in lemons]) == says
