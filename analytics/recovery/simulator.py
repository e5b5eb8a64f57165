"""A job under a recovery policy, played over many runs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.recovery.histories import KIND, LOSS, MINUTES_PER_DAY, REPAIR, SURVIVAL
from analytics.recovery.mechanism import KINDS, LEAST_INTERVAL_MIN, PREEMPTION

if TYPE_CHECKING:
    from analytics.arrays import Bools, Floats, Ints
    from analytics.recovery.histories import Block, Hazards, Histories
    from analytics.recovery.mechanism import Mechanism

PARTS: Final = (
    "productive", "write", "steady", "degraded", "lost", "detect", "isolate", "init", "load",
    "wait", "migrate",
)  # fmt: skip
"""Where the time of a job goes; they sum to its wall-clock time."""
SPENT: Final = {part: index for index, part in enumerate(PARTS)}
DOWN: Final = slice(SPENT["detect"], SPENT["load"] + 1)
MOST_FAILURES: Final = 2e7
"""Failures that are played of one policy."""
MOSTLY: Final = 0.9
"""Part of the lanes that must go on, else those that ended are taken out."""
ROUNDING: Final = 1e-9
"""Minutes within which two times are one."""
SEVERAL: Final = 8
"""Nodes for whose return there is room at first."""


@dataclass(frozen=True)
class Played:
    """Runs of a policy; a run ends at the first failure after its days."""

    minutes: Floats
    """Where the time of each run went, shape (parts, runs)."""

    @property
    def wall(self) -> Floats:
        """Wall-clock minutes of each run."""
        total: Floats = self.minutes.sum(axis=0)
        return total

    @property
    def ettr(self) -> float:
        """Productive over wall-clock time of all runs together."""
        return float(self.minutes[0].sum() / self.wall.sum())

    @property
    def influence(self) -> Floats:
        """What each run adds to the error of `ettr`: its mean is 0, its spread over the root of n
        the standard error, and the difference of two policies has that of the differences."""
        apart: Floats = (self.minutes[0] - self.ettr * self.wall) / self.wall.mean()
        return apart

    @property
    def shares(self) -> dict[str, float]:
        """Share of the wall-clock time by part."""
        total = self.minutes.sum(axis=1)
        return dict(zip(PARTS, (total / total.sum()).tolist(), strict=True))


def played(
    hazards: Hazards,
    mechanism: Mechanism,
    histories: Histories,
    *,
    days: float,
    per_min: Floats | None = None,
) -> Played:
    """Productive and other time of a job under a policy, over all runs of the histories.

    A run begins as after a failure: it waits for its nodes, restarts and trains, with a checkpoint
    every dt + w minutes, until a failure strikes: also during restart and writing, not while it
    waits and holds no nodes. What was trained since the last usable state is lost. It ends at the
    first failure after its days: a stopping time, so that by Wald's identity the sum of productive
    over that of wall-clock time is, for a policy without memory, the ratio of a long run,

    .. math:: \\frac{\\lambda \\Delta t \\, e^{-\\lambda u_0}}
        {(e^{\\lambda (\\Delta t + w)} - 1) (1 + \\lambda q)}

    for checkpoints alone, whatever the days.

    Parameters
    ----------
    hazards
        How the job fails.
    mechanism
        What the policy does.
    histories
        What befalls each run.
    days : float
        Of a run, > 0.
    per_min
        Failures of the job per minute by kind, instead of those of `hazards`: shape (4,) or, each
        run with its own, (4, runs).

    Raises
    ------
    OutOfRangeError
        For days that are not > 0, where nothing fails, and where more failures than 20 million
        would be played.

    References
    ----------
    Daly (2006), Future Generation Computer Systems 22, 303-312; Wald (1944), Annals of
    Mathematical Statistics 15, 283-296.

    Examples
    --------
    >>> from analytics.recovery.histories import Hazards, Histories
    >>> from analytics.recovery.mechanism import Downtime, Mechanism
    >>> job = Hazards(nodes=2000, rates={"node": 6.5})
    >>> save = Mechanism(interval_min=60.0, write_min=0.0, restart=Downtime(init=5.0))
    >>> round(played(job, save, Histories(500, 1), days=30).ettr, 2)
    0.72
    """
    validate.positive("days", days, "pass the days of a run, e.g. 30")
    rates = np.asarray(hazards.per_min if per_min is None else per_min, dtype=float)
    rates = np.broadcast_to(rates.reshape(len(KINDS), -1), (len(KINDS), histories.runs))
    expected = days * MINUTES_PER_DAY * rates.sum(axis=0)
    if not expected.min() > 0:
        raise OutOfRangeError("rates", "> 0", 0.0, "where nothing fails there is nothing to play")
    if expected.sum() > MOST_FAILURES:
        raise OutOfRangeError(
            "days", f"at most {MOST_FAILURES:g} failures of all runs", days, "play fewer runs"
        )
    until = days * MINUTES_PER_DAY
    firsts = np.cumsum([0, *(block.runs for block in histories.blocks)])
    blocks = [
        _block(hazards, mechanism, block, rates[:, first : first + block.runs], until)
        for block, first in zip(histories.blocks, firsts, strict=False)
    ]
    return Played(np.concatenate(blocks, axis=1))


def _block(
    hazards: Hazards, mechanism: Mechanism, block: Block, rates: Floats, until: float
) -> Floats:
    """Where the time of the runs of a block went."""
    lanes = _Lanes(hazards, mechanism, block, rates)
    minutes = np.zeros((len(PARTS), block.runs))
    going = np.ones(block.runs, dtype=bool)
    while going.any():
        if mechanism.only_restarts:
            ended = lanes.to_next_restart(until)
        else:
            failed = lanes.to_next_event()
            ended = failed & (lanes.wall >= until)
            lanes.fail(np.flatnonzero(failed), ended)
        if ended.any():
            over = ended & going
            minutes[:, lanes.run[over]] = lanes.spent[:, over]
            going &= ~ended
            if np.count_nonzero(going) < MOSTLY * going.size:
                lanes.keep(going)
                going = going[going]
    return minutes


class _Lanes:
    """Runs that still go on, one a lane."""

    def __init__(
        self, hazards: Hazards, mechanism: Mechanism, histories: Block, rates: Floats
    ) -> None:
        self.hazards, self.mechanism, self.histories = hazards, mechanism, histories
        self.run = np.arange(histories.runs)
        self.per_min = rates.sum(axis=0)
        self.kind_until = np.cumsum(rates, axis=0)[:-1] / self.per_min
        self.failure = np.zeros(histories.runs, dtype=np.int64)
        self.spent = np.zeros((len(PARTS), histories.runs))
        self.wall, self.place, self.done, self.saved, self.before = np.zeros((5, histories.runs))
        downtimes = [mechanism.restart, mechanism.rejoin]
        downtimes += [mechanism.kept.downtime] if mechanism.kept else []
        self.passing = [part for part in range(4) if any(each.parts[part] for each in downtimes)]
        self.ahead = np.tile(
            np.array(mechanism.restart.parts, dtype=float)[:, None], histories.runs
        )
        self.trained = np.ones(histories.runs, dtype=bool)
        self.stored = np.ones(histories.runs, dtype=bool)
        self.outage = np.zeros(histories.runs)
        self.lost_nodes = np.zeros(histories.runs, dtype=np.int64)
        self.missing = np.zeros(histories.runs, dtype=np.int64)
        missing = (SEVERAL if mechanism.goes_on else 0, histories.runs)
        self.back_at, self.back = np.full(missing, np.inf), np.zeros(missing, dtype=np.int64)
        out = (SEVERAL if mechanism.counts_nodes else 0, histories.runs)
        self.out_until, self.out = np.full(out, -np.inf), np.zeros(out, dtype=np.int64)
        self.left = histories.gaps(0)[0] / self.per_min
        self._wait(self.run, np.full(histories.runs, mechanism.requeue_min))

    def keep(self, going: Bools) -> None:
        """Goes on with some lanes alone."""
        for name, held in vars(self).items():
            if isinstance(held, np.ndarray):
                setattr(self, name, held[..., going])

    def _drawn(self, which: int, run: Ints, failure: Ints) -> Floats:
        """What was drawn of these failures."""
        found: Floats = self.histories.shares(int(failure.max()))[failure, which, run]
        return found

    def _wait(self, lanes: Ints | slice, minutes: Floats) -> None:
        """Time passes for the job without its nodes."""
        self.wall[lanes] += minutes
        self.spent[SPENT["wait"], lanes] += minutes

    def to_next_restart(self, until: float) -> Bools:
        """All lanes restart, train, fail, lose what no checkpoint holds and wait; which ended.

        Of a policy that does the same after every failure: nothing is left of the time before it.
        """
        policy, interval = self.mechanism, max(self.mechanism.interval_min, LEAST_INTERVAL_MIN)
        self.wall += self.left
        time = self._come_up(self.left)
        whole = np.floor(time / policy.tau_min)
        rest = time - whole * policy.tau_min
        training = whole * interval + np.minimum(rest, interval)
        usable = whole - ((rest < policy.lag_min) & (whole > 0)) if policy.lag_min > 0 else whole
        speed = 1.0 - policy.steady_ratio
        productive = speed * interval * usable
        self.spent[SPENT["productive"]] += productive
        self.spent[SPENT["lost"]] += speed * training - productive
        self.spent[SPENT["write"]] += time - training
        if policy.steady_ratio:
            self.spent[SPENT["steady"]] += policy.steady_ratio * training
        ended = self.wall >= until
        for part in self.passing:
            self.ahead[part] = policy.restart.parts[part]
        self.failure += 1
        nth = int(self.failure[0])
        self.left = self.histories.gaps(nth)[nth, self.run] / self.per_min
        if policy.requeue_min:
            self._wait(slice(None), np.where(ended, 0.0, policy.requeue_min))
        return ended

    def to_next_event(self) -> Bools:
        """All lanes go on to their next failure, or to the return of a node; which failed."""
        if not self.mechanism.goes_on:
            self.wall += self.left
            self._train(self._come_up(self.left), None)
            return np.ones(self.run.size, dtype=bool)
        self.missing, back_at = self._missing()
        share = 1.0 - self.missing / self.hazards.nodes
        fails = np.divide(self.left, share, out=np.full(share.size, np.inf), where=share > 0)
        returns = np.maximum(back_at - self.wall, 0.0)
        failed: Bools = fails <= returns
        time = np.where(failed, fails, returns)
        self.wall += time
        self.left -= time * share
        self._train(self._come_up(time), self.missing)
        if not failed.all():
            self._return(~failed)
        return failed

    def _missing(self) -> tuple[Ints, Floats]:
        """Nodes that each job lacks, and when the next is back.

        Where the cluster gives none, a job lacks as many as are out beyond those on standby.
        """
        missing, back_at = self.back.sum(axis=0), self.back_at.min(axis=0)
        if not self.mechanism.cluster_gives:
            out = self.out * (self.out_until > self.wall + ROUNDING)
            short = np.maximum(out.sum(axis=0) - self.mechanism.standby, 0)
            repaired = np.where(out > 0, self.out_until, np.inf).min(axis=0)
            missing = missing + short
            back_at = np.where(short > 0, np.minimum(back_at, repaired), back_at)
        return missing, back_at

    def _come_up(self, time: Floats) -> Floats:
        """Passes what is ahead of training; the time that is left to train."""
        for part in self.passing:
            passed = np.minimum(self.ahead[part], time)
            self.ahead[part] -= passed
            self.spent[SPENT["detect"] + part] += passed
            time = time - passed
        return time

    def _train(self, time: Floats, missing: Ints | None) -> None:
        """Trains, and writes checkpoints, for so long."""
        policy = self.mechanism
        interval = max(policy.interval_min, LEAST_INTERVAL_MIN)
        share = 1.0 - policy.steady_ratio
        part: Floats | float = 1.0
        up = time > 0
        self.stored |= up
        self.trained |= up
        if missing is not None:
            table = np.array(policy.throughput)
            part = np.where(missing < len(table), table[np.minimum(missing, len(table) - 1)], 0.0)
            stands = part <= 0
            self.spent[SPENT["wait"]] += np.where(stands, time, 0.0)
            time = np.where(stands, 0.0, time)
        speed = share * part
        of_interval = np.minimum(self.place, interval)
        self.place = self.place + time
        whole = np.floor(self.place / policy.tau_min)
        self.place -= whole * policy.tau_min
        now_of_interval = np.minimum(self.place, interval)
        training = whole * interval + now_of_interval - of_interval
        one = whole > 0
        last = self.done + speed * (whole * interval - of_interval)
        if policy.lag_min > 0:
            self.before = np.where(
                whole > 1, last - speed * interval, np.where(one, self.saved, self.before)
            )
        self.saved = np.where(one, last, self.saved)
        self.done = self.done + speed * training
        self.spent[SPENT["productive"]] += speed * training
        self.spent[SPENT["write"]] += time - training
        if policy.steady_ratio:
            self.spent[SPENT["steady"]] += policy.steady_ratio * training
        if missing is not None:
            self.spent[SPENT["degraded"]] += share * (1.0 - part) * training

    def _return(self, returning: Bools) -> None:
        """Nodes are back: the job takes them in."""
        come = returning & (self.back_at <= self.wall + ROUNDING)
        self.back_at[come], self.back[come] = np.inf, 0
        for part, minutes in enumerate(self.mechanism.rejoin.parts):
            self.ahead[part] += np.where(returning, minutes, 0.0)

    def fail(self, lanes: Ints, ended: Bools) -> None:
        """A failure in some lanes; those that ended lose what they did and wait for nothing."""
        if not lanes.size:
            return
        run, failure = self.run[lanes], self.failure[lanes]
        share = self._drawn(KIND, run, failure)
        kind = np.count_nonzero(share >= self.kind_until[:, lanes], axis=0)
        nodes = np.array(self.hazards.lost)[kind]
        nodes = np.minimum(nodes, self.hazards.nodes - self.missing[lanes])
        again = ~self.trained[lanes]
        self.lost_nodes[lanes] = np.where(again, self.lost_nodes[lanes], 0) + nodes
        moved = self._moves(lanes, kind, again=again)
        kept = self._can_be_had(lanes, nodes, again=again) & ~moved
        self._lose(lanes[~kept & ~moved])
        self._lose_since_kept(lanes[kept], again=again[kept])
        self._restart(lanes, kept, moved)
        self.trained[lanes[~moved]] = False
        self.failure[lanes] += 1
        gaps = self.histories.gaps(int(failure.max()) + 1)[failure + 1, run]
        self.left[lanes] = gaps / self.per_min[lanes]
        going = ~ended[lanes]
        self._replace(lanes[going], kind[going], nodes[going], kept=kept[going], moved=moved[going])

    def _moves(self, lanes: Ints, kind: Ints, *, again: Bools) -> Bools:
        """Which preemptions were seen coming, so that the job moved away before."""
        if not self.mechanism.foretold_ratio:
            return np.zeros(lanes.size, dtype=bool)
        foretold = self._drawn(LOSS, self.run[lanes], self.failure[lanes])
        moved: Bools = (kind == KINDS.index(PREEMPTION)) & ~again
        moved &= foretold < self.mechanism.foretold_ratio
        return moved

    def _can_be_had(self, lanes: Ints, nodes: Ints, *, again: Bools) -> Bools:
        """Which lanes recover from a state that outlived the failure.

        Of nodes lost at once one share of an outage decides, so that k + 1 are survived only where
        k were; of missing ones the chance of the further loss, given that it went well so far.
        """
        kept = self.mechanism.kept
        if kept is None:
            return np.zeros(lanes.size, dtype=bool)
        chance = np.array(kept.survives)
        share = self._drawn(SURVIVAL, self.run[lanes], self.failure[lanes])
        lost = self.lost_nodes[lanes]
        if kept.counted == "missing":
            was = self.missing[lanes]
            lost, limit = was + nodes, _at(chance, was)
            share = share * np.where(limit > 0, limit, 1.0)
        else:
            share = self.outage[lanes] = np.where(again, self.outage[lanes], share)
        found: Bools = (share < _at(chance, lost)) & self.stored[lanes]
        self.stored[lanes] = found
        return found

    def _lose(self, lanes: Ints) -> None:
        """All since the last checkpoint that can be used."""
        state = self.saved[lanes]
        if self.mechanism.lag_min > 0:
            usable = self.place[lanes] >= self.mechanism.lag_min
            state = np.where(usable, state, self.before[lanes])
        self._lost(lanes, self.done[lanes] - state)
        self.done[lanes] = self.saved[lanes] = self.before[lanes] = state
        self.place[lanes] = 0.0

    def _lose_since_kept(self, lanes: Ints, *, again: Bools) -> None:
        """What was trained since the state that outlived, and a checkpoint half written."""
        kept = self.mechanism.kept
        if kept is None or not lanes.size:
            return
        at = np.minimum(self.place[lanes], max(self.mechanism.interval_min, LEAST_INTERVAL_MIN))
        share = self._drawn(LOSS, self.run[lanes], self.failure[lanes])
        back = np.where(again, 0.0, np.minimum(kept.ready_min + share * kept.every_min, at))
        since = self.done[lanes] - self.saved[lanes]
        lost = since * np.divide(back, at, out=np.zeros(at.size), where=at > 0)
        self._lost(lanes, lost)
        self.done[lanes] -= lost
        self.place[lanes] = at - back

    def _lost(self, lanes: Ints, minutes: Floats) -> None:
        self.spent[SPENT["productive"], lanes] -= minutes
        self.spent[SPENT["lost"], lanes] += minutes

    def _restart(self, lanes: Ints, kept: Bools, moved: Bools) -> None:
        """What is ahead of the next step."""
        policy = self.mechanism
        fast = policy.restart if policy.kept is None else policy.kept.downtime
        for part, (slow, quick) in enumerate(zip(policy.restart.parts, fast.parts, strict=True)):
            ahead = np.where(kept, quick, slow)
            self.ahead[part, lanes] = np.where(moved, self.ahead[part, lanes], ahead)
        self.wall[lanes] += np.where(moved, policy.migrate_min, 0.0)
        self.spent[SPENT["migrate"], lanes] += np.where(moved, policy.migrate_min, 0.0)

    def _replace(self, lanes: Ints, kind: Ints, nodes: Ints, *, kept: Bools, moved: Bools) -> None:
        """Nodes in place of those that are lost: from standby, the cluster or repair."""
        if not lanes.size:
            return
        policy = self.mechanism
        given = np.ones(lanes.size, dtype=bool)
        until = np.full(lanes.size, policy.requeue_min)
        if policy.counts_nodes:
            until, given = self._until_replaced(lanes, kind, nodes)
        if policy.goes_on:
            goes_on = kept | moved | (not policy.restart_waits)
            shrinks = goes_on & given & (nodes > 0) & (until > 0)
            self._miss(lanes[shrinks], nodes[shrinks], until[shrinks])
            whole = lanes[~goes_on]
            self.back_at[:, whole], self.back[:, whole] = np.inf, 0
        else:
            goes_on = np.zeros(lanes.size, dtype=bool)
        same = (nodes == 0) & (kept | policy.in_place)
        waits = ~goes_on & ~same & ~moved
        self._wait(lanes[waits], until[waits])

    def _until_replaced(self, lanes: Ints, kind: Ints, nodes: Ints) -> tuple[Floats, Bools]:
        """Minutes until all nodes are there again, and whether these come from elsewhere than
        repair; those that are lost are out until then."""
        policy = self.mechanism
        run, failure = self.run[lanes], self.failure[lanes] - 1
        away = -np.log1p(-self._drawn(REPAIR, run, failure))
        away *= np.array(self.hazards.away_min)[kind]
        now, out = (
            self.wall[lanes],
            self.out[:, lanes] * (self.out_until[:, lanes] > self.wall[lanes]),
        )
        free = policy.standby - out.sum(axis=0)
        swapped = (nodes > 0) & (nodes <= free)
        held = swapped | ((nodes > 0) & (not policy.cluster_gives))
        until = np.where(swapped, policy.swap_min, policy.requeue_min)
        self._hold(lanes[held], nodes[held], (now + away)[held])
        if not policy.cluster_gives:
            short = np.flatnonzero(held & ~swapped)
            until[short] = self._until_repaired(lanes[short])
            return until, swapped
        return until, np.ones(lanes.size, dtype=bool)

    def _until_repaired(self, lanes: Ints) -> Floats:
        """Minutes until so many are back that no more are out than stand ready."""
        times, counts = self.out_until[:, lanes], self.out[:, lanes]
        counts = counts * (times > self.wall[lanes])
        order = np.argsort(-times, axis=0)
        later = np.cumsum(np.take_along_axis(counts, order, axis=0), axis=0)
        too_many = later > self.mechanism.standby
        first = np.argmax(too_many, axis=0)
        at = np.take_along_axis(np.take_along_axis(times, order, axis=0), first[None], axis=0)[0]
        return np.where(too_many.any(axis=0), at - self.wall[lanes], 0.0)

    def _hold(self, lanes: Ints, nodes: Ints, until: Floats) -> None:
        """Nodes are out until then."""
        slot = np.argmin(self.out_until[:, lanes], axis=0)
        if lanes.size and (self.out_until[slot, lanes] > self.wall[lanes]).any():
            self.out_until = np.concatenate((self.out_until, np.full_like(self.out_until, -np.inf)))
            self.out = np.concatenate((self.out, np.zeros_like(self.out)))
            slot = np.argmin(self.out_until[:, lanes], axis=0)
        self.out_until[slot, lanes], self.out[slot, lanes] = until, nodes

    def _miss(self, lanes: Ints, nodes: Ints, minutes: Floats) -> None:
        """The job goes on without some nodes until then."""
        slot = np.argmax(self.back_at[:, lanes], axis=0)
        if lanes.size and np.isfinite(self.back_at[slot, lanes]).any():
            self.back_at = np.concatenate((self.back_at, np.full_like(self.back_at, np.inf)))
            self.back = np.concatenate((self.back, np.zeros_like(self.back)))
            slot = np.argmax(self.back_at[:, lanes], axis=0)
        self.back_at[slot, lanes] = self.wall[lanes] + minutes
        self.back[slot, lanes] = nodes


def _at(table: Floats, index: Ints) -> Floats:
    """Values of a table; 0 beyond its end."""
    return np.where(index < len(table), table[np.minimum(index, len(table) - 1)], 0.0)
