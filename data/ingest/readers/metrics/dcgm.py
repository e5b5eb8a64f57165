"""Metrics in Prometheus' text format, which DCGM exporter and node_exporter print; prose may stand
around them.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.formats.header import first_line
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.metrics.metric_samples import Line, MetricSamples, Sample
from data.limits import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import duckdb

    from data.limits import Limits

SHORTENED, BROKEN, NO_VALUE = "labels are shortened", "broken labels", "no number as value"
IMPOSSIBLE_TIME = "impossible time"
PROSE, NAN, INFINITE, PARTS = "text", "nan", "infinite", "histogram_or_summary"
_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_LABEL = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*+)"\s*')
_BLANK = re.compile(r"\s*")
_ESCAPED, _SIGNS = re.compile(r"\\(.)"), {"n": "\n", "\\": "\\", '"': '"'}
_COMMENT = re.compile(r"#\s*(HELP|TYPE)\s+([A-Za-z_:][A-Za-z0-9_:]*)\s*(\S*)")
_NUMBER = re.compile(
    r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z|[+-]?(?:nan|inf|infinity)\Z", re.I
)
_FAMILIES = ("DCGM_", "node_")
_EARLIEST_MS, _LATEST_MS = 946_684_800_000, 4_102_444_800_000  # 2000 to 2100
_ANNOUNCED = re.compile(r"# (?:HELP [A-Za-z_:][\w:]* |TYPE [A-Za-z_:][\w:]* [a-z]+\s*$)")
_TYPE = re.compile(
    r"^# TYPE [A-Za-z_:][\w:]* (?:gauge|counter|histogram|summary|untyped)\s*$", re.M
)
_XIDS = "DCGM_FI_DEV_XID_ERRORS"


def sniff(head: str) -> bool:
    """Whether it begins with metrics: with a HELP or TYPE, or a sample of a node with labels."""
    line = first_line(head)
    if _ANNOUNCED.match(line):
        return _TYPE.search(head) is not None
    found = next((one.found for one in samples([line])), None)
    return isinstance(found, Sample) and bool(found.labels) and found.metric.startswith(_FAMILIES)


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Samples as rows of `node_metrics`; prose around them is skipped.

    A sample without a time is of `--at`, else of the file's modification time. XIDs in
    `health_events` follow from DCGM_FI_DEV_XID_ERRORS when the samples are merged.

    Raises
    ------
    SourceError
        Where no line is a sample.
    """
    log = MetricSamples(source, options, connection)
    with source.path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        log.take_lines(samples(lines, options.limits))
    of_gpus = {metric for metric in log.metrics if metric.startswith("DCGM_")}
    if of_gpus and _XIDS not in of_gpus:
        log.notices.append(f"no {_XIDS}: XIDs that the exporter saw stay unknown")
    batch = log.whole()
    if not batch.rows_kept and not batch.rejected:
        raise SourceError(f"{source.name}: holds no sample: give what the exporter prints")
    return batch


def samples(lines: Iterable[str], limits: Limits = DEFAULTS) -> Iterator[Line]:
    """Every line that is neither blank nor a comment; of too many labels it is an error.

    Skipped are prose, what is no finite number, and the parts of histograms and summaries. A line
    counts as a sample where labels follow its name, or its name was announced by HELP or TYPE.
    """
    types: dict[str, str] = {}
    for line_no, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("#"):
            if comment := _COMMENT.match(text):
                known = types.get(comment[2], "")
                types[comment[2]] = comment[3] if comment[1] == "TYPE" else known
        elif text:
            yield Line(line_no, text, _found(text, types, limits))


def _found(text: str, types: dict[str, str], limits: Limits) -> Sample | str | RecordError:
    """What a line holds."""
    named = _NAME.match(text)
    if named is None:
        return PROSE
    try:
        sample = _sample(named[0], text[named.end() :], limits)
    except RecordError as error:
        is_sample = text.startswith("{", named.end()) or named[0].startswith(_FAMILIES)
        return error if is_sample or named[0] in types else PROSE
    if math.isnan(sample.value):
        return NAN
    if math.isinf(sample.value):
        return INFINITE
    return PARTS if _is_part(sample, types) else sample


def _sample(metric: str, rest: str, limits: Limits) -> Sample:
    """A sample of which the name was read."""
    labels: dict[str, str] = {}
    rest = rest.lstrip()
    if rest.startswith("{"):
        labels, rest = _labels(rest, limits)
    words = rest.split(" # ", 1)[0].split()
    if not 1 <= len(words) <= 2 or _NUMBER.match(words[0]) is None:
        raise RecordError(NO_VALUE)
    return Sample(metric, labels, float(words[0]), _at_us(words[1]) if len(words) == 2 else None)


def _labels(text: str, limits: Limits) -> tuple[dict[str, str], str]:
    """Labels in braces, and what stands behind them."""
    labels: dict[str, str] = {}
    at = _after_blanks(text, 1)
    while not text.startswith("}", at):
        if len(labels) >= limits.fields:
            raise RecordError(limits.fields_reason)
        label = _LABEL.match(text, at)
        if label is None or label[1] in labels or text[label.end() : label.end() + 1] not in ",}":
            raise RecordError(SHORTENED if "..." in text[at:] or "…" in text[at:] else BROKEN)
        if label.end() >= len(text):
            raise RecordError(BROKEN)
        labels[label[1]] = _ESCAPED.sub(lambda found: _SIGNS.get(found[1], found[0]), label[2])
        at = _after_blanks(text, label.end() + text.startswith(",", label.end()))
    return labels, text[at + 1 :]


def _after_blanks(text: str, at: int) -> int:
    """The place of the next character that is no blank."""
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _at_us(text: str) -> int:
    """A time in milliseconds since 1970; OpenMetrics writes seconds, which are 1,000 times less."""
    try:
        number = float(text)
    except ValueError:
        raise RecordError(IMPOSSIBLE_TIME) from None
    milliseconds = number if number >= _EARLIEST_MS else number * 1_000
    if not _EARLIEST_MS <= milliseconds < _LATEST_MS:
        raise RecordError(IMPOSSIBLE_TIME)
    return round(milliseconds * 1_000)


def _is_part(sample: Sample, types: dict[str, str]) -> bool:
    """Whether it is a bucket, a quantile, or the sum or count of such."""
    if types.get(sample.metric) == "summary" or "quantile" in sample.labels:
        return True
    for ending in ("_bucket", "_sum", "_count"):
        of = sample.metric.removesuffix(ending)
        if of != sample.metric and types.get(of) in ("histogram", "summary"):
            return True
    return sample.metric.endswith("_bucket") and "le" in sample.labels


READER = Reader(
    "dcgm",
    "metrics of DCGM exporter or node_exporter",
    export="curl -s http://NODE:9400/metrics (9100), with --node where they do not name it",
    reads=(
        "metrics of DCGM exporter and node_exporter, as `curl -s "
        "http://NODE:9400/metrics` (9100) prints them; `--node` where they do not name "
        "it, `--at` when it was"
    ),
    script="curl -s http://NODE:9400/metrics > metrics.prom",
    example="metrics.prom --node NODE",
    advice=(
        "One scrape holds the values of one moment: `faultline collect` asks for them again"
        " and again."
    ),
    fills=("node_metrics",),
    place=6.91,
    options=("node", "at"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
