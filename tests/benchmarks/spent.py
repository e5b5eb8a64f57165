"""What a benchmark is judged by: processor seconds, which a busy machine hardly changes."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def spent(work: Callable[[], object]) -> float:
    """Processor seconds (user + sys) of some work with its threads and the processes it waits for."""
    begin = _so_far()
    work()
    return _so_far() - begin


def _so_far() -> float:
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
