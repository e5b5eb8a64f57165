"""Stability of a run: what its logged series show, event by event, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from analytics.training.stability.baseline import FEWEST_ROWS, logarithm
from analytics.training.stability.excursions import excursions
from analytics.training.stability.published import JUMP_RATIO
from analytics.training.stability.shifts import paced, shifts
from analytics.training.stability.signs import (
    SETTLED_ROWS,
    collapses,
    diverged,
    not_finite,
    plateau,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from analytics.arrays import Ints
    from analytics.training.stability.course import Course, Logged
    from analytics.training.stability.excursions import Excursion
    from analytics.training.stability.shifts import Shift
    from analytics.training.stability.signs import Stretch

Kind: TypeAlias = Literal[
    "divergence", "nan", "spike", "loss_scale_collapse", "shift", "overflow", "plateau"
]
Ended: TypeAlias = Literal["recovered", "restart", "end of log"]
KINDS: Final[tuple[Kind, ...]] = (
    *("divergence", "nan", "spike", "loss_scale_collapse"),
    *("shift", "overflow", "plateau"),
)
"""The gravest first."""
TOLD: Final = frozenset(("divergence", "nan", "spike", "loss_scale_collapse"))
"""Kinds that a run may have to be set back for."""
LEVELS: Final = ("loss", "grad_norm")
"""Series in which spikes are looked for without being asked."""
DIVERGED_ROWS: Final = 100
"""An excursion that has lasted so long, and goes on where the log ends, is a divergence."""
EPISODE_STEPS: Final = 32
"""Rows between which events of several series are one episode."""
REWIND_STEPS: Final = 100
SKIP_STEPS: Final = (200, 500)
"""PaLM went back about 100 steps before a spike and skipped 200 to 500 batches."""
PACE: Final = "pace"
"""Series made of the times of rows, where no step time is logged."""


@dataclass(frozen=True)
class Event:
    """Something that a series shows."""

    kind: Kind
    series: str
    start_step: int
    peak_step: int
    end_step: int | None
    """The first step logged after it; None where it goes on to the end of the log or a restart."""
    last_step: int
    """The last step logged during it: it ended in (last_step, end_step]."""
    ended: Ended
    n_rows: int
    level: float
    """Expected at its start; before a shift."""
    peak: float
    """Value of the peak; of a shift the median of its rows."""
    z: float
    """Of the peak, in scales of the noise before; NaN where the kind has none."""
    start_at: float
    """Seconds since 1970; NaN where the log states no time."""
    end_at: float
    absent_steps: tuple[tuple[int, int], ...] = ()
    """Steps (first, last) between its start and its end that are not logged."""
    context: tuple[str, ...] = ()
    """What else the log says of the same rows."""
    segment: int = 0
    """The place of the segment between restarts, in which it ends."""

    @property
    def ratio(self) -> float:
        """Peak over level; NaN where the level is not positive."""
        return self.peak / self.level if self.level > 0 else float("nan")

    @property
    def is_jump(self) -> bool:
        """Whether the value came to five times its level."""
        return self.ratio >= JUMP_RATIO


@dataclass(frozen=True)
class Episode:
    """Events of several series that lie together, and what to do about them."""

    kind: Kind
    """The gravest."""
    start_step: int
    end_step: int | None
    last_step: int
    ended: Ended
    start_at: float
    end_at: float
    events: tuple[Event, ...]
    lost_steps: int | None
    """Steps done again after the restart that ended it; None where none did."""
    rewind_step: int | None
    """Where to go back to; None where nothing has to be done."""
    is_saved: bool
    """Whether the log says that a checkpoint of that step was saved."""
    skip_steps: tuple[int, int] | None
    """First and last step whose data to skip."""


@dataclass(frozen=True)
class Judged:
    """A series that was looked at."""

    series: str
    n_rows: int
    n_judged: int
    """Rows with enough rows before them; NaN and infinities are told whatever is before."""
    is_constant: bool
    every: int
    """Steps from a row to the next, as a rule."""
    is_sorted: bool
    """Whether rows came mixed, so that restarts cannot be seen."""


@dataclass(frozen=True)
class Stability:
    """What the log of a run shows of its stability."""

    episodes: tuple[Episode, ...]
    """By start."""
    notes: tuple[Event, ...]
    """Shifts, overflows, plateau: nothing that a run is set back for."""
    series: tuple[Judged, ...]
    restarts: tuple[tuple[int, int], ...]
    """Last step before each restart, and first step after it."""
    absent_steps: tuple[tuple[int, int], ...]
    n_loads: int
    """Checkpoints that were loaded, as the log tells."""
    n_contradicting: int
    """Rows of the longest series that repeat a step with another value: several writers."""
    first_step: int | None
    last_step: int | None
    not_logged: tuple[str, ...]
    """Of loss, grad_norm, step_time_s and loss_scale."""

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, by step."""
        told = [event for episode in self.episodes for event in episode.events]
        return tuple(sorted([*told, *self.notes], key=lambda event: event.start_step))

    @property
    def n_judged(self) -> int:
        """Rows of loss or gradient norm that were judged, of that with more."""
        return max((each.n_judged for each in self.seen), default=0)

    @property
    def seen(self) -> tuple[Judged, ...]:
        """Loss and gradient norm, as far as they could show something."""
        return tuple(
            each
            for each in self.series
            if each.series in LEVELS and each.n_judged and not each.is_constant
        )

    @property
    def repeated_steps(self) -> int:
        """Steps done again after restarts."""
        return sum(max(last - first + 1, 0) for last, first in self.restarts)


WANTED: Final = ("loss", "grad_norm", "step_time_s", "loss_scale")


def stability(logged: Logged, further: Sequence[str] = ()) -> Stability:
    """Spikes, divergence, NaN, loss-scale collapse, shifts and plateau of a run.

    Parameters
    ----------
    logged : Logged
        The rows of one run.
    further : sequence of str
        Series beside loss and gradient norm in which spikes are looked for.

    Returns
    -------
    Stability
        Events by series; those that lie within 32 rows of each other as episodes, with the rewind
        that is advised: the last checkpoint saved at least 100 steps before the start, else that
        step itself, and data of 200 to 500 steps to skip from there. Nothing is advised for an
        episode that recovered by itself.

    Notes
    -----
    A loss spike proves that the loss rose, not why. Silent corruption may show in none of these
    series.

    Examples
    --------
    >>> from analytics.training.stability.course import Logged
    >>> rng = np.random.default_rng(0)
    >>> loss = 2 + 0.01 * rng.normal(size=500)
    >>> loss[300:304] = [3.0, 2.8, 2.5, 2.2]
    >>> step = np.arange(500)
    >>> found = stability(Logged(step, np.full(500, np.nan), {"loss": loss}))
    >>> [(e.kind, e.start_step, e.peak_step, e.end_step) for e in found.events]
    [('spike', 300, 300, 304)]
    """
    courses = {
        name: logged.course(name)
        for name in (*WANTED, "throughput", "learning_rate", *further)
        if name in logged.values
    }
    courses = {name: course for name, course in courses.items() if course.n_rows}
    longest = max(courses.values(), key=lambda each: each.n_rows, default=None)
    events: list[Event] = []
    judged: list[Judged] = []
    for found, series in _looked_at(courses, longest, further):
        events += [_in_context(event, courses) for event in found]
        judged.append(series)
    told = sorted((e for e in events if e.kind in TOLD), key=lambda e: (e.segment, e.start_step))
    return Stability(
        episodes=tuple(_episodes(told, logged, longest)),
        notes=tuple(event for event in events if event.kind not in TOLD),
        series=tuple(judged),
        restarts=tuple(longest.repeated_steps()) if longest else (),
        absent_steps=tuple(longest.absent_steps()) if longest else (),
        n_loads=logged.n_loads,
        n_contradicting=longest.n_contradicting if longest else 0,
        first_step=int(longest.step.min()) if longest else None,
        last_step=int(longest.step.max()) if longest else None,
        not_logged=tuple(name for name in WANTED if name not in courses),
    )


def _looked_at(
    courses: dict[str, Course], longest: Course | None, further: Sequence[str]
) -> Iterator[tuple[list[Event], Judged]]:
    """What each series shows, and how much of it could be judged."""
    for name in (*LEVELS, *further):
        if name in courses:
            found, n_judged = _levels(name, courses[name])
            yield found, _judged(name, courses[name], n_judged)
    if "loss_scale" in courses:
        name, course = "loss_scale", courses["loss_scale"]
        found = [_of_stretch("loss_scale_collapse", name, course, e) for e in collapses(course)]
        yield found, _judged(name, course, max(course.n_rows - SETTLED_ROWS, 0))
    name, times = "step_time_s", courses.get("step_time_s")
    if times is None and longest is not None and np.isfinite(longest.at).any():
        name, times = PACE, None if longest.is_sorted else paced(longest)
    if times is not None:
        throughput = courses.get("throughput")
        found = [_of_shift(name, times, each, throughput) for each in shifts(times)]
        n_rows = int(np.isfinite(times.value).sum())
        yield found, _judged(name, times, max(n_rows - FEWEST_ROWS, 0))


def _judged(name: str, course: Course, n_judged: int) -> Judged:
    finite = course.value[np.isfinite(course.value)]
    is_constant = len(finite) > 1 and bool((finite == finite[0]).all())
    return Judged(name, course.n_rows, n_judged, is_constant, course.every, course.is_sorted)


def _levels(name: str, course: Course) -> tuple[list[Event], int]:
    """Spikes, divergence, NaN and plateau of a series, and how many rows could be judged."""
    value = logarithm(course.value) if name.endswith("norm") else course.value
    found, base = excursions(course, value)
    events = [_of_excursion(name, course, each) for each in found]
    events += [_of_stretch("nan", name, course, each) for each in not_finite(course)]
    if name == "loss":
        slow = [_of_stretch("divergence", name, course, each) for each in diverged(course)]
        open_ = [event for event in events if event.end_step is None]
        events += [each for each in slow if not _known_already(each, open_)]
        flat = plateau(course)
        if flat is not None:
            last = course.n_rows - 1
            event = _event("plateau", name, course, (flat.first, last, None, flat.first))
            fell = f"fell {flat.fell_ratio:.2%} ({flat.lower:.2%} to {flat.upper:.2%})"
            events.append(replace(event, context=(f"{fell} over its rows",)))
    return events, int(np.isfinite(base.z).sum())


def _known_already(slow: Event, open_: Sequence[Event]) -> bool:
    """Whether a slow divergence is a rise that was seen when it began."""
    return any(each.last_step >= slow.start_step for each in open_)


def _event(kind: Kind, name: str, course: Course, rows: tuple[int, int, int | None, int]) -> Event:
    """Of the rows: the first, the last, the first after it, the peak."""
    first, last, calm, peak = rows
    step, at = course.step, course.at
    end = int(step[calm]) if calm is not None else None
    segment = course.segment_of(last)
    is_last = segment + 1 >= len(course.starts)
    inside = slice(first, (calm if calm is not None else last) + 1)
    before = course.value[max(first - 128, 0) : first]
    before = before[np.isfinite(before)]
    return Event(
        kind=kind,
        series=name,
        start_step=int(step[first]),
        peak_step=int(step[peak]),
        end_step=end,
        last_step=int(step[last]),
        ended="recovered" if calm is not None else ("end of log" if is_last else "restart"),
        n_rows=last - first + 1,
        level=float(np.median(before)) if len(before) else float("nan"),
        peak=float(course.value[peak]),
        z=float("nan"),
        start_at=float(at[first]),
        end_at=float(at[calm if calm is not None else last]),
        absent_steps=tuple(_absent(step[inside], course.every)),
        segment=segment,
    )


def _absent(step: Ints, every: int) -> Iterable[tuple[int, int]]:
    """Steps that are not logged between rows further apart than rows are as a rule."""
    for row in np.flatnonzero(np.diff(step) > max(3 * every, every + 1)).tolist():
        yield int(step[row]) + 1, int(step[row + 1]) - 1


def _of_excursion(name: str, course: Course, found: Excursion) -> Event:
    n_rows = found.last_high - found.first + 1
    is_open = found.calm is None and n_rows >= DIVERGED_ROWS
    rows = (found.first, found.last_high, found.calm, found.peak)
    event = _event("divergence" if is_open else "spike", name, course, rows)
    level = float(np.exp(found.level)) if name.endswith("norm") else found.level
    return replace(event, level=level, z=found.z)


def _of_stretch(kind: Kind, name: str, course: Course, found: Stretch) -> Event:
    calm = None if found.is_open else found.end
    return _event(kind, name, course, (found.first, found.end - 1, calm, found.peak))


def _of_shift(name: str, course: Course, found: Shift, throughput: Course | None) -> Event:
    last = found.back - 1 if found.back is not None else course.n_rows - 1
    event = _event("shift", name, course, (found.first, last, found.back, found.first))
    context: tuple[str, ...] = ()
    if throughput is not None:
        did, was = _around(throughput, event)
        if was > 0 and did / was > 1 - 0.5 * abs(1 - 1 / found.ratio) and found.ratio > 1:
            context = (f"throughput {did / was - 1:+.1%}: steps hold more work, not a slow part",)
    return replace(event, level=found.before, peak=found.after, context=context)


def _around(course: Course, event: Event) -> tuple[float, float]:
    """Medians of the 64 rows from the start of an event on, and of the 64 before it."""
    row = course.row_of(event.segment, event.start_step)
    return (
        float(np.nanmedian(course.value[row : row + 64])) if row < course.n_rows else float("nan"),
        float(np.nanmedian(course.value[max(row - 64, 0) : row])) if row else float("nan"),
    )


def _in_context(event: Event, courses: dict[str, Course]) -> Event:
    """An event with what the learning rate did before it; an overflow where NaN is ordinary."""
    context = list(event.context)
    rate, scale = courses.get("learning_rate"), courses.get("loss_scale")
    if rate is not None and event.kind in ("spike", "divergence"):
        did, was = _around(rate, event)
        if was > 0 and did / was > 1.1:
            context.append(f"learning rate {did / was - 1:+.0%}")
    if event.kind == "nan" and event.series == "grad_norm" and scale is not None:
        row = scale.row_of(event.segment, event.last_step)
        around = scale.value[max(row - event.n_rows, 0) : row + 2]
        if len(around) > 1 and around[-1] < around[0] and event.end_step is not None:
            return replace(event, kind="overflow", context=("the loss scale was halved for it",))
    return replace(event, context=tuple(context))


def _episodes(events: Sequence[Event], logged: Logged, longest: Course | None) -> Iterable[Episode]:
    """Events that lie within some rows of each other, together."""
    groups: list[list[Event]] = []
    near = EPISODE_STEPS * (longest.every if longest else 1)
    for event in events:
        until = max((each.last_step for each in groups[-1]), default=0) if groups else 0
        is_same = bool(groups) and groups[-1][-1].segment == event.segment
        if is_same and event.start_step <= until + near:
            groups[-1].append(event)
        else:
            groups.append([event])
    restarts = longest.repeated_steps() if longest else []
    for group in groups:
        yield _episode(group, logged, restarts)


def _episode(group: list[Event], logged: Logged, restarts: Sequence[tuple[int, int]]) -> Episode:
    kind = min((event.kind for event in group), key=KINDS.index)
    last = max(group, key=lambda event: event.last_step)
    is_over = all(event.end_step is not None for event in group)
    start = min(event.start_step for event in group)
    ended: Ended = "recovered" if is_over else last.ended
    if not is_over and ended == "recovered":
        ended = next(event.ended for event in group if event.end_step is None)
    lost = None
    if ended == "restart":
        step, first = restarts[last.segment] if last.segment < len(restarts) else (0, 0)
        lost = max(step - first + 1, 0) if step else None
    rewind, is_saved, skip = (None, False, None) if is_over else _advice(start, last, logged)
    ends = [event.end_step for event in group if event.end_step is not None]
    return Episode(
        kind=kind,
        start_step=start,
        end_step=max(ends) if is_over else None,
        last_step=last.last_step,
        ended=ended,
        start_at=min(event.start_at for event in group),
        end_at=max(event.end_at for event in group),
        events=tuple(group),
        lost_steps=lost,
        rewind_step=rewind,
        is_saved=is_saved,
        skip_steps=skip,
    )


def _advice(start: int, last: Event, logged: Logged) -> tuple[int, bool, tuple[int, int]]:
    """The step to go back to, whether a save of it is logged, and the steps whose data to skip."""
    wanted = max(start - REWIND_STEPS, 0)
    saved = logged.saved[logged.saved <= wanted]
    rewind = int(saved[-1]) if len(saved) else wanted
    least, most = SKIP_STEPS
    until = min(max(last.peak_step, start + least - REWIND_STEPS), start - REWIND_STEPS + most)
    return rewind, bool(len(saved)), (max(start - REWIND_STEPS + 1, 0), max(until, 0))
