"""Which run is looked at?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.answers.training import runs
from app.ask.cached import ask
from app.widgets import picked
from data.filters import Selection

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ChosenRun:
    """A run of the store."""

    cluster: str
    run_id: str

    @property
    def says(self) -> str:
        """What it is, in a line."""
        return f"Run {self.run_id} of cluster {self.cluster}"


def chosen_run(found: pd.DataFrame) -> ChosenRun | None:
    """The run that the address names, else the one that logged last; None without any.

    One that the address names is shown whatever the period.
    """
    return picked.picked(
        _names(found),
        lambda: _names(ask(runs.listed, Selection())),
        key="run",
        instead="the one that logged last",
    )


def _names(found: pd.DataFrame) -> dict[str, ChosenRun]:
    """How a run is called -> the run; with its cluster where several have one of its name."""
    twice = found["run_id"].duplicated(keep=False)
    named = found["run_id"].where(~twice, found["run_id"] + " · " + found["cluster"])
    pairs = zip(named, found["cluster"], found["run_id"], strict=True)
    return {name: ChosenRun(cluster, run_id) for name, cluster, run_id in pairs}
