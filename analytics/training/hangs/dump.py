"""What a flight recorder kept of one rank: its process groups and the operations it enqueued."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

State: TypeAlias = Literal["scheduled", "started", "completed"]
Sizes: TypeAlias = tuple[tuple[int, ...], ...]

COALESCED = "coalesced"
"""Name of the entry that ends a group of operations launched as one, and alone is followed."""


@dataclass(frozen=True)
class GroupConfig:
    """A process group as one rank knows it."""

    name: str
    """The rank's name of it, which another rank may give to another group."""
    desc: str = ""
    """What it is for, e.g. PIPELINE_MODEL_PARALLEL_GROUP; empty where the dump does not say it."""
    ranks: tuple[int, ...] | None = None
    """Global ranks in the order of the group; None where the dump does not say them."""
    n_unread: int = 0
    """Entries of the group that could not be read: what they were is not known."""


@dataclass(frozen=True)
class GroupStatus:
    """How far one rank is in a process group, by sequence numbers; None where not stated."""

    enqueued: int | None = None
    started: int | None = None
    completed: int | None = None

    @property
    def is_pending(self) -> bool:
        """Whether it is stated that something was enqueued and did not end."""
        stated = self.enqueued is not None and self.completed is not None
        return stated and self.enqueued > self.completed  # type: ignore[operator]


@dataclass(frozen=True)
class Entry:
    """An operation in the ring of one rank."""

    group: str
    """`name` of its group in the same dump."""
    seq: int
    """Count of collectives of the group, or of its sends and receives where `p2p`."""
    operation: str
    """As profiled, e.g. `nccl:all_reduce` or `nccl:recv 0<-3`: there ranks within the group."""
    state: State
    p2p: bool = False
    retired: bool = False
    record_id: int | None = None
    """Count of all that the rank recorded."""
    input_sizes: Sizes | None = None
    output_sizes: Sizes | None = None
    input_dtypes: tuple[str, ...] | None = None
    output_dtypes: tuple[str, ...] | None = None
    created_ns: int | None = None
    """When it was enqueued, by the clock of the rank."""
    started_ns: int | None = None
    completed_ns: int | None = None

    @property
    def kind(self) -> str:
        """The operation without its library and peers.

        >>> Entry("0", 1, "nccl:recv 0<-3", "started").kind
        'recv'
        """
        return self.operation.rpartition(":")[2].partition(" ")[0]

    @property
    def is_completed(self) -> bool:
        """Whether it ended on the GPU."""
        return self.state == "completed" or bool(self.completed_ns)


@dataclass(frozen=True)
class RankDump:
    """The flight recorder of one rank.

    Attributes
    ----------
    rank
        Global rank.
    groups
        Process groups that it belongs to.
    status
        Group's `name` -> how far the rank is.
    entries
        The ring, oldest first.
    host
        Where it ran; None where the dump does not say it.
    """

    rank: int
    groups: tuple[GroupConfig, ...] = ()
    status: Mapping[str, GroupStatus] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    host: str | None = None
    version: str | None = None
    nccl_version: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Without places, which go by the identity of entries."""
        return RankDump, tuple(getattr(self, name) for name in self.__dataclass_fields__)

    @cached_property
    def is_wrapped(self) -> bool:
        """Whether older operations were overwritten: the oldest record is not the first."""
        ids = [entry.record_id for entry in self.entries if entry.record_id is not None]
        if ids:
            return min(ids) > 0
        lowest: dict[tuple[str, bool], int] = {}
        for entry in self.entries:
            lowest.setdefault((entry.group, entry.p2p), entry.seq)
        return any(seq > 1 for seq in lowest.values())

    @cached_property
    def places(self) -> dict[int, int]:
        """Identity of an entry -> its place in the ring."""
        return {id(entry): place for place, entry in enumerate(self.entries)}

    @cached_property
    def is_timed(self) -> bool:
        """Whether the recorder notes when operations start; else they end as they were scheduled.

        PyTorch does so where TORCH_NCCL_ENABLE_TIMING is set.
        """
        return any(e.state == "started" or e.started_ns is not None for e in self.entries)

    @property
    def says_nothing(self) -> bool:
        """Whether it holds neither operations nor how far its groups are."""
        stated = (one.enqueued for one in self.status.values())
        return not self.entries and all(number is None for number in stated)

    @property
    def shows_no_operation(self) -> bool:
        """Whether it holds no operation, and no number says that there was one."""
        stated = (one.enqueued for one in self.status.values())
        return not self.entries and all(number is None or number < 0 for number in stated)

    @property
    def n_unread(self) -> int:
        """Entries that could not be read."""
        return sum(group.n_unread for group in self.groups)
