"""How far a what-if can be trusted: the simulation's error, and steps left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.components import notice
from app.figures import numbers

if TYPE_CHECKING:
    from app.questions import StragglerTrace

MOST_NAMED = 3


def warn(found: StragglerTrace) -> None:
    """Says where the simulation is off, or steps are missing."""
    error = found.results["simulation_error_ratio"]
    if found.inaccurate:
        st.warning(
            f"The simulated step is {numbers.percent(error)} off the traced one: the paper leaves "
            "out traces above 5 %. Long waits for data or launches make it so.",
            icon=":material/warning:",
        )
    dropped = found.results["dropped_steps"]
    texts = [f"Step {each['step']} left out: {each['reason']}" for each in dropped[:MOST_NAMED]]
    if len(dropped) > MOST_NAMED:
        texts.append(f"{len(dropped) - MOST_NAMED:,} more steps left out.")
    notice.notes(texts)
