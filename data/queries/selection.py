"""What a question is asked of: the filters every page, command and report shares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

MTTF_MIN_GPUS = 129
"""Smallest job that `mttf` counts by default: the paper's "> 128 GPUs"."""


@dataclass(frozen=True)
class Selection:
    """Filters; None selects everything. Times are UTC, the period is [from_at, to_at)."""

    cluster: str | None = None
    from_at: datetime | None = None
    to_at: datetime | None = None
    partition: str | None = None
    account: str | None = None
    min_gpus: int = 0
    """Smallest job counted; a page or command may have a default of its own."""
    by_size_min_gpus: int = 0
    """Smallest job of the size classes: what was asked for, whatever the default of `min_gpus`."""

    @property
    def rows(self) -> Selection:
        """The same of jobs of all sizes."""
        return replace(self, min_gpus=0, by_size_min_gpus=0)
