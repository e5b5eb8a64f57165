"""Terms of silent corruption: suspects of a run, and the fault-injection lab."""

from __future__ import annotations

from app.words.terms import Term

_RUNS = ("runs",)

SILENT_CORRUPTION = Term(
    "Silent data corruption",
    "A wrong result that nothing reports: no error, no XID, no failed check. The loss may look as "
    "ever while parameters drift; only a comparison of what must be equal proves it.",
    source="He et al., arXiv 2502.12340",
    pages=_RUNS,
)
SUSPECTS = Term(
    "Suspects",
    "Ranks whose logged series speak against them. A suspect is a rank to test again, not one that "
    "is known to be broken.",
    pages=_RUNS,
)
SUSPECT_GRADE = Term(
    "Evidence",
    "Proof: checksums of replicas that must be equal differ. Strong: the checksum of a rank never "
    "is that of the others, a number that is the same on all ranks by construction is not, a rank "
    "moved away from the others and stays, or lay far outside three times. Weak: once or twice, as "
    "one bad batch makes it too, or on more than one rank in eight at once.",
    of_column=True,
    pages=_RUNS,
)
SUSPECT_P = Term(
    "Chance",
    "Chance of one such rank in a sound run, over all its ranks and steps; the threshold is shared "
    "out over the series so that a sound run has a suspect in one of 100 cases. Empty where no "
    "chance is in it: numbers that must be equal are not.",
    of_column=True,
    pages=_RUNS,
)
SUSPECT_NODE = Term(
    "Node to test",
    "Rank divided by the GPUs of a node, in the order of the node list of the attempt that logged "
    "the step: right where ranks were laid out in that order, as is usual.",
    of_column=True,
    pages=_RUNS,
)
SERIES_SEEN = Term(
    "Indicators seen",
    "Indicators of silent corruption of which ranks could be compared: checksums, gradient norm, "
    "loss, norms of queries and keys, attention entropy, cosine of updates.",
    pages=_RUNS,
)
INJECTION = Term(
    "Injection",
    "One bit of one float32 flipped in one replica of a small transformer: in weights, "
    "activations, a replica's gradient before it is averaged, or moments of the optimizer; once, "
    "or stuck from then on. Synthetic: it is a small transformer in NumPy, not your run.",
)
DETECTED = Term(
    "Detected",
    "Share of flips after which an indicator alarms before the run ends, of those after whose step "
    "it is silent in the same run without the flip.",
    unit="ratio",
    of_column=True,
)
LAB_FALSE_ALARMS = Term(
    "False alarms",
    "Share of clean runs in which an indicator alarms; they are others than those that set its "
    "threshold.",
    unit="ratio",
    of_column=True,
)
HARMFUL_FLIPS = Term(
    "Harmful flips",
    "Flips after which the held-out loss at the end lies beyond what clean runs reach: they do so "
    "in one of 50 cases. The worst replica counts.",
)
LAB_DELAY = Term(
    "Delay",
    "Steps from the flip to the first alarm: the median over the harmful flips that are seen.",
    unit="steps",
    of_column=True,
)
SURVIVED = Term(
    "Survived",
    "Share of the flips that are harmful without a mitigation and do no harm with it: the same "
    "flips of the same runs, judged by clean runs under the same mitigation.",
    unit="ratio",
    of_column=True,
)
KEPT_FINITE = Term(
    "Kept finite",
    "Share of the flips that end in NaN or an infinite loss without a mitigation, and in a number "
    "with it.",
    unit="ratio",
    of_column=True,
)
MITIGATION_HARM = Term(
    "Harmed by it",
    "Share of flips that are harmless without a mitigation and harmful with it.",
    unit="ratio",
    of_column=True,
)
MITIGATION_COST = Term(
    "Cost in clean runs",
    "Held-out loss of clean runs under a mitigation less that of clean runs without: above 0 it "
    "costs something where nothing is wrong.",
    unit="nats",
    of_column=True,
)
