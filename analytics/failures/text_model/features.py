"""Terms of a text: words, pairs of words and pieces of words, without a single digit."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from operator import mul
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.arrays import Floats

Texts = tuple[str, ...]
"""One text a column."""
Terms = tuple[Counter[str], ...]
"""Terms of one row, block by block: of each column its words, then its pieces of words."""

Lexicon = tuple[dict[str, tuple[int, float]], ...]
"""Block by block, term -> its place among all terms and its inverse frequency."""

MOST_CHARACTERS = 4_000
"""Of a text, from its end: what ended a job stands there."""
_BLOCK_WEIGHTS = (1.0, 0.5)
_PIECES = range(2, 6)
_LONGEST_WORD = 40
_MOST_TIMES = 4_000
_TIMES = [0.0, *(1.0 + math.log(n) for n in range(1, _MOST_TIMES + 1))]
_DIGITS = re.compile(r"\d+")
_TOKEN = re.compile(r"[^\W\d_]+|#|[^\w\s]")


def normal_text(text: str) -> str:
    """A text without what names one machine, job or moment: lower case, ``#`` for digits.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        With single spaces and ``#`` for each run of digits.

    Examples
    --------
    >>> normal_text("  Node 13: Xid 79\\n")
    'node #: xid #'
    """
    return " ".join(_DIGITS.sub("#", text[-MOST_CHARACTERS:].casefold()).split())


def terms_of(texts: Texts) -> Terms:
    """Terms of a row, two blocks a column: words with pairs of words, and pieces of words.

    Pieces are the runs of 2 to 5 characters of each word with a blank before and behind it:
    they still agree where a word is misspelt.

    Parameters
    ----------
    texts : tuple of str
        One text a column.

    Returns
    -------
    tuple of Counter
        Term -> how often.

    Examples
    --------
    >>> words, pieces = terms_of(("fan 3",))
    >>> sorted(words), sorted(pieces)[:3]
    (['#', 'fan', 'fan #'], [' f', ' fa', ' fan'])
    """
    blocks: list[Counter[str]] = []
    for text in texts:
        found = [token[:_LONGEST_WORD] for token in _TOKEN.findall(normal_text(text))]
        words = Counter(found)
        pieces: Counter[str] = Counter()
        for word, n in words.items():
            for piece in _pieces(word):
                pieces[piece] += n
        words.update(f"{first} {second}" for first, second in pairwise(found))
        blocks += [words, pieces]
    return tuple(blocks)


@lru_cache(maxsize=1 << 16)
def _pieces(word: str) -> tuple[str, ...]:
    """Runs of characters of one word; marks have none."""
    if not word[0].isalpha():
        return ()
    padded = f" {word} "
    return tuple(
        padded[start : start + size] for size in _PIECES for start in range(len(padded) - size + 1)
    )


def inverse_frequencies(
    rows: Sequence[Terms], counts: Sequence[int], most: int
) -> list[dict[str, float]]:
    """How telling each term is: ln((1 + n) / (1 + rows with it)) + 1, block by block.

    Parameters
    ----------
    rows : sequence of Terms
        Distinct rows.
    counts : sequence of int
        How often each row stands.
    most : int
        Terms of a block that are kept at most: the most frequent.

    Returns
    -------
    list of dict
        Term -> value, terms in alphabetical order.
    """
    total = sum(counts)
    found = []
    for block in range(len(rows[0])):
        seen: Counter[str] = Counter()
        for row, n in zip(rows, counts, strict=True):
            for term in row[block]:
                seen[term] += n
        kept = sorted(seen, key=lambda term: (-seen[term], term))[:most]
        found.append(
            {
                term: round(math.log((1 + total) / (1 + seen[term])) + 1.0, 4)
                for term in sorted(kept)
            }
        )
    return found


def lexicon(frequencies: Sequence[Mapping[str, float]]) -> Lexicon:
    """Place and inverse frequency of each term, block by block; places count over all blocks.

    Examples
    --------
    >>> lexicon([{"fan": 1.5}, {" f": 1.0, "fa": 2.0}])
    ({'fan': (0, 1.5)}, {' f': (1, 1.0), 'fa': (2, 2.0)})
    """
    blocks, width = [], 0
    for known in frequencies:
        blocks.append({term: (width + at, value) for at, (term, value) in enumerate(known.items())})
        width += len(known)
    return tuple(blocks)


def matrix(rows: Sequence[Terms], known: Lexicon) -> sparse.csr_matrix:
    """Rows as numbers: (1 + ln count) x inverse frequency, each block scaled to its weight.

    Parameters
    ----------
    rows : sequence of Terms
        Terms of each row.
    known : Lexicon
        Other terms are left out.

    Returns
    -------
    csr_matrix
        Shape (rows, terms of all blocks); a block without a known term is zero.
    """
    values: list[float] = []
    columns: list[int] = []
    ends, lengths, sizes = [0], [], []
    for row in rows:
        for there, terms in zip(known, row, strict=True):
            cells = [(there[term], n) for term, n in terms.items() if term in there]
            columns += [column for (column, _), _ in cells]
            block = [
                value if n == 1 else _TIMES[min(n, _MOST_TIMES)] * value for (_, value), n in cells
            ]
            values += block
            lengths.append(math.sqrt(math.fsum(map(mul, block, block))))
            sizes.append(len(block))
        ends.append(len(columns))
    weights = np.tile(np.resize(_BLOCK_WEIGHTS, len(known)), len(rows))
    scaled = np.repeat(weights, sizes) * np.array(values) / np.repeat(lengths, sizes)
    features = sparse.csr_matrix(
        (scaled, np.array(columns, dtype=np.int64), np.array(ends, dtype=np.int64)),
        shape=(len(rows), sum(map(len, known))),
    )
    features.sort_indices()
    return features


def known_ratios(rows: Sequence[Terms], known: Lexicon) -> Floats:
    """Share of each row's distinct words that training has seen; 0 for a row without words."""
    ratios = []
    for row in rows:
        words = [
            (term, block)
            for block in range(0, len(row), len(_BLOCK_WEIGHTS))
            for term in row[block]
            if term.isalpha()
        ]
        seen = sum(term in known[block] for term, block in words)
        ratios.append(seen / len(words) if words else 0.0)
    return np.array(ratios)
