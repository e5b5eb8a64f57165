"""Whether ranks do the same thing in one step of a group, and who differs from the others."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analytics.training.hangs.dump import Entry, Sizes
    from analytics.training.hangs.progress import Progress, Step

Aspect: TypeAlias = Literal["operation", "shape", "type"]
Signature: TypeAlias = tuple[object, ...]

ANY_SIZE: Final = frozenset({"all_to_all", "alltoall", "alltoall_base", "all_to_all_single"})
"""Operations in which ranks may give and get as much as they like."""
OWN_INPUT: Final = frozenset({"scatter"})
"""Operations of which only one rank states what goes in."""
OWN_OUTPUT: Final = frozenset({"gather"})
"""Operations of which only one rank states what comes out."""
_SAME: Final = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "allgather_base": "all_gather_base",
    "all_gather_into_tensor": "all_gather_base",
    "reduce_scatter_tensor": "reduce_scatter_base",
}
"""Names of one operation in several versions."""
_HABIT: Final = 64
"""Earlier operations of a group that are looked at."""
_LEADING: Final = re.compile(r"^_+")


@dataclass(frozen=True)
class Mismatch:
    """A step in which ranks do not do the same."""

    step: Step
    aspect: Aspect
    classes: tuple[tuple[int, ...], ...]
    """Ranks that do the same, the largest class first."""
    odd: tuple[int, ...]
    """Ranks that differ from most; where there is no majority all of them."""
    by: Literal["majority", "siblings", "nobody"]
    """What tells who is odd: most of the group, the same step of other groups, or nothing."""
    is_counted: bool = True
    """Whether they differ in what NCCL counts: two shapes of as many elements do not stop it."""


def mismatch(progress: Progress, step: Step) -> Mismatch | None:
    """Who differs in a step; None where all that enqueued it do the same, or nothing tells.

    Compared are operation, elements and types of input and output, then shapes; not what an
    operation leaves to each rank (sizes of all-to-all, what only the root of scatter and gather
    states), nor what some dump lacks.
    """
    entries = {
        rank: found
        for rank, lane in progress.lanes_of(step.group).items()
        if (found := lane.collectives.get(step.seq))
    }
    if len(entries) < 2:
        return None
    if _is_habit(progress, step, entries):
        entries = {rank: [_sizeless(one) for one in each] for rank, each in entries.items()}
    for is_counted in (True, False):
        signed = signatures(entries, shapes=not is_counted)
        if len(set(signed.values())) > 1:
            return _told(progress, step, signed, entries, is_counted=is_counted)
    return None


def _is_habit(progress: Progress, step: Step, entries: Mapping[int, Sequence[Entry]]) -> bool:
    """Whether ranks gave and got other sizes in that operation before, and it ended on all."""
    lanes = progress.lanes_of(step.group)
    names = {operation_name(found[-1]) for found in entries.values()}
    if len(names) > 1:
        return False
    for seq in range(step.seq - 1, max(step.seq - _HABIT, 0), -1):
        earlier = {
            rank: found for rank, lane in lanes.items() if (found := lane.collectives.get(seq))
        }
        ended = all(lane.completed is not None and lane.completed >= seq for lane in lanes.values())
        if len(earlier) < 2 or not ended:
            continue
        same = {operation_name(found[-1]) for found in earlier.values()} == names
        if same and len(set(signatures(earlier, shapes=False).values())) > 1:
            return True
    return False


def _sizeless(entry: Entry) -> Entry:
    return replace(entry, input_sizes=None, output_sizes=None)


def signatures(entries: Mapping[int, Sequence[Entry]], *, shapes: bool) -> dict[int, Signature]:
    """Rank -> what it does in a step, as far as all of them say it.

    Parameters
    ----------
    entries
        Rank -> its entries of the step.
    shapes
        Whether two shapes of as many elements differ.
    """
    fields = {rank: _fields(found, shapes=shapes) for rank, found in entries.items()}
    width = len(next(iter(fields.values())))
    said = [
        place for place in range(width) if all(each[place] is not None for each in fields.values())
    ]
    return {rank: tuple(each[place] for place in said) for rank, each in fields.items()}


def _fields(entries: Sequence[Entry], *, shapes: bool) -> tuple[object, ...]:
    """Operation, sizes and types; None where not stated, or left to each rank."""
    names = tuple(operation_name(entry) for entry in entries)
    free = ANY_SIZE.intersection(names)
    any_in, any_out = free or OWN_INPUT.intersection(names), free or OWN_OUTPUT.intersection(names)
    return (
        names,
        None if any_in else _all(_size(entry.input_sizes, shapes=shapes) for entry in entries),
        None if any_in else _all(entry.input_dtypes for entry in entries),
        None if any_out else _all(_size(entry.output_sizes, shapes=shapes) for entry in entries),
        None if any_out else _all(entry.output_dtypes for entry in entries),
    )


def operation_name(entry: Entry) -> str:
    """An operation by one name in all versions.

    >>> from analytics.training.hangs.dump import Entry
    >>> operation_name(Entry("0", 1, "nccl:_all_gather_base", "started"))
    'all_gather_base'
    """
    name = _LEADING.sub("", entry.kind)
    return _SAME.get(name, name)


def _size(sizes: Sizes | None, *, shapes: bool) -> object:
    if sizes is None or shapes:
        return sizes
    return sum(math.prod(one) for one in sizes)


def _all(values: Iterable[object]) -> tuple[object, ...] | None:
    found = tuple(values)
    return None if None in found else found


def _told(
    progress: Progress,
    step: Step,
    signed: Mapping[int, Signature],
    entries: Mapping[int, Sequence[Entry]],
    *,
    is_counted: bool,
) -> Mismatch:
    """Classes of ranks, and which of them is odd."""
    by_signature = defaultdict(list)
    for rank, signature in signed.items():
        by_signature[signature].append(rank)
    classes = sorted(map(tuple, by_signature.values()), key=lambda ranks: (-len(ranks), ranks))
    aspect = _aspect(entries)
    most, others = classes[0], tuple(sorted(rank for one in classes[1:] for rank in one))
    if len(most) > len(others):
        return Mismatch(step, aspect, tuple(classes), others, "majority", is_counted)
    usual = _as_siblings(progress, step, classes, entries, shapes=not is_counted)
    if usual is None:
        odd = tuple(sorted(signed))
        return Mismatch(step, aspect, tuple(classes), odd, "nobody", is_counted)
    odd = tuple(sorted(rank for rank in signed if rank not in usual))
    return Mismatch(step, aspect, tuple(classes), odd, "siblings", is_counted)


def _aspect(entries: Mapping[int, Sequence[Entry]]) -> Aspect:
    """In what they differ."""
    fields = [_fields(found, shapes=True) for found in entries.values()]
    if len({each[0] for each in fields}) > 1:
        return "operation"
    shapes = {(each[1], each[3]) for each in fields}
    return "shape" if len(shapes) > 1 else "type"


def _as_siblings(
    progress: Progress,
    step: Step,
    classes: Sequence[tuple[int, ...]],
    entries: Mapping[int, Sequence[Entry]],
    *,
    shapes: bool,
) -> tuple[int, ...] | None:
    """The class that does what all other groups of the same purpose do in that step."""
    siblings = {
        rank: found
        for group in progress.groups
        if step.group.desc and group.desc == step.group.desc and group.ranks != step.group.ranks
        for rank, lane in progress.lanes_of(group).items()
        if rank not in entries and (found := lane.collectives.get(step.seq))
    }
    signed = signatures({**entries, **siblings}, shapes=shapes)
    usual = {signed[rank] for rank in siblings}
    if len(siblings) < 2 or len(usual) > 1:
        return None
    return next((ranks for ranks in classes if signed[ranks[0]] in usual), None)


def is_swapped(progress: Progress, found: Mismatch) -> bool:
    """Whether an odd rank does now what the others do next, or did next what they do now."""
    group, seq = found.step.group, found.step.seq
    lanes = progress.lanes_of(group)
    usual = [rank for rank in found.classes[0] if rank not in found.odd]
    for odd in found.odd:
        for rank in usual:
            for mine, theirs in ((seq, seq + 1), (seq + 1, seq)):
                a, b = lanes[odd].collectives.get(mine), lanes[rank].collectives.get(theirs)
                if a and b and len(set(signatures({0: a, 1: b}, shapes=False).values())) == 1:
                    return True
    return False
