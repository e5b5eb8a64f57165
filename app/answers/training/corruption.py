"""Which ranks of a run may compute wrongly, and what could not be seen?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.training import corruption
from analytics.training.indicator_names import INDICATORS, indicator
from app.answers.content import Answer, Missing, composed
from app.answers.described import Rows, field
from app.answers.training.trace import hosts_of
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_corruption
from data.queries import corruption as queries
from data.queries import fleet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from analytics.training.corruption import Corruption, NotSeen, Suspect
    from analytics.training.replica_sight import NotCompared
    from app.answers.content import Block, Number
    from app.ask import Ask
    from data.store import Store

MOST_NAMED = 3
NAMES = {
    "checksum": "Checksums of parameters",
    "grad_norm": "Gradient norm of each rank",
    "loss": "Loss of each rank",
    "query_norm": "Query norm",
    "key_norm": "Key norm",
    "attention_entropy": "Attention entropy",
    "update_cosine": "Cosine of updates",
}
UNSEEN = {
    "checksum": "a replica that holds other parameters than the rest",
    "grad_norm": "a rank whose gradients are wrong before they are averaged",
    "loss": "a rank whose forward pass is wrong",
    "query_norm": "attention that begins to grow on one rank",
    "key_norm": "attention that begins to grow on one rank",
    "attention_entropy": "attention that collapses or spreads on one rank",
    "update_cosine": "an optimizer state that went wrong",
}
"""Indicator -> what cannot be seen without it."""
WHY = {
    "not_logged": "not logged",
    "one_rank": "logged by one rank, or without ranks",
    "few_ranks": f"fewer than {corruption.LEAST_RANKS} ranks log it",
    "few_steps": "too few steps to know its scatter",
    "alike": "the same on all ranks, so averaged: a rank's own is not seen",
    "shards": "never the same on two ranks, so of shards: nothing to compare",
}
KINDS = {
    "differs": "logs another value than the ranks that it must equal",
    "never_equal": "logs in no step the value on which the others agree",
    "shifted": "moved away from the other ranks, and stays",
    "out": "far outside the scatter of the others",
    "not_finite": "alone NaN or infinite",
}
SPEAKS = {
    "proof": "parameters differ from those of the replicas",
    "strong": "the evidence is strong",
    "weak": "the evidence is weak, one bad batch makes it too",
}


@dataclass(frozen=True)
class Located:
    """A suspect, and where it ran."""

    found: Suspect
    node: str | None
    cluster: str

    @property
    def rank(self) -> str:
        """The rank, or those of which one is meant."""
        names = [str(rank) for rank in self.found.ranks]
        return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


SUSPECTS = (
    field("rank", "Rank", on=("table", "csv")),
    field("ranks", on=("json",), of=lambda one: list(one.found.ranks)),
    field("node", "Node to test", of="node", term=of_corruption.SUSPECT_NODE, link="node"),
    field("since_step", "Since step", "count", "found.since_step"),
    field("grade", "Evidence", "text", "found.grade", term=of_corruption.SUSPECT_GRADE),
    field("series", "Series", of="found.series"),
    field("what", "What it does", of=lambda one: KINDS[one.found.kind], on=("table",)),
    field("kind", on=("json", "csv"), of="found.kind"),
    field("n_steps", "Steps", "count", "found.n_steps"),
    field("chance", "Chance", of=lambda one: _chance(one.found.p_value), on=("table",),
          term=of_corruption.SUSPECT_P),
    field("p_value", on=("json", "csv"), of="found.p_value"),
    field("n_compared", "Values compared", "count", "found.n_compared", on=("json", "csv")),
    Column("cluster", "Cluster", shown=False),
)  # fmt: skip
NOT_SEEN = (
    field("indicator", "Indicator", of=lambda one: NAMES[one.indicator]),
    field("why", "Why it says nothing", of=lambda one: WHY[one.why]),
    field("unseen", "So this cannot be seen", of=lambda one: UNSEEN[one.indicator]),
)
JUDGED_WAY = {
    "replicas": "must be equal on replicas",
    "alike": "the same on all ranks by construction",
    "apart": "differs by rank, compared by its scatter",
}
JUDGED = (
    Column("series", "Series"),
    field("indicator", "Indicator", of=lambda one: NAMES[one.indicator]),
    field("way", "How ranks are compared", of=lambda one: JUDGED_WAY[one.way]),
    field("n_ranks", "Ranks", "count"),
    field("n_steps", "Steps", "count"),
)
LOG_IT = Missing(
    "corruption_series",
    "Nothing of this run was logged by several ranks, so silent corruption cannot be judged.",
    "Log of every rank: a checksum of its parameters each few hundred steps, its own loss and the "
    "norm of its own gradient before they are averaged, and state the rank. What each indicator "
    "can see is measured by:",
    ("faultline lab sdc",),
)


def found(store: Store, cluster: str, run_id: str) -> Corruption:
    """What the series of a run say of silent corruption."""
    series = queries.logged(store, cluster, run_id, indicator)
    return corruption.suspects(
        [corruption.Logged(name, *columns) for name, columns in series.items()]
    )


def nodes(store: Store, cluster: str, run_id: str) -> list[str | None]:
    """Of each suspect the node that its rank was on; None where records do not tell it."""
    own_names = fleet.own_names(store, cluster)
    places = []
    for one in found(store, cluster, run_id).suspects:
        ran = queries.allocation(store, cluster, run_id, one.since_step)
        names = {_node(ran, rank, own_names) for rank in one.ranks}
        places.append(names.pop() if len(names) == 1 else None)
    return places


def _chance(p_value: float | None) -> str:
    """A chance as people read it.

    >>> _chance(None), _chance(1e-9), _chance(0.004)
    ('none in it', 'below 0.001', '0.004')
    """
    if p_value is None:
        return "none in it"
    return "below 0.001" if p_value < 0.001 else numbers.decimals(p_value)


def _node(
    ran: tuple[str | None, int | None] | None, rank: int, own_names: dict[str, str]
) -> str | None:
    """Node of a rank: its place in the node list by the GPUs of a node."""
    node_list, n_gpus = ran or (None, None)
    hosts = hosts_of(node_list)
    if not hosts or not n_gpus or n_gpus % len(hosts) or not 0 <= rank < n_gpus:
        return None
    host = hosts[rank // (n_gpus // len(hosts))]
    return own_names.get(host, host)


def answer(ask: Ask, cluster: str, run_id: str) -> Answer:
    """The ranks to test again, what was compared, and what could not be seen."""
    result = ask(found, cluster, run_id)
    places = ask(nodes, cluster, run_id) if result.suspects else []
    rows = [Located(one, node, cluster) for one, node in zip(result.suspects, places, strict=True)]
    listed = Rows(SUSPECTS, rows)
    unseen = Rows(NOT_SEEN, result.not_seen)
    return Answer(
        _sentence(result, rows),
        tuple(_numbers(result)),
        tuple(_blocks(result, listed, unseen)),
        notes=tuple(_notes(result)),
        terms=(of_corruption.SILENT_CORRUPTION,),
        record={
            "verdict": result.verdict,
            "suspects": listed.records(),
            "not_seen": [{"indicator": one.indicator, "why": one.why} for one in result.not_seen],
            "judged": [vars(one) for one in result.judged],
            "not_compared": [vars(one) | {"ranks": list(one.ranks)} for one in result.not_compared],
            "false_alarms": result.false_alarms,
        },
        sheet=listed.sheet(),
        about=f"run {run_id} of {cluster}",
    )


def _sentence(result: Corruption, rows: list[Located]) -> str:
    """Who is to be tested, or how far nobody is."""
    if result.verdict == "cannot_be_judged":
        return (
            "Silent corruption cannot be judged: nothing that ranks can be compared by is logged."
        )
    if result.verdict == "not_ruled_out" and result.not_compared:
        some = dict.fromkeys(rank for one in result.not_compared for rank in one.ranks)
        return (
            f"No rank stands out in what was logged; checksums do not speak for {_ranks(some)} "
            "throughout, so silent corruption is not ruled out."
        )
    if result.verdict == "not_ruled_out":
        return (
            "No rank stands out in what was logged; without checksums of replicas silent "
            "corruption is not ruled out."
        )
    if not rows:
        return "No replica holds other parameters than the rest, and no rank stands out."
    best = rows[0].found.grade
    named = list(dict.fromkeys(row.rank for row in rows if row.found.grade == best))
    text = ", ".join(named[:MOST_NAMED]) + (" and more" if len(named) > MOST_NAMED else "")
    node = rows[0].node
    where = f" ({node})" if node is not None and len(named) == 1 else ""
    since = min(row.found.since_step for row in rows if row.found.grade == best)
    noun = "rank" if len(named) == 1 else "ranks"
    return f"Test {noun} {text}{where} again: {SPEAKS[best]}, from step {since:,} on."


def _ranks(ranks: Collection[int]) -> str:
    """Ranks by their numbers, the first few of many."""
    named = ", ".join(f"{rank}" for rank in list(ranks)[:MOST_NAMED])
    more = f" and {len(ranks) - MOST_NAMED:,} more" if len(ranks) > MOST_NAMED else ""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {named}{more}"


def _unseen(one: NotCompared) -> str:
    """Ranks that no checksum speaks for, and where."""
    steps = "step" if one.n_steps == 1 else "steps"
    return (
        f"No checksum of a replica speaks for {_ranks(one.ranks)} in {one.n_steps:,} logged "
        f"{steps} from {one.since_step:,} to {one.until_step:,}."
    )


def _numbers(result: Corruption) -> Iterator[Number]:
    """How many are suspected, and by how many of the indicators."""
    if result.verdict == "cannot_be_judged":
        yield composed(of_corruption.SUSPECTS, numbers.UNKNOWN, "cannot be judged")
    else:
        n = len({one.ranks for one in result.suspects})
        grades = [
            f"{count} {grade}"
            for grade in corruption.GRADES
            if (count := sum(one.grade == grade for one in result.suspects))
        ]
        yield composed(of_corruption.SUSPECTS, numbers.count(n), ", ".join(grades), exact=n)
    seen = len(INDICATORS) - len(result.not_seen)
    basis = ", ".join(sorted({one.series for one in result.judged})[:MOST_NAMED])
    yield composed(
        of_corruption.SERIES_SEEN,
        f"{seen or 'none'} of {len(INDICATORS)}",
        basis or "none",
        exact=seen,
    )


def _blocks(result: Corruption, listed: Rows, unseen: Rows) -> Iterator[Block]:
    """Suspects, what was compared, what was not."""
    if result.verdict == "cannot_be_judged":
        yield LOG_IT
    else:
        yield listed.table("suspects", "Ranks to test again", empty="None.")
        yield Rows(JUDGED, result.judged).table("judged", "What was compared")
    yield unseen.table(
        "not_seen", "What was not logged, and so cannot be seen", empty="All were seen.",
        wrapped=True,
    )  # fmt: skip


def _notes(result: Corruption) -> Iterator[str]:
    """What limits the verdict."""
    missing: dict[str, NotSeen] = {one.indicator: one for one in result.not_seen}
    if "checksum" in missing:
        yield (
            "Checksums of replicas say nothing here, and they alone prove corruption: a loss that "
            "looks as ever does not rule it out."
        )
    yield from (_unseen(one) for one in result.not_compared[:MOST_NAMED])
    if any(one.kind == "never_equal" for one in result.suspects):
        yield (
            "A checksum that never equals that of the others may be made of something else, or the "
            "rank held other parameters from the first step on."
        )
    if result.suspects and result.suspects[0].grade != "proof":
        yield "A suspect is a rank to test again: data that changed on one rank look the same."
