"""What Prometheus reads: open alerts, deliveries and a few figures, as its text format 0.0.4.

Ages are told as times of 1970: a file that is written seldom stays right.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING

from app.alerts import life
from app.alerts.rule import SEVERITIES
from data.current import read_current
from data.deliveries import Counts, Deliveries
from data.disk_full import disk_full
from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from data.alerts import Alert, Figure

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FILE_MODE = 0o644
"""Of the text file: the exporter that reads it is another user."""
STATES = ("open", "acknowledged", "muted")
_NOT_NAMED = re.compile(r"[^a-zA-Z0-9_]")
_BOUNDS = ("", "_lower", "_upper")
_OF_FIGURE = (
    "as it was when rules were last asked",
    "lower bound of its interval",
    "upper bound of its interval",
)

Sample = tuple[dict[str, str], float]


@dataclass(frozen=True)
class Told:
    """What is told of a store."""

    alerts: Sequence[tuple[Alert, str]]
    """Those that are not resolved, each with its state."""
    counts: Sequence[Counts]
    evaluated_at: datetime | None
    """None where rules were never asked: then no alert is no good news."""
    figures: Sequence[Figure] = ()
    published_at: datetime | None = None


def of_store(root: Path, now: datetime) -> str:
    """What Prometheus reads of a store.

    Raises
    ------
    DataError
        Where it cannot be read.
    """
    return exposition(told(root, now))


def told(root: Path, now: datetime) -> Told:
    """What is to be told of a store."""
    kept = Deliveries(root)
    evaluated, current = kept.last_evaluated(), read_current(root)
    said = life.Said.of(kept.annotations())
    return Told(
        [
            (alert, life.state_of(alert, said, now))
            for alert in kept.all()
            if alert.resolved_at is None
        ],
        kept.counts(),
        None if evaluated is None else datetime.fromisoformat(evaluated.at),
        () if evaluated is None else evaluated.figures,
        None if current is None else datetime.fromisoformat(current.published_at),
    )


def write(path: Path, text: str) -> None:
    """Writes the text file in one step: whoever reads it finds the one before, or this one.

    Raises
    ------
    DataError
        Where it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}")  # the exporter reads *.prom alone
    try:
        opened = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, FILE_MODE)
        with os.fdopen(opened, "w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), FILE_MODE)
            stream.write(text)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise disk_full(error, path.parent) or DataError(
            f"alerts.textfile: {path} cannot be written ({error.strerror}): make its folder, or "
            "name another in site.toml"
        ) from None


def exposition(told: Told) -> str:
    """The text; a number that is not known is left out, as Prometheus wants it."""
    return "".join(_metrics(told))


def _metrics(told: Told) -> Iterator[str]:
    gauge = _written("gauge")
    counter = _written("counter")
    if told.evaluated_at is not None:
        yield gauge(
            "faultline_alert",
            "1 for each alert that is not resolved.",
            [(_named(alert, state), 1.0) for alert, state in told.alerts],
        )
        n_open = Counter((alert.severity, state) for alert, state in told.alerts)
        yield gauge(
            "faultline_alerts_open",
            "Alerts that are not resolved, by severity and state.",
            [
                ({"severity": severity, "state": state}, float(n_open[severity, state]))
                for severity, state in product(SEVERITIES, STATES)
            ],
        )
        yield gauge(
            "faultline_last_evaluation_timestamp_seconds",
            "When rules of alerts were last asked.",
            [({}, told.evaluated_at.timestamp())],
        )
    if told.published_at is not None:
        yield gauge(
            "faultline_snapshot_timestamp_seconds",
            "When the records that are shown were published.",
            [({}, told.published_at.timestamp())],
        )
    for name, text, made, value in (
        ("waiting", "Messages about alerts that wait to be sent.", gauge, "n_waiting"),
        ("delivered_total", "Messages that a receiver took.", counter, "n_delivered"),
        ("failed_total", "Messages refused for good, or given up.", counter, "n_failed"),
        ("repeats_total", "Times, at most, that a message came again.", counter, "n_repeats"),
    ):
        yield made(
            f"faultline_deliveries_{name}",
            text,
            [({"receiver": one.receiver}, float(getattr(one, value))) for one in told.counts],
        )
    yield from _figures(told.figures)


def _figures(figures: Iterable[Figure]) -> Iterator[str]:
    """The figures and their bounds, a metric each."""
    gauge = _written("gauge")
    by_name: dict[str, list[Sample]] = {}
    for figure in figures:
        values = (figure.value, figure.lower, figure.upper)
        for ending, value in zip(_BOUNDS, values, strict=True):
            samples = by_name.setdefault(
                f"faultline_{_NOT_NAMED.sub('_', figure.name)}{ending}", []
            )
            if value is not None and not math.isnan(value):
                samples.append(({"cluster": figure.cluster}, value))
    for place, (name, samples) in enumerate(by_name.items()):
        yield gauge(name, f"{_OF_FIGURE[place % 3].capitalize()}.", samples)


def _named(alert: Alert, state: str) -> dict[str, str]:
    return {
        "alert_id": alert.alert_id,
        "rule": alert.rules[0] if alert.rules else "",
        "severity": alert.severity,
        "cluster": alert.cluster,
        "state": state,
    }


def _written(kind: str) -> Callable[[str, str, Sequence[Sample]], str]:
    """Writes a metric of a kind; of one without samples nothing."""

    def write(name: str, text: str, samples: Sequence[Sample]) -> str:
        if not samples:
            return ""
        lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_labels(labels)} {value:.15g}" for labels, value in samples]
        return "\n".join(lines) + "\n"

    return write


def _labels(labels: Mapping[str, str]) -> str:
    r"""Labels as the format wants them.

    >>> print(_labels({"cluster": 'a "b"\n\\'}))
    {cluster="a \"b\"\n\\"}
    """
    written = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{','.join(written)}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
