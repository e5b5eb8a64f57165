"""The figure of a replay: its frames, its bound, and that no state is told by colour alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from analytics.failures.incidents.recovery import Recovery
from analytics.failures.incidents.replay import (
    MOST_MOMENTS,
    PHASES,
    Moment,
    NodeSpans,
    Phase,
    Replay,
    State,
    node_states,
)
from app.answers.failures.replay import changes
from app.figures.failures import replay
from app.figures.template import PALETTES, Mode

AT = pd.Timestamp("2026-01-05T12:00Z")
BEGIN = AT.value // 1000
MOST_BYTES = 400_000
"""Of the largest figure, uncompressed: that of thousands of nodes and of every moment."""


def _replay(n_nodes: int, n_moments: int) -> Replay:
    """Nodes that all change their state at every moment, each beginning elsewhere."""
    place, step = (each.ravel() for each in np.indices((n_nodes, n_moments)))
    minute = 60_000_000
    begin = BEGIN + step * minute
    spans = NodeSpans(place, begin, begin + minute, (place + step) % len(State))
    times = BEGIN + np.arange(n_moments) * minute
    found = node_states([spans], n_places=n_nodes, begin=BEGIN, until=int(times[-1]))
    shown = found.at_moments(times)
    moments = [
        Moment(AT + pd.Timedelta(minutes=n), "spread",
               {State(one): int((column == one).sum()) for one in np.unique(column)})
        for n, column in enumerate(shown.T)
    ]  # fmt: skip
    names = tuple(f"gpu-compute-{n:05d}" for n in range(n_nodes))
    return Replay(
        nodes=names, racks=("r<1>",) * n_nodes, first_nodes=names[-1:], states=found,
        moments=tuple(moments), shown=shown, n_changes=n_moments,
        phases=tuple(Phase(name, AT, AT) for name in PHASES), n_first=1, n_hit=n_nodes,
        n_preempted=0, preemptors_known=True, recovery=Recovery(AT, 0, 0, 0, 0, True, ()),
        followed_to=AT,
    )  # fmt: skip


def _drawn(n_nodes: int, n_moments: int, **options: Any) -> Any:
    return replay.figure(_replay(n_nodes, n_moments), "c", "hardware", timezone="UTC", **options)


def test_a_frame_a_moment_changes_marks_counts_and_time() -> None:
    drawn = _drawn(30, 4)
    assert [frame.name for frame in drawn.frames] == ["0", "1", "2", "3"]
    marks, counts, time = drawn.frames[2].data
    assert marks.marker.color[:2] == (2, 3)
    assert marks.marker.symbol[0] == replay.SYMBOLS[State.OTHER_JOB]
    assert sum(int(text.rpartition(":")[2]) for text in counts.text) == 30
    assert time.text == ("<b>5 Jan 2026 12:02:00 · spread</b>",)
    assert [list(drawn.data[place].text) for place in (2, 3)] == [
        list(each.text) for each in drawn.frames[0].data[1:]
    ]


def test_the_first_node_is_ringed_and_a_click_names_its_node() -> None:
    drawn = _drawn(30, 2)
    assert (drawn.data[1].x.tolist(), drawn.data[1].y.tolist()) == ([29 - 24], [1])
    name, says = drawn.data[0].customdata[29]
    assert name == "c/gpu-compute-00029"
    assert "rack r&lt;1&gt;" in says


def test_few_nodes_stand_with_their_names_and_states() -> None:
    drawn = _drawn(3, 2)
    assert drawn.data[0].mode == "markers+text"
    assert drawn.frames[1].data[0].text[0].endswith("gpu-compute-00000: in service, no job seen")


@pytest.mark.slow
def test_thousands_of_nodes_stay_within_the_bound_and_those_left_out_are_told() -> None:
    drawn = _drawn(5_000, MOST_MOMENTS)
    assert len(drawn.to_json()) < MOST_BYTES
    assert len(drawn.data[0].x) == replay.MOST_NODES
    assert "480 of 5,000 nodes" in drawn.layout.title.subtitle.text
    assert drawn.data[1].x.size == 1  # where it began is among those drawn
    counts = drawn.frames[0].data[1].text
    assert sum(int(text.rpartition(":")[2].replace(",", "")) for text in counts) == 5_000


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_states_alike_in_shape_differ_in_colour_and_the_other_way_round(mode: Mode) -> None:
    looks = {(replay.SYMBOLS[one], replay.colours("hardware", mode)[one]) for one in State}
    assert len(looks) == len(State)
    shapes = [replay.SYMBOLS[one] for one in State]
    twins = [one for one in State if shapes.count(replay.SYMBOLS[one]) > 1]
    assert twins == [State.HIT_JOB, State.OUT]  # pale and as dark as text: told without hue
    assert replay.colours("user", mode)[State.FAILED] == PALETTES[mode].user


def test_the_download_has_every_change_of_every_node() -> None:
    rows = changes(_replay(30, 4), "c", "hardware").frame()
    assert len(rows) == 120
    assert rows["state"].iloc[:4].tolist() == [
        "not collected", "in service, no job seen", "another job", "job running again",
    ]  # fmt: skip
