"""What a job meets, and how many parts last a lead time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.reliability import forecast
from app.ask.cached import ask
from app.show import page
from app.widgets import inputs
from app.words import escaping
from data.errors import DataError

if TYPE_CHECKING:
    from app.answers.content import Answer
    from app.show.scope import Scope

MOST_DAYS = 3_660.0
"""Ten years: no job runs for longer."""
GPUS, DAYS = 1_024, 14.0
"""Of the job that is shown first."""


def of_job(scope: Scope) -> None:
    """The card of a job, with lines for its batch script."""
    columns = st.columns(4, vertical_alignment="bottom")
    gpus = inputs.number("GPUs", inputs.GPUS, key="gpus", value=GPUS, at=columns[0])
    days = inputs.number(
        "Days that it computes",
        inputs.Within(0.01, MOST_DAYS),
        key="days",
        value=DAYS,
        at=columns[1],
    )
    try:
        found = forecast.of_job(ask, scope.selection, gpus, days)
    except DataError as error:
        st.markdown(escaping.escaped(f"{str(error)[0].upper()}{str(error)[1:]}."))
        return
    _told(found, scope)
    if lines := found.record["batch_script"]:
        st.markdown("Lines for its batch script:")
        st.code("\n".join(lines), language=None, wrap_lines=True)


def parts(scope: Scope) -> None:
    """How many parts to keep."""
    lead = inputs.number(
        "Days from order to delivery",
        inputs.Within(1.0, MOST_DAYS),
        key="lead",
        value=forecast.LEAD_DAYS,
        at=st.columns(4)[0],
    )
    _told(forecast.shelf(ask, scope.selection, lead), scope)


def _told(found: Answer, scope: Scope) -> None:
    st.markdown(escaping.escaped(found.sentence))
    page.headlines(found.numbers, scope)
    page.blocks(found.blocks, scope)
    page.notes(found.notes)
