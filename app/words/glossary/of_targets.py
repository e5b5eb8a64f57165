"""Terms of targets and their error budgets."""

from __future__ import annotations

from app.words.terms import Term

_PAGES = ("overview", "reports")
TARGET = Term(
    "Target",
    "What the site aims at, as [alerts.targets] of site.toml states it: availability of nodes, "
    "ETTR (the share of the GPU-time of jobs that was productive), failures per 1,000 node-days.",
    pages=_PAGES,
)
BUDGET_LEFT = Term(
    "Error budget left",
    "What a target allows to go wrong in 28 days, less what did, as a share of it. Below 0 more "
    "went wrong than the target allows.",
    equation="1 - gone wrong / (1 - target); of a failure rate 1 - rate / target",
    source="Beyer et al., The Site Reliability Workbook, chapter 5",
    pages=_PAGES,
)
BURN = Term(
    "Burn",
    "How many times as fast as the target allows the last hours or days spent the error budget: 1 "
    "spends it in exactly 28 days.",
    equation="gone wrong in the window / allowed in it",
    source="Beyer et al., The Site Reliability Workbook, chapter 5",
    pages=_PAGES,
)
