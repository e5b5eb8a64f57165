"""The rule by which attempts and jobs of one logical task become one run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from analytics.errors import OutOfRangeError

CHAINS: Final = ("chain", "apart")
"""Whether jobs that ran one after the other are joined (chain) or never (apart)."""
GENERIC_NAMES: Final = (
    *("allocation", "bash", "interactive", "jupyter", "no-shell", "python", "python3", "salloc"),
    *("sbatch", "sh", "srun", "wrap", "zsh"),
)
"""Names that the scheduler or the shell gives where the user gave none."""


@dataclass(frozen=True)
class RunRule:
    """When two attempts belong to one run; checked when it is made.

    Raises
    ------
    OutOfRangeError
        Naming the key, the rule, the value found and the remedy.

    Examples
    --------
    >>> RunRule(gap_hours=6, name_min_gpus=64).names
    'chain'
    >>> RunRule(gap_hours=0)
    Traceback (most recent call last):
    analytics.errors.OutOfRangeError: gap_hours must be hours > 0, at most 8,760, got 0: mend it
    """

    requeue_gap_days: float = 30.0
    """A job id that comes again more than this after its last attempt ended is another run."""
    arrays: str = "chain"
    """chain: tasks of one array that ran one after the other are one run; apart: never."""
    array_min_gpus: int | None = None
    """Least GPUs of tasks that are chained; None: tasks on several nodes."""
    names: str = "chain"
    """chain: jobs of one user, name and size that ran one after the other are one run; apart."""
    name_min_gpus: int | None = None
    """Least GPUs of jobs that are chained by name; None: jobs on several nodes."""
    gap_hours: float = 24.0
    """The next job of a chain was submitted or started within this after the one before ended."""
    after_completed: bool = False
    """Whether a chain goes on after a COMPLETED job."""
    max_overlap_ratio: float = 0.1
    """A name of a user's is generic, and joins nothing, where more than this share of the jobs
    so named ran while another of them ran."""
    generic_names: tuple[str, ...] = GENERIC_NAMES
    """Names that join nothing, whatever their case."""

    def __post_init__(self) -> None:
        _number("requeue_gap_days", self.requeue_gap_days, 36_500, "days > 0, at most 36,500")
        _number("gap_hours", self.gap_hours, 8_760, "hours > 0, at most 8,760")
        _number("max_overlap_ratio", self.max_overlap_ratio, 1, "a number from 0 to 1", zero=True)
        for key in ("array_min_gpus", "name_min_gpus"):
            value = getattr(self, key)
            if value is not None and (type(value) is not int or not 0 < value <= 10_000_000):
                remedy = "leave it out for jobs on several nodes"
                raise OutOfRangeError(key, "a whole number > 0", repr(value), remedy)
        for key in ("arrays", "names"):
            if getattr(self, key) not in CHAINS:
                given = repr(getattr(self, key))
                raise OutOfRangeError(key, '"chain" or "apart"', given, "choose one")
        if not isinstance(self.after_completed, bool):
            given = repr(self.after_completed)
            raise OutOfRangeError("after_completed", "true or false", given, "choose one")
        names: object = self.generic_names
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            given = repr(list(names) if isinstance(names, tuple) else names)
            raise OutOfRangeError("generic_names", "a list of names", given, 'write e.g. ["train"]')


def _number(key: str, value: object, most: float, rule: str, *, zero: bool = False) -> None:
    """A number above zero, or from zero on, up to the most."""
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    if not (0 <= number <= most and (zero or number > 0)):
        raise OutOfRangeError(key, rule, repr(value), "mend it")
