"""The fleet report: how often jobs fail in a period, how sure that is, and what it rests on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from app import questions
from app.components import glossary
from app.figures import numbers
from app.reports import content
from app.reports.content import Headline, Table

if TYPE_CHECKING:
    from analytics.estimate import Estimate
    from analytics.reliability.mttf import MttfReport
    from app.components.glossary import Term
    from app.questions import Fleet
    from data.queries.selection import Selection
    from data.store import Store


@dataclass(frozen=True)
class FleetReport:
    """What a writer of a report prints."""

    title: str
    period: str
    filters: str
    summary: str
    """One sentence that says only what the numbers support."""
    headlines: tuple[Headline, ...]
    notes: tuple[str, ...]
    tables: tuple[Table, ...]
    missing: tuple[str, ...]
    """Sources without a record."""
    synthetic: bool
    conf_level: str
    basis: tuple[tuple[str, str], ...]
    """What the report was made from: versions, snapshot, hashes."""
    content_sha256: str


def report(
    store: Store, selection: Selection, *, conf_level: float = 0.90, seed: int = 0
) -> FleetReport:
    """How often did jobs of the selection fail, and what does that rest on?"""
    mttf = questions.mttf(store, selection, conf_level=conf_level, seed=seed)
    fleet = questions.fleet(store, selection)
    coverage = questions.coverage(store, selection)
    headlines = _headlines(mttf, fleet)
    tables = (
        _by_size(mttf),
        _projection(mttf),
        _out_of_service(fleet),
        content.coverage_table(coverage),
    )
    filters = _filters(selection)
    basis = content.basis(store)
    period = numbers.period(mttf.from_at, mttf.to_at, "UTC")
    printed = {
        "basis": basis,
        "filters": filters,
        "period": period,
        "headlines": [asdict(headline) for headline in headlines],
        "tables": [asdict(table) for table in tables],
        "notes": mttf.notes,
        "missing": coverage.missing,
        "conf_level": conf_level,
    }
    return FleetReport(
        title="Fleet reliability" + (f": {selection.cluster}" if selection.cluster else ""),
        period=period,
        filters=filters,
        summary=_summary(mttf),
        headlines=headlines,
        notes=mttf.notes,
        tables=tables,
        missing=coverage.missing,
        synthetic=store.current.synthetic,
        conf_level=f"{100 * conf_level:g} %",
        basis=tuple(basis.items()),
        content_sha256=content.digest(printed),
    )


def _summary(mttf: MttfReport) -> str:
    """The answer in a sentence."""
    rate = mttf.rate.rate_per_1000_node_days
    n = numbers.counted(mttf.rate.failures, "failure")
    if rate.value is None:
        return f"{n} counted; the failure rate is unknown, for the exposure is."
    if mttf.rate.failures == 0:
        return (
            f"No failure in {numbers.number(mttf.rate.exposure)} node-days: "
            f"at most {numbers.number(rate.upper)} per 1,000 node-days."
        )
    return (
        f"{n} in {numbers.number(mttf.rate.exposure)} node-days: {numbers.number(rate.value)} "
        f"per 1,000 node-days ({numbers.interval(rate)})."
    )


def _headlines(mttf: MttfReport, fleet: Fleet) -> tuple[Headline, ...]:
    """The numbers of the report's head."""
    out = fleet.n_out_of_service
    return (
        _rate(glossary.FAILURE_RATE, mttf.rate.rate_per_1000_node_days),
        _rate(glossary.INCIDENT_RATE, mttf.incident_rate.rate_per_1000_node_days),
        _duration(glossary.NODE_MTTF, mttf.rate.mttf_hours),
        _duration(glossary.BETWEEN_FAILURES, mttf.mean_time_between_failures_hours),
        _duration(glossary.REPAIR, mttf.mean_repair_hours),
        Headline(
            glossary.OUT_OF_SERVICE.label,
            numbers.count(out),
            f"of {fleet.n_nodes:,} nodes",
            "",
            glossary.OUT_OF_SERVICE.definition,
        ),
    )


def _rate(term: Term, estimate: Estimate) -> Headline:
    return Headline(
        term.label,
        numbers.number(estimate.value),
        numbers.interval(estimate),
        numbers.count(estimate.n),
        term.definition,
    )


def _duration(term: Term, estimate: Estimate) -> Headline:
    return Headline(
        term.label,
        numbers.duration(estimate.value),
        numbers.duration_interval(estimate),
        numbers.count(estimate.n),
        term.definition,
    )


def _by_size(mttf: MttfReport) -> Table:
    rows = tuple(
        (
            numbers.gpus(size.gpus_from, size.gpus_to),
            numbers.count(size.mttf_hours.n),
            numbers.count(size.running_hours),
            numbers.duration(size.mttf_hours.value),
            numbers.duration_interval(size.mttf_hours),
        )
        for size in mttf.by_size
    )
    columns = ("Job size", "Failures", "Running time (h)", "MTTF", "Interval")
    return Table("Measured MTTF by job size", columns, rows, "No job with GPUs ran.")


def _projection(mttf: MttfReport) -> Table:
    rows = tuple(
        (
            f"{point.gpus:,} GPUs",
            numbers.duration(point.mttf_hours.value),
            numbers.duration_interval(point.mttf_hours),
        )
        for point in mttf.projection
        if point.mttf_hours.lower is not None
    )
    columns = ("Job size", "MTTF", "Interval")
    return Table(
        "MTTF that the failure rate projects",
        columns,
        rows,
        "Unknown: the rate, or the number of GPUs in a node, is.",
    )


def _out_of_service(fleet: Fleet) -> Table:
    rows = tuple(
        (str(row.node), str(row.state), f"{row.since_at:%Y-%m-%d %H:%M}", str(row.reason or ""))
        for row in fleet.out_of_service.head(20).itertuples()
    )
    columns = ("Node", "State", "Since (UTC)", "Reason")
    empty = (
        "No source says which nodes are out of service."
        if fleet.n_out_of_service is None
        else "None."
    )
    return Table("Nodes out of service at the end of the period", columns, rows, empty, 4)


def _filters(selection: Selection) -> str:
    """The filters in words."""
    said = [
        f"{name} {value}"
        for name, value in (
            ("cluster", selection.cluster),
            ("partition", selection.partition),
            ("account", selection.account),
        )
        if value is not None
    ]
    if selection.min_gpus:
        said.append(f"jobs of {selection.min_gpus:,} GPUs and more")
    return ", ".join(said) or "all jobs"
