"""Terms of My runs, ETTR, Ledger and Planner."""

from __future__ import annotations

from app.words.terms import KOKOLIS, Term

_ETTR = ("ettr",)
_MY_RUNS = ("my_runs",)
_PLANNER = ("planner",)
FAILED = Term(
    "Failed",
    "Attempts that ended in the period by a failure, of all of this user that did or that have not "
    "ended. A requeue is a new attempt. Completed, cancelled and preempted ones did not fail.",
    pages=_MY_RUNS,
)
AT_FAULT = Term(
    "Known to be the cluster's",
    "Failed attempts by hardware or system software, of all that failed, as their verdicts say. "
    "Each verdict rests on evidence; unknown means that no record says whose fault it was.",
    pages=_MY_RUNS,
)
LOST = Term(
    "Lost when interrupted, GPU-h",
    "What the attempts that infrastructure, preemption or a requeue ended lost by the ledger: work "
    "since the last checkpoint.",
    unit="GPU-h",
    pages=_MY_RUNS,
)
OWN = Term(
    "Held by own errors, GPU-h",
    "Running time x GPUs of the attempts that the program or its submission ended. How much of "
    "that work was saved is not known.",
    unit="GPU-h",
    pages=_MY_RUNS,
)
SUMS = Term(
    "Terms and sums",
    "The terms are those of Google's ml-goodput-measurement. Buckets are whole GPU-seconds and "
    "add up to the total exactly.",
    pages=("ledger",),
)
MEASURED_BY = Term(
    "Measured by",
    "What tells start-up, checkpoints and lost work.",
    pages=("ettr", "my_runs"),
    of_column=True,
)
JOINED_BY = Term(
    "Joined by",
    "What makes the attempts and jobs of a run one run.",
    pages=("ettr", "my_runs"),
    of_column=True,
)
GROUP_ETTR = Term(
    "ETTR of a group",
    "ETTR of the runs of one group, weighted by GPU-time; the interval is that of runs like these. "
    "None where fewer than three runs followed one another: runs that overlap saw one queue.",
    unit="ratio",
    pages=_ETTR,
)
OF_THESE_RUNS = Term(
    "Of these runs",
    "ETTR of a group without the sampling of runs: what these very runs got.",
    unit="ratio",
    pages=_ETTR,
    of_column=True,
)
RUN_ETTR = Term(
    "ETTR of the run",
    "Productive time over the time that the run was eligible and waited, and ran. One run is no "
    "sample: the interval is what is not known of this one, its checkpoints and start-up where no "
    "training metrics show them, and when interruptions struck. n counts interruptions.",
    unit="ratio",
    equation="ETTR = R / (Q + S)",
    source=KOKOLIS,
    pages=_ETTR,
)
OVER_ELAPSED = Term(
    "Productive over elapsed",
    "Productive time over all time since the run first became eligible, pauses between submissions "
    "included.",
    unit="ratio",
    pages=_ETTR,
)
LENGTH_ETTR = Term(
    "ETTR of a run of this length",
    "Productive time over expected wall-clock, first wait and start-up included; exact form.",
    unit="ratio",
    pages=_PLANNER,
)
SIMULATED_ETTR = Term("ETTR, simulated", "By Monte Carlo.", unit="ratio", pages=_PLANNER)
CHECKPOINT_INTERVAL = Term(
    "Checkpoint interval",
    "Training between two checkpoints, which all values are of.",
    unit="min",
    pages=_PLANNER,
)
DALY_YOUNG = Term(
    "Daly-Young interval",
    "The interval that Daly's and Young's rule says.",
    unit="min",
    equation="sqrt(2 x time of a checkpoint x MTTF)",
    pages=_PLANNER,
)
BEST_EXACT = Term(
    "Best interval", "The interval that is best for the exact form.", unit="min", pages=_PLANNER
)
BEST_FIRST_ORDER = Term(
    "Best interval, first order",
    "The interval that is best for form v2, for the full form where the run has a length.",
    unit="min",
    pages=_PLANNER,
)
ETTR_AT_BEST = Term("ETTR at the best interval", "By the exact form.", unit="ratio", pages=_PLANNER)
JOB_MTTF = Term(
    "MTTF of the job",
    "Mean time to failure of the job at this failure rate.",
    unit="h",
    equation="MTTF = 24 / (N r_f), r_f in failures per node-day",
    source=KOKOLIS,
    pages=_PLANNER,
)
REGAINED = Term(
    "GPU-hours regained",
    "Lost work, restarts and writing of checkpoints that the period would have been spared, by all "
    "that is changed together. Runs and their work are held as they were; failures of users' own "
    "programs stay, and so do those whose node nobody knows.",
    unit="GPU-h",
    pages=_PLANNER,
)
BY_NODES = Term(
    "Without the nodes",
    "What failures of these nodes cost, with what had to make room for their requeued jobs, less "
    "what the failures of healthy nodes in their place would have cost. Drawn towards what nodes "
    "differ by more than chance: the same number as on the Lemons page.",
    unit="GPU-h",
    pages=_PLANNER,
)
BY_INTERVAL = Term(
    "By the interval",
    "What interruptions of runs on several nodes would have cost less, less what writing more "
    "checkpoints takes: of the interruptions that are left without the nodes.",
    unit="GPU-h",
    pages=_PLANNER,
)
GIVEN_UP = Term(
    "Capacity given up",
    "GPUs of the nodes left out x the period, as far as records reach. It is not taken off: spare "
    "nodes, or idle ones, do their work; where there are none it is gone.",
    unit="GPU-h",
    pages=_PLANNER,
)
JUDGED_THEN = Term(
    "Judged then",
    "Lemon, to watch or fine, by what was known when nodes were chosen.",
    pages=_PLANNER,
    of_column=True,
)
SCORE_THEN = Term(
    "Score then",
    "Score of the page Lemons, when nodes were chosen.",
    pages=_PLANNER,
    of_column=True,
)
USUAL_FAILURES = Term(
    "Usual failures", "Failures of a healthy node in its place.", pages=_PLANNER, of_column=True
)
THEY_COST = Term(
    "They cost",
    "Lost work and restarts of its failures.",
    unit="GPU-h",
    pages=_PLANNER,
    of_column=True,
)
COUNTS_BY = Term(
    "Counts by",
    "Share of the excess over a healthy node.",
    unit="ratio",
    pages=_PLANNER,
    of_column=True,
)
BEST_INTERVAL = Term(
    "Best checkpoint interval",
    "Training between two checkpoints at which the exact expected ETTR of such a job is "
    "highest, at the failure rate of the selection and the time that a checkpoint stops a run "
    "of this size. Its interval holds what both leave open. Daly and Young's rule is "
    "sqrt(2 x write x MTTF). The size is the largest usual one unless another is chosen.",
    unit="min",
    pages=(*_PLANNER, "overview"),
)
