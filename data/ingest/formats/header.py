"""The first line of a text."""

from __future__ import annotations

import csv


def header_of(text: str, delimiter: str = ",") -> frozenset[str]:
    """Names of the columns in the first line of a text; none where that is no line of columns.

    >>> sorted(header_of("node, state\\nn1,down"))
    ['node', 'state']
    """
    try:
        row = next(csv.reader(text.splitlines()[:1], delimiter=delimiter), [])
    except csv.Error:  # a field of over 131,072 characters
        return frozenset()
    return frozenset(field.strip().lstrip("\ufeff") for field in row)


def first_line(head: str) -> str:
    """The first line that is not blank, without the mark of the order of bytes before it."""
    return next((line for line in head.splitlines() if line.strip()), "").lstrip("\ufeff")
