"""Which rank held the run up?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answers.training import hangs
from app.ask.cached import ask
from app.show import page
from app.widgets import page_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.show.scope import Scope
    from app.views.training.runs_page.chosen import ChosenRun


def show(head: DeltaGenerator, run: ChosenRun, scope: Scope) -> None:
    """Draws what the stored dumps of the run's last hung attempt show."""
    found = hangs.answer(ask(hangs.of_run, run.cluster, run.run_id))
    with head:
        page_head.of_one(found.sentence, run.says, scope, notes=found.notes, terms=found.terms)
    page.headlines(found.numbers, scope)
    page.blocks(found.blocks, scope)
