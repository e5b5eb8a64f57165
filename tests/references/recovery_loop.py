"""A job under a recovery policy, event by event: what the simulator is held to.

Written from the meaning of each field of `Mechanism` alone, with draws of its own: no line of it
comes from the simulator.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from analytics.recovery.mechanism import KINDS

if TYPE_CHECKING:
    from analytics.recovery.histories import Hazards
    from analytics.recovery.mechanism import Mechanism


class Run:
    """One run; `productive` over `now` once it is over."""

    def __init__(self, hazards: Hazards, policy: Mechanism, chance: random.Random) -> None:
        self.hazards, self.policy, self.chance = hazards, policy, chance
        self.per_min = [float(each) for each in hazards.per_min]
        self.now = policy.requeue_min
        self.ahead = policy.restart.total
        self.productive = 0.0
        self.checkpoints = [(-math.inf, 0.0)]  # training time at which it was made, its state
        self.cycle = 0.0  # training and writing since the last one
        self.trained = 0.0  # minutes up, in all
        self.missing: list[tuple[float, int]] = []
        self.out: list[tuple[float, int]] = []
        self.at_once, self.since_failure, self.luck = 0, True, 0.0
        self.has_state = True
        self.since_kept = 0.0
        self.n_missing = 0

    def play(self, until: float) -> tuple[float, float]:
        """Productive and wall-clock minutes."""
        while True:
            nodes = self.hazards.nodes
            self.n_missing = n_missing = sum(n for _, n in self.missing) + self.short()
            there = 1 - n_missing / nodes
            life = self.chance.expovariate(sum(self.per_min) * there) if there > 0 else math.inf
            back = min((at for at, _ in self.missing), default=math.inf)
            if self.short():
                back = min(back, *(at for at, _ in self.out))
            if self.now + life < back:
                self.go_on(life, n_missing)
                if self.fail(until):
                    return self.productive, self.now
            else:
                self.go_on(max(back - self.now, 0.0), n_missing)
                self.missing = [(at, n) for at, n in self.missing if at > back]
                self.ahead += self.policy.rejoin.total

    def short(self) -> int:
        """Nodes that are out beyond those on standby, where the cluster gives none."""
        self.out = [(at, n) for at, n in self.out if at > self.now + 1e-9]
        out = sum(n for _, n in self.out)
        return 0 if self.policy.cluster_gives else max(0, out - self.policy.standby)

    def go_on(self, minutes: float, n_missing: int) -> None:
        """Restarts, trains and writes for so long."""
        self.now += minutes
        passed = min(self.ahead, minutes)
        self.ahead -= passed
        left = minutes - passed
        if left <= 0:
            return
        self.since_failure = self.has_state = True
        table = self.policy.throughput
        part = table[n_missing] if n_missing < len(table) else 0.0
        if part <= 0:
            return
        speed = part * (1 - self.policy.steady_ratio)
        interval, tau = self.policy.interval_min, self.policy.tau_min
        while left > 0:
            if self.cycle < interval:
                step = min(interval - self.cycle, left)
                self.productive += speed * step
                self.since_kept += step
            else:
                step = min(tau - self.cycle, left)
            self.cycle += step
            self.trained += step
            left -= step
            if self.cycle >= tau - 1e-9:
                self.checkpoints.append((self.trained, self.productive))
                self.cycle = 0.0
                self.since_kept = 0.0

    def fail(self, until: float) -> bool:
        """One failure; whether the run is over."""
        policy = self.policy
        (kind,) = self.chance.choices(range(4), self.per_min)
        going_on = len(policy.throughput) > 1
        nodes = min(self.hazards.lost[kind], self.hazards.nodes - self.n_missing * going_on)
        again = not self.since_failure
        self.at_once = nodes + (self.at_once if again else 0)
        moved = (
            KINDS[kind] == "preemption"
            and not again
            and self.chance.random() < policy.foretold_ratio
        )
        kept = not moved and self.outlives(nodes, again=again)
        if moved:
            self.now += policy.migrate_min
        elif kept:
            assert policy.kept is not None
            interval = policy.interval_min
            at = min(self.cycle, interval)
            back = min(policy.kept.ready_min + self.chance.random() * policy.kept.every_min, at)
            back = 0.0 if again else back
            since = self.productive - self.checkpoints[-1][1]
            self.productive -= since * back / at if at else 0.0
            self.cycle = at - back
            self.ahead = policy.kept.downtime.total
        else:
            usable = [
                state for at, state in self.checkpoints if at + policy.lag_min <= self.trained
            ]
            self.productive = usable[-1]
            self.checkpoints = [(-math.inf, usable[-1])]
            self.cycle = 0.0
            self.ahead = policy.restart.total
        if not moved:
            self.since_failure = False
        if self.now >= until:
            return True
        self.replace(kind, nodes, kept=kept, moved=moved)
        return False

    def outlives(self, nodes: int, *, again: bool) -> bool:
        """Whether there is a state without a checkpoint."""
        kept = self.policy.kept
        if kept is None:
            return False
        table = kept.survives

        def chance(n: int) -> float:
            return table[n] if n < len(table) else 0.0

        if kept.counted == "missing":
            was = self.n_missing
            found = self.chance.random() * (chance(was) or 1.0) < chance(was + nodes)
        else:
            self.luck = self.luck if again else self.chance.random()
            found = self.luck < chance(self.at_once)
        found = found and self.has_state
        self.has_state = found
        return found

    def replace(self, kind: int, nodes: int, *, kept: bool, moved: bool) -> None:
        """Where other nodes come from, and who waits for them."""
        policy = self.policy
        self.out = [(at, n) for at, n in self.out if at > self.now]
        minutes, repaired = policy.requeue_min, False
        if nodes and (policy.standby or not policy.cluster_gives):
            away = self.now + self.chance.expovariate(1 / self.hazards.away_min[kind])
            if nodes <= policy.standby - sum(n for _, n in self.out):
                minutes = policy.swap_min
                self.out.append((away, nodes))
            elif not policy.cluster_gives:
                self.out.append((away, nodes))
                repaired = True
                back = sorted(self.out)
                while sum(n for _, n in back) > policy.standby:
                    at, _ = back.pop(0)
                minutes = at - self.now
        if len(policy.throughput) > 1 and (kept or moved or not policy.restart_waits):
            if nodes and minutes > 0 and not repaired:
                self.missing.append((self.now + minutes, nodes))
            return
        if len(policy.throughput) > 1:
            self.missing = []
        if not moved and (nodes or not (kept or policy.in_place)):
            self.now += minutes


def ettr(
    hazards: Hazards, policy: Mechanism, *, runs: int, days: float, seed: int
) -> tuple[float, float]:
    """ETTR of so many runs, and its standard error."""
    chance = random.Random(seed)
    played = [Run(hazards, policy, chance).play(days * 1440.0) for _ in range(runs)]
    value = sum(done for done, _ in played) / sum(wall for _, wall in played)
    mean = sum(wall for _, wall in played) / runs
    apart = [(done - value * wall) / mean for done, wall in played]
    return value, math.sqrt(sum(each**2 for each in apart) / (runs - 1) / runs)
