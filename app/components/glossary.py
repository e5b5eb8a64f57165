"""What every number means: the one source of the definitions shown on hover and in reports."""

from __future__ import annotations

from dataclasses import dataclass

from app.figures import numbers


@dataclass(frozen=True)
class Term:
    """A quantity: the words it is shown under, and what they mean."""

    label: str
    """With the unit, where the value does not carry it."""
    definition: str


FAILURE_RATE = Term(
    "Failures per 1,000 node-days",
    "Attempts that failed, per 1,000 node-days they ran (GPUs / GPUs per node x running time: "
    "eight 1-GPU jobs are one node). A failure is NODE_FAIL, a filled FailedNode, or FAILED with a "
    "critical or fatal health event on one of its nodes from 10 minutes before to 5 minutes after "
    "its end. The interval is Garwood's exact one for a Poisson count, widened by a bootstrap over "
    "days where failures come in clusters.",
)
INCIDENT_RATE = Term(
    "Incidents per 1,000 node-days",
    "Bursts of failures on one node within one hour count once: a node that kills its job five "
    "times in a row is one incident and five failures.",
)
NODE_MTTF = Term(
    "MTTF of one node",
    "Mean time to failure of one node: 24 h / (failures per node-day). A job on N nodes waits an "
    "N-th of it, if nodes fail independently and at one rate.",
)
BETWEEN_FAILURES = Term(
    "Mean time between failures",
    "Mean gap between consecutive failures of the whole selection: (last - first) / (n - 1). It "
    "is about the fleet, not about a job.",
)
REPAIR = Term(
    "Mean time to repair",
    "Mean of the repair times that the source states, else of end - start of the failure. Only "
    "failures whose repair is known count.",
)
OUT_OF_SERVICE = Term(
    "Nodes out of service",
    "Nodes that the scheduler held down, drained or failing at the end of the period. Unknown "
    "where no source says so.",
)
COVERAGE = Term(
    "Sources with records",
    "Sources with at least one record in the period, of those that a site can have. A day without "
    "a record is shown as a gap, not as zero: nothing says whether it was quiet or not collected.",
)
CHANGE = (
    "The change is on the preceding period of the same length; it is coloured only where the two "
    "intervals do not overlap: else the numbers show no change."
)
PROJECTION = Term(
    "Projection",
    "MTTF of a job of N nodes if nodes fail independently at the measured rate r_f: "
    "24 / (N r_f) hours, after Kokolis et al., arXiv 2410.21680.",
)


def largest_jobs(gpus_from: int, gpus_to: int) -> Term:
    """The MTTF of the largest class of sizes that ran."""
    return Term(
        f"MTTF, {numbers.gpus(gpus_from, gpus_to)}",
        "Measured mean time to failure of jobs of the largest size that ran: their running hours "
        "divided by their failures. Without a failure only a lower bound is known.",
    )
