"""How right the verdicts are: found causes beside those known to be right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.failures.taxonomy import DOMAINS
from analytics.proportion import proportion

if TYPE_CHECKING:
    import pandas as pd

    from analytics.estimate import Estimate


@dataclass(frozen=True)
class CauseScore:
    """How well one cause is recognised."""

    cause: str
    domain: str
    n_actual: int
    """Attempts of which this is the right cause."""
    n_found: int
    """Attempts with this verdict."""
    n_right: int
    precision: Estimate
    """Share of the verdicts that are right."""
    recall: Estimate
    """Share of the right ones that were found."""


@dataclass(frozen=True)
class ConfusionMatrix:
    """Right causes (rows) beside the causes that the evidence names (columns)."""

    actual: tuple[str, ...]
    found: tuple[str, ...]
    """Both by domain, inside it the most frequent first."""
    counts: tuple[tuple[int, ...], ...]
    """One row a right cause: attempts by the cause that was found."""
    scores: tuple[CauseScore, ...]
    """One a cause that is right or was found somewhere, the most frequent first."""
    n_attempts: int
    right_ratio: Estimate
    """Of all attempts: one that is left unknown counts as wrong, unless that is right."""
    right_where_named_ratio: Estimate
    """Of the attempts whose verdict names a cause."""
    right_with_event_ratio: Estimate
    """Of the attempts whose cause a health event shows; unknown where nothing says which."""
    not_misled_ratio: Estimate
    """Of the attempts without such an event: right, or left unknown."""
    user_called_hardware_ratio: Estimate
    """Of the failures of user programs: verdict hardware."""

    @property
    def n_by_actual(self) -> tuple[int, ...]:
        """Attempts of each right cause."""
        return tuple(sum(row) for row in self.counts)

    @property
    def shares_of_actual(self) -> tuple[tuple[float, ...], ...]:
        """One row a right cause: share of its attempts by the cause that was found."""
        return tuple(
            tuple(n / max(of, 1) for n in row)
            for row, of in zip(self.counts, self.n_by_actual, strict=True)
        )


def confusion_matrix(rows: pd.DataFrame) -> ConfusionMatrix:
    """Counts of right against found causes, with precision, recall and shares.

    .. math:: precision = k_{cc} / \\sum_a k_{ac}, \\quad recall = k_{cc} / \\sum_f k_{cf}

    with k_{af} attempts whose right cause is a and whose verdict is f. Intervals are Clopper and
    Pearson's, 90 %.

    Parameters
    ----------
    rows : DataFrame
        Columns actual, actual_domain, found, found_domain, has_event (None where nothing says),
        n: attempts of each combination.

    Notes
    -----
    What people confirmed is no random sample: they look at what surprises them, so shares over
    confirmed causes say how the doubtful verdicts fare, not all of them.

    References
    ----------
    Clopper, C. and Pearson, E. S. (1934). Biometrika 26, 404-413.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"actual": ["pcie", "pcie"], "actual_domain": "hardware",
    ...     "found": ["pcie", "unknown"], "found_domain": ["hardware", "unknown"],
    ...     "has_event": [True, False], "n": [3, 1]})
    >>> matrix = confusion_matrix(rows)
    >>> matrix.actual, matrix.found, matrix.counts, matrix.right_ratio.value
    (('pcie',), ('pcie', 'unknown'), ((3, 1),), 0.75)
    """
    actual, found = _labels(rows, "actual"), _labels(rows, "found")
    counts = rows.groupby(["actual", "found"])["n"].sum()
    right = rows["actual"].eq(rows["found"])
    left_unknown = rows["found_domain"].eq("unknown")
    with_event = rows["has_event"].eq(True)
    without = rows["has_event"].eq(False)
    by_user = rows["actual_domain"].eq("user")

    def share(hits: pd.Series, of: pd.Series) -> Estimate:
        return proportion(int(rows["n"][hits & of].sum()), int(rows["n"][of].sum()))

    return ConfusionMatrix(
        actual=actual,
        found=found,
        counts=tuple(tuple(int(counts.get((a, f), 0)) for f in found) for a in actual),
        scores=_scores(rows),
        n_attempts=int(rows["n"].sum()),
        right_ratio=share(right, rows["n"].ge(0)),
        right_where_named_ratio=share(right, rows["found"].ne("unknown")),
        right_with_event_ratio=share(right, with_event),
        not_misled_ratio=share(right | left_unknown, without),
        user_called_hardware_ratio=share(rows["found_domain"].eq("hardware"), by_user),
    )


def _labels(rows: pd.DataFrame, column: str) -> tuple[str, ...]:
    """Causes by domain, hardware first and unknown last; inside it by their attempts."""
    order = {"hardware": 0, "system_software": 1, "user": 2}
    sums = rows.groupby([column, f"{column}_domain"])["n"].sum().reset_index()
    ranked = sorted(
        sums.itertuples(index=False), key=lambda r: (order.get(r[1], len(DOMAINS)), -r[2], r[0])
    )
    return tuple(dict.fromkeys(str(row[0]) for row in ranked))


def _scores(rows: pd.DataFrame) -> tuple[CauseScore, ...]:
    """Precision and recall of every cause."""
    named = dict(zip(rows["found"], rows["found_domain"], strict=True))
    domains = named | dict(zip(rows["actual"], rows["actual_domain"], strict=True))
    right_rows = rows[rows["actual"].eq(rows["found"])]
    counts = [
        part.groupby(column)["n"].sum()
        for part, column in ((rows, "actual"), (rows, "found"), (right_rows, "actual"))
    ]
    scores = []
    for cause, domain in domains.items():
        actual, found, right = (int(count.get(cause, 0)) for count in counts)
        precision, recall = (proportion(right, of) for of in (found, actual))
        scores.append(CauseScore(cause, domain, actual, found, right, precision, recall))
    return tuple(sorted(scores, key=lambda s: (-s.n_actual, -s.n_found, s.cause)))
