"""Terms of MTTF."""

from __future__ import annotations

from dataclasses import replace

from app.words.terms import KOKOLIS, PER_NODE_DAYS, Term

_MTTF = ("mttf",)
MTTF = Term(
    "MTTF",
    "Projected from all failures of the selection: 24 / (N r_f) hours for a job of N nodes, "
    "as if nodes failed independently. The size is the largest usual one (jobs up to it hold "
    "95 % of GPU-time), unless another is chosen.",
    unit="h",
    source=KOKOLIS,
    pages=("mttf", "overview", "reports"),
)
NODE_HOURS = Term(
    "Running time (node-hours)",
    "Nodes x running time, summed over the attempts: no job of the selection states GPUs.",
    unit="node-hours",
    pages=_MTTF,
)
UNEXPLAINED = Term(
    "Unexplained failures",
    "Failed attempts of unknown cause that may be failures of the infrastructure and do not count: "
    "their user did not end them, nobody requeued them by hand, no node was lost (that counts "
    "whatever its cause), and they ran on nodes or GPUs that are known. Where no health event, "
    "node event or job log was collected when they ended, the interval of the rate reaches from "
    "none to all of them.",
    pages=("mttf", "failures", "ledger", "overview", "reports"),
)
AT_GIVEN_RATE = Term(
    "Projected MTTF",
    "MTTF of a job of N nodes if nodes fail independently at the rate r_f that is given.",
    unit="h",
    equation="24 / (N r_f), r_f in failures per node-day",
    source=KOKOLIS,
    pages=_MTTF,
    of_column=True,
)
IMPLIED_RATE = Term(
    "Implied r_f",
    "The rate at which the published MTTF would follow.",
    unit=PER_NODE_DAYS,
    equation="r_f = 1,000 x 24 / (N MTTF)",
    source=KOKOLIS,
    pages=_MTTF,
    of_column=True,
)
RATE_RATIO = Term(
    "Rate ratio",
    "Failures per node-day of one level over those of the reference, adjusted by Poisson "
    "regression for cluster, age of the node and size of the job. Its interval rests on how much "
    "nodes of one level differ among themselves.",
    unit="ratio",
    pages=_MTTF,
)
HAZARD_RATIO = Term(
    "Hazard ratio",
    "By how much something multiplies the rate at which a node fails, everything else that is "
    "listed alike, and beside the nodes that ran on the same days: what hit all of them then is in "
    "no ratio (Cox). Nodes share a factor of their own. `rates` says how often levels of one fact "
    "fail; this says what of several things it is.",
    unit="ratio",
    equation="exp(b) of z e l0(t) exp(x b)",
    pages=_MTTF,
)
RATIOS_APART = Term(
    "Ratios that differ from 1",
    "Hazard ratios that differ from 1 by more than chance, all of them tested together "
    "(false-discovery rate 5 %).",
    unit="ratios",
    pages=_MTTF,
)
FRAILTY = Term(
    "Nodes differ beyond that by",
    "Variance of the factor that each node has of its own, with mean 1 (gamma frailty): 0 where "
    "what is listed explains all differences; at 1 one node in seven fails twice as often.",
    unit="variance",
    pages=_MTTF,
)
LEVELS_APART = Term(
    "Levels that differ",
    "Levels whose ratio differs from 1 by more than chance, where all levels are tested together "
    "(Holm, 5 %).",
    pages=_MTTF,
)
LEVEL_FAILURES = Term(
    "Failures of a level",
    "Failures on the nodes of one level. Failures of one incident count once.",
    pages=_MTTF,
    of_column=True,
)
LEVEL_RATE = Term(
    "Failure rate of a level",
    "Failures per 1,000 node-days on the nodes of one level, not adjusted.",
    unit=PER_NODE_DAYS,
    pages=_MTTF,
    of_column=True,
)


def projected(gpus: int | None) -> Term:
    """The projection for one size; none where no job states its GPUs."""
    return MTTF if gpus is None else replace(MTTF, label=f"MTTF, {gpus:,} GPUs")


DEATHS = Term(
    "Died",
    "Parts that died while they were watched. The others left alive, or were alive when records "
    "end: they count for as long as they were watched.",
    unit="parts",
)
DEATH_RATE = Term(
    "Deaths per time watched",
    "Deaths over the time in which parts were watched, at whatever age. Where age matters it says "
    "what this mix of ages does, not what a part does.",
)
MEDIAN_LIFE = Term(
    "Median life",
    "Age by which half have died, by the Kaplan-Meier curve; unknown where more than half were "
    "never seen to die. Bounds are the ages at which the bounds of the curve cross one half.",
)
MEAN_LIFE = Term(
    "Mean life, restricted",
    "Area under the Kaplan-Meier curve up to the last age that was watched: what a part lives of "
    "that time on average. It exists where half never die.",
)
SHAPE = Term(
    "Weibull shape",
    "Below 1 the hazard falls with age (infant mortality), at 1 it is even, above 1 it rises "
    "(wear-out). By maximum likelihood; the interval is that of its logarithm.",
    equation="S(t) = exp(-(t / scale)^shape)",
    pages=_MTTF,
)
FAILED_RUNNING = Term(
    "Failed in jobs",
    "Attempts that ended in a failure that counts, each that of one node. All other nodes count "
    "for as long as their attempts ran.",
    unit="nodes in jobs",
    pages=_MTTF,
)
MEDIAN_TO_FAILURE = Term(
    "Median time to failure",
    "Running time of a job by which half of its nodes would have failed, by the Kaplan-Meier "
    "curve; unknown where the curve ends before.",
    pages=_MTTF,
)
MEAN_TO_FAILURE = Term(
    "Mean time to failure, restricted",
    "Area under the Kaplan-Meier curve up to the longest time that any job ran: what a node would "
    "run of that time on average before a failure.",
    pages=_MTTF,
)

_TREND = ("trend",)
RATE_NOW = Term(
    "Failure rate at the end",
    "Failures per 1,000 node-days since the rate last changed; of the whole period where no change "
    "is found: then it is the failure rate of the days on which failures could be seen.",
    unit=PER_NODE_DAYS,
    pages=_TREND,
)
END_OVER_BEGIN = Term(
    "End over begin",
    "Rate at the end of the period over that at its begin, if it grows or falls evenly by exposure "
    "(log-linear, Cox and Lewis). Above 1 failures become more frequent.",
    unit="ratio",
    equation="exp(b), rate proportional to exp(b x), x from 0 to 1",
    pages=_TREND,
)
GROWTH = Term(
    "Growth (Crow-AMSAA)",
    "Below 1 failures become rarer, above 1 more frequent, as those of a system that was new when "
    "the period began.",
    equation="beta = n / sum(ln(T / t_i))",
    pages=_TREND,
)
RATE_CHANGES = Term(
    "Changes of the rate",
    "Days about which the rate became another, each found where chance alone sets stretches so far "
    "apart in fewer than one of fifty histories without a change.",
    pages=_TREND,
)

_AVAILABILITY = ("availability",)
AVAILABLE = Term(
    "Availability",
    "Share of the time of nodes in which they were not out of service, of the time in which their "
    "states were recorded. Its interval is that of a ratio over nodes, or over calendar weeks "
    "where those differ more.",
    unit="ratio",
    equation="node-seconds up / node-seconds",
    pages=_AVAILABILITY,
)
UNPLANNED = Term(
    "Unplanned",
    "Share of the time of nodes in which they were down, or drained without having been announced.",
    unit="ratio",
    pages=_AVAILABILITY,
)
PLANNED = Term(
    "Planned",
    "Share of the time of nodes in which they were out for maintenance that was announced before.",
    unit="ratio",
    pages=_AVAILABILITY,
)
SERVICEABLE = Term(
    "Serviceability",
    "Share of the time that was not planned to be out in which nodes were up (HECToR).",
    unit="ratio",
    equation="(all - planned - unplanned) / (all - planned)",
    pages=_AVAILABILITY,
)
MTBF = Term(
    "MTBF of a node",
    "Time that a node is up between unplanned outages: node-hours up over outages that began. "
    "Down time is no time between failures.",
    unit="h",
    pages=_AVAILABILITY,
)
MTTI = Term(
    "MTTI of a node",
    "The same between interruptions, planned ones included.",
    unit="h",
    pages=_AVAILABILITY,
)
TO_RETURN = Term(
    "Mean time to return",
    "From out of service to back in service, of unplanned outages that began in the period. Down, "
    "drained and down again without a break is one outage; one that is still open counts as longer "
    "than it has lasted (Kaplan-Meier, up to the longest that was watched).",
    unit="h",
    pages=_AVAILABILITY,
)
AFR = Term(
    "Out within a year (AFR)",
    "Chance that a node at the mean rate has an unplanned outage within a year of being up. Where "
    "nodes differ, fewer of them have one, and those more often.",
    unit="ratio",
    equation="1 - exp(-8766 h / MTBF)",
    pages=_AVAILABILITY,
)
FIT = Term(
    "FIT",
    "Unplanned outages per 1e9 hours that nodes are up.",
    unit="outages per 1e9 node-hours",
    pages=_AVAILABILITY,
)

_FORECAST = ("trend",)
NEXT_MONTH = Term(
    "Failures, next 28 days",
    "Failures that count, if as many node-days run as in the last 28 days. The interval is that of "
    "the count: the rate may move from week to week, and weeks scatter.",
    unit="failures",
    pages=_FORECAST,
)
NEXT_QUARTER = Term(
    "Failures, next 91 days",
    "The same of 13 weeks.",
    unit="failures",
    pages=_FORECAST,
)
FORETOLD = Term(
    "Last 28 days, foretold",
    "What the same forecast said when the last 28 days began, for the node-days that ran then.",
    unit="failures",
    pages=_FORECAST,
)
JOB_FAILURES = Term(
    "Failures of the job",
    "Failures of infrastructure that a job of so many nodes meets while it computes for so long, "
    "at the rates that the forecast draws. Beyond the largest job that ran the rate may differ by "
    "1.25 with each doubling.",
    unit="failures",
)
NO_FAILURE = Term(
    "Chance of no failure",
    "Share of such jobs that no failure interrupts; its bounds are those of the rate.",
    unit="ratio",
)
BETWEEN_OF_JOB = Term(
    "Job runs between failures",
    "24 h / (rate x nodes), at the rates that the forecast draws.",
    unit="h",
)
