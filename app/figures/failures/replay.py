"""Which node of an incident was in which state, moment by moment?"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.failures.incidents.replay import TITLES, State
from app.figures import template
from app.figures.failures import domains
from app.words import moments, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go
    from numpy.typing import NDArray

    from analytics.failures.incidents.replay import Moment, Replay
    from app.figures.template import Mode

ACROSS = 24
"""Nodes in a row of the grid."""
LISTED = 8
"""Nodes up to which each has a row of its own, with its name and state."""
MOST_NODES = 480
"""Nodes drawn at most: those on which something of their own was recorded first."""
MOST_TOLD = 6
"""Changes of state that a mark tells."""
ROW_HEIGHT = 24
FRAME_HEIGHT = 96
SIZE = 11
SYMBOLS = {
    State.NOT_COLLECTED: 136,  # an open hash: hatched, as everything unknown
    State.IDLE: 101,  # an open square
    State.OTHER_JOB: 141,  # a dash: nothing of the incident
    State.AGAIN: 5,  # a triangle that points up
    State.HIT_JOB: 1,
    State.PREEMPTED: 2,  # a diamond, as consequences on the timeline
    State.FAILED: 4,  # a cross, as failed attempts on a node's page
    State.EVIDENCE: 0,  # a filled circle, as critical events on the timeline
    State.OUT: 1,
}
"""Plotly's numbers of the marks: no state is told by its colour alone."""
RING = 100
UNPICKED = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}
"""A click opens a node and dims no other."""
CHANGED = (0, 2, 3)
"""Traces that a frame changes: nodes, counts and the time."""


def colours(domain: str, mode: Mode) -> dict[State, str]:
    """Colour of each state, in the meaning that it has in every figure: runs are pale before they
    are hit, failed jobs have the colour of the incident's domain."""
    palette = template.PALETTES[mode]
    return {
        State.NOT_COLLECTED: palette.unknown,
        State.IDLE: palette.unknown,
        State.OTHER_JOB: palette.muted,
        State.AGAIN: palette.series,
        State.HIT_JOB: template.translucent(palette.series, 0.55),
        State.PREEMPTED: palette.muted,
        State.FAILED: domains.colour(domain, mode),
        State.EVIDENCE: palette.critical,
        State.OUT: palette.text,
    }


def figure(
    replay: Replay,
    cluster: str,
    domain: str,
    *,
    timezone: str,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """The nodes as a grid, with a frame for each moment.

    A frame changes only what changes: symbols, colours and texts. The figure shows the first
    event; `app.widgets.replay` plays it.
    """
    drawn = shown_nodes(replay)
    grid = _Grid(replay, drawn, timezone)
    chart = template.figure(
        title="Which node was in which state?",
        note=" · ".join(part for part in (grid.basis, note) if part),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * (grid.n_rows + grid.n_lines),
    )
    palette = template.PALETTES[mode]
    scale = {"line": {"width": 1.5, "color": palette.background}, **_scale(domain, mode)}
    names = [f"{cluster}/{replay.nodes[node]}" for node in drawn]
    story = template.hover([grid.story(node) for node in drawn], names)
    ring = [place for place, node in enumerate(drawn) if replay.nodes[node] in replay.first_nodes]
    around = {"symbol": RING, "size": SIZE + 8, "color": palette.text, "line": {"width": 2}}
    legend = {
        "symbol": [SYMBOLS[state] for state in grid.states],
        "color": [int(state) for state in grid.states],
    }
    nodes, counts, time = grid.moment(first_moment(replay))
    marks = nodes.pop("marker") | {"size": SIZE} | scale
    look: dict[str, Any] = {"textposition": "middle right", **UNPICKED}
    chart.add_scatter(x=grid.x, y=grid.y, marker=marks, mode=grid.mode, **nodes, **story, **look)
    look["hoverinfo"] = "skip"
    chart.add_scatter(x=grid.x[ring], y=grid.y[ring], mode="markers", marker=around, **look)
    chart.add_scatter(
        x=grid.legend_x,
        y=grid.legend_y,
        mode="markers+text",
        marker=legend | {"size": SIZE} | scale,
        **counts,
        **look,
    )
    chart.add_scatter(x=[-0.4], y=[-1.1], mode="text", **time, **look)
    chart.frames = [
        {"name": str(number), "data": list(grid.moment(number)), "traces": CHANGED}
        for number in range(len(replay.moments))
    ]
    hidden = {"visible": False, "fixedrange": True}
    chart.update_xaxes(range=[-0.5, ACROSS - 0.3], **hidden)
    chart.update_yaxes(range=[grid.n_rows + grid.n_lines + 0.3, -1.7], **hidden)
    chart.update_layout(dragmode=False)
    return chart


def first_moment(replay: Replay) -> int:
    """Number of the moment of the first event."""
    began = replay.phases[0].from_at
    return next(n for n, moment in enumerate(replay.moments) if moment.at == began)


def shown_nodes(replay: Replay) -> list[int]:
    """Places of the nodes that are drawn: of too many those hit hardest, in the order of all."""
    worst = np.max(replay.shown, axis=1, initial=0)
    first = np.array([name not in replay.first_nodes for name in replay.nodes])
    ranked = np.lexsort((np.arange(len(worst)), -worst, first))
    return sorted(ranked[:MOST_NODES].tolist())


def _scale(domain: str, mode: Mode) -> dict[str, Any]:
    """States as colours: each number has one."""
    of, n = colours(domain, mode), len(State)
    steps = [[end / n, of[state]] for state in State for end in (state, state + 1)]
    return {"cmin": -0.5, "cmax": n - 0.5, "colorscale": steps, "showscale": False}


class _Grid:
    """Where each node stands, and what each moment changes."""

    def __init__(self, replay: Replay, drawn: Sequence[int], timezone: str) -> None:
        self.replay, self.drawn, self.timezone = replay, drawn, timezone
        self.listed = len(drawn) <= LISTED  # names and states stand beside the marks
        self.mode = "markers+text" if self.listed else "markers"
        place = np.arange(len(drawn))
        across = 1 if self.listed else ACROSS
        self.x: NDArray[np.int64] = place % across
        self.y: NDArray[np.int64] = place // across
        self.n_rows = -(-len(drawn) // across)
        self.states = [State(state) for state in np.unique(replay.shown)[::-1].tolist()]
        number = np.arange(len(self.states))
        self.legend_x = number % 2 * (ACROSS // 2)
        self.legend_y = self.n_rows + 0.4 + number // 2
        self.n_lines = -(-len(self.states) // 2)

    @property
    def basis(self) -> str:
        """How many nodes are drawn, in which order."""
        n = len(self.replay.nodes)
        if len(self.drawn) < n:
            return f"{len(self.drawn):,} of {n:,} nodes, those hit hardest; counts are of all"
        return f"{numbers.counted(n, 'node')} by rack and name" if n > 1 else "1 node"

    def moment(self, number: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """What one moment shows: marks, counts, and the time."""
        moment = self.replay.moments[number]
        states = self.replay.shown[self.drawn, number].tolist()
        symbols = [SYMBOLS[State(state)] for state in states]
        nodes: dict[str, Any] = {"marker": {"symbol": symbols, "color": states}}
        if self.listed:
            names = [self.replay.nodes[node] for node in self.drawn]
            nodes["text"] = [
                f"\xa0{html.escape(name)}: {TITLES[State(state)]}"
                for name, state in zip(names, states, strict=True)
            ]
        counts = [f"\xa0{TITLES[state]}: {moment.counts.get(state, 0):,}" for state in self.states]
        return nodes, {"text": counts}, {"text": [f"<b>{told(moment, self.timezone)}</b>"]}

    def story(self, node: int) -> str:
        """The node, its rack, and its changes of state."""
        states, replay = self.replay.states, self.replay
        own = slice(*np.searchsorted(states.place, [node, node + 1]))
        rack = replay.racks[node]
        head = f"<b>{html.escape(replay.nodes[node])}</b>"
        lines = [f"{head}, rack {html.escape(rack)}" if rack else head]
        changes = [
            f"{clock(pd.Timestamp(at, unit='us', tz='UTC'), self.timezone)} {TITLES[State(state)]}"
            for at, state in zip(states.at[own].tolist(), states.state[own].tolist(), strict=True)
        ]
        more = len(changes) - MOST_TOLD
        lines += changes[:MOST_TOLD] + ([f"and {more:,} more changes"] if more > 0 else [])
        return "<br>".join(lines)


def told(moment: Moment, timezone: str) -> str:
    """A moment in words: when, and where in the incident."""
    return f"{clock(moment.at, timezone)} · {moment.phase}"


def clock(at: pd.Timestamp, timezone: str) -> str:
    """A time with its day, to the second."""
    return moments.second(at.tz_convert(timezone))
