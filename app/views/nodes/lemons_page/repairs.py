"""Which repairs hold?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.nodes.repairs import HORIZON_DAYS
from app.answers.nodes import repairs
from app.ask.cached import ask
from app.show import page
from app.widgets import inputs, page_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.show.scope import Scope


def show(head: DeltaGenerator, scope: Scope) -> None:
    """Repairs by what was done; the sentence goes into the head of the page."""
    horizon = inputs.number(
        "A repair holds for (days)",
        inputs.Within(1.0, float(inputs.MOST_DAYS)),
        key="repair_days",
        value=HORIZON_DAYS,
        help="Days in which a repair is expected to hold.",
        width=200,
    )
    answer = repairs.answer(ask, scope.selection, horizon_days=horizon)
    with head:
        terms = [*(number.term for number in answer.numbers), *answer.terms]
        page_head.show(answer.sentence, scope, notes=answer.notes, terms=terms)
        page.headlines(answer.numbers, scope)
    page.blocks(answer.blocks, scope)
