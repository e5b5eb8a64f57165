"""What a page shows: the selection, and how it is named in notes, downloads and times."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from analytics.frames import DEFINITION
from app.words import numbers
from app.words.cells import neutral_frame
from app.words.periods import Period, file_stem
from data.filters import Selection

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas as pd

    from app.figures.template import Mode


FILTERS = {
    "cluster": None,
    "period": "28d",
    "from": None,
    "to": None,
    "partition": None,
    "min_gpus": None,
    "account": None,
}
"""Names in the address, and what they are without it; a size of None is the page's own."""


@dataclass(frozen=True)
class Scope:
    """The filters of a page with what is needed to say them."""

    selection: Selection
    timezone: str
    """Zone in which times are shown."""
    synthetic: bool
    snapshot: int
    mode: Mode
    """Whether the reader's theme is light or dark."""
    empty: bool
    """The store holds no data yet."""
    uses: frozenset[str] = frozenset(FILTERS)
    """Filters that the page goes by; others are not named."""
    clusters: tuple[str, ...] = ()
    """All of the store."""
    narrow: bool = False
    """The screen is that of a phone."""
    of_overview: Selection = field(default_factory=Selection)
    """What Overview shows with the filters of now, of which a page may use fewer."""

    @property
    def filters(self) -> str:
        """Everything that was filtered by, in one line."""
        chosen = self.selection
        parts = [
            "cluster" in self.uses and (chosen.cluster or "all clusters"),
            "period" in self.uses and numbers.period(chosen.from_at, chosen.to_at, self.timezone),
            chosen.partition and f"partition {chosen.partition}",
            chosen.account and f"account {chosen.account}",
            chosen.definition != DEFINITION and f"failures by definition {chosen.definition}",
            chosen.min_gpus and f"rate counts jobs of {chosen.min_gpus:,} GPUs and more",
        ]
        return " · ".join(part for part in parts if part)

    @property
    def brief(self) -> str:
        """The same in a few words: days instead of times, and only what was chosen."""
        chosen = self.selection
        parts = [
            "cluster" in self.uses and chosen.cluster,
            "period" in self.uses and numbers.days(chosen.from_at, chosen.to_at, self.timezone),
            chosen.partition and f"partition {chosen.partition}",
            chosen.account and f"account {chosen.account}",
            chosen.definition != DEFINITION and f"failures by definition {chosen.definition}",
            chosen.min_gpus and f"jobs of {chosen.min_gpus:,}+ GPUs",
        ]
        return " · ".join(part for part in parts if part)

    def of_query(self, named: Collection[str]) -> Scope:
        """The same of a query that names these parameters: no other filter chooses its rows."""
        chosen = {name: getattr(self.selection, name) for name in named}
        uses = {"period" if name in ("from_at", "to_at") else name for name in named}
        return replace(self, selection=Selection(**chosen), uses=frozenset(uses))

    @property
    def note(self) -> str:
        """The filters, and that data are synthetic: stands in every figure and download."""
        return " · ".join(part for part in (self.filters, self.origin) if part)

    @property
    def origin(self) -> str:
        """That data are synthetic, where they are."""
        return "synthetic data" if self.synthetic else ""

    def file_stem(self, name: str) -> str:
        """Name of a download without its ending."""
        chosen = self.selection
        during = Period(chosen.from_at, chosen.to_at, self.timezone)
        clusters = (chosen.cluster,) if chosen.cluster else self.clusters
        return file_stem(name, during, clusters, synthetic=self.synthetic)

    def csv(self, frame: pd.DataFrame) -> str:
        """A frame as CSV; its last column says on every row what it was filtered by.

        A column, not lines above the header: spreadsheets and programs read it alike. Text that a
        spreadsheet would run as a formula has an apostrophe before it.
        """
        return neutral_frame(frame.assign(faultline_selection=self.note)).to_csv(index=False)
