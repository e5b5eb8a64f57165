"""How much does the failure rate depend on what counts as a failure?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.frames import DEFINITION
from analytics.reliability.detection import seen_days
from analytics.reliability.mttf import mttf_report
from analytics.reliability.sensitivity import WITH_UNKNOWNS, Sensitivity, sensitivity
from app.answers.described import Rows, field
from app.answers.reliability import sight
from app.words import numbers, terms
from app.words.cells import Column
from data.queries import fleet, reliability
from data.queries import sensitivity as queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.frames import Columns, FailureDefinition
    from analytics.reliability.mttf import MttfReport
    from app.answers.content import Table
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

KEY = "sensitivity"
FORMER: FailureDefinition = "hardware"
"""By which the rate was counted before schema 6."""
TITLE = "Failure rate by definition"
COLUMNS = (
    field("definition", "Definition", of=lambda row: title(row.definition)),
    Column("failures", "Failures", "count", none="not known"),
    Column("rate_per_1000_node_days", "Failures per 1,000 node-days", "rate"),
    field(
        "counts",
        "What counts as a failure",
        of=lambda row: terms.DEFINITIONS[row.definition],
        wide=True,
    ),
)


def measured(
    store: Store, selection: Selection, *, conf_level: float = 0.90, seed: int = 0
) -> Sensitivity:
    """The rate of a selection by every definition, over the exposure that its own is given over."""
    selection = reliability.counted(store, selection)
    counts = reliability.failure_counts(store, selection)
    own = mttf_report(counts, conf_level=conf_level, seed=seed, gpus=())
    own = replace(own, sight=sight.sight(store, selection))
    judged, exposure = (
        {
            name: column[~np.isin(rows["cluster"], own.without_exposure)]
            for name, column in rows.items()
        }
        for rows in (queries.judged_days(store, selection), queries.exposure_days(store, selection))
    )
    rated = _rated(exposure, own)
    return sensitivity(
        {**judged, "missed": _missed(judged, own), "rated": _rated(judged, own)},
        {name: column[rated] for name, column in exposure.items()},
        blind=own.blind,
        conf_level=conf_level,
        seed=seed,
    )


def _rated(rows: Columns, own: MttfReport) -> NDArray[np.bool_]:
    """The rows of days that the rate of the page is given over."""
    found = own.detection
    if found is not None and found.scope == "detectable":
        return seen_days(rows["cluster"], rows["day"], found.sources)
    return np.ones(len(rows["day"]), dtype=bool)


def _missed(judged: Columns, own: MttfReport) -> NDArray[np.int64]:
    """Unexplained failures for whose sake the rate of the page is a range, by row; else 0."""
    found, unexplained = own.detection, judged["unexplained"].astype(np.int64)
    if found is None or found.scope != "range":
        return np.zeros_like(unexplained)
    return np.where(seen_days(judged["cluster"], judged["day"], found.sources), 0, unexplained)


def changed(ask: Ask, selection: Selection, found: Sensitivity) -> str:
    """That another definition held before this version; empty where the period is later."""
    since = ask(fleet.recounted_at)
    if since is None or (selection.from_at is not None and selection.from_at >= since):
        return ""
    now, before = (numbers.count(found.of(name).failures) for name in (DEFINITION, FORMER))
    return (
        f"Until {numbers.day(since)} the failure rate counted by definition {FORMER}, since then "
        f"by {DEFINITION}, as ledger, ETTR and incidents do. This period has {now} failures by "
        f"{DEFINITION} and {before} by {FORMER}; the period before is counted anew by the same "
        "definition as this one."
    )


def table(found: Sensitivity) -> Table:
    """One row a definition; the last counts unknowns by their probability."""
    return Rows(COLUMNS, found.rows if found.counted else ()).table(
        KEY,
        TITLE,
        empty="Nothing is recorded that ran or failed in this selection.",
        note=" ".join(_note(found)) if found.counted else "",
    )


def title(definition: str) -> str:
    """A definition as a table names it: no other quantity is called so."""
    named = {WITH_UNKNOWNS: "infrastructure and unknowns", FORMER: "hardware or a lost node"}
    return named.get(definition, definition)


def record(found: Sensitivity) -> list[dict[str, Any]]:
    """The JSON of the command; the last row says how probable an unexplained one is."""
    *named, last = ({"title": title(row.definition), **vars(row)} for row in found.rows)
    return [
        *named,
        {
            **last,
            "unexplained_failures": found.unexplained.unexplained,
            "probability": found.probability,
        },
    ]


def _note(found: Sensitivity) -> Iterator[str]:
    """What `paper` and the last row rest on."""
    unknowns = found.unexplained
    if found.logged:
        yield (
            f"{numbers.counted(found.logged, 'failure')} of a failure log, without jobs, "
            f"{'counts' if found.logged == 1 else 'count'} by every definition."
        )
    if found.unchecked:
        yield (
            f"No health event is known: paper can count none of "
            f"{numbers.counted(found.unchecked, 'attempt')} that ended FAILED."
        )
    if not unknowns.unexplained:
        yield "No failure is unexplained."
        return
    failures = numbers.counted(unknowns.unexplained, "unexplained failure")
    if found.probability.value is None:
        yield (
            f"{failures}: how many infrastructure ended is unknown, as no lost node tells how "
            "often evidence is found; the last row goes from none to all."
        )
        return
    share = numbers.percent(unknowns.lost_explained / unknowns.lost)
    yield (
        f"{failures} count in the last row with the probability "
        f"{numbers.percent(found.probability.value)}: evidence of a cause was found for {share} of "
        f"{numbers.counted(unknowns.lost, 'lost node')}, and is taken to be as likely elsewhere."
    )
