"""What a benchmark is judged by: processor seconds, which a busy machine hardly changes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def spent(work: Callable[[], object]) -> float:
    """Processor seconds (user + sys) of some work with its threads and the processes it waits for."""
    begin = sum(os.times()[:4])
    work()
    return sum(os.times()[:4]) - begin
