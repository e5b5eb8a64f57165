"""The first cause in the log of each failed attempt, kept from publish to publish."""

from __future__ import annotations

import json
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from data.columns import registered
from data.definitions import FAILED
from data.models import load_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import duckdb

    from analytics.failures.log_classifier import LogVerdict
    from data.stages import Context

    Model = Callable[[Sequence[str]], LogVerdict]

READS = ("jobs", "job_logs", "job_logs.attempt_key", "models")
WRITES = ("log_verdicts",)
CARRIES = ("log_verdicts",)
INPUTS = ("models", "site.taxonomy", "analytics.failures.log_classifier",
          "analytics.failures.text_model", "data.definitions")  # fmt: skip
NEEDS = ("job_logs",)

LINES_FETCHED = 50_000


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Reads logs of failed attempts by our rules, then by the site's own model.

    A log is read again only where its lines, our rules or the model have changed.
    """
    from analytics.failures.log_classifier import RULES_VERSION  # here: only logs need the rules

    model, trained_on = _site_model(context)
    version = RULES_VERSION + (f"+{trained_on[:12]}" if trained_on else "")
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE logged AS
           SELECT cluster, attempt_key, count(*) AS n_lines,
             hex(bit_xor(hash(file, line_no, text))) AS content
           FROM job_logs WHERE attempt_key IS NOT NULL GROUP BY ALL"""
    )
    connection.execute(
        """DELETE FROM log_verdicts WHERE rules_version <> $version
             OR (cluster, attempt_key, content) NOT IN (
               SELECT cluster, attempt_key, content FROM logged)""",
        {"version": version},
    )
    rows = [row | {"rules_version": version} for row in _read_anew(connection, model)]
    if rows:
        import pandas as pd

        with registered(connection, log_rows=pd.DataFrame(rows)):
            connection.execute("INSERT INTO log_verdicts BY NAME FROM log_rows")


def _site_model(context: Context) -> tuple[Model | None, str]:
    """What the site's classifier says of the lines of a log, and the hash of what it learnt."""
    document = load_model(context.root)
    if document is None:
        return None, ""
    from analytics.failures.text_model.job_logs import classify_by_model
    from analytics.failures.text_model.model import from_document

    model, taxonomy = from_document(document), context.site.causes
    return lambda lines: classify_by_model(lines, model, taxonomy), model.training_sha256


def _read_anew(
    connection: duckdb.DuckDBPyConnection, model: Model | None
) -> Iterator[dict[str, object]]:
    """Verdicts of logs that have none yet."""
    from analytics.failures.log_classifier import classify_log

    fetched = connection.execute(
        f"""SELECT cluster, attempt_key, content, file, line_no,
             coalesce(node_written, node) AS node, text
           FROM job_logs JOIN logged USING (cluster, attempt_key)
           WHERE (cluster, attempt_key) IN (SELECT cluster, attempt_key FROM jobs WHERE {FAILED})
             AND (cluster, attempt_key) NOT IN (SELECT cluster, attempt_key FROM log_verdicts)
           ORDER BY cluster, attempt_key, file, line_no"""
    )

    def lines() -> Iterator[tuple[str, str, str, str, int, str | None, str]]:
        while batch := fetched.fetchmany(LINES_FETCHED):
            yield from batch

    for (cluster, attempt_key, content), group in groupby(lines(), key=itemgetter(0, 1, 2)):
        log = list(group)
        starts = [at for at, row in enumerate(log) if at == 0 or row[3] != log[at - 1][3]]
        texts = [row[6] or "" for row in log]
        verdict = classify_log(texts, starts=starts)
        if verdict.method == "none" and model is not None:
            verdict = model(texts)
        first = log[verdict.evidence[0].line - 1] if verdict.evidence else None
        yield {
            "cluster": cluster,
            "attempt_key": attempt_key,
            "content": content,
            "cause": verdict.cause,
            "confidence": verdict.confidence,
            "method": verdict.method,
            "file": first[3] if first else None,
            "line_no": first[4] if first else None,
            "node": first[5] if first else None,
            "text": first[6] if first else None,
            "evidence": json.dumps(
                [{"line": log[one.line - 1][4], "text": one.text} for one in verdict.evidence]
            ),
        }
