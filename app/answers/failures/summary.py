"""What fails, how often, whose fault is it?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analytics.estimate import CONF_LEVEL, unknown
from analytics.failures.cause_rates import causes_by_week
from app.answers.content import Answer, Block, Chart, Missing, Number, Part, Table, estimated
from app.answers.described import CHART, TABLE, Rows, field, sheet_of
from app.answers.efficiency import ledger, ledger_parts
from app.answers.failures import counted, trust, verdicts
from app.answers.reliability import detection, mttf, sight
from app.words import domains, numbers, terms
from app.words.glossary import of_failures

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from analytics.efficiency.goodput import GoodputLedger
    from analytics.failures.cause_rates import CausesByWeek
    from analytics.failures.summary import CauseCount, FailureSummary
    from app.answers.content import Sheet
    from app.ask import Ask
    from data.filters import Selection

NOBODY_KNOWS = unknown(CONF_LEVEL, 0)
NO_ATTEMPT = "No attempt that ended is recorded."
ACTIONABLE = ("hardware", "system_software")
"""What operators can act on: the other two can be a hundred times as many and hide it."""
RATE = "rate_per_1000_node_days"
NAMED = 3
"""Causes that are named in a sentence, the most frequent."""
NOTHING_ENDED = Missing(
    "failures",
    "No attempt ended in this selection.",
    "Choose a longer period, a smaller job size, or reset the filters. Verdicts need the "
    "scheduler's records of jobs:",
    sight.JOBS[:1],
)
NO_JOBS = sight.nodes_alone("jobs")


def answer(
    ask: Ask,
    selection: Selection,
    shown: Collection[str] = ACTIONABLE,
    *,
    conf_level: float = 0.90,
) -> Answer:
    """What fails, how often, whose fault is it?

    `shown` are the domains that the charts draw; tables and numbers hold all.
    """
    seen = ask(sight.sight, selection)
    summary = ask(verdicts.summarised, selection, conf_level=conf_level)
    chance = ask(trust.by_chance, selection, conf_level=conf_level)
    cost = ask(ledger.if_built, selection, conf_level=conf_level)
    if not summary.n_ended and not summary.n_failed:
        blocks: tuple[Block, ...] = (NOTHING_ENDED,)
    else:
        blocks = (
            by_week(summary, selection, shown),
            *ranking(summary, shown),
            by_cause(summary, selection, cost),
            by_domain(summary),
            states_chart(summary),
            by_state(summary),
            trust.by_size(chance),
        )
    missing = notes(ask, selection)
    return Answer(
        sentence(summary),
        headlines(summary, selection, cost) if summary.n_ended else (),
        blocks,
        missing,
        record={"definition": selection.definition}
        | record(summary, cost)
        | {"misattribution_by_size": chance, "notes": missing}
        | sight.record(seen),
        sheet=_sheet(summary, cost),
    )


def notes(ask: Ask, selection: Selection) -> tuple[str, ...]:
    """What was not collected, so that its failures are missing or have no known cause."""
    return detection.not_collected(ask(mttf.measured, selection))


def commonest(summary: FailureSummary) -> CauseCount | None:
    """The cause of most infrastructure failures; None where each happened but once."""
    known = [c for c in summary.by_cause if c.domain in ("hardware", "system_software")]
    first = max(known, key=lambda cause: cause.n_attempts, default=None)
    return first if first is not None and first.n_attempts > 1 else None


def sentence(summary: FailureSummary) -> str:
    """What failed and whose fault it was, as far as sources could show it."""
    seen = summary.sight
    if not summary.n_ended and not summary.n_failed:
        if seen is not None and (seen.beyond or seen.jobs_unknown):
            return sight.refused("What failed", seen)
        return "No attempt ended in this selection."
    if not summary.n_failed:
        return f"None of {numbers.counted(summary.n_ended, 'attempt')} failed."
    n = {domain.domain: domain.n_attempts for domain in summary.by_domain}
    failed = []
    if summary.n_ended:
        ended = numbers.counted(summary.n_ended, "attempt")
        failed.append(f"{summary.n_failed_attempts:,} of {ended} failed")
    if summary.n_logged:
        failed.append(f"{_logged(summary)} known without jobs")
    first, infrastructure = commonest(summary), summary.counted.n
    all_unknown = n["unknown"] == summary.n_failed
    if seen is not None and seen.none and (all_unknown or not infrastructure):
        own = "" if all_unknown else f", {n['user']:,} by the user's program"
        what = _whose(n["unknown"], all_unknown=all_unknown)
        return f"{' and '.join(failed)}{own}; {sight.refused(what, seen)}"
    most = ""
    if first is not None and first.n_attempts < infrastructure:
        most = f", most by {first.title.partition(' (')[0]}"
    both = summary.counted.by_domain.get("unknown", 0)
    lost = f" ({both:,} of them count as infrastructure)" if both else ""
    return (
        f"{numbers.counted(infrastructure, 'infrastructure failure')}{most}; {n['user']:,} by the "
        f"user's program, {n['unknown']:,} of unknown cause{lost}: {' and '.join(failed)}."
    )


def _whose(n_unknown: int, *, all_unknown: bool) -> str:
    """What nobody could see of the failures."""
    if all_unknown:
        return "whose fault it was"
    if not n_unknown:
        return "whether the infrastructure ended any"
    return "whose fault the other was" if n_unknown == 1 else f"whose fault {n_unknown:,} were"


def _logged(summary: FailureSummary) -> str:
    """Failures of a failure log: those of nodes, and those of what nodes share."""
    n_nodes, n_shared = summary.n_logged - summary.n_shared, summary.n_shared
    said = [f"{numbers.counted(n_nodes, 'failure')} of nodes"] * bool(n_nodes)
    said += [f"{numbers.counted(n_shared, 'failure')} of what nodes share"] * bool(n_shared)
    return " and ".join(said)


def details(summary: FailureSummary, cost: GoodputLedger | None) -> Iterator[str]:
    """What cost most, what failed most, what hardware failed most, and what stays unknown."""
    yield ledger.cost_in_words(cost, summary.titles)
    known = [c for c in summary.by_cause if c.n_attempts and c.domain != "unknown"]
    if known:
        most = ", ".join(_frequency(cause) for cause in known[:NAMED])
        yield f"Most frequent {'cause' if len(known) == 1 else 'causes'}: {most}."
    hardware = [cause for cause in known if cause.domain == "hardware"]
    if hardware and hardware[0] not in known[:NAMED]:
        yield f"Most frequent hardware cause: {_frequency(hardware[0])}."
    if summary.unknown_ratio.value:
        yield (
            f"Of {numbers.percent(summary.unknown_ratio.value)} of what failed "
            f"({numbers.percent_interval(summary.unknown_ratio)}) the cause is unknown."
        )


def _frequency(cause: CauseCount) -> str:
    return f"{cause.title} ({numbers.counted(cause.n_attempts, 'attempt')})"


def headlines(
    summary: FailureSummary, selection: Selection, cost: GoodputLedger | None
) -> tuple[Number, ...]:
    """How many failed, how many for an unknown reason, by infrastructure, and what they cost.

    `cost` is the ledger, None where it is not built; what failed jobs held is no cost and is last.
    """
    failed, ended = summary.n_failed_attempts, summary.n_ended
    ratio = failed / ended if ended else None
    lost, held = summary.failed_gpu_hours, summary.held_gpu_hours
    share = lost / held if held and lost is not None else None
    logged = f"; {_logged(summary)} besides" if summary.n_logged else ""
    return (
        Number(
            terms.FAILED_ATTEMPTS,
            f"{failed:,} of {ended:,}",
            f"{numbers.percent(ratio)} of attempts that ended{logged}",
            exact=failed,
            unit="attempts",
            opens=_behind(selection),
        ),
        unknown_cause(summary, selection),
        sight.number(terms.COUNTED_FAILURES)
        if summary.blind and not summary.counted.n
        else Number(
            terms.COUNTED_FAILURES,
            numbers.count(summary.counted.n),
            counted.parts(summary.counted),
            exact=summary.counted.n,
            unit="failures",
            opens=_behind(selection, rated=True),
        ),
        *ledger_parts.lost_to_failures(cost, selection),
        Number(
            terms.FAILED_GPU_HOURS,
            numbers.number(lost),
            f"{numbers.percent(share)} of what all jobs held, running ones too"
            if held
            else "no job states GPUs",
            exact=lost,
            unit="GPU-hours",
            opens=_behind(selection),
        ),
    )


def unknown_cause(summary: FailureSummary, selection: Selection) -> Number:
    """Share of unknown cause; how many, and how many of these may be failures that count."""
    unexplained = numbers.count(summary.counted.unexplained)
    return estimated(
        terms.UNKNOWN_CAUSE,
        "share",
        summary.unknown_ratio,
        more=f"; {summary.n_unknown:,}, {unexplained} of them unexplained",
        opens=_behind(selection, domain="unknown"),
    )


def _behind(selection: Selection, *, domain: str | None = None, rated: bool = False) -> Part:
    """The attempts behind a number; `rated`: those that the failure rate counts."""
    return Part("Failed attempts", verdicts.behind, (selection, None, domain, rated))


def by_week(
    summary: FailureSummary, selection: Selection, shown: Collection[str]
) -> Chart | Missing:
    """Rates of the chosen domains week by week, or what can be chosen instead."""
    if not summary.n_failed_of(shown):
        return _none_of(summary, shown)
    period = summary.on_clocks(selection.from_at), summary.on_clocks(selection.to_at)
    known = summary.exposure_node_days is not None
    what = "Failed attempts per 1,000 node-days" if known else "Failed attempts"
    causes = causes_by_week(summary.by_week, shown, period=period)
    return Chart(
        "failures.causes_over_time",
        "Which causes fail how often, week by week?",
        f"{what} by cause and week. The table has the values of the whole period.",
        (causes,),
        "causes_by_week",
        {"titles": summary.titles, "exposure_known": known},
        rows=weeks(causes, summary.titles),
    )


def weeks(causes: CausesByWeek, titles: Mapping[str, str]) -> Rows:
    """A row a cause and week."""
    described = (
        "week",
        "cause",
        "title",
        "domain",
        field("attempts", of="n_attempts"),
        "exposure_node_days",
        field(
            RATE,
            kind="rate",
            names={"chart": (RATE, f"{RATE}_lower", f"{RATE}_upper", "conf_level")},
        ),
    )
    rows = [
        vars(week)
        | {
            "cause": series.cause or f"other_{series.domain}",
            "title": domains.series_title(series, titles),
            "domain": series.domain,
        }
        for series in causes.series
        for week in series.weeks
    ]
    return Rows(described, rows)


def _none_of(summary: FailureSummary, shown: Collection[str]) -> Missing:
    """Nothing failed in the chosen domains, though it may have in others."""
    others = [
        f"{domains.title(d.domain)} ({d.n_attempts:,})"
        for d in summary.by_domain
        if d.n_attempts and d.domain not in shown
    ]
    chosen = " or ".join(domains.title(domain) for domain in shown)
    finding = f"No failed attempt of {chosen} in this selection."
    if summary.blind:
        finding = f"Which failed by {chosen} {sight.CANNOT}."
    return Missing(
        "causes_by_week",
        finding if shown else "No domain is chosen.",
        f"Choose above: {', '.join(others)}."
        if others
        else "No failed attempt is recorded at all.",
    )


def ranking(summary: FailureSummary, shown: Collection[str] = tuple(domains.TITLES)) -> list[Block]:
    """The most frequent causes of some domains; none where nothing failed."""
    causes = summary.causes_of(shown)
    if not any(cause.n_attempts for cause in causes):
        return []
    known = summary.exposure_node_days is not None
    what = "Failed attempts per 1,000 node-days" if known else "Failed attempts"
    return [
        Chart(
            "failures.cause_ranking",
            "Which causes fail most?",
            f"{what} by cause, the most frequent first. The table has the values.",
            (causes,),
            options={"exposure_known": known},
            rows=_causes(causes),
        )
    ]


def by_cause(summary: FailureSummary, selection: Selection, cost: GoodputLedger | None) -> Table:
    """Failed attempts of each cause, what cost most first, then the most frequent; who does what.

    A row opens its attempts.
    """
    return _causes(_by_cost(summary, cost), cost).table(
        "causes",
        "All causes",
        empty="No attempt failed." if summary.n_ended else NO_ATTEMPT,
        opens=Part("Failed attempts", verdicts.behind, (selection,), ("cause",))
        if summary.n_ended
        else None,
    )


def _causes(causes: Sequence[CauseCount], cost: GoodputLedger | None = None) -> Rows:
    lost = _lost(cost)
    described = (
        field("title", "Cause"),
        field("action", "What to do", wide=True),
        field("domain", "Domain", of=lambda cause: domains.title(cause.domain)),
        field("attempts", "Failed attempts", "count", "n_attempts"),
        field(
            "ledger_gpu_hours",
            "Lost, by the ledger (GPU-h)",
            "number",
            lambda cause: lost.get(cause.cause),
            on=TABLE,
            none=ledger_parts.NOT_BUILT if cost is None else "none",
        ),
        field("gpu_hours", "Held by failed jobs (GPU-h)", "number"),
        field(RATE, "Failed per 1,000 node-days", "rate"),
        field("who_acts", "Who acts", of="owner"),
        field("cause", "Name", wide=True, term=of_failures.CAUSE_NAME),
    )
    return Rows(described, causes)


def by_domain(summary: FailureSummary) -> Table:
    """Failed attempts of each domain; where failures could not be seen, only those with some."""
    described = (
        field("domain", "Domain", of=lambda domain: domains.title(domain.domain)),
        field("attempts", "Failed attempts", "count", "n_attempts"),
        field("share", "Share of failed", "share"),
        field("gpu_hours", "Held by failed jobs (GPU-h)", "number"),
        field(RATE, "Failed per 1,000 node-days", "rate"),
    )
    known = [
        domain
        for domain in summary.by_domain
        if summary.n_failed and (domain.n_attempts or not summary.blind)
    ]
    return Rows(described, known).table(
        "domains",
        "Whose fault: domains of failure",
        empty="No attempt failed." if summary.n_ended else NO_ATTEMPT,
        note=f"Whose fault it was {sight.BASIS}." if summary.blind and summary.n_failed else "",
    )


def states_chart(summary: FailureSummary) -> Chart:
    """States by count and by GPU-time, side by side."""
    return Chart(
        "failures.states",
        "How do attempts end, by number and by GPU-time?",
        "Share of the attempts and of the GPU-time of each state. The table has the values.",
        (summary.by_state,),
        "states",
        rows=_states(summary),
    )


def by_state(summary: FailureSummary) -> Table:
    """How attempts ended."""
    empty = "No attempt ended in the period."
    return _states(summary).table("states", "How attempts ended", empty=empty)


def _states(summary: FailureSummary) -> Rows:
    """A row a state; a chart's data hold shares in percent."""
    described = (
        field("state", "State"),
        field("attempts", "Attempts", "count", "n_attempts"),
        field("share", "Share of ended", "share", on=TABLE),
        field("percent", kind="share", of=lambda state: state.share.scaled(100.0), on=CHART),
        field("gpu_hours", "Held (GPU-h)", "number"),
        field("gpu_time_share", "Share of GPU-h of ended", "ratio", on=TABLE),
        field(
            "gpu_time_percent",
            of=lambda state: None if state.gpu_time_share is None else 100.0 * state.gpu_time_share,
            on=CHART,
        ),
    )
    return Rows(described, summary.by_state)


def _lost(cost: GoodputLedger | None) -> dict[str, float | None]:
    losses = {} if cost is None else cost.failure_losses
    return {cause: hours.value for cause, hours in losses.items()}


def _by_cost(summary: FailureSummary, cost: GoodputLedger | None) -> list[CauseCount]:
    """Causes, what cost most by the ledger first; of equal cost the most frequent."""
    lost = _lost(cost)
    return sorted(summary.by_cause, key=lambda cause: -(lost.get(cause.cause) or 0.0))


def record(summary: FailureSummary, cost: GoodputLedger | None) -> dict[str, Any]:
    """The JSON of the command; where no failure could be seen, none is unknown and not 0."""
    unseen = summary.blind and not summary.counted.n
    lost = _lost(cost)
    return {
        "ended": summary.n_ended,
        "failed": summary.n_failed,
        "failed_without_attempt": summary.n_logged,
        "failed_without_node": summary.n_shared,
        **counted.record(summary.counted, blind=summary.blind),
        "held_by_failed_jobs_gpu_hours": summary.failed_gpu_hours,
        "held_gpu_hours": summary.held_gpu_hours,
        "exposure_node_days": summary.exposure_node_days,
        "by_state": summary.by_state,
        ledger.LOST_KEY: ledger.lost_to_failures(cost),
        "costliest_cause": ledger.costliest_cause(cost),
        "by_cause": [
            {**vars(count), "ledger_gpu_hours": lost.get(count.cause)}
            for count in _by_cost(summary, cost)
        ],
        "by_domain": [
            replace(count, share=NOBODY_KNOWS, rate_per_1000_node_days=NOBODY_KNOWS)
            if unseen and not count.n_attempts
            else count
            for count in summary.by_domain
        ],
        "unknown_ratio": summary.unknown_ratio,
    }


def _sheet(summary: FailureSummary, cost: GoodputLedger | None) -> Sheet:
    """Every count as a row; `gpu_hours` is what attempts held, `ledger_gpu_hours` what was lost."""
    lost = _lost(cost)
    rate = "per 1,000 node-days"
    rows: list[tuple[Any, ...]] = [
        *(
            ("state", s.state, None, s, s.share, "share of ended attempts")
            for s in summary.by_state
        ),
        *(
            ("cause", c.cause, c.domain, c, c.rate_per_1000_node_days, rate)
            for c in _by_cost(summary, cost)
        ),
        *(
            ("domain", d.domain, d.domain, d, d.rate_per_1000_node_days, rate)
            for d in summary.by_domain
        ),
    ]
    return sheet_of(
        [
            {
                "by": by,
                "name": name,
                "domain": domain,
                "attempts": count.n_attempts,
                "gpu_hours": count.gpu_hours,
                "value": estimate.value,
                "lower": estimate.lower,
                "upper": estimate.upper,
                "quantity": quantity,
                "ledger_gpu_hours": lost.get(name) if by == "cause" else None,
            }
            for by, name, domain, count, estimate, quantity in rows
        ]
    )
