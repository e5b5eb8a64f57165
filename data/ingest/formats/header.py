"""The first line of a text of columns."""

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
