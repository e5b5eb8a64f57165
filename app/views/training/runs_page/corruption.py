"""Which ranks of this run may compute wrongly, and what could not be seen?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answers.training import corruption
from app.ask.cached import ask
from app.show import page
from app.widgets import page_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.show.scope import Scope
    from app.views.training.runs_page.chosen import ChosenRun


def show(head: DeltaGenerator, run: ChosenRun, scope: Scope) -> None:
    """Draws the suspects of a run."""
    found = corruption.answer(ask, run.cluster, run.run_id)
    with head:
        page_head.of_one(found.sentence, run.says, scope, terms=found.terms)
    page.headlines(found.numbers, scope)
    page.notes(found.notes)
    page.blocks(found.blocks, scope)
