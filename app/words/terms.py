"""Glossary: what every number means, shown on hover and printed in reports."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Term:
    """A quantity: the words it is shown under, and what they mean."""

    label: str
    """With the unit, where the value does not carry it."""
    definition: str
    unit: str = ""
    """Of its values; empty where they are counts or no numbers."""
    equation: str = ""
    """In symbols, where the definition says it in words alone."""
    source: str = ""
    """Who defined it, where somebody else did."""
    of_column: bool = False
    """It explains a column, at whose head it stands: the page of the glossary finds it by a search
    alone."""
    pages: tuple[str, ...] = ()
    """Pages that show it, by their names in the address, first the one it belongs to."""


KOKOLIS = "Kokolis et al., arXiv 2410.21680"
LIN = "Lin et al., arXiv 2505.05713"
PER_NODE_DAYS = "per 1,000 node-days"
DEFINITIONS = {
    "infrastructure": "hardware or system software by the evidence that weighs most, or "
    "NODE_FAIL or another lost node; never what its user cancelled",
    "paper": "NODE_FAIL, or FAILED with a critical check near its end, whatever the verdict "
    "(Kokolis et al., arXiv 2410.21680)",
    "hardware": "hardware by any evidence, or a lost node whatever its cause",
    "scheduler": "NODE_FAIL and other lost nodes alone",
    "infrastructure_and_unknowns": "infrastructure, and failed attempts without a known cause by "
    "the probability that infrastructure ended them",
}
"""What counts as a failure by each definition."""
FAILURE_RATE = Term(
    "Failures per 1,000 node-days",
    "Attempts that failed, per 1,000 node-days they ran (GPUs / GPUs per node x running time: "
    f"eight 1-GPU jobs are one node). A failure: {DEFINITIONS['infrastructure']}. "
    "The interval is Garwood's exact one for a Poisson count, widened by a bootstrap over "
    "calendar weeks where failures come in clusters.",
    unit=PER_NODE_DAYS,
    equation="1,000 x failures / node-days",
    source=KOKOLIS,
    pages=("mttf", "overview", "reports"),
)
INCIDENT_RATE = Term(
    "Incidents per 1,000 node-days",
    "Failures of one incident count once: a node that kills five jobs at a time is one incident "
    "and five failures. Where failures are known without jobs, those of a node within an hour do.",
    unit=PER_NODE_DAYS,
    pages=("mttf", "reports"),
)
EXPOSURE = Term(
    "Exposure (node-days)",
    "GPUs / GPUs per node x running time, summed over the attempts that count: eight 1-GPU jobs "
    "are one node.",
    unit="node-days",
    pages=("mttf",),
)
NODE_MTTF = Term(
    "MTTF of one node",
    "Mean time to failure of one node: 24 h / (failures per node-day). A job on N nodes waits an "
    "N-th of it, if nodes fail independently and at one rate.",
    unit="h",
    pages=("mttf", "reports"),
)
BETWEEN_FAILURES = Term(
    "Mean time between failures",
    "Mean gap between consecutive failures of the whole selection: (last - first) / (n - 1). It "
    "is about the fleet, not about a job.",
    unit="h",
    pages=("mttf", "reports"),
)
REPAIR = Term(
    "Mean time to repair",
    "Mean of the repair times that the source states, else of end - start of the failure. Only "
    "failures whose repair is known count.",
    unit="h",
    pages=("mttf", "reports"),
)
OUT_OF_SERVICE = Term(
    "Nodes out of service",
    "Nodes that the scheduler held down, drained or failing at the end of the period. Unknown "
    "where no source says so.",
    pages=("reports",),
)
COVERAGE = Term(
    "Sources with records",
    "Sources with at least one record in the period, of those that a site can have. A day without "
    "a record is shown as a gap, not as zero, unless `faultline collect` knows that it was quiet.",
    pages=("data", "reports"),
)
FAILED_ATTEMPTS = Term(
    "Failed attempts",
    "Attempts that ended FAILED, NODE_FAIL, TIMEOUT, DEADLINE, OUT_OF_MEMORY or BOOT_FAIL, were "
    "requeued, or lost a node, of all attempts that ended in the period. Each has a verdict: "
    "cause, domain, confidence and the evidence for it.",
    pages=("failures", "reports"),
)
UNKNOWN_CAUSE = Term(
    "Cause unknown",
    "Share of the failed attempts, and of the failures of nodes that a failure log lists, whose "
    "verdict names no domain: the unexplained failures, what was requeued by hand, and lost nodes "
    "of which nobody knows why. The interval is Clopper and Pearson's exact one.",
    unit="ratio",
    pages=("failures", "reports"),
)
COUNTED_FAILURES = Term(
    "Infrastructure failures",
    f"Attempts ended by infrastructure: {DEFINITIONS['infrastructure']}. These are the failures "
    "that failure rate, MTTF, ETTR, ledger and incidents count.",
    pages=("failures",),
)
FAILED_GPU_HOURS = Term(
    "Held by failed jobs, GPU-h",
    "Running time x GPUs of all failed attempts, whoever was at fault. Its share is that of all "
    "attempts that ended in the period or ran on at its end. It is not what failures cost: that is "
    "what the ledger counts as lost, work since the last checkpoint of attempts that "
    "infrastructure ended.",
    unit="GPU-h",
    pages=("failures",),
)
CONFIDENCE = Term(
    "Confidence",
    "Share of the weighted evidence that speaks for this cause, from 0 to 1; 0 where the cause is "
    "unknown, 1 where a person decided.",
    unit="ratio",
    pages=("job", "failures", "incident", "my_runs", "reports"),
)
NODE_OUTAGES = Term(
    "Times out of service",
    "Times that the scheduler held the node down, drained or failing in the period, planned ones "
    "included.",
    pages=("node", "reports"),
)
NODE_EVENTS = Term(
    "Critical or fatal events",
    "Health checks and kernel lines of severity critical or fatal on this node in the period.",
    pages=("node", "reports"),
)
NODE_FAILURES = Term(
    "Attempts ended by this node",
    "Attempts whose verdict names this node and its hardware or system software, or that it was "
    "lost. On the other failed attempts another node or the program was at fault, or nothing "
    "says.",
    pages=("node", "reports"),
)
NODE_INCIDENTS = Term(
    "Incidents",
    "Incidents of the period whose evidence names this node.",
    pages=("node", "reports"),
)
NODE_TICKETS = Term(
    "Tickets",
    "Repair tickets of this node, opened or open in the period.",
    pages=("node", "reports"),
)
DOMAINS = (
    Term("Hardware", "GPU, memory, link, NIC, power, disk: something must be repaired."),
    Term(
        "System software",
        "Scheduler, driver, container runtime, storage and network services, cluster libraries.",
    ),
    Term(
        "User program",
        "The program's code, inputs and configuration, what it exhausts, and cancellation.",
    ),
    Term("Unknown", "No record says why, or nobody failed."),
)
INCIDENTS_WITH_JOBS = Term(
    "Incidents that hit jobs per 1,000 node-days",
    "Failures, critical events and outages that share a node, rack, cause or crash loop in time "
    "are one incident. The rate counts those that hit a job, per 1,000 node-days of running time, "
    "with Garwood's exact interval for a Poisson count.",
    unit=PER_NODE_DAYS,
    pages=("incidents",),
)
LOST_IN_INCIDENT = Term(
    "Lost, GPU-h",
    "What the attempts of the incident lost by the ledger: work since the last checkpoint of those "
    "that failed, and of those that a requeue preempted (second order). Errors of the user's own "
    "program lose nothing; what a failure of unknown cause lost is not known.",
    unit="GPU-h",
    pages=("incidents", "incident", "reports"),
)
OPEN_INCIDENTS = Term(
    "Open incidents",
    "Incidents that nobody has acknowledged or resolved. An incident is open until a person says "
    "otherwise.",
    pages=("incidents",),
)
CRASH_LOOPS = Term(
    "Crash loops",
    "Incidents in which one job failed at least 3 times in a row within 24 hours, whatever the "
    "verdicts: each round takes its nodes again and may preempt other jobs.",
    pages=("incidents", "incident"),
)
INCIDENT_CONFIDENCE = Term(
    "Confidence of the cause",
    "Of the incident's cause: the largest confidence of the verdicts that name it; 1 where a "
    "person said it, unknown where no failed attempt names it.",
    unit="ratio",
    pages=("incident", "reports"),
)
BLAST_RADIUS = Term(
    "Jobs hit",
    "Jobs that failed, and jobs that a requeue of one of these preempted. GPUs are those of each "
    "job's largest attempt: GPUs that two jobs held one after the other count twice.",
    pages=("incident", "reports"),
)
NODES_HIT = Term(
    "Nodes",
    "Nodes of the attempts hit and of the events.",
    pages=("incident", "reports"),
)
COMPANIONS = Term(
    "Signals that come together",
    "Of the incidents that show a check or code, the share that shows others too, with Clopper and "
    "Pearson's exact interval; an incident counts once. Lift: how many times as often as chance "
    "would bring them together. Which came first, or caused the other, it does not say.",
    unit="ratio",
    pages=("incidents",),
)
PRODUCTIVE_SHARE = Term(
    "Productive",
    "Share of the GPU-hours that did work which was kept: not spent on start-up or checkpoints, "
    "and not lost since the last checkpoint. Errors of the user's own program count as productive. "
    "It is Google's goodput, of the whole capacity or of the time that jobs held.",
    unit="ratio",
    source="Google, ml-goodput-measurement",
    pages=("ledger", "reports"),
)
LOST_TO_FAILURES = Term(
    "Lost: failures, GPU-h",
    "Work since the last checkpoint when hardware, system software or a lost node ended an "
    "attempt. The interval joins what is assumed of checkpoints and when in between the failures "
    "struck.",
    unit="GPU-h",
    pages=("ledger", "overview", "failures", "incidents", "reports"),
)
IF_UNEXPLAINED_COUNT = Term(
    "Unexplained, GPU-h",
    "What failures would have lost besides if infrastructure had ended all unexplained failures, "
    "as the ledger takes runs to save: the upper bound of its interval. A bound and no estimate: "
    "nobody knows how many of them infrastructure ended. MTTF tells how many are probable where "
    "lost nodes show how often evidence is found.",
    unit="GPU-h",
    pages=("ledger", "overview", "failures", "incidents", "reports"),
)
LOST_TO_PREEMPTION = Term(
    "Preempted, GPU-h",
    "Work since the last checkpoint of attempts that were preempted. Second order is the part "
    "that the requeue of a failed job caused.",
    unit="GPU-h",
    pages=("ledger",),
)
OUT_OF_SERVICE_HOURS = Term(
    "Out of service, GPU-h",
    "Capacity out of service: nodes drained, lost or found down, and planned maintenance. GPUs "
    "that jobs still held on draining nodes are not counted.",
    unit="GPU-h",
    pages=("ledger",),
)
IDLE_HOURS = Term(
    "Idle, GPU-h",
    "GPUs in service that no job held and for which no eligible job waited. Free GPUs while as "
    "many were waited for are held by the queue, a bucket of its own.",
    unit="GPU-h",
    pages=("ledger",),
)
HELD_HOURS = Term(
    "Held by jobs, GPU-h",
    "Running time x GPUs of all attempts in the selection: what the shares are shares of.",
    unit="GPU-h",
    pages=("ledger",),
)
LOSSES_COST = Term(
    "Cost of the losses",
    "GPU-hours lost to failures and to preemption, and those of nodes down or drained, at the "
    "price of a GPU-hour that site.toml states.",
    unit="currency of site.toml",
    equation="price x (lost + preempted + out of service)",
    pages=("ledger",),
)
ETTR = Term(
    "ETTR, all runs",
    "Effective training time ratio: productive time over the time that a run waited (eligible and "
    "queued) and ran, all runs together, weighted by GPUs. Start-up, checkpoints and work lost at "
    "an interruption are not productive; errors of the user's program are (Kokolis et al., arXiv "
    "2410.21680). The interval is that of runs like these: it holds how much runs differ, what is "
    "not known of their checkpoints and start-up, and when interruptions struck. n counts runs.",
    unit="ratio",
    equation="ETTR = sum of R x GPUs / sum of (Q + S) x GPUs",
    source=KOKOLIS,
    pages=("ettr", "overview", "my_runs"),
)
EXPECTED_ETTR = Term(
    "Expected ETTR",
    "The exact form of a run as long as these in the mean, at the rate at which they were "
    "interrupted themselves (failures of infrastructure, preemptions, requeues) and at their mean "
    "wait before a start. n counts interruptions; the interval is Garwood's of their rate.",
    unit="ratio",
    pages=("ettr",),
)
ETTR_MEDIAN = Term(
    "ETTR, median run",
    "Half of the runs got more out of their time. Each run counts once, whatever its size; the "
    "interval lies between two of the runs, whatever their distribution.",
    unit="ratio",
    pages=("ettr",),
)
RUNS = Term(
    "Runs",
    "A run is all attempts and jobs of one task: requeues, and what [runs] of site.toml joins. "
    "Counted are runs on several nodes that ran in the period, whole. GPU-hours: waiting and "
    "running.",
    pages=("ettr",),
)
FAILURES_PER_RUN = Term(
    "Failures per run",
    "Attempts that hardware or system software ended, or whose node was lost, per run; "
    "preemptions are not failures. The interval is Garwood's exact one for a Poisson count.",
    pages=("ettr",),
)
RUN_WAIT = Term(
    "Mean wait to start",
    "Time eligible and queued before a start, mean over all attempts of the runs; what a start "
    "costs in the long run. The interval is by the sampling of runs, which share a queue.",
    unit="h",
    pages=("ettr",),
)
CHANGE = (
    "Before is the quarter before the period: 91 days. Better and worse: the two intervals do not "
    "overlap. Maybe worse: they do, and the value is a tenth worse or more."
)
WEEKS = "The bars are its last {} weeks, from 0 on."
PROJECTION = Term(
    "Projection",
    "MTTF of a job of N nodes if nodes fail independently at the measured rate r_f: "
    "24 / (N r_f) hours, after Kokolis et al., arXiv 2410.21680.",
    unit="h",
    source=KOKOLIS,
    pages=("mttf", "reports"),
)


def failure_rate(definition: str) -> Term:
    """The failure rate by one definition."""
    default, chosen = DEFINITIONS["infrastructure"], DEFINITIONS[definition]
    return replace(FAILURE_RATE, definition=FAILURE_RATE.definition.replace(default, chosen))


def ettr_from(min_gpus: int) -> Term:
    """ETTR of large runs."""
    return replace(ETTR, label=f"ETTR, {min_gpus:,}+ GPUs")
