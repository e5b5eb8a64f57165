"""Where each rank's Python stands, and which rank stands elsewhere than most."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Frame:
    """A function on a stack."""

    function: str
    file: str
    line: int | None = None

    @property
    def place(self) -> str:
        """The function and its file, whatever the line.

        >>> Frame("forward", "/src/model.py", 12).place
        'forward (model.py)'
        """
        return f"{self.function} ({self.file.rpartition('/')[2]})"


@dataclass(frozen=True)
class RankStack:
    """The stack of one thread of a rank, the innermost function first."""

    rank: int
    frames: tuple[Frame, ...]
    thread: str | None = None
    state: str | None = None
    """What the tool says of the thread, e.g. active or idle."""
    host: str | None = None


@dataclass(frozen=True)
class Standing:
    """Where ranks stand.

    Attributes
    ----------
    places
        Rank -> the innermost function of its thread.
    dominant
        The function in which more than half of the ranks stand; None where there is none.
    outliers
        Ranks that stand elsewhere, where most stand in one place.
    """

    places: dict[int, str]
    dominant: str | None
    n_dominant: int
    outliers: tuple[int, ...]


def standing(stacks: Iterable[RankStack]) -> Standing:
    """Ranks that stand elsewhere than most: n ranks, n_d of them in one function, n_d > n / 2.

    In a hang the healthy ranks wait in the same call; who holds them up stands elsewhere, or
    waits in another call because of another. It misleads where all stand in the same wait (a hang
    of the network), and where ranks of different stages run different programs.

    Parameters
    ----------
    stacks
        Of each rank its main thread; without frames a rank is left out.

    Raises
    ------
    AnalysisError
        Where no stack holds a frame.

    References
    ----------
    py-spy's `dump`; Python's `faulthandler`.

    Examples
    --------
    >>> wait, load = Frame("wait", "c10d.py"), Frame("read", "loader.py")
    >>> found = standing([RankStack(0, (wait,)), RankStack(1, (load,)), RankStack(2, (wait,))])
    >>> found.dominant, found.outliers
    ('wait (c10d.py)', (1,))
    """
    places = {stack.rank: stack.frames[0].place for stack in stacks if stack.frames}
    if not places:
        raise AnalysisError("stacks must hold a frame, got none: give dumps of Python processes")
    ((place, n),) = Counter(places.values()).most_common(1)
    if 2 * n <= len(places) or len(places) < 3:
        return Standing(places, None, 0, ())
    outliers = tuple(sorted(rank for rank, own in places.items() if own != place))
    return Standing(places, place, n, outliers)
