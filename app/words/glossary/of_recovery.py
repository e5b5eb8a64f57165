"""Terms of the planner's recovery."""

from __future__ import annotations

from app.words.terms import Term

_PLANNER = ("planner",)
KEEP = Term(
    "Spares that are enough",
    "Fewest spare nodes with which a job lacks none for 99 % of the time, or the share that is "
    "asked for, if nodes go out one by one. Its bounds are those of the share of time that nodes "
    "are out.",
    unit="spares",
    equation="least k with P(X <= k) >= 0.99, X binomial of N nodes and the share of time out",
    pages=_PLANNER,
)
KEEP_MEASURED = Term(
    "As the fleet was",
    "The same of as many nodes drawn at random from the fleet as it was out: more where nodes go "
    "out together.",
    unit="spares",
    pages=_PLANNER,
)
WORTH = Term(
    "Spares worth having",
    "Spares with which a job gains most: node-hours in which it does not stand still for want of a "
    "node, less the 24 a day that each spare takes; as the fleet was, where it is large enough.",
    unit="spares",
    equation="the k at which N P(X <= k) - k is greatest",
    pages=_PLANNER,
)
BEST_ETTR = Term(
    "ETTR of the best policy",
    "Productive over wall-clock time of a job under the policy that gets most out of it, simulated "
    "over the failures of this site; the interval is what the counts of failures leave open, where "
    "the rate was stated what the simulation does.",
    unit="ratio",
    pages=_PLANNER,
)
BASE_ETTR = Term(
    "ETTR with checkpoints alone",
    "The same of a job that stands still for each checkpoint and restarts from the last one.",
    unit="ratio",
    pages=_PLANNER,
)
WON = Term(
    "Won by the best policy",
    "GPU-hours that the job trains more than with checkpoints alone.",
    unit="GPU-h",
    pages=_PLANNER,
)
TIED = Term(
    "Cannot be told apart from it",
    "Policies whose ETTR differs from the best by no more than chance leaves open, over paired "
    "runs or over the rates that the counts of failures allow.",
    unit="policies",
    pages=_PLANNER,
)
