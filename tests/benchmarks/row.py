"""Rows of the table: a figure, the floor beside it, and how far the two may lie apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Row:
    """What was measured, in processor seconds."""

    what: str
    seconds: Sequence[float]
    """At the smaller and at the larger size; one figure where size does not apply."""
    floor: str
    floor_seconds: float
    """At the larger size."""
    peak_gb: float | None = None
    most_ratio: float | None = None
    most_beyond: float | None = None
    """Processor seconds that it may take more than its floor."""
    most_gb: float | None = None

    @property
    def ratio(self) -> float:
        """How many times its floor it takes."""
        return self.seconds[-1] / self.floor_seconds

    @property
    def _judged(self) -> list[tuple[float, float, str, str]]:
        """What is measured for each bar, the bar, its unit and what it is in words."""
        judged = (
            (self.ratio, self.most_ratio, "", "times its floor"),
            (
                self.seconds[-1] - self.floor_seconds,
                self.most_beyond,
                " s",
                "s more than its floor",
            ),
            (self.peak_gb or 0.0, self.most_gb, " GB", "GB"),
        )
        return [(value, most, *words) for value, most, *words in judged if most is not None]

    @property
    def missed(self) -> list[str]:
        """Each bar that it misses, with what was measured."""
        return [
            f"{self.what}: {figure(value)} {words}, at most {most:g}"
            for value, most, _, words in self._judged
            if value > most
        ]

    @property
    def bars(self) -> str:
        """What it may take at most; bold where it takes more."""
        bars = ((f"{most:g}{unit}", value > most) for value, most, unit, _ in self._judged)
        return ", ".join(f"**{bar}: missed**" if missed else bar for bar, missed in bars)

    def cells(self, *, sizes: int) -> list[str]:
        """Its line of a table that has so many columns of seconds."""
        seconds = [figure(each) for each in self.seconds]
        if sizes > 1:
            first, last = self.seconds[0], self.seconds[-1]
            grown = [figure(last / first)] if len(self.seconds) > 1 else [""]
            seconds = [""] * (sizes - len(seconds)) + seconds + grown
        peak = "" if self.peak_gb is None else f"{self.peak_gb:.2f}"
        floor = [self.floor, figure(self.floor_seconds), figure(self.ratio)]
        return [self.what, *seconds, *floor, self.bars, peak]


@dataclass(frozen=True)
class Section:
    """Rows that belong together."""

    title: str
    rows: Sequence[Row]
    about: str = ""
    unmeasured: str = ""
    """What was not measured, and why."""

    def text(self, sizes: Sequence[int]) -> str:
        """The section in Markdown."""
        parts = [f"## {self.title}", self.about, self.unmeasured]
        if self.rows:
            of_size = max(len(row.seconds) for row in self.rows)
            parts.append(
                _table(_head(sizes[-of_size:]), [row.cells(sizes=of_size) for row in self.rows])
            )
        return "\n\n".join(part for part in parts if part)


def figure(value: float) -> str:
    """Three digits that count, and never an exponent.

    >>> [figure(each) for each in (0.04321, 2.6, 1234.5)]
    ['0.0432', '2.6', '1234']
    """
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def jobs(count: int) -> str:
    """A number of jobs in words.

    >>> jobs(400_000), jobs(4_000_000), jobs(4_000)
    ('0.4 million', '4 million', '4,000')
    """
    return f"{count / 1e6:g} million" if count >= 100_000 else f"{count:,}"


def _head(sizes: Sequence[int]) -> list[str]:
    seconds = ["processor s"]
    if len(sizes) > 1:
        seconds = [*(f"processor s, {jobs(size)} jobs" for size in sizes), "growth"]
    return ["what", *seconds, "floor", "floor's processor s", "ratio", "at most", "peak GB"]


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    written = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in written)
