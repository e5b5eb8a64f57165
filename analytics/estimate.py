"""An estimate: a value that never travels without its interval and its number of events."""

from __future__ import annotations

from dataclasses import dataclass, replace

CONF_LEVEL = 0.90
"""Level of intervals where none is asked for."""


@dataclass(frozen=True)
class Estimate:
    """A value with its confidence interval and the number of events it rests on.

    None means unknown: too few events for a value, or a bound that does not exist (the upper
    bound of a mean time to failure when nothing has failed). A `conf_level` of None says that the
    bounds hold a range that is assumed: nobody knows how often the truth lies in it.
    """

    value: float | None
    lower: float | None
    upper: float | None
    conf_level: float | None
    n: int

    @property
    def assumed(self) -> bool:
        """Whether the bounds hold an assumed range.

        Examples
        --------
        >>> Estimate(2.0, 1.0, 4.0, None, 7).assumed, Estimate(2.0, 1.0, 4.0, 0.9, 7).assumed
        (True, False)
        """
        return self.conf_level is None

    def above(self, other: Estimate) -> bool:
        """Whether all of its interval lies above that of another; a bound that is missing is open.

        Examples
        --------
        >>> at_least, known = Estimate(None, 9.0, None, 0.9, 0), Estimate(2.0, 1.0, 4.0, 0.9, 7)
        >>> at_least.above(known), known.above(at_least)
        (True, False)
        """
        return self.lower is not None and other.upper is not None and self.lower > other.upper

    def apart_from(self, other: Estimate) -> bool:
        """Whether the two intervals do not overlap; a bound that is missing is open."""
        return self.above(other) or other.above(self)

    @property
    def has_width(self) -> bool:
        """Whether both bounds are known and differ: what records fix has none.

        Examples
        --------
        >>> Estimate(2.0, 1.0, 4.0, 0.9, 7).has_width, Estimate(2.0, 2.0, 2.0, 0.9, 0).has_width
        (True, False)
        """
        return self.lower is not None and self.upper is not None and self.lower != self.upper

    def scaled(self, factor: float) -> Estimate:
        """The same estimate in another unit: value and bounds times `factor` > 0."""
        return replace(
            self,
            value=_times(self.value, factor),
            lower=_times(self.lower, factor),
            upper=_times(self.upper, factor),
        )

    def inverted(self, numerator: float) -> Estimate:
        """`numerator` divided by the quantity: bounds change places, division by 0 is unknown.

        Examples
        --------
        >>> Estimate(2.0, 1.0, 4.0, 0.9, 7).inverted(8.0)
        Estimate(value=4.0, lower=2.0, upper=8.0, conf_level=0.9, n=7)
        """
        return replace(
            self,
            value=_over(numerator, self.value),
            lower=_over(numerator, self.upper),
            upper=_over(numerator, self.lower),
        )

    def widened(self, lower: float | None, upper: float | None) -> Estimate:
        """The same value with, on each side, the wider of its own bound and the one given."""
        return replace(
            self,
            lower=min((b for b in (self.lower, lower) if b is not None), default=None),
            upper=max((b for b in (self.upper, upper) if b is not None), default=None),
        )


def unknown(conf_level: float, n: int) -> Estimate:
    """An estimate of which nothing but the number of events is known."""
    return Estimate(None, None, None, conf_level, n)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _over(numerator: float, value: float | None) -> float | None:
    return None if not value else numerator / value
