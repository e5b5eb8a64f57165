"""Systems of the literature that are no policy to rank, and where the product has what they do."""

from __future__ import annotations

from typing import NamedTuple


class Analysis(NamedTuple):
    """A system, and the analysis that stands for it."""

    system: str
    does: str
    source: str
    command: str
    """That answers it; empty where nothing does yet."""


ANALYSES = (
    Analysis(
        "TPUv4 resiliency (NSDI 24)",
        "Share of the time in which a job of so many nodes or racks can run, with and without "
        "reconfiguration: .08 % of machines fail a day.",
        "NSDI 24, reported",
        "availability",
    ),
    Analysis(
        "Unicron's planner (2401.00134)",
        "Which job gives up nodes, so that all jobs together lose least.",
        "2401.00134, reported",
        "reconfigure",
    ),
    Analysis(
        "Llama 3, interruptions (2407.21783)",
        "Causes by the paper's own labels: 419 interruptions, of which faulty GPUs are 35.3 %, not "
        "the printed 30.1 %.",
        "Table 5, reported",
        "classify",
    ),
    Analysis(
        "PyTorch flight recorder",
        "The rank that never joined a collective.",
        "PyTorch documentation",
        "hangs",
    ),
    Analysis(
        "C4's delay matrix (2406.04594)",
        "Slow link, sender or receiver out of delays between all hosts.",
        "2406.04594, reported",
        "links",
    ),
    Analysis(
        "Minder's detector (2411.01791)",
        "The machine whose metrics differ from all others'.",
        "2411.01791: precision .904, recall .883, reported",
        "machines",
    ),
    Analysis(
        "DistAD, runtime entropy (2202.13898, withdrawn by its author; 2110.06629)",
        "Distribution and entropy of runtime information, with a model of one class.",
        "abstracts alone",
        "",
    ),
    Analysis(
        "SuperBench / Anubis (ATC 24)",
        "Which nodes to test next, by hazard, cost of the test and of an incident.",
        "2402.06194, reported",
        "validate-plan",
    ),
    Analysis(
        "ByteRobust's standby machines",
        "As many as are enough for 99 % of the time: 2, 2, 3, 4 of 128 to 1,024 machines.",
        "Table 7, reported",
        "spares",
    ),
    Analysis(
        "Parcae's liveput (NSDI 24)",
        "The layout of most expected throughput under a forecast of preemptions: in the policy.",
        "NSDI 24, abstract",
        "policies",
    ),
    Analysis(
        "Google's runtime goodput",
        "(dt - checkpoint) / (dt + restart + recomputation) of one interval: the ledger's parts.",
        "reported",
        "ledger",
    ),
)
