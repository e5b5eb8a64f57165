"""Operation types of a training step, and the operations of which every step consists.

Medians, quantiles and distinct values stand here without numpy.ma, an eighth of a small what-if.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from analytics.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.floating[Any]]
    Times: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]

_SHORT: Final = 128
"""Length up to which sorting a row takes less than to divide it."""


def median(values: ArrayLike, axis: int | None = None) -> Floats:
    """The middle value, the mean of the two middle ones of an even number; None for all axes.

    In the precision of the values, to the last digit what `np.median` gives; NaN where one is.

    Examples
    --------
    >>> float(median([3.0, 1.0, 2.0, 10.0]))
    2.5
    """
    given = np.asarray(values)
    moved = given.ravel() if axis is None else np.moveaxis(given, axis, -1)
    half = moved.shape[-1] // 2
    ordered = _ordered(moved, half)
    middle = ordered[..., half]
    if moved.shape[-1] % 2 == 0:
        middle = (ordered[..., :half].max(axis=-1) + middle) / 2
    largest = moved.max(axis=-1)  # NaN where one is
    return np.where(np.isnan(largest), largest, middle)


def low_median(values: Floats, axis: int | tuple[int, ...]) -> Floats:
    """Lower of the two middle values of an even number: the better half of two or four peers."""
    axes = (axis,) if isinstance(axis, int) else axis
    moved = np.moveaxis(values, axes, range(-len(axes), 0))
    flat = moved.reshape(*moved.shape[: values.ndim - len(axes)], -1)
    middle = (flat.shape[-1] - 1) // 2
    return np.asarray(_ordered(flat, middle)[..., middle])


def _ordered(rows: Floats, place: int) -> Floats:
    """Rows with the right value at a place, and none before it that is greater.

    A division by several places at once takes five to ten times as long as one by a single place.
    """
    if rows.shape[-1] <= _SHORT:
        return np.sort(rows, axis=-1)
    return np.partition(rows, place, axis=-1)


def quantiles(values: Times, shares: Sequence[float]) -> list[float]:
    """Quantiles of values, linear between neighbours as those of `np.quantile`.

    Examples
    --------
    >>> quantiles(np.array([3.0, 1.0, 2.0]), [0.25, 1.0])
    [1.5, 3.0]
    """
    places = np.multiply(shares, len(values) - 1)
    found: list[float] = np.interp(places, np.arange(len(values)), np.sort(values)).tolist()
    return found


def distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Distinct values in order, and of each value its place there; np.unique imports numpy.ma."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    new = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(values)]
    place = np.empty(len(values), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return ordered[new], place


OPTYPES: Final = (
    "backward-compute",
    "backward-recv",
    "backward-send",
    "embedding-grads-all-reduce",
    "forward-compute",
    "forward-recv",
    "forward-send",
    "gc",
    "grads-reduce-scatter",
    "layernorm-grads-all-reduce",
    "optimizer",
    "optimizer-clip-main-grad",
    "params-all-gather",
    "separate-grads-all-reduce",
)
"""Names of the operation types; a type is coded by its place here."""

(
    BACKWARD,
    BACKWARD_RECV,
    BACKWARD_SEND,
    EMBEDDING,
    FORWARD,
    FORWARD_RECV,
    FORWARD_SEND,
    GC,
    REDUCE_SCATTER,
    LAYERNORM,
    OPTIMIZER,
    CLIP,
    ALL_GATHER,
    SEPARATE,
) = range(len(OPTYPES))

COMPUTES: Final = (BACKWARD, FORWARD)
P2P: Final = (BACKWARD_RECV, BACKWARD_SEND, FORWARD_RECV, FORWARD_SEND)
LOCAL: Final = (BACKWARD, FORWARD, GC, LAYERNORM, OPTIMIZER)
"""Types that wait for no peer: their cost is their duration."""
AVERAGED: Final = (BACKWARD, FORWARD, GC, OPTIMIZER)
"""Types whose ideal cost is the mean; that of all others is the median."""
SHARED: Final = (REDUCE_SCATTER, CLIP, ALL_GATHER, SEPARATE)
"""Types that all data-parallel ranks start together."""
CHUNKED: Final = (BACKWARD, FORWARD, REDUCE_SCATTER, ALL_GATHER)
"""Types that belong to a model chunk."""

LABELS: Final = {
    BACKWARD_RECV: "backward-pp-comm",
    BACKWARD_SEND: "backward-pp-comm",
    FORWARD_RECV: "forward-pp-comm",
    FORWARD_SEND: "forward-pp-comm",
}


def label(optype: int) -> str:
    """Name of the type in results, where sends and receives of a direction are one."""
    return LABELS.get(optype, OPTYPES[optype])


def optype_codes(names: Sequence[str]) -> NDArray[np.int8]:
    """Codes of names of operation types.

    Raises
    ------
    AnalysisError
        For a name that is none of `OPTYPES`.

    Examples
    --------
    >>> optype_codes(["gc", "forward-compute"]).tolist()
    [7, 4]
    """
    unknown = [name for name in names if name not in OPTYPES]
    if unknown:
        raise AnalysisError(
            f"optype must be one of {', '.join(OPTYPES)}, got {unknown[0]!r}: "
            "rename the type, or leave its rows out"
        )
    return np.array([OPTYPES.index(name) for name in names], dtype=np.int8)


def among(optype: NDArray[np.integer[Any]], types: Sequence[int]) -> NDArray[np.bool_]:
    """Whether each type is one of some; np.isin takes ten times as long for so few.

    Examples
    --------
    >>> among(np.array([7, 4], dtype=np.int8), COMPUTES).tolist()
    [False, True]
    """
    chosen = np.zeros(len(OPTYPES), dtype=np.bool_)
    chosen[list(types)] = True
    return np.asarray(chosen[optype])


@dataclass(frozen=True)
class Operations:
    """The operations of a step on the workers of one data-parallel rank, arrays of one length.

    All data-parallel ranks and steps hold the same ones, in order of (optype, stage, seq).
    """

    optype: NDArray[np.int8]
    """Codes into `OPTYPES`."""
    stage: NDArray[np.int32]
    """Pipeline stage, from 0."""
    seq: NDArray[np.int32]
    """Number among the operations of the type on the stage in the step, from 0."""
    chunk: NDArray[np.int32]
    """Model chunk within the stage; -1 where none applies."""
    global_chunk: NDArray[np.int32]
    """Chunk of the whole model, chunk x stages + stage; -1 where none applies."""
    micro_batch: NDArray[np.int32]
    """Micro-batch; -1 where none applies or it is unknown."""

    def __len__(self) -> int:
        return len(self.optype)

    def of(self, optype: int, stage: int) -> range:
        """The operations of a type on a stage, by seq; they lie in one piece."""
        at = optype * self.n_stages + stage
        return range(self._begins[at], self._begins[at + 1])

    @cached_property
    def _begins(self) -> list[int]:
        """Where the operations of each type and stage begin."""
        key = self.optype.astype(np.int64) * self.n_stages + self.stage
        begins: list[int] = np.searchsorted(
            key, np.arange(len(OPTYPES) * self.n_stages + 1)
        ).tolist()
        return begins

    @cached_property
    def n_stages(self) -> int:
        """Pipeline stages."""
        return int(self.stage.max()) + 1

    def name(self, op: int) -> str:
        """What people call the operation.

        Examples
        --------
        >>> one = np.array([2], dtype=np.int32)
        >>> Operations(np.array([7], dtype=np.int8), one, one, one, one, one).name(0)
        'gc 2 of stage 2'
        """
        return f"{OPTYPES[self.optype[op]]} {self.seq[op]} of stage {self.stage[op]}"
