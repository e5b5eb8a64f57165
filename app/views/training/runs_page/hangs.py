"""Which rank held the run up?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from app.answers.training import hangs as answers
from app.ask.cached import ask
from app.show import page
from app.widgets import page_head

if TYPE_CHECKING:
    from app.show.scope import Scope


class Run(Protocol):
    """A run of the page."""

    @property
    def cluster(self) -> str:
        """Its cluster."""

    @property
    def run_id(self) -> str:
        """Its name in the cluster."""


def hangs(run: Run, scope: Scope) -> None:
    """Draws what the stored dumps of the run's last hung attempt show."""
    found = answers.answer(ask(answers.of_run, run.cluster, run.run_id))
    page_head.show(found.sentence, scope, notes=found.notes, terms=found.terms)
    page.headlines(found.numbers, scope)
    page.blocks(found.blocks, scope)
