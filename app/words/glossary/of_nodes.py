"""Terms of Lemons, Machines, Links, Repairs and Validation, and of a node's metrics."""

from __future__ import annotations

from app.words.terms import KOKOLIS, PER_NODE_DAYS, Term

_LEMONS = ("lemons",)
_LINKS = ("diagnose",)
_REPAIRS = ("lemons",)
_VALIDATION = ("lemons",)
_SUPERBENCH = "SuperBench, arXiv 2402.06194"
LEMONS = Term(
    "Lemon nodes",
    "Nodes with more failed jobs, unplanned outages, repair tickets and critical events than a "
    "healthy node of the same exposure would have by chance; of those listed at most a tenth is "
    "expected to be there by chance. One that stands out by a single week or by the jobs of a "
    "single user, that goes down with others, or of which draining may save nothing is to be "
    "watched.",
    source=f"the name and the signals: {KOKOLIS}",
    pages=_LEMONS,
)
SAVED = Term(
    "GPU-hours saved by draining",
    "Lost work and restarts that the same days regain when they are played again without the "
    "lemons (Planner), less those of healthy nodes in their place, drawn towards what nodes "
    "differ by more than chance. A failure that several nodes are at fault for is saved only by "
    "draining all of them. What draining itself costs is not taken off.",
    unit="GPU-h",
    pages=_LEMONS,
)
SAVES = Term(
    "Saves",
    "Lost work and restarts that the same days regain when they are played again without this "
    "node, less those of a healthy one in its place; below 0 they would lose more.",
    unit="GPU-h",
    pages=("lemons", "node"),
    of_column=True,
)
AVOIDED = Term(
    "Failed jobs avoided",
    "Failures of the window that lie on the lemons, less those that as many healthy nodes would "
    "have had.",
    pages=_LEMONS,
)
SAVED_BEFORE = Term(
    "Saved, had the last list been followed",
    "The same list made one window earlier: share of the GPU-hours lost since then that its nodes "
    "lost, beyond what healthy nodes lose.",
    unit="ratio",
    pages=_LEMONS,
)
LEMON_SCORE = Term(
    "Score",
    "-log10 of the chance that a healthy node of the same exposure has as much against it.",
    pages=("lemons", "node"),
)
TIMES_USUAL = Term(
    "Times usual",
    "Rate of occasions, in the time in which one more would have counted, over that of a healthy "
    "node of its exposure; the interval allows for what is not known of healthy nodes.",
    unit="ratio",
    pages=("lemons", "node"),
    of_column=True,
)
DISTANCE = Term(
    "Score of a machine",
    "How far the metrics of a machine moved away from those of the others for good, all together, "
    "in what healthy machines move by chance.",
    source="METHODS, Faulty machines by their metrics",
    pages=("diagnose",),
    of_column=True,
)
ROSE_BY = Term(
    "Rose by",
    "Rise of a counter over the period; it may have begun again at 0.",
    pages=("node",),
    of_column=True,
)
SLOWER = Term(
    "Delay over usual",
    "Median, over its pairs, of the delay over the usual one of such pairs: of one host, of one "
    "switch, of two switches. A pair's delay is the low quartile of its samples. The interval is "
    "that of a median; of one link, the scatter of all pairs.",
    unit="ratio",
    pages=_LINKS,
)
PAIRS = Term("Pairs measured", "Ordered pairs of endpoints with at least one sample.", pages=_LINKS)
LINK_FROM = Term(
    "A slow link is named from",
    "Delay over usual from which one slow link is told from chance in these samples.",
    unit="ratio",
    pages=_LINKS,
)
END_FROM = Term(
    "A slow sender or receiver from",
    "Delay over usual from which a slow sender or receiver is told from chance in these samples.",
    unit="ratio",
    pages=_LINKS,
)
FAIL_AGAIN = Term(
    "Fail again",
    "Share of returns to service after which the node fails within the horizon (Kaplan and Meier). "
    "A failure: what counts in the rate and names the node; of one incident the first. What was "
    "not watched so long is censored, also by the next drain.",
    unit="ratio",
    pages=_REPAIRS,
)
BESIDE_NODES = Term(
    "Beside other nodes",
    "Failures per node-day in jobs after a return to service, over those of nodes that were not "
    "just repaired. It lies above 1 even where repairs are good: nodes that fail often are "
    "repaired often.",
    unit="ratio",
    pages=_REPAIRS,
)
BESIDE_REPAIRS = Term(
    "Beside other repairs",
    "The same over all other actions, adjusted for how often the node was repaired in the 90 days "
    "before and for whether it had failed or was drained without a failure. An action does not "
    "hold where it lies above 1 by more than chance, all actions tested together (Holm, 5 %).",
    unit="ratio",
    pages=_REPAIRS,
    of_column=True,
)
DO_NOT_HOLD = Term(
    "Actions that do not hold",
    "Actions after which nodes fail more often than after all others by more than chance, all "
    "actions tested together (Holm, 5 %), adjusted for how often the node was repaired before.",
    pages=_REPAIRS,
)
VENDOR = Term(
    "Nodes for the vendor",
    "Nodes on which two repairs or more were followed by a failure of hardware within the horizon.",
    pages=_REPAIRS,
)
FAILED_AGAIN = Term(
    "Failed again",
    "Returns to service after which the node failed within the horizon.",
    pages=_REPAIRS,
    of_column=True,
)
DID_NOT_HOLD = Term(
    "Did not hold",
    "Repairs of a node after which it failed again.",
    pages=_REPAIRS,
    of_column=True,
)
NOT_HELD_BY_CHANCE = Term(
    "Repairs that do not hold, by chance",
    "Chance that as many repairs do not hold at the rate of all repaired nodes.",
    unit="ratio",
    pages=_REPAIRS,
    of_column=True,
)
WORTH_TESTING = Term(
    "Nodes worth testing",
    "Nodes where the GPU-hours at stake exceed those of the tests.",
    source=_SUPERBENCH,
    pages=_VALIDATION,
)
LOSS_AHEAD = Term(
    "GPU-hours that incidents will cost",
    "Of these nodes in the horizon, if they are in jobs as much as before: incidents to come x "
    "what one costs. The interval is of what will come, not of the mean.",
    unit="GPU-h",
    pages=_VALIDATION,
    of_column=True,
)
AT_STAKE = Term(
    "GPU-hours at stake",
    "Of what incidents of these nodes will cost in the horizon, the part of kinds that the tests "
    "find. The interval is of what will come. Less may be saved: a defect may come later than its "
    "test.",
    unit="GPU-h",
    pages=_VALIDATION,
)
COST_OF_TESTS = Term(
    "GPU-hours of testing",
    "Minutes of the tests x GPUs of the nodes.",
    unit="GPU-h",
    pages=_VALIDATION,
)
HARDWARE_INCIDENTS = Term(
    "Incidents of nodes per 1,000 node-days",
    "Of the fleet: incidents of hardware or system software that name a node, by time in jobs.",
    unit=PER_NODE_DAYS,
    pages=_VALIDATION,
)
OWN_INCIDENT_RATE = Term(
    "Incidents of one node per 1,000 node-days",
    "Incidents of one node per 1,000 node-days, drawn towards the fleet's rate by how little the "
    "node's own time says.",
    unit=PER_NODE_DAYS,
    pages=_VALIDATION,
    of_column=True,
)
REGRESSED = Term(
    "Regressed nodes",
    "Nodes with a metric that is less similar to the fleet's centre than the criterion allows, or "
    "with a benchmark that ended with an error.",
    source=_SUPERBENCH,
    pages=_VALIDATION,
)
OVER_CENTRE = Term(
    "Over the fleet's",
    "Mean of a metric on the node over that of the fleet's centre.",
    unit="ratio",
    pages=_VALIDATION,
    of_column=True,
)
