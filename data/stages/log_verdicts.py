"""The first cause in the log of each failed attempt, kept from publish to publish.

Logs of completed attempts are read too: a line that stands in them as often says nothing.
"""

from __future__ import annotations

import json
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from data.columns import frame_of, registered
from data.definitions import FAILED
from data.models import load_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import duckdb

    from analytics.failures.log_classifier import LogVerdict
    from data.stages import Context

    Model = Callable[[LogVerdict, Sequence[str]], LogVerdict]

READS = ("jobs", "job_logs", "job_logs.attempt_key", "models")
WRITES = ("log_verdicts",)
CARRIES = ("log_verdicts",)
INPUTS = ("models", "site.taxonomy", "analytics.failures.log_classifier",
          "analytics.failures.calibration", "analytics.failures.text_model",
          "data.definitions")  # fmt: skip
NEEDS = ("job_logs",)
CONCERNS = {"jobs": "SELECT 1 FROM touched_jobs JOIN job_logs USING (cluster, attempt_key)"}

LINES_FETCHED = 50_000
NOTHING = {"cause": "unknown", "confidence": 0.0, "method": "none", "evidence": "[]"}
"""What a log says of no failure."""
COMPLETED_LOGS = 300
"""Logs of completed attempts of a cluster that are read, by a hash of their attempt."""


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Reads logs of failed attempts by our rules, then by the site's own model.

    A log is read again only where its lines, our rules or the model have changed, or how often
    its telling lines stand in logs of completed attempts.
    """
    from analytics.failures.log_classifier import RULES_VERSION  # here: only logs need the rules

    model, trained_on = _site_model(context)
    version = RULES_VERSION + (f"+{trained_on[:12]}" if trained_on else "")
    connection.execute(_LOGGED, {"most": COMPLETED_LOGS})
    connection.execute(
        """DELETE FROM log_verdicts WHERE rules_version <> $version
             OR (cluster, attempt_key, content) NOT IN (
               SELECT cluster, attempt_key, content FROM logged)""",
        {"version": version},
    )
    connection.execute(_UNREAD)
    _write(connection, _read_anew(connection, model, {}), version)
    changed = _changed_discounts(connection)
    if changed:
        connection.executemany(
            "DELETE FROM log_verdicts WHERE cluster = ? AND attempt_key = ?", list(changed)
        )
        _write(connection, _read_anew(connection, model, changed), version)


_LOGGED = f"""
CREATE OR REPLACE TEMP TABLE logged AS
WITH log AS (
  SELECT cluster, attempt_key, count(*) AS n_lines,
    hex(bit_xor(hash(file, line_no, text))) AS content
  FROM job_logs WHERE attempt_key IS NOT NULL GROUP BY ALL)
SELECT log.*, {FAILED} AS failed
FROM log JOIN jobs USING (cluster, attempt_key) WHERE {FAILED} OR state = 'COMPLETED'
QUALIFY failed OR row_number() OVER (
  PARTITION BY cluster, failed ORDER BY hash(attempt_key), attempt_key) <= $most
"""
"""Logs that are read: of all failed attempts, and of some that completed."""
_UNREAD = """
DELETE FROM log_verdicts WHERE lines IS NULL
  AND cluster IN (SELECT cluster FROM logged WHERE NOT failed)
"""
"""Logs that were read when the cluster had none of a completed attempt to compare them with."""
_LINES = """
WITH line AS (
  SELECT cluster, attempt_key, failed, unnest(from_json(lines, '["VARCHAR"]')) AS line
  FROM log_verdicts JOIN logged USING (cluster, attempt_key)),
log AS (
  SELECT cluster, count(*) FILTER (NOT failed) AS n_completed_logs,
    count(*) FILTER (failed) AS n_failed_logs
  FROM log_verdicts JOIN logged USING (cluster, attempt_key) GROUP BY ALL)
SELECT cluster, line, count(*) FILTER (NOT failed) AS n_completed_logs_hit,
  count(*) FILTER (failed) AS n_failed_logs_hit, n_completed_logs, n_failed_logs
FROM line JOIN log USING (cluster) GROUP BY ALL
HAVING n_completed_logs_hit > 0 AND n_failed_logs_hit > 0
"""
"""Telling lines that logs of completed and of failed attempts hold."""


def _write(
    connection: duckdb.DuckDBPyConnection, rows: Iterable[dict[str, object]], version: str
) -> None:
    """Writes what logs say."""
    read = [row | {"rules_version": version} for row in rows]
    if read:
        import pandas as pd

        with registered(connection, log_rows=pd.DataFrame(read)):
            connection.execute("INSERT INTO log_verdicts BY NAME FROM log_rows")


def _site_model(context: Context) -> tuple[Model | None, str]:
    """What the site's classifier makes of a verdict on a log, and the hash of what it learnt."""
    document = load_model(context.root)
    if document is None:
        return None, ""
    from analytics.failures.text_model.job_logs import with_site_model
    from analytics.failures.text_model.model import from_document

    model, taxonomy = from_document(document), context.site.causes
    return (
        lambda verdict, lines: with_site_model(verdict, lines, model, taxonomy),
        model.training_sha256,
    )


def _changed_discounts(
    connection: duckdb.DuckDBPyConnection,
) -> dict[tuple[str, str], dict[str, float]]:
    """Failed attempts whose logs are to be read with other ratios of their lines, and these."""
    counts = frame_of(connection, _LINES)
    known = connection.execute(
        """SELECT cluster, attempt_key, lines, discounts
           FROM log_verdicts JOIN logged USING (cluster, attempt_key)
           WHERE failed AND (lines IS NOT NULL OR discounts IS NOT NULL)"""
    ).fetchall()
    if counts.empty and not any(discounts for *_, discounts in known):
        return {}
    from analytics.failures.calibration import line_ratios

    counts["ratio"] = line_ratios(counts)
    common = counts[counts["ratio"].lt(1.0)]
    ratios = common.set_index(["cluster", "line"])["ratio"].to_dict()
    changed = {}
    for cluster, attempt_key, lines, before in known:
        own = json.loads(lines or "[]")
        now = {line: ratios[cluster, line] for line in own if (cluster, line) in ratios}
        if now != json.loads(before or "{}"):
            changed[cluster, attempt_key] = now
    return changed


def _read_anew(
    connection: duckdb.DuckDBPyConnection,
    model: Model | None,
    discounts: Mapping[tuple[str, str], Mapping[str, float]],
) -> Iterator[dict[str, object]]:
    """What logs say that were not read yet; `discounts`: ratios of lines, by attempt."""
    from analytics.failures.log_classifier.signals import telling_lines

    fetched = connection.execute(
        """SELECT cluster, attempt_key, content, failed,
             cluster IN (SELECT cluster FROM logged WHERE NOT failed) AS compared,
             file, line_no, coalesce(node_written, node) AS node, text
           FROM job_logs JOIN logged USING (cluster, attempt_key)
           WHERE (cluster, attempt_key) NOT IN (SELECT cluster, attempt_key FROM log_verdicts)
           ORDER BY cluster, attempt_key, file, line_no"""
    )

    def rows() -> Iterator[tuple[Any, ...]]:
        while batch := fetched.fetchmany(LINES_FETCHED):
            yield from batch

    for (cluster, attempt_key, content, failed, compared), group in groupby(
        rows(), key=itemgetter(0, 1, 2, 3, 4)
    ):
        log = [row[5:] for row in group]
        texts = [text or "" for *_, text in log]
        ratios = discounts.get((cluster, attempt_key), {})
        yield {
            "cluster": cluster,
            "attempt_key": attempt_key,
            "content": content,
            "lines": json.dumps(sorted(telling_lines(texts))) if compared else None,
            "discounts": json.dumps(ratios) if ratios else None,
        } | (_verdict(log, texts, model, ratios) if failed else NOTHING)


def _verdict(
    log: Sequence[tuple[str, int, str | None, str]],
    texts: Sequence[str],
    model: Model | None,
    ratios: Mapping[str, float],
) -> dict[str, object]:
    """The first cause in one log, whose rows are file, line, node and text."""
    from analytics.failures.log_classifier import classify_log

    starts = [at for at, row in enumerate(log) if at == 0 or row[0] != log[at - 1][0]]
    verdict = classify_log(texts, starts=starts, ratios=ratios)
    if model is not None:
        verdict = model(verdict, texts)
    first = log[verdict.evidence[0].line - 1] if verdict.evidence else (None,) * 4
    return {
        "cause": verdict.cause,
        "confidence": verdict.confidence,
        "method": verdict.method,
        "file": first[0],
        "line_no": first[1],
        "node": first[2],
        "text": first[3],
        "evidence": json.dumps(
            [{"line": log[one.line - 1][1], "text": one.text} for one in verdict.evidence]
        ),
    }
