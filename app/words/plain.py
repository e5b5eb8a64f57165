"""Text of logs, records and names as it can be printed anywhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def one_line(text: str) -> str:
    r"""Text of a log or record without control characters and line ends.

    >>> one_line("\x1b[31mred\x1b[0m\r\nnext")
    'red next'
    """
    return " ".join(_CONTROL.sub("", text).split())


def printable(text: str) -> str:
    r"""A line of a log as it stands, without control characters; its indent stays.

    >>> printable("\t\x07at x\r\n")
    '        at x'
    """
    return " ".join(_CONTROL.sub("", text).expandtabs().splitlines())


def shortened(text: str, longest: int) -> str:
    """Text cut to at most `longest` letters, with an ellipsis.

    >>> shortened("a long name", 6), shortened("short", 6)
    ('a lon…', 'short')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def first_few(names: Sequence[str], most: int, *, n: int | None = None, between: str = ", ") -> str:
    """The first of several names, and how many more there are of `n`, or of those given.

    >>> first_few(["a", "b", "c"], 2), first_few(["a"], 2), first_few(["a"], 1, n=1201)
    ('a, b and 1 more', 'a', 'a and 1,200 more')
    """
    more = (len(names) if n is None else n) - most
    return between.join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def in_a_row(names: Sequence[str], last: str = "and") -> str:
    """Names in a sentence.

    >>> in_a_row(["a"]), in_a_row(["a", "b", "c"]), in_a_row(["a", "b"], "or")
    ('a', 'a, b and c', 'a or b')
    """
    *first, end = names
    return f"{', '.join(first)} {last} {end}" if first else end


MOST_TITLE_WORDS = 14
FEWEST_TITLE_WORDS = {".;": 2, ".;:": 5, ".;:,": 3}
"""Where a title may end, the best first, and the fewest words that it then has."""
_BRACKETS = re.compile(r" \([^()]*\)")
"""Intervals, counts and remarks in brackets: they stand one level down."""
_ENDS = re.compile(r"(?<=[.;:]) |(?<=,) ")
"""Where a clause ends."""


def titled(sentence: str) -> str:
    """The finding of a sentence, in at most 14 words: its first clauses, without what stands in
    brackets. The whole sentence where no clause ends before.

    >>> titled("Well: 6.40 failures (4.79 to 8.38, n = 38); not above 6.77 (5.64 to 8.07) before.")
    'Well: 6.40 failures; not above 6.77 before'
    >>> titled("No node can be judged: " + "no source was collected, " * 6)
    'No node can be judged'
    >>> titled("Watch: 7 failures (5 to 9), above the 4 of " + "before " * 12)
    'Watch: 7 failures'
    """
    bare = unbracketed(sentence)
    first, _, rest = bare.partition(". ")
    if rest and _words(first) <= MOST_TITLE_WORDS:
        return first
    if _words(bare) <= MOST_TITLE_WORDS:
        return bare.removesuffix(".")
    for ends, fewest in FEWEST_TITLE_WORDS.items():
        kept = [
            match.start()
            for match in _ENDS.finditer(bare)
            if bare[match.start() - 1] in ends and _words(bare[: match.start()]) <= MOST_TITLE_WORDS
        ]
        if kept and _words(bare[: kept[-1]]) >= fewest:
            return bare[: kept[-1]].rstrip(".;:,")
    return sentence.removesuffix(".")


def in_a_sentence(title: str) -> str:
    """A title where a sentence goes on: abbreviations and names in mixed case stay.

    >>> in_a_sentence("Node n1 lost"), in_a_sentence("GPU memory"), in_a_sentence("InfiniBand link")
    ('node n1 lost', 'GPU memory', 'InfiniBand link')
    """
    first = title.partition(" ")[0]
    return title[:1].lower() + title[1:] if first[1:].islower() else title


LONGEST_CLAUSE = 60
"""Letters of a clause in a list; the whole text is one level down."""


def clause(text: str) -> str:
    """The first clause of a text, without what stands in brackets.

    >>> clause("GPU memory error (HBM: ECC) on node n1: 1 job (16 GPUs) ended")
    'GPU memory error on node n1'
    """
    return shortened(unbracketed(text).partition(";")[0].partition(": ")[0], LONGEST_CLAUSE)


def unbracketed(text: str) -> str:
    """A text without what stands in brackets, and in brackets within them.

    >>> unbracketed("GPU memory error (HBM: double bit (ECC)) on n1 (16 GPUs)")
    'GPU memory error on n1'
    """
    bare = _BRACKETS.sub("", text)
    return bare if bare == text else unbracketed(bare)


def _words(text: str) -> int:
    return len(text.split())


def file_name(name: str) -> str:
    """A name as part of a file's name.

    >>> file_name("rack 3/../n1.example")
    'rack-3-..-n1.example'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.") or "unnamed"
