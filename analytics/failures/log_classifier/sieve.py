"""Which lines of a log of any length are worth keeping: a cheap look at every one of them."""

from __future__ import annotations

import re
import string
from collections import Counter

from analytics.failures.log_classifier.course import TURNS, tells_of_a_turn
from analytics.failures.log_classifier.rules import NO_DIGITS, may_matter, vocabulary

MOST_SAME, MOST_ALIKE = 16, 64
"""Lines that differ in digits alone, or begin alike, of which the rest is not looked at."""
MOST_CODED = 1_000
"""The same of lines with an XID, whose digits say what it is."""
_ALIKE_SPAN, _ALIKE_LETTERS = 120, 48
_HASHES = re.compile(r"\b[a-f]+\b")
"""What is left of hashes and addresses without their digits."""
_NO_SIGNS = str.maketrans("", "", string.punctuation + string.whitespace)


def beginning_of(text: str) -> str:
    """Its first letters, in lower case, without digits, signs and blanks.

    Examples
    --------
    >>> beginning_of("[rank3] Step 12: Loss 2.1")
    'ranksteploss'
    """
    template = text[:_ALIKE_SPAN].lower().translate(NO_DIGITS)
    return template.translate(_NO_SIGNS)[:_ALIKE_LETTERS]


class Repeats:
    """How often a log has said nearly the same: of many lines alike the first ones are enough."""

    def __init__(self) -> None:
        self._same: Counter[str] = Counter()
        self._alike: Counter[str] = Counter()

    def is_enough(self, template: str) -> bool:
        """Counts a line, given in lower case without its digits: whether there were enough."""
        coded = "xid" in template
        template = _HASHES.sub("", template)
        self._same[template] += 1
        if self._same[template] > (MOST_CODED if coded else MOST_SAME):
            return True
        beginning = template[:_ALIKE_SPAN].translate(_NO_SIGNS)[:_ALIKE_LETTERS]
        self._alike[beginning] += 1
        return self._alike[beginning] > (MOST_CODED if coded else MOST_ALIKE)


def is_worth_keeping(template: str) -> bool:
    """Whether a line may tell of a failure, of a start or of an end of the program.

    The line is given in lower case without its digits.

    Examples
    --------
    >>> is_worth_keeping("step  of  loss .")
    False
    >>> is_worth_keeping("nvrm: xid (pci::c:): , gpu has fallen off the bus.")
    True
    """
    return may_matter(template) or tells_of_a_turn(template)


def pattern_of_worth() -> str:
    """A regular expression of plain words that finds in a template whatever is worth keeping.

    It finds more: what it finds is looked at by `is_worth_keeping`.
    """
    return "|".join(re.escape(word) for word in (*TURNS, *vocabulary()))
