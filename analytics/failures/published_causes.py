"""Published tables of causes, as printed and recomputed from their counts."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from analytics.errors import AnalysisError


@dataclass(frozen=True, slots=True)
class PublishedCause:
    """A row of a published table."""

    label: str
    """As the scheme of `Taxonomy.cause_of` spells it."""
    component: str
    """llama3: ``GPU`` or ``other``; acme: ``infrastructure``, ``framework`` or ``script``."""
    count: int
    printed_ratio: float
    """Share as printed: of interruptions (llama3), of the GPU time of failures (acme)."""


@dataclass(frozen=True, slots=True)
class PublishedCauses:
    """A published table."""

    scheme: str
    rows: tuple[PublishedCause, ...]

    @property
    def total(self) -> int:
        """Sum of the counts."""
        return sum(row.count for row in self.rows)

    def count_ratio(self, *, label: str | None = None, component: str | None = None) -> float:
        """Share of the counts that a label or a component has, count / total, 0 to 1."""
        return sum(row.count for row in self._of(label, component)) / self.total

    def printed_ratio(self, *, label: str | None = None, component: str | None = None) -> float:
        """Sum of the printed shares of a label or a component, of all rows where none is named."""
        return sum(row.printed_ratio for row in self._of(label, component))

    def _of(self, label: str | None, component: str | None) -> list[PublishedCause]:
        """Rows of a label and a component, of all where None."""
        return [
            row
            for row in self.rows
            if label in (None, row.label) and component in (None, row.component)
        ]


@cache
def published_causes(scheme: str) -> PublishedCauses:
    """A published table of causes.

    Parameters
    ----------
    scheme : str
        ``llama3`` (419 unexpected interruptions of 54 days on 16,384 H100) or ``acme`` (2,575
        failures in six months on 4,704 A100).

    Returns
    -------
    PublishedCauses

    Raises
    ------
    AnalysisError
        Where there is no such table.

    Notes
    -----
    The printed shares of llama3 sum to 94.9 %: Faulty GPU is printed as 30.1 %, and its 148 of 419
    are 35.3 %. Both are kept; nothing is corrected.

    References
    ----------
    The Llama 3 Herd of Models, arXiv 2407.21783, Table 5; Hu et al., arXiv 2403.07648, Table 3.

    Examples
    --------
    >>> table = published_causes("llama3")
    >>> table.total, round(table.count_ratio(label="Faulty GPU"), 3)
    (419, 0.353)
    """
    table = resources.files("analytics.failures").joinpath("published_causes.csv")
    rows = tuple(
        PublishedCause(
            row["label"], row["component"], int(row["count"]), float(row["printed_percent"]) / 100
        )
        for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines())
        if row["scheme"] == scheme
    )
    if not rows:
        raise AnalysisError(f"scheme must be llama3 or acme, got {scheme!r}: name one of them")
    return PublishedCauses(scheme, rows)
