"""The rack map shows every node once, those not judged apart."""

from __future__ import annotations

from app.figures.nodes import rack_map


def test_every_node_has_a_cell_and_what_is_not_judged_is_no_zero() -> None:
    cells = [
        (
            "c",
            f"n{at:03d}",
            f"r{at // 8}",
            "unknown" if at == 5 else "fine",
            None if at == 5 else 0.0,
        )
        for at in range(130)
    ]
    cells[9] = ("c", "n009", "r1", "lemon", 7.5)
    chart = rack_map.figure(cells)
    unjudged, judged = ([cell for row in part.z for cell in row] for part in chart.data[:2])
    assert [len([cell for cell in part if cell is not None]) for part in (unjudged, judged)] == [
        1,
        129,
    ]
    assert max(cell for cell in judged if cell is not None) == 7.5
    assert any(
        "n009, rack r1: lemon, score 7.5" in text for row in chart.data[1].text for text in row
    )
    assert [name for name, _ in chart.data[2].customdata][9] == "c/n009"  # what a click opens
    assert rack_map.figure([("c", "n1", None, "fine", 1.0)]).data[1].z[0][0] == 1.0
