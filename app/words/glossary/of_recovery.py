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
ETTR_OF_JOB = Term(
    "Expected ETTR of the job",
    "Productive over available time of a long run of the job by the exact form for Poisson "
    "failures; the interval is that of the failure rate.",
    unit="ratio",
    equation="l dt exp(-l u0) / ((exp(l (dt + w)) - 1) (1 + l q)), l failures of the job a minute",
    source="Daly (2006)",
    pages=_PLANNER,
)
WORTH_MOST = Term(
    "Worth most in 28 days",
    "GPU-hours that the job trains more in 28 days if the one cost that matters most is halved.",
    unit="GPU-h",
    pages=_PLANNER,
)
COST_NOW = Term(
    "A failure now would cost",
    "Hours of the work of all running jobs together that the loss of a node right now would cost "
    "until the next failure or its return, under the best plan; the mean over which job is hit. "
    "The interval is that of rate and repair.",
    unit="h",
    source="He et al. (2024), Unicron, arXiv 2401.00134",
    pages=_PLANNER,
)
COST_WORST = Term(
    "At worst",
    "The same of the job whose loss would cost most.",
    unit="h",
    pages=_PLANNER,
)
