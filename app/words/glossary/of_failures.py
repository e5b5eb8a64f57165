"""Terms of Failures, Incidents, Incident, Job and Node, and of their records everywhere."""

from __future__ import annotations

from app.words.terms import Term

_INCIDENT = ("incident",)
_FAILURES = ("failures",)
_PEOPLE = ("incident", "incidents", "reports")
ATTEMPT = Term(
    "Attempt",
    "Ordinal of the attempt within its job, from 1.",
    pages=("job", "failures", "incident", "node", "ettr", "my_runs"),
    of_column=True,
)
ATTEMPT_KEY = Term(
    "Attempt key",
    "Key of the attempt in SQL and annotations.",
    pages=("job", "failures", "node", "ettr", "my_runs"),
    of_column=True,
)
METHOD = Term("Method", "What names the cause.", pages=("job", "failures"))
RECORD_KEY = Term(
    "Key of a record", "Key of the record in its table.", pages=("job", "incident"), of_column=True
)
RECORDS_ALIKE = Term(
    "Records alike", "Records alike that stand for one.", pages=("job",), of_column=True
)
CAUSE_NAME = Term(
    "Name of a cause",
    "Name of the cause in filters and annotations.",
    pages=("failures", "incidents"),
    of_column=True,
)
CAUSE = Term("Cause", "The leading cause of its failed attempts.", pages=_INCIDENT)
DOMAIN = Term("Domain", "Hardware, system software, user program, or unknown.", pages=_INCIDENT)
STATUS = Term("Status", "Open until a person acknowledges or resolves it.", pages=_INCIDENT)
WHO_ACTS = Term("Who acts", "Who mends the cause, and what to do.", pages=_INCIDENT)
AFTER_START = Term(
    "After the start (s)",
    "Time since the first failure or critical event of the incident.",
    unit="s",
    pages=_INCIDENT,
    of_column=True,
)
ROLE = Term(
    "Role", "Seeds make it an incident; the others are context.", pages=_INCIDENT, of_column=True
)
SHOWING_FIRST = Term(
    "Incidents with the first signal",
    "Incidents that show the first signal.",
    pages=("incidents",),
    of_column=True,
)
LIFT = Term(
    "Lift",
    "How many times as often as by chance two signals come together.",
    unit="ratio",
    pages=("incidents",),
    of_column=True,
)
BY_THIS_NODE = Term("By this node", "The verdict names this node.", pages=("node",), of_column=True)
CAUSAL_RATIO = Term(
    "Causal ratio",
    "Share of a check's hits around failed attempts that is not chance: the lesser of 1 - f / h "
    "and 1 - m / K. h: hits per node of failed attempts; f: the lower 90 % bound of hits per node "
    "of completed ones; m: the hits that its rate beside attempts that ran on would give; K: the "
    "lower bound of those there are. 100 %: it never fires by chance; 0: as often as around "
    "failure. Evidence counts by this share, and the less the more nodes an attempt has.",
    unit="ratio",
    pages=_FAILURES,
    of_column=True,
)
HIT_BY_CHANCE = Term(
    "Hit by chance",
    "Expected share of failed attempts near whose end a check fires that has nothing to do with "
    "it: 1 - exp(-N W r), for N nodes, the window W of attribution and the rate r of all checks by "
    "chance.",
    unit="ratio",
    pages=_FAILURES,
    of_column=True,
)
MISATTRIBUTED = Term(
    "Misattributed by chance",
    "The same of those checks that count as evidence at that size: expected share of failures "
    "whose cause no record shows that get a wrong one.",
    unit="ratio",
    pages=_FAILURES,
    of_column=True,
)
DISCOUNTED = Term(
    "Discounted",
    "Whether the check counts as evidence by its causal ratio only.",
    pages=_FAILURES,
    of_column=True,
)
RIGHT_CAUSE_OF = Term(
    "Right cause of",
    "Attempts whose right cause it is, as people said.",
    pages=_FAILURES,
    of_column=True,
)
NAMED_FOR = Term("Named for", "Attempts whose verdict names it.", pages=_FAILURES, of_column=True)
PRECISION = Term(
    "Precision",
    "Of the attempts that a cause is named for, the share of which it is the right one.",
    unit="ratio",
    pages=_FAILURES,
    of_column=True,
)
RECALL = Term(
    "Recall",
    "Of the attempts whose right cause it is, the share that it is named for.",
    unit="ratio",
    pages=_FAILURES,
    of_column=True,
)
LOG_CONFIDENCE = Term(
    "Confidence of a log's verdict", "Share of the evidence for this cause.", unit="ratio"
)
LABELS = Term("Labels", "What published taxonomies call the cause.")
ACCURACY = Term("Accuracy", "Share of the rows whose label the model names.", unit="ratio")
MACRO_F1 = Term(
    "Macro F1",
    "Mean of F1 over the labels: each counts alike, however rare it is.",
    unit="ratio",
    equation="F1 = 2 precision recall / (precision + recall)",
)
MODEL_COVERAGE = Term("Coverage", "Share of the rows on which the model speaks.", unit="ratio")
COVERED_ACCURACY = Term(
    "Accuracy where it speaks",
    "Share of the rows on which the model speaks that it gets right.",
    unit="ratio",
)
OWNER = Term("Owner", "The team that has the incident, as people say.", pages=_PEOPLE)
ASSIGNEE = Term("Assignee", "Who works on the incident, as people say.", pages=_PEOPLE)
ACKNOWLEDGED = Term(
    "Acknowledged after",
    "From the first record of the incident until somebody first said that it is acknowledged. "
    "Unknown where nobody said so, or where that was said before its first record.",
    unit="h",
    pages=_PEOPLE,
)
RESOLVED = Term(
    "Resolved after",
    "From the first record of the incident until somebody said that it is resolved. Unknown where "
    "nobody said so, or where that was said before its first record.",
    unit="h",
    pages=_PEOPLE,
)
REMEDY = Term(
    "What we do about it", "What was done and what will be, in people's words.", pages=_PEOPLE
)
RECOVERED_AFTER = Term(
    "Recovered after",
    "From the beginning of an incident until all its jobs ran again and its nodes were back.",
    unit="h",
    pages=_INCIDENT,
)
