"""The delay matrix: a row for each sender, gaps where nothing was measured, blocks of a large one."""

from __future__ import annotations

import numpy as np

from analytics.nodes.links.samples import DelaySamples
from analytics.nodes.links.verdict import SlowLinks, slow_links
from app.figures.nodes import delay_matrix


def found(n: int) -> SlowLinks:
    source, destination = np.nonzero(~np.eye(n, dtype=bool))
    kept = (source != 1) | (destination != 2)
    source, destination = source[kept], destination[kept]
    delay = np.where(source == 3, 40.0, 20.0)
    return slow_links(DelaySamples(tuple(f"h{at}" for at in range(n)), source, destination, delay))


def test_senders_are_rows_and_what_was_not_measured_is_a_gap() -> None:
    shown = found(8)
    drawn = delay_matrix.figure(shown).to_dict()
    cells, bars = drawn["data"]
    assert len(bars["x"]) == 55
    assert (
        drawn["layout"]["xaxis"]["title"]["text"],
        drawn["layout"]["yaxis"]["title"]["text"],
    ) == ("Receiver", "Sender")
    assert cells["z"][3][:3] == [2.0, 2.0, 2.0]
    assert (cells["z"][1][2], cells["z"][5][5], cells["z"][0][1]) == (None, None, 1.0)
    assert cells["zmax"] == 2.0
    frame = delay_matrix.frame(shown)
    assert (len(frame), frame[frame["source"] == "h3"]["ratio"].tolist()) == (55, [2.0] * 7)


def test_of_a_large_matrix_each_block_shows_its_slowest_pair() -> None:
    (cells,) = delay_matrix.figure(found(300)).to_dict()["data"]
    assert (len(cells["z"]), len(cells["z"][0])) == (150, 150)
    assert (cells["z"][1][7], cells["z"][2][7]) == (2.0, 1.0)
