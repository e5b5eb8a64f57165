"""Is my fleet good, what did failures cost, what did large runs get?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.reliability.comparisons import PUBLISHED_BY, RSC1_RATE, RSC2_RATE
from analytics.reliability.fleet_verdict import Verdict, fleet_verdict
from app.answers.content import Answer, Number
from app.answers.efficiency import ettr, ledger, ledger_parts
from app.answers.failures import verdicts
from app.answers.failures.summary import commonest
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet import nodes, weeks
from app.answers.reliability import detection, mttf, rate_by_group
from app.answers.reliability.sight import CANNOT
from app.words import numbers
from app.words.plain import unbracketed
from data.filters import MTTF_MIN_GPUS

if TYPE_CHECKING:
    from analytics.reliability.mttf import MttfReport
    from app.ask import Ask
    from data.filters import Selection

OWN = "own last quarter"
PUBLISHED = {"RSC-1": RSC1_RATE, "RSC-2": RSC2_RATE}
"""Published fleets with their failures per 1,000 node-days."""
REFERENCES = (OWN, *PUBLISHED)
WORDS: dict[Verdict, str] = {
    "well": "Well", "watch": "Watch", "act": "Act", "unknown": "Not clear yet",
}  # fmt: skip
"""Verdict -> how the sentence begins."""
HOW: dict[Verdict, str] = {
    "well": "not clearly above {than}",
    "watch": "above {than}, maybe by chance",
    "act": "clearly above {than}",
    "unknown": "too little to say whether that is above {than}",
}


@dataclass(frozen=True)
class Judged:
    """The failure rate beside a reference."""

    verdict: Verdict
    reference: str
    """Its name."""
    selection: Selection
    """What is counted, by the definition of the reference."""
    report: MttfReport
    own: MttfReport
    """By the definition of the page, whose rate is that of every other page."""
    rate: Estimate
    than: Estimate
    """The reference, per 1,000 node-days."""


def judged(ask: Ask, selection: Selection, reference: str | None = None) -> Judged:
    """The verdict; without a reference beside the own last quarter, else beside RSC-1.

    Where failures could not all be seen, nothing is said beside a published rate.
    """
    report, quarter = ask(mttf.measured, selection), ask(mttf.measured_before, selection)
    own = report
    name = reference or (OWN if quarter is not None else "RSC-1")
    than = unknown(CONF_LEVEL, 0)
    if name == OWN and quarter is not None:
        than = quarter.rate.rate_per_1000_node_days
    elif name in PUBLISHED and report.rate.exposure and not detection.rate_in_words(report):
        selection, value = by_paper(selection), PUBLISHED[name]
        report = ask(mttf.measured, selection, by_node=False)
        than = Estimate(value, value, value, CONF_LEVEL, 0)
    rate = report.rate.rate_per_1000_node_days
    verdict = fleet_verdict(rate, than, blind=report.blind)
    return Judged(verdict, name, selection, report, own, rate, than)


def by_paper(selection: Selection) -> Selection:
    """The selection as the paper counts: its definition, jobs of more than 128 GPUs."""
    least = max(selection.min_gpus, MTTF_MIN_GPUS)
    return replace(selection, definition=PUBLISHED_BY, min_gpus=least)


def sentence(shown: Judged) -> str:
    """The verdict, and what it rests on; no verdict where nothing ran."""
    if not shown.report.rate.exposure:
        return mttf.fleet_sentence(shown.report)
    said = mttf.rate_in_words(shown.own)
    blind = shown.verdict == "unknown" and shown.report.failures_known is None
    word = CANNOT.capitalize() if blind else WORDS[shown.verdict]
    said = f"{word}: {said[:1].lower()}{said[1:]}"
    if shown.report is not shown.own:
        by = mttf.rate_in_words(shown.report)
        said += f"; as {shown.reference} counts, {by[:1].lower()}{by[1:]}"
    if shown.than.value is not None and not blind:
        own = shown.reference == OWN
        whose = "the quarter before's" if own else f"{shown.reference}'s"
        width = f" ({numbers.interval(shown.than)})" if shown.than.has_width else ""
        than = f"{whose} {numbers.number(shown.than.value)}{width}"
        how = HOW[shown.verdict].format(than=than)
        if shown.verdict == "well" and (shown.rate.value or 0.0) <= shown.than.value:
            how = f"no worse than {than}"
        return f"{said}, {how}."
    if shown.reference == OWN:
        return f"{said}; nothing is recorded of the quarter before."
    return f"{said}."


def answer(
    ask: Ask, selection: Selection, *, reference: str | None = None, gpus: int | None = None
) -> Answer:
    """Is the fleet well beside a reference, and what do failures cost?

    `gpus` is the job size of the MTTF; the largest usual one where none is given.
    """
    shown = judged(ask, selection, reference)
    report, before = ask(mttf.measured, selection), ask(mttf.measured_before, selection)
    headlines = mttf.Headlines(report, before, selection)
    return Answer(
        sentence(shown),
        (
            *weeks.beside(ask, selection, [_rate(ask, selection, headlines)]),
            mttf.projected_number(mttf.of_size(ask, selection, gpus)),
            *weeks.beside(ask, ettr.of_large_runs(selection), ettr.large_runs(ask, selection)),
            *weeks.beside(ask, selection, _lost(ask, selection)),
        ),
        (
            rate_by_group.chart(ask(rate_by_group.rates, selection, "week"), report, "week"),
            nodes.unplanned(ask(nodes.nodes, selection)),
        ),
        mttf.notes(shown.report, selection),
    )


def _rate(ask: Ask, selection: Selection, headlines: mttf.Headlines) -> Number:
    """How often the fleet fails, and the commonest cause."""
    number, first = headlines.number(mttf.RATE), commonest(ask(verdicts.summarised, selection))
    if first is not None:
        most = f"most: {unbracketed(first.title)}"
        number = replace(number, says="; ".join(filter(None, (number.interval, most))))
    return number


def _lost(ask: Ask, selection: Selection) -> tuple[Number, ...]:
    """What failures cost, in money where a price is known, and the cause that cost most; then what
    unexplained failures would add."""
    cost = ask(ledger.if_built, selection)
    first = ledger.costliest_cause(cost)
    number, *may_be = ledger_parts.lost_to_failures(cost, selection)
    parts = [number.basis]
    bucket = None if cost is None else cost.bucket("lost_work")
    if cost is not None and bucket is not None and bucket.cost is not None:
        parts.append(f"{numbers.number(bucket.cost)} {cost.currency or ''}".strip())
    if first is not None:
        parts.append(f"most by {ask(cause_titles).get(first, first)}")
    cause = ask(cause_titles).get(first, first) if first is not None else ""
    most = commonest(ask(verdicts.summarised, selection))
    same = most is not None and most.title == cause
    says = f"costliest: {'the same cause' if same else unbracketed(cause)}" if cause else ""
    shown = replace(number, basis="; ".join(part for part in parts if part), says=says)
    return (shown, *may_be)
