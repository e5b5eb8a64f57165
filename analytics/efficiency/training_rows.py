"""The rows of a training log, attempt by attempt: steps of one rank, saves, loads, their pace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from analytics.failures.columns import NEVER, SECOND, microseconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_STEP, _SAVED, _LOADED = 0, 1, 2
_KINDS: Final = {"saved": _SAVED, "loaded": _LOADED}


@dataclass(frozen=True)
class AttemptRows:
    """The rows of one attempt in order of time; times in seconds from `origin`."""

    origin: int
    """Microseconds since 1970."""
    n_rows: int
    step_at: Floats
    """Plain steps."""
    step: Floats
    step_time: Floats
    """Seconds; NaN where the source states none."""
    saved_at: Floats
    """Saves done; rows of one step behind each other are one save."""
    saved_step: Floats
    write: Floats
    """How long each save stopped the run; NaN where the source states none."""
    loaded_at: Floats
    loaded_step: Floats

    def since(self, origin: int) -> AttemptRows:
        """The same with times from another origin."""
        shift = (self.origin - origin) / SECOND
        return replace(
            self,
            origin=origin,
            step_at=self.step_at + shift,
            saved_at=self.saved_at + shift,
            loaded_at=self.loaded_at + shift,
        )

    @property
    def last_at(self) -> float:
        """Time of the last row."""
        return float(max(at[-1] for at in (self.step_at, self.saved_at, self.loaded_at) if len(at)))

    @property
    def pace(self) -> float:
        """Seconds of a step, from rows that follow each other without a save or load between.

        The median; where no two rows do, that of the step times stated, else NaN.
        """
        gap, steps = np.diff(self.step_at), np.diff(self.step)
        events = np.concatenate([self.saved_at, self.loaded_at])
        events.sort()
        plain = np.diff(np.searchsorted(events, self.step_at, "right")) == 0
        usable = plain & (steps > 0) & (gap > 0)
        if usable.any():
            return float(np.median(gap[usable] / steps[usable]))
        stated = self.step_time[np.isfinite(self.step_time)]
        return float(np.median(stated)) if len(stated) else np.nan

    def last_saved_step(self) -> float | None:
        """Step of the last save; None where it has none."""
        step = self.saved_step[-1]
        return float(step) if np.isfinite(step) else None

    def begin(self, resumed: float | None) -> float:
        """When the first step began; NaN where that cannot be told. See `attempt_progress`."""
        first = self.step_at[0] if len(self.step_at) else np.inf
        before = self.loaded_at <= first
        if not before.any():
            return self._begin_of_first_step(resumed, since=0.0)
        loaded = float(self.loaded_at[before][-1])
        step = self.loaded_step[before][-1]
        if not np.isfinite(step):
            return loaded
        counted = self._begin_of_first_step(float(step), since=loaded)
        return max(loaded, counted) if np.isfinite(counted) else loaded

    def _begin_of_first_step(self, resumed: float | None, *, since: float) -> float:
        """First row less the steps done since the resumed one, not before `since`."""
        if not len(self.step_at):
            return np.nan
        stated = self.step_time[0]
        known = [value for value in (stated, self.pace) if np.isfinite(value)]
        if not known:
            return np.nan
        first, step_s = float(self.step[0]), max(known)
        if resumed is not None and resumed <= first:
            begin = self._before_first(max(first - resumed, 1.0), step_s)
            if begin >= since - step_s:
                return begin
        ahead = np.diff(self.step)
        stride = float(np.median(ahead[ahead > 0])) if (ahead > 0).any() else 1.0
        return self._before_first(max(min(first, stride), 1.0), step_s)

    def _before_first(self, n_steps: float, step_s: float) -> float:
        """Time of the first row less so many steps, and the saves between them."""
        between = (self.saved_at <= self.step_at[0]) & (self.saved_step > self.step[0] - n_steps)
        return float(self.step_at[0] - n_steps * step_s - np.nansum(self.write[between]))

    def writes(self) -> Floats:
        """How long each save stopped the run: as stated, else the time that steps do not explain.

        That of several saves between the same two steps counts once, with the last of them.
        """
        seconds = self.write.copy()
        for place in np.flatnonzero(~np.isfinite(seconds)):
            seconds[place] = self._gap(int(place))
        return seconds

    def _gap(self, save: int) -> float:
        """Time from the step before a save to the step behind it, less the steps between."""
        at = self.saved_at[save]
        behind = int(np.searchsorted(self.step_at, at, "right"))
        if behind == 0:
            return np.nan
        if behind < len(self.step_at):
            until, step = self.step_at[behind], self.step[behind]
            if save + 1 < len(self.saved_at) and self.saved_at[save + 1] < until:
                return 0.0
        else:
            until, step = at, self.saved_step[save]
        steps = step - self.step[behind - 1]
        if not steps >= 0:
            return np.nan
        return float(max(until - self.step_at[behind - 1] - steps * self.pace, 0.0))


def rows_by_attempt(steps: pd.DataFrame) -> dict[tuple[str, str], AttemptRows]:
    """The rows of each attempt by cluster and key; those without attempt or time are left out."""
    event = steps["checkpoint_event"].astype(object).map(_KINDS)
    frame = pd.DataFrame(
        {
            "cluster": steps["cluster"].astype(object),
            "key": steps["attempt_key"].astype(object),
            "at": microseconds(steps["logged_at"]),
            "kind": event.fillna(_STEP).astype(np.int64),
            "step": pd.to_numeric(steps["step"]).astype(float),
            "rank": pd.to_numeric(steps["rank"]).astype(float).fillna(-1.0),
            "step_time": pd.to_numeric(steps["step_time_s"]).astype(float),
            "write": pd.to_numeric(steps["checkpoint_s"]).astype(float),
        }
    )
    known = frame["key"].notna() & (frame["at"] != NEVER)
    frame = frame[known & (frame["step"].notna() | (frame["kind"] != _STEP))]
    frame = _of_one_rank(frame).sort_values(["cluster", "key", "at", "step", "write"])
    return {
        (str(cluster), str(key)): _attempt_rows(group)
        for (cluster, key), group in frame.groupby(["cluster", "key"], sort=False)
    }


def _of_one_rank(frame: pd.DataFrame) -> pd.DataFrame:
    """Steps and events of the rank that logs most of them, of equal ones the lowest."""
    frame = frame.assign(event=frame["kind"] != _STEP)
    groups = ["cluster", "key", "event"]
    counts = frame.groupby([*groups, "rank"], sort=False).size().reset_index(name="n")
    counts = counts.sort_values(["n", "rank"], ascending=[False, True])
    return frame.merge(counts.drop_duplicates(groups)[[*groups, "rank"]], on=[*groups, "rank"])


def _attempt_rows(rows: pd.DataFrame) -> AttemptRows:
    origin = int(rows["at"].iloc[0])
    at = (rows["at"].to_numpy() - origin) / SECOND
    kind, step = rows["kind"].to_numpy(), rows["step"].to_numpy()
    step_time, write = rows["step_time"].to_numpy(), rows["write"].to_numpy()
    plain, saved, loaded = (np.flatnonzero(kind == code) for code in (_STEP, _SAVED, _LOADED))
    plain = plain[np.append(step[plain][1:] != step[plain][:-1], True)[: len(plain)]]
    last = np.append(step[saved][1:] != step[saved][:-1], True)[: len(saved)]
    begins = np.flatnonzero(np.append(True, last[:-1])[: len(saved)])
    longest = np.fmax.reduceat(write[saved], begins) if len(saved) else write[saved]
    return AttemptRows(
        origin=origin,
        n_rows=len(rows),
        step_at=at[plain],
        step=step[plain],
        step_time=step_time[plain],
        saved_at=at[saved][last],
        saved_step=step[saved][last],
        write=longest,
        loaded_at=at[loaded],
        loaded_step=step[loaded],
    )
