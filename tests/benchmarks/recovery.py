"""A recovery policy of a job of 16,384 GPUs over 30 days: by the simulator, and event by event.

`python -m tests.benchmarks.recovery engine KEY RUNS` plays a policy as the product does,
`... loop KEY RUNS` as a plain event loop; each prints its ETTR, the standard error, and the
processor seconds of playing alone.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time

from analytics.recovery.histories import Hazards, Histories
from analytics.recovery.policy import BASE, Site, policies
from analytics.recovery.simulator import played
from tests.references import recovery_loop

DAYS = 30.0
SITE = Site(
    hazards=Hazards(nodes=2048, rates={"node": 4.5, "process": 1.98, "rack": 0.02}),
    queue_min=10.0,
)


def engine(key: str, runs: int) -> tuple[float, float]:
    """ETTR and its standard error by the simulator."""
    found = played(SITE.hazards, policies()[key].mechanism(SITE), Histories(runs, 1), days=DAYS)
    return found.ettr, float(found.influence.std(ddof=1)) / math.sqrt(runs)


def loop(key: str, runs: int) -> tuple[float, float]:
    """The same event by event; of checkpoints alone as few lines as do it."""
    if key != BASE:
        mechanism = policies()[key].mechanism(SITE)
        return recovery_loop.ettr(SITE.hazards, mechanism, runs=runs, days=DAYS, seed=2)
    chance = random.Random(2)
    found = [_checkpoints(chance) for _ in range(runs)]
    value = sum(done for done, _ in found) / sum(wall for _, wall in found)
    mean = sum(wall for _, wall in found) / runs
    apart = [(done - value * wall) / mean for done, wall in found]
    return value, math.sqrt(sum(each**2 for each in apart) / (runs - 1) / runs)


def _checkpoints(chance: random.Random) -> tuple[float, float]:
    """Productive and wall-clock minutes of one run: restart, train, write, fail, wait."""
    policy, per_min = SITE.mechanism(), float(SITE.hazards.per_min.sum())
    now, done = policy.requeue_min, 0.0
    parts = dict.fromkeys(("init", "write", "lost", "wait"), 0.0)
    while True:
        fails = now + chance.expovariate(per_min)
        up = now + policy.restart.total
        parts["init"] += min(up, fails) - now
        now = up
        while now < fails:
            trained = now + policy.interval_min
            if fails < trained:
                parts["lost"] += fails - now
                break
            written = trained + policy.write_min
            if fails < written:
                parts["lost"] += policy.interval_min
                parts["write"] += fails - trained
                break
            parts["write"] += policy.write_min
            done += policy.interval_min
            now = written
        if fails >= DAYS * 1440.0:
            return done, fails
        now = fails + policy.requeue_min
        parts["wait"] += policy.requeue_min


if __name__ == "__main__":
    _, way, key, runs = sys.argv
    begun = time.process_time()
    value, error = {"engine": engine, "loop": loop}[way](key, int(runs))
    print(json.dumps([value, error, time.process_time() - begun]))
