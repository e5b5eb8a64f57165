"""The controls of a replay: play, a slider over its moments, and its phases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.answers.content import Chart
from app.answers.failures import replay
from app.figures.failures.replay import clock, first_moment, told
from app.show import page
from app.words import escaping

if TYPE_CHECKING:
    from analytics.failures.incidents.replay import Phase, Replay
    from app.answers.content import Missing
    from app.show.scope import Scope

HTML = """<div class="phases" role="group" aria-label="Phases"></div>
<div class="player">
<button type="button" class="play" aria-label="Play">Play</button>
<input type="range" min="0" step="1" list="phases" aria-label="Moment of the replay">
<datalist id="phases"></datalist>
<output></output>
</div>"""
STYLE = Path(__file__).with_name("replay.css")
SCRIPT = Path(__file__).with_name("replay.js")

_controls = st.components.v2.component(
    "faultline_replay", html=HTML, css=STYLE.read_text(), js=SCRIPT.read_text()
)


def show(chart: Chart | Missing, scope: Scope) -> None:
    """The grid with its controls above it; all moments are in the browser."""
    st.header("Replay", anchor=False)
    if not isinstance(chart, Chart):
        page.blocks([chart], scope)
        return
    found: Replay = chart.data[0]
    _controls(
        key=f"controls_{chart.key}",
        data={
            "figure": f"figure_{chart.key}",
            "moments": [told(moment, scope.timezone) for moment in found.moments],
            "first": first_moment(found),
            "phases": [_phase(found, phase, scope.timezone) for phase in found.phases],
        },
    )
    page.blocks([chart], scope)
    st.caption(escaping.escaped(chart.says))


def _phase(found: Replay, phase: Phase, timezone: str) -> dict[str, Any]:
    """What a phase is called, and the number of its first moment; None where it has none."""
    at = [moment.at for moment in found.moments]
    name = "Recovery begins" if phase.name == "recovery" else phase.name.capitalize()
    if phase.from_at in at:
        return {"says": f"{name} {clock(phase.from_at, timezone)}", "at": at.index(phase.from_at)}
    why = "later" if phase.from_at is not None else replay.follows(found, phase.name)
    return {"says": f"{name}: {why}", "at": None}
