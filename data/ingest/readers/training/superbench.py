"""Results of SuperBench: one JSON object a line, a node and its metrics by rank."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.formats.source import opened, without_long_lines
from data.limits import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Sequence

_RANK = re.compile(r":\d+$")


@dataclass(frozen=True)
class BenchmarkResults:
    """What files of results hold."""

    by_node: dict[str, dict[str, list[float]]]
    """Node -> metric without its rank -> values of all ranks and runs."""
    n_lines: int
    n_rejected: int
    """Lines that are no JSON object with a node."""
    rejected_at: str | None
    """File and line of the first of them."""


def read_results(names: Sequence[str]) -> BenchmarkResults:
    """Results of several files, e.g. `results-summary.jsonl`; `-` is standard input.

    Raises
    ------
    SourceError
        Where a file cannot be read, or none holds a result.
    """
    by_node: dict[str, dict[str, list[float]]] = {}
    n_lines = n_rejected = 0
    rejected_at = None
    for name in names:
        for line_no, line in _lines(name):
            n_lines += 1
            result = _result(line)
            if result is None:
                n_rejected += 1
                rejected_at = rejected_at or f"{name}:{line_no}"
                continue
            node, metrics = result
            of_node = by_node.setdefault(node, {})
            for metric, values in metrics.items():
                of_node.setdefault(metric, []).extend(values)
    if not any(by_node.values()):
        raise SourceError(
            f"{', '.join(names)}: holds no result: give SuperBench's results-summary.jsonl, one "
            'object a line such as {"node": "n1", "mem-bw/h2d_bw:0": 26.1}'
        )
    return BenchmarkResults(by_node, n_lines, n_rejected, rejected_at)


def _lines(name: str) -> list[tuple[int, str]]:
    """Lines that are not blank, with their numbers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(name, Path(folder)) as whole,
        without_long_lines(whole, DEFAULTS, Path(folder)) as source,
        source.path.open(encoding="utf-8-sig") as stream,
    ):
        return [(no, line) for no, line in enumerate(stream, 1) if line.strip()]


def _result(line: str) -> tuple[str, dict[str, list[float]]] | None:
    """Node and metrics of a line; None of what is no result."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    node = found.pop("node", None) if isinstance(found, dict) else None
    if not isinstance(node, str) or not node.strip():
        return None
    metrics: dict[str, list[float]] = {}
    for key, value in found.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                metrics.setdefault(_RANK.sub("", key), []).append(float(value))
            except OverflowError:
                continue
    return node.strip(), metrics
