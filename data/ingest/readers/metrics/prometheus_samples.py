"""Samples of machines' metrics in what Prometheus answers to `query_range`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from data.errors import SourceError
from data.ingest.formats.json_text import json_value
from data.ingest.reader import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.ingest.reader import Source
    from data.limits import Limits

    Array = np.ndarray[Any, np.dtype[Any]]

NODES = ("node", "Hostname", "hostname", "nodename", "kubernetes_node", "instance", "host")
"""Labels that name a machine, the surest first; of an instance, its port is left out."""


def prometheus_series(source: Source, limits: Limits) -> Iterator[tuple[str, str, Array, Array]]:
    """Metric, machine, times (seconds since 1970) and values of each series.

    A series without a name, as functions leave it, has that of its file.

    Raises
    ------
    SourceError
        Where the file is no JSON of Prometheus, or a series names no machine.
    """
    try:
        found: Any = json_value(source.path.read_text(encoding="utf-8-sig"), limits)
        if isinstance(found, dict):
            found = found.get("data", found)
        results = found["result"] if isinstance(found, dict) else found
        for each in results:
            labels = each["metric"]
            metric = labels.get("__name__") or Path(source.name).name.partition(".")[0]
            pairs = np.array(each.get("values") or [each["value"]], dtype=object)
            yield (
                metric,
                _machine(source, labels),
                pairs[:, 0].astype(float),
                pairs[:, 1].astype(float),
            )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecordError) as error:
        raise SourceError(
            f"{source.name}: is no answer of Prometheus ({type(error).__name__}: {error}): give "
            "the JSON of /api/v1/query_range"
        ) from None


def _machine(source: Source, labels: dict[str, str]) -> str:
    """The machine that labels name."""
    label = next((label for label in NODES if labels.get(label)), None)
    if label is None:
        raise SourceError(
            f"{source.name}: a series names no machine ({', '.join(NODES)}): keep one of these "
            "labels, e.g. avg by (instance)"
        )
    name = labels[label]
    return name.rpartition(":")[0] or name if label == "instance" else name
