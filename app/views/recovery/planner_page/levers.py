"""What changes if nodes are drained, jobs save and restart otherwise, and spares stand ready?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.answers.content import Missing
from app.answers.recovery import levers, sites
from app.ask.cached import ask
from app.show import page
from app.views.recovery.planner_page import asked_job
from app.widgets import notice, page_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from analytics.efficiency.expected_ettr import EttrSettings
    from app.answers.recovery.levers import Played
    from app.show.scope import Scope

PAGE = Path(__file__).with_name("levers.html")
STYLE = Path(__file__).with_name("levers.css")
SCRIPT = Path(__file__).with_name("levers.js")
HOURS = 24 * 28
_sliders = st.components.v2.component(
    "faultline_levers", html=PAGE.read_text(), css=STYLE.read_text(), js=SCRIPT.read_text()
)


def show(head: DeltaGenerator, scope: Scope) -> None:
    """Four sliders whose every place is in the browser, and what draining alone gives."""
    asked = asked_job.of_store(scope)
    known: Played | Missing | None = None
    with notice.explained():
        known = levers.played(ask, scope.selection, asked.settings, asked.rate)
    if known is None:
        with head:
            page_head.of_one("What would other levers change?", "Nothing is planned.", scope)
        return
    answer = levers.answer(known, asked.settings)
    with head:
        page_head.show(answer.sentence, scope, notes=answer.notes, terms=answer.terms)
    if not isinstance(known, Missing):
        _sliders(key="levers", data=_data(known, asked.settings, sites.price(ask, scope.selection)))
    page.blocks(answer.blocks, scope)


def _data(known: Played, asked: EttrSettings, price: tuple[float, str] | None) -> dict[str, Any]:
    """Every place of the levers, as the browser reads it."""
    found = known.found
    unit = "GPU-hours" if price is None else price[1] or "cost"
    return {
        "ettr": [
            [[[_known(cell) for cell in row] for row in rows] for rows in spares]
            for spares in found.ettr.round(4).tolist()
        ],
        "mttf": [[each.value, each.lower, each.upper] for each in found.mttf_hours],
        "intervals": found.intervals_min.tolist(),
        "restarts": found.restarts_min.tolist(),
        "spares": list(found.spares),
        "now": [len(found.intervals_min) // 2, len(found.restarts_min) // 2],
        "nodes": known.n_nodes,
        "gpuHours": asked.gpus * HOURS,
        "nodeHours": asked.gpus_per_node * HOURS,
        "price": None if price is None else price[0],
        "costTitle": f"Lost or kept out in 28 days ({unit})",
    }


def _known(bounds: list[float]) -> list[float | None]:
    """Value and bounds, of which some are not known."""
    return [None if math.isnan(each) else each for each in bounds]
