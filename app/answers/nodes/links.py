"""Which link, sender, receiver or switch is slow, by delays between pairs of hosts?"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.estimate import CONF_LEVEL
from analytics.nodes.links.verdict import LEAST_RATIO, slow_links
from app.answers.content import Answer, Chart, Missing, Number, Table, estimated
from app.answers.described import Rows, field
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_nodes
from data.ingest.readers.metrics.delays import read_delays

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.nodes.links.verdict import Finding, SlowLinks

MOST_HOSTS = 8
"""Hosts of a group that a sentence names."""
MOST_TOLD = 100
"""Ratio beyond which next to nothing was measured."""
SIZES = (Column("sizes", "Size of messages"), Column("ratio", "Delay over usual", "decimal"))
PAIR_COLUMNS = ("source", "destination", "ratio", "samples")
WAYS = {
    "out": "in what it sends",
    "in": "in what it receives",
    "either": "in all that it sends and receives",
    "across": "in what leaves it, not inside",
    "within": "inside",
    "between": "from it to others",
    "both": "in both directions",
    "link": "",
}
NONE_GIVEN = Missing(
    "delays",
    "No delays are given.",
    "Measure transfers between all pairs of hosts several times (e.g. `sendrecv_perf` of "
    "nccl-tests, two hosts at a time) and write one row each: source, destination, delay_us; "
    "size_bytes where sizes differ, source_switch and destination_switch where switches are known.",
    ("faultline links delays.csv", "faultline links delays.csv --groups switches.csv"),
)


@dataclass(frozen=True)
class Examined:
    """What the delays of a file show."""

    found: SlowLinks
    n_rejected: int
    """Rows or cells that were left out."""
    rejected_at: int | None
    """Line of the first of them."""
    groups_left_out: tuple[int, int] | None
    """Lines of the table of switches that were left out: how many, and the first of them."""


def examined(
    name: str,
    groups: str | None = None,
    *,
    least_ratio: float = LEAST_RATIO,
    conf_level: float = CONF_LEVEL,
) -> Examined:
    """What is slow in the delays of a file.

    Raises
    ------
    DataError
        Where it cannot be read or has no delay.
    """
    file = read_delays(name, groups)
    found = slow_links(file.samples, least_ratio=least_ratio, conf_level=conf_level)
    return Examined(found, file.n_rejected, file.rejected_at, file.groups_left_out)


def answer(file: Examined) -> Answer:
    """What is slow, how sure that is, and what would change it."""
    found = file.found
    return Answer(
        _sentence(found),
        _headlines(found),
        tuple(_blocks(found)),
        notes=tuple(_notes(file)),
        record=_record(file),
        sheet=_pairs(found).sheet(),
    )


def _sentence(found: SlowLinks) -> str:
    if found.findings:
        first, *more = found.findings
        ratio = _times(first.ratio.value)
        others = f" {len(more)} more below." if more else ""
        where = WAYS[first.way]
        verb = "are" if first.verdict == "group" and len(first.hosts) > 1 else "is"
        place = f" {where}" if where and first.verdict in ("group", "link") else ""
        return f"{_what(first)} {verb} slow{place}: {ratio} the usual delay.{others}"
    if found.nearest is None:
        return "No slow link, sender, receiver or group."
    what, most = found.nearest
    return (
        f"No slow link, sender, receiver or group: the nearest, {what}, takes {_times(most)} the "
        "usual delay, which chance explains."
    )


def _what(finding: Finding) -> str:
    """The slow thing by its names."""
    if finding.verdict == "link":
        return f"Link {finding.source} to {finding.destination}"
    if finding.verdict == "sender":
        return f"Sender {finding.source}"
    if finding.verdict == "receiver":
        return f"Receiver {finding.destination}"
    named = ", ".join(finding.hosts[:MOST_HOSTS])
    more = len(finding.hosts) - MOST_HOSTS
    return (
        f"Host {named}"
        if len(finding.hosts) == 1
        else (f"Hosts {named}" + (f" and {more} more" if more > 0 else ""))
    )


def _headlines(found: SlowLinks) -> tuple[Number, ...]:
    all_pairs = found.n_pairs + found.n_missing
    pairs = Number(
        of_nodes.PAIRS,
        f"{found.n_pairs:,} of {all_pairs:,}",
        f"{found.n_samples:,} samples, {numbers.counted(found.n_endpoints, 'endpoint')}",
        exact=found.n_pairs,
        unit="pairs",
    )
    limits = tuple(
        Number(term, _times(ratio), "the usual delay", exact=ratio, unit="ratio")
        for term, ratio in (
            (of_nodes.LINK_FROM, found.link_from_ratio),
            (of_nodes.END_FROM, found.end_from_ratio),
        )
    )
    if not found.findings:
        return (pairs, *limits)
    return (estimated(of_nodes.SLOWER, "ettr", found.findings[0].ratio), pairs, *limits)


def _blocks(found: SlowLinks) -> Iterator[Table | Chart]:
    says = "Delay of each pair over the usual one, senders by receivers"
    yield Chart(
        "nodes.delay_matrix",
        "How slow is each pair?",
        says,
        (found,),
        whole=True,
    )
    yield Rows(FINDINGS, found.findings).table(
        "findings", "What is slow", empty="Nothing is slow beyond chance."
    )
    if found.findings and len(found.findings[0].by_size) > 1:
        by_size = [(_sizes(sizes), ratio) for sizes, ratio in found.findings[0].by_size]
        yield Table("by_size", "The same by size of message", SIZES, by_size)


def _instead(finding: Finding) -> str | None:
    if not finding.instead:
        return None
    less = finding.log_likelihood_ratio or 0.0
    return f"{finding.instead}, less likely by e^{less:.0f}"


FINDINGS = (
    Column("verdict", "Slow"),
    field("what", "What", of=lambda finding: f"{_what(finding)} {WAYS[finding.way]}".strip()),
    Column("ratio", "Delay over usual", "ettr"),
    field("pairs", "Pairs or samples", "count", "ratio.n"),
    Column("named_from_ratio", "Named from", "decimal"),
    field("instead", "Next best explanation", of=_instead, none="none"),
)


def _notes(file: Examined) -> Iterator[str]:
    """What the verdict rests on, and what would change it."""
    found = file.found
    if file.n_rejected:
        yield (
            f"{numbers.counted(file.n_rejected, 'row or cell', 'rows or cells')} left out, the "
            f"first of line {file.rejected_at}: no delay above 0, or no two names."
        )
    if file.groups_left_out:
        n_lines, first = file.groups_left_out
        yield (
            f"{numbers.counted(n_lines, 'line')} of the table of switches left out, the first is "
            f"line {first}: too long, or without a host and its switch."
        )
    for each in found.findings[:1]:
        yield (
            f"It would not be named below {_times(each.named_from_ratio)} the usual delay in these "
            "samples."
        )
        if each.may_be_end:
            yield (
                f"{each.source} or {each.destination} has next to no other pair measured: it may "
                "be slow with all. Measure it with others to tell."
            )
        if each.n_unmeasured:
            yield f"{numbers.counted(each.n_unmeasured, 'pair')} of it not measured."
    if not found.findings:
        yield (
            f"One slow link would be named from {_times(found.link_from_ratio)} the usual delay, a "
            f"sender or receiver from {_times(found.end_from_ratio)}: more samples a pair lower "
            "that."
        )
    if found.groups_found:
        yield (
            f"Delays show {len(found.groups)} groups of hosts near one another, taken as switches: "
            "each pair is compared with such pairs. State switches where that is wrong."
        )


def _record(file: Examined) -> dict[str, Any]:
    found = file.found
    first = found.findings[0] if found.findings else None
    return {
        "verdict": found.verdict,
        "source": first.source if first else None,
        "destination": first.destination if first else None,
        "hosts": list(first.hosts) if first else [],
        "ratio": first.ratio if first else None,
        "findings": [_finding_record(each) for each in found.findings],
        "nearest": None
        if found.nearest is None
        else dict(zip(("what", "ratio"), found.nearest, strict=True)),
        "link_named_from_ratio": found.link_from_ratio,
        "end_named_from_ratio": found.end_from_ratio,
        "n_endpoints": found.n_endpoints,
        "n_samples": found.n_samples,
        "n_pairs": found.n_pairs,
        "n_missing_pairs": found.n_missing,
        "groups": [list(each) for each in found.groups],
        "groups_found": found.groups_found,
        "n_rejected": file.n_rejected,
    }


def _finding_record(finding: Finding) -> dict[str, Any]:
    by_size = [{"size_bytes": list(s), "ratio": ratio} for s, ratio in finding.by_size]
    shallow = {field.name: getattr(finding, field.name) for field in fields(finding)}
    return shallow | {"by_size": by_size, "hosts": list(finding.hosts)}


def _pairs(found: SlowLinks) -> Rows:
    """Each pair with its delay over usual, the slowest first."""
    known = np.argwhere(np.isfinite(found.ratio))
    rows = [
        (found.names[a], found.names[b], float(found.ratio[a, b]), int(found.n[a, b]))
        for a, b in known
    ]
    return Rows.of(PAIR_COLUMNS, sorted(rows, key=lambda row: -row[2]))


def _times(ratio: float | None) -> str:
    """A ratio in words: `2.1 times`."""
    if ratio is not None and ratio > MOST_TOLD:
        return f"over {MOST_TOLD} times"
    return f"{numbers.number(ratio)} times"


def _sizes(sizes: tuple[float, ...]) -> str:
    """Bytes of messages: one size, or from the smallest to the largest."""
    first, last = (f"{size:,.0f}" for size in (min(sizes), max(sizes)))
    return f"{first} B" if first == last else f"{first} to {last} B"
