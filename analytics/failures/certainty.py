"""What a confidence of the log classifier means in words."""

from __future__ import annotations

_WORDS = ((0.9, "almost certain"), (0.8, "very likely"), (0.65, "likely"), (0.0, "undecided"))


def in_words(confidence: float) -> str:
    """A confidence as a word.

    Of logs that nobody had tuned to, the domain was right in .96 of 112 verdicts of .9 and more, in
    .90 of 88 from .8, in .74 of 27 from .65 and in .46 of 11 below (sets 15 and 16 of
    `tests/analytics/failures/unseen_logs`).

    Parameters
    ----------
    confidence : float
        In [0, 1], of `LogVerdict`.

    Examples
    --------
    >>> in_words(0.93), in_words(0.7), in_words(0.5)
    ('almost certain', 'likely', 'undecided')
    """
    return next(word for least, word in _WORDS if confidence >= least)
