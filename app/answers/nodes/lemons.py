"""Which nodes should leave, and what does it save?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.nodes.records import WINDOW_DAYS
from analytics.nodes.settled import NOTHING_SAVED
from analytics.reliability.sight import Sight
from app.answers.columns import columns
from app.answers.content import Answer, Chart, Missing, Number, Table, composed
from app.answers.described import Rows, field, sheet_of
from app.answers.nodes.judged_nodes import LISTED, tested, verdicts
from app.answers.nodes.told import MOST_NAMED, Told, beyond_counts, within
from app.answers.reliability import sight
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_nodes
from data.queries import hosts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.nodes.draining import BackTest, WithoutThem
    from analytics.nodes.lemons import JudgedNode
    from app.answers.nodes.judged_nodes import ClusterVerdicts
    from app.ask import Ask
    from app.words.terms import Term
    from data.filters import Selection

WHICH = "Which nodes are lemons"
MOST_ROWS = 50
_VERDICT = Column("verdict", "Verdict")
_ACTION = Column("action", "What to do", px=240)
_WHY = field("reasons", "Why", of=lambda row: "; ".join(row["reasons"]), px=360)
_SCORE = Column("score", "Score", "number", help=of_nodes.LEMON_SCORE.definition)
_RATIO = Column("ratio", "Times usual", "rate", help=of_nodes.TIMES_USUAL.definition)
_SAVES = Column("saved_gpu_hours", "Saves (GPU-h)", "rate", help=of_nodes.SAVES.definition)
DRAIN = (
    *columns("node"),
    _VERDICT,
    _ACTION,
    _SAVES,
    _WHY,
    _RATIO,
    _SCORE,
    Column("command", "Command", wide=True),
    Column("ticket", "Ticket", shown=False),
    *columns(hidden=("cluster",)),
)
OF_ONE = (_VERDICT, _ACTION, _SAVES, _WHY, _RATIO, _SCORE)
"""What the page of one node shows of it."""
GROUPS = (
    Column("grouping", "What"),
    Column("name", "Name"),
    Column("n_hit", "Nodes hit", "count"),
    Column("expected", "Expected", "number"),
    field("n_nodes", "Nodes", "count", lambda group: len(group.nodes)),
    Column("ratio", "Times usual", "number"),
    *columns("cluster", wide=("cluster",)),
)
FAULTS = (
    field("nodes", "Nodes", of=lambda fault: ", ".join(fault.nodes), wide=True),
    Column("n_times", "Times", "count"),
    field("within", "Within", of=within),
    *columns("cluster", wide=("cluster",)),
)
OTHERS = (
    *columns("node"),
    Column("verdict", "Taken for"),
    field("why", "Because", of=lambda row: "; ".join(row["reasons"])),
    *columns("cluster", wide=("cluster",)),
)
NO_NODES = Missing(
    "drain",
    "Nothing is known of any node in these days.",
    "Ingest jobs, and what nodes went through:",
    (
        "faultline ingest sacct sacct.txt",
        "faultline ingest sacctmgr-events events.txt",
        "faultline ingest kernel-log kernel.log",
    ),
)
SOURCES = {
    "job_failure": "jobs",
    "out": "outages of nodes",
    "ticket": "repair tickets",
    "xid": "health events",
}


def answer(
    ask: Ask, selection: Selection, *, days: float = WINDOW_DAYS, conf_level: float = CONF_LEVEL
) -> Answer:
    """Which nodes to drain, why, and what that saves."""
    found = ask(verdicts, selection, days=days, conf_level=conf_level)
    tests = ask(tested, selection, days=days, conf_level=conf_level)
    rows = rows_ranked(found)
    listed = [row for row in rows if row["verdict"] in LISTED]
    seen = _sight(ask, found, selection)
    if not found:
        blocks = (sight.missing("drain", WHICH, seen),) if seen.none else (NO_NODES,)
        said = sight.refused(WHICH, seen) if seen.none else "No node is known in these days."
        return Answer(said, blocks=blocks, record=[])
    return Answer(
        _sentence(rows, max(of.window.days for of in found), seen),
        tuple(_headlines(found, rows, tests, conf_level)),
        (*_tables(found, rows, listed, seen), _map(found)),
        notes=(*_notes(found, selection), *sight.notes(seen, "nodes")),
        record=rows,
        sheet=sheet_of(
            [
                {key: getattr(value, "value", value) for key, value in row.items()}
                | {"reasons": "; ".join(row["reasons"])}
                for row in rows
            ],
            SHEET,
        ),
    )


def _sight(ask: Ask, found: Sequence[ClusterVerdicts], selection: Selection) -> Sight:
    """On which of the days judged failures could be seen; of clusters without such days, ever."""
    judged = tuple(cluster for of in found for cluster in of.sight.clusters)
    names = {each.cluster for each in judged}
    every = ask(sight.sight, selection).clusters
    return Sight((*judged, *(each for each in every if each.cluster not in names)))


def _unseen(of: ClusterVerdicts) -> bool:
    """Whether no failure of the cluster is known because none could be seen."""
    return of.sight.none and not of.without.failures


def summary(
    ask: Ask, selection: Selection, *, days: float = WINDOW_DAYS, conf_level: float = CONF_LEVEL
) -> dict[str, Any]:
    """What draining saves, with and without the lemons, by cluster; bad groups."""
    found = ask(verdicts, selection, days=days, conf_level=conf_level)
    return {
        "clusters": [
            {
                "cluster": of.window.cluster,
                "from_at": of.window.from_at,
                "to_at": of.window.to_at,
                "saved_gpu_hours": of.saved_by_all,
                "without_lemons": None if _unseen(of) else of.without,
                **sight.record(of.sight),
                "groups": list(of.groups),
                "shared_faults": list(of.faults),
                "collected": sorted(of.collected),
            }
            for of in found
        ],
        "back_tests": list(ask(tested, selection, days=days, conf_level=conf_level)),
    }


def ranked(
    ask: Ask, selection: Selection, *, days: float = WINDOW_DAYS, conf_level: float = CONF_LEVEL
) -> list[JudgedNode]:
    """Every node, lemons by what draining them saves first; no back-test."""
    found = ask(verdicts, selection, days=days, conf_level=conf_level)
    return [of.nodes[at] for of, at in _in_order(found)]


def standing_out(ask: Ask, selection: Selection) -> list[dict[str, Any]]:
    """Lemons, also those of which draining may save nothing, as `_outline` has them; what saves
    most comes first."""
    found = ask(verdicts, selection, days=WINDOW_DAYS, conf_level=CONF_LEVEL)
    listed = (
        _outline(of, at, Told(of, at))
        for of, at in _in_order(found)
        if of.nodes[at].verdict in LISTED
    )
    return list(filter(stands_out, listed))


def stands_out(row: dict[str, Any]) -> bool:
    """Whether a row is of a lemon, also where draining it may save nothing."""
    return row["verdict"] == "lemon" or NOTHING_SAVED in row["reasons"]


def rows_ranked(found: Sequence[ClusterVerdicts]) -> list[dict[str, Any]]:
    """The nodes of all clusters in that order, as JSON prints them."""
    signals = {id(of): _signals(of) for of in found}
    return [_row(of, at, signals[id(of)][at]) for of, at in _in_order(found)]


def of_node(
    ask: Ask, cluster: str | None, node: str, selection: Selection
) -> tuple[str, Table] | None:
    """The verdict on one node, in words where it is none of the healthy, and with its reasons.

    None where it is not among those judged, or where no job used it and nothing speaks against it.
    """
    for of in ask(verdicts, selection, days=WINDOW_DAYS, conf_level=CONF_LEVEL):
        for at, each in enumerate(of.nodes):
            if (each.cluster, each.node) == (cluster, node):
                row = _row(of, at, _signals(of)[at])
                if row["verdict"] not in LISTED and not ask(hosts.used, cluster, node):
                    return None
                shown = tuple(c for c in OF_ONE if row["verdict"] in LISTED or c is not _SAVES)
                return _verdict(row), Rows(shown, [row]).table(
                    "lemon", "Is it a lemon?", note=_window(of), wrapped=True
                )
    return None


def _verdict(row: dict[str, Any]) -> str:
    """What a node is that is a lemon or to be watched; empty for others."""
    words = {"lemon": "is a lemon", "watch": "is to be watched"}.get(row["verdict"], "")
    return f"{words}, out of service at the end" if words and row["is_out"] else words


_ORDER = {verdict: at for at, verdict in enumerate((*LISTED, "fine", "front end", "unknown"))}
SHEET = (
    "cluster", "node", "verdict", "score", "ratio", "expected", "saved_gpu_hours", "reasons",
    "action", "command",
)  # fmt: skip


def _signals(of: ClusterVerdicts) -> list[dict[Any, Any]]:
    """Signals of each node; None where they are not known."""
    return [
        {key: None if value != value else value for key, value in row.items()}
        for row in of.signals.to_dict("records")
    ]


def _outline(of: ClusterVerdicts, at: int, told: Told | None) -> dict[str, Any]:
    """What ranks one node and says why it is listed."""
    node = of.nodes[at]
    return {
        "node": node.node,
        "cluster": node.cluster,
        "verdict": node.verdict,
        "score": node.score,
        "reasons": list(told.reasons if told else beyond_counts(node)),
        "saved_gpu_hours": of.saved.get(at, unknown(CONF_LEVEL, 0)) if told else None,
        "is_out": of.is_out(at),
    }


def _row(of: ClusterVerdicts, at: int, signals: dict[Any, Any]) -> dict[str, Any]:
    """What is known of one node, as JSON prints it."""
    node = of.nodes[at]
    told = Told(of, at) if node.verdict in LISTED else None
    return {
        **_outline(of, at, told),
        "ratio": node.ratio,
        "expected": node.expected,
        "signals": signals,
        "action": told.action if told else None,
        "failing_days": node.failing_days,
        "quiet_days": node.quiet_days,
        "command": told.command if told and node.verdict == "lemon" else None,
        "ticket": told.ticket if told and node.verdict == "lemon" else None,
    }


def _in_order(found: Sequence[ClusterVerdicts]) -> list[tuple[ClusterVerdicts, int]]:
    """The places of all nodes, lemons by what draining them saves, then those to be watched, then
    all others by score."""

    def rank(place: tuple[ClusterVerdicts, int]) -> tuple[int, float, float, str]:
        of, at = place
        node = of.nodes[at]
        saved = of.saved.get(at) if node.verdict in LISTED else None
        value = 0.0 if saved is None else saved.value or 0.0
        return _ORDER[node.verdict], -value, -(node.score or 0.0), node.node

    return sorted(((of, at) for of in found for at in range(len(of.nodes))), key=rank)


def _sentence(rows: Sequence[dict[str, Any]], days: float, seen: Sight) -> str:
    lemons = [row for row in rows if row["verdict"] == "lemon"]
    watched = sum(row["verdict"] == "watch" for row in rows)
    known = sum(row["verdict"] in (*LISTED, "fine") for row in rows)
    unknown = sum(row["verdict"] == "unknown" for row in rows)
    if not known and seen.none:
        return sight.refused(WHICH, seen)
    if not known:
        return "Nothing is recorded of any node in these days: no node can be judged."
    more = f" {numbers.counted(watched, 'node')} to be watched." if watched else ""
    more += f" Of {numbers.counted(unknown, 'node')} nothing is known." if unknown else ""
    judged = f"{numbers.counted(known, 'node')} judged by {numbers.counted(round(days), 'day')}"
    if not lemons:
        return f"None of {judged} stands out as a lemon.{more}"
    if len(lemons) > MOST_NAMED:
        in_use = [row for row in lemons if not row["is_out"]]
        to_do = _to_do((in_use or lemons)[:MOST_NAMED])
        return f"{to_do} first: {len(lemons):,} of {judged} are lemons.{more}"
    to_do, are = _to_do(lemons), "is a lemon" if len(lemons) == 1 else "are lemons"
    return f"{to_do}: {len(lemons)} of {judged} {are}.{more}"


def _to_do(lemons: Sequence[dict[str, Any]]) -> str:
    """Which of them should leave, and which are out and should stay so; the first come first."""
    in_use = ", ".join(row["node"] for row in lemons if not row["is_out"])
    out = ", ".join(row["node"] for row in lemons if row["is_out"])
    if not out:
        return f"Drain {in_use}"
    if not in_use:
        return f"Keep {out} out of service"
    if lemons[0]["is_out"]:
        return f"Keep {out} out, drain {in_use}"
    return f"Drain {in_use}, keep {out} out"


def _headlines(
    found: Sequence[ClusterVerdicts],
    rows: Sequence[dict[str, Any]],
    tests: Sequence[BackTest],
    conf_level: float,
) -> Iterator[Number]:
    n = sum(row["verdict"] == "lemon" for row in rows)
    known = sum(row["verdict"] in (*LISTED, "fine") for row in rows)
    watched = f"{sum(row['verdict'] == 'watch' for row in rows):,} to be watched"
    if known:
        yield composed(of_nodes.LEMONS, f"{n:,} of {known:,}", watched, exact=n)
    else:
        yield sight.number(of_nodes.LEMONS)
    with_jobs = [of for of in found if "job_failure" in of.collected and not _unseen(of)]
    if with_jobs:
        saved = _total([of.saved_by_all for of in with_jobs], conf_level)
        yield _estimated(of_nodes.SAVED, saved, "GPU-hours")
        of_all = sum(of.without.failures for of in with_jobs)
        avoided = _total([of.without.avoided for of in with_jobs], conf_level)
        yield _estimated(of_nodes.AVOIDED, avoided, "failures", f" of {numbers.number(of_all)}")
    else:
        why = sight.BASIS if any(map(_unseen, found)) else "no jobs are known"
        yield composed(of_nodes.SAVED, numbers.UNKNOWN, why)
        yield composed(of_nodes.AVOIDED, numbers.UNKNOWN, why)
    lost = sum(each.lost_gpu_hours for each in tests)
    if lost:
        ratio, listed = sum(e.saved_gpu_hours for e in tests) / lost, sum(e.n_listed for e in tests)
        basis = f"{listed:,} listed then; {numbers.number(lost)} GPU-hours were lost since"
        yield composed(of_nodes.SAVED_BEFORE, numbers.percent(ratio), basis, exact=ratio)
    else:
        yield composed(of_nodes.SAVED_BEFORE, numbers.UNKNOWN, "no loss is known")


def _total(estimates: Sequence[Estimate], conf_level: float) -> Estimate:
    """Sum over clusters; bounds add up, which is wide. Unknown where none is known."""
    if all(each.value is None for each in estimates):
        return unknown(conf_level, 0)
    value, lower, upper = (
        sum(getattr(each, part) or 0.0 for each in estimates)
        for part in ("value", "lower", "upper")
    )
    return Estimate(value, lower, upper, conf_level, sum(each.n for each in estimates))


def _estimated(term: Term, value: Estimate, unit: str, more: str = "") -> Number:
    """An estimate of an amount."""
    if value.value is None:
        return composed(term, numbers.UNKNOWN, "no loss of a failed job is known")
    interval = numbers.interval(value)
    basis = f"{interval} ({numbers.level(value)}), n = {value.n:,}"
    printed = f"{numbers.number(value.value)}{more}"
    return Number(term, printed, basis, interval, numbers.count(value.n), value, unit)


def _tables(
    found: Sequence[ClusterVerdicts],
    rows: Sequence[dict[str, Any]],
    listed: Sequence[dict[str, Any]],
    seen: Sight,
) -> Iterator[Table | Missing]:
    lemons = any(row["verdict"] == "lemon" for row in listed)
    first = "Lemons, then nodes to watch" if lemons else "Nodes to watch"
    empty = "No node has more against it than chance explains."
    if seen.none and not listed:
        yield sight.missing("drain", WHICH, seen)
    else:
        yield Rows(DRAIN, listed).table("drain", first, empty=empty, wrapped=True).first(MOST_ROWS)
    groups = Rows(GROUPS, [group for of in found for group in of.groups])
    if groups.items:
        yield groups.table("groups", "Racks and switches that are bad as a whole")
    faults = Rows(FAULTS, [fault for of in found for fault in of.faults])
    if faults.items:
        yield faults.table(
            "shared_faults", "Nodes that go down together: a shared fault, not the nodes"
        ).first(MOST_ROWS)
    others = Rows(OTHERS, [row for row in rows if row["verdict"] == "front end"])
    if others.items:
        yield others.table("front_ends", "Front ends and service nodes").first(MOST_ROWS)
    if not seen.none:
        yield _what_if(found)


WHAT_IF = (
    Column("what", "Of the window"),
    Column("was", "As it was"),
    Column("without", "Without the lemons"),
    Column("cluster", "Cluster", wide=True),
)


def _what_if(found: Sequence[ClusterVerdicts]) -> Table:
    """The window as it was, and with healthy nodes in place of the lemons."""
    rows = [
        (*row, of.window.cluster)
        for of in found
        if "job_failure" in of.collected and not _unseen(of)
        for row in _as_it_was(of.without)
    ]
    unseen = any(map(_unseen, found))
    empty = f"What lemons cost {sight.BASIS}." if unseen else "No jobs are known in these days."
    return Table("what_if", "The same days without these nodes", WHAT_IF, rows, empty)


def _as_it_was(one: WithoutThem) -> Iterator[tuple[str, str, str]]:
    """Failures and the MTTF of large jobs: as it was, and without the lemons."""
    yield "Failed jobs", numbers.number(one.failures), _left(one.failures, one.avoided)
    was, without = one.large_mttf_hours, one.large_mttf_hours_without
    yield "MTTF of jobs on more than 128 GPUs", _hours(was), _hours(without)
    ettr = "Their expected ETTR (a checkpoint each hour, 5 min to restart: assumed)"
    yield ettr, _ettr(one.large_ettr), _ettr(one.large_ettr_without)


def _left(whole: float, less: Estimate) -> str:
    """What is left of an amount, with its interval."""
    bounds = Estimate(
        whole - (less.value or 0.0),
        max(whole - (less.upper or 0.0), 0.0),
        max(whole - (less.lower or 0.0), 0.0),
        less.conf_level,
        less.n,
    )
    interval = f" ({numbers.interval(bounds)})" if bounds.has_width else ""
    return f"{numbers.number(bounds.value)}{interval}"


def _ettr(value: Estimate) -> str:
    if value.value is None:
        return numbers.UNKNOWN
    return f"{numbers.decimals(value.value)} ({numbers.decimals_interval(value)})"


def _hours(value: Estimate) -> str:
    if value.value is None:
        return numbers.UNKNOWN
    return f"{numbers.duration(value.value)} ({numbers.duration_interval(value)})"


def _map(found: Sequence[ClusterVerdicts]) -> Chart:
    """All nodes where they stand, coloured by score."""
    cells = [
        (each.cluster, each.node, place["rack"] or place["pod"], each.verdict, each.score)
        for of in found
        for each, place in zip(of.nodes, of.places.to_dict("records"), strict=True)
    ]
    says = "Each cell is a node, each row a rack; the darker, the more speaks against it."
    names = ("cluster", "node", "rack", "verdict", "score")
    rows = Rows.of(names, cells)
    title = "Where do the lemons stand?"
    return Chart("nodes.rack_map", title, says, (cells,), opens="node", rows=rows)


def _window(of: ClusterVerdicts) -> str:
    return f"Judged by {numbers.day(of.window.from_at)} to {numbers.day(of.window.to_at)}, UTC."


def _notes(found: Sequence[ClusterVerdicts], selection: Selection) -> Iterator[str]:
    """What the verdicts rest on."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for of in found:
        sources = tuple(said for kind, said in SOURCES.items() if kind not in of.collected)
        lacking.setdefault(sources, []).append(of.window.cluster)
    for sources, clusters in lacking.items():
        where = clusters[0] if len(clusters) == 1 else numbers.counted(len(clusters), "cluster")
        if sources:
            yield f"{where}: no {' and no '.join(sources)} in these days; left out."
    for of in found:
        if of.n_at_once:
            yield (
                f"{of.window.cluster}: {numbers.counted(of.n_at_once, 'record')} left out: many "
                "nodes were struck within ten minutes."
            )
    if selection.partition or selection.account or selection.min_gpus:
        yield "A node is judged by all jobs: filters of partition, account and size do not apply."
    if not all(of.computed for of in found):
        yield (
            "What draining saves is not computed yet: `faultline ledger` builds the ledger, and "
            "the days are played again without the nodes."
        )
    if any(row.verdict == "lemon" for of in found for row in of.nodes):
        yield "The commands are to be copied; nothing is run from here."
