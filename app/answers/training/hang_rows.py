"""Rows of a hang: candidates, who waits for whom, how far each group is, where ranks stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.answers.described import field
from app.answers.training import hang_words
from app.words.cells import Column
from app.words.glossary import of_hangs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from analytics.training.hangs.progress import Progress, Step
    from analytics.training.hangs.stacks import Standing
    from analytics.training.hangs.verdict import Candidate, Hang
    from app.answers.training.hang_places import Places

CANDIDATES = (
    Column("rank", "Rank", "count"),
    field("node", "Node", none="not known", link="node"),
    field("gpu", "GPU", "count", none="not known"),
    Column("kind", "What it did"),
    field("collective", "Operation", none="not in any ring"),
    field("seq", "Number", "count", help=of_hangs.SEQUENCE.definition),
    field("process_group", term=of_hangs.PROCESS_GROUP),
    field("confidence", term=of_hangs.HANG_CONFIDENCE),
    Column("reason", "Because"),
    Column("n_waiting", "Ranks that wait for it", "count"),
)
WAITS = (
    Column("ranks", "Ranks"),
    Column("waits_in", "Wait in"),
    Column("waits_for", "For ranks"),
    Column("why", "Which"),
)
PROGRESS = (
    field("process_group", term=of_hangs.PROCESS_GROUP),
    Column("ranks", "Ranks"),
    Column("enqueued", "Last enqueued", "count"),
    Column("started", "Last started", "count"),
    field("completed", "Last ended", "count", help=of_hangs.PROGRESS.definition),
    Column("state", "State"),
)
STACKS = (Column("place", "Function"), Column("ranks", "Ranks"), Column("n", "How many", "count"))
WHY = {
    "missing": "never joined it",
    "unseen": "have no dump",
    "differs": "do something else",
    "not started": "did not start it",
    "all joined": "nobody: all joined",
    "not known": "are not known",
}


def candidates(
    progress: Progress, found: Iterable[Candidate], places: Places
) -> Iterator[dict[str, Any]]:
    """Ranks at fault, or that may be; what is said of a step is made once."""
    said: dict[Step, dict[str, Any]] = {}
    for each in found:
        if each.step not in said:
            said[each.step] = {
                "collective": hang_words.operation(progress, each.step),
                "seq": each.step.seq,
                "process_group": hang_words.group(each.step.group),
            }
        yield _candidate(each, places) | said[each.step]


def _candidate(found: Candidate, places: Places) -> dict[str, Any]:
    """A rank with its place."""
    return {
        "rank": found.rank,
        "node": places.node_of.get(found.rank),
        "gpu": places.gpu_of.get(found.rank),
        "kind": found.kind,
        "confidence": found.confidence,
        "reason": found.reason,
        "n_waiting": found.n_waiting,
    }


def waits(found: Hang) -> list[dict[str, Any]]:
    """Waits that are alike in one row, those of most ranks first."""
    alike: dict[Any, list[int]] = {}
    for wait in found.waits:
        alike.setdefault((wait.step, wait.why, wait.blamed or wait.unseen), []).append(wait.rank)
    return [
        {
            "ranks": hang_words.ranks(ranks),
            "waits_in": hang_words.step(found.progress, step),
            "waits_for": hang_words.ranks(others) if others else "-",
            "why": WHY[why],
        }
        for (step, why, others), ranks in sorted(alike.items(), key=lambda one: -len(one[1]))
    ]


def progress_rows(progress: Progress) -> Iterator[dict[str, Any]]:
    """Ranks of a group that are equally far in one row."""
    for group in progress.groups:
        alike: dict[Any, list[int]] = {}
        for rank, lane in progress.lanes_of(group).items():
            state = "waits" if lane.waits_at is not None else "nothing pending"
            far = (lane.enqueued, lane.started, lane.completed, state)
            alike.setdefault(far, []).append(rank)
        unseen = [rank for rank in group.ranks if rank not in progress.dumps]
        if unseen:
            alike[None, None, None, "no dump"] = unseen
        for (enqueued, started, completed, state), ranks in alike.items():
            yield {
                "process_group": hang_words.group(group),
                "ranks": hang_words.ranks(ranks),
                "enqueued": _number(enqueued),
                "started": _number(started),
                "completed": _number(completed),
                "state": state,
            }


def _number(seq: int | None) -> int | None:
    """A number as people count; None where there was none."""
    return None if seq is None or seq < 0 else seq


def stacks(found: Standing) -> list[dict[str, Any]]:
    """Ranks by the function in which they stand, the most first."""
    by_place: dict[str, list[int]] = {}
    for rank, place in found.places.items():
        by_place.setdefault(place, []).append(rank)
    return [
        {"place": place, "ranks": hang_words.ranks(ranks), "n": len(ranks)}
        for place, ranks in sorted(by_place.items(), key=lambda one: (-len(one[1]), one[0]))
    ]
