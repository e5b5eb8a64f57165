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
