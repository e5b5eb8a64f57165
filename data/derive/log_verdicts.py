"""The first cause in the log of each failed attempt, kept from publish to publish."""

from __future__ import annotations

import json
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import pandas as pd

from analytics.failures.log_classifier import RULES_VERSION, classify_log

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from analytics.failures.precedence import Weights
    from data.derive.site_model import SiteModel

LINES_FETCHED = 50_000


def log_evidence(
    connection: duckdb.DuckDBPyConnection, table: Weights, model: SiteModel | None
) -> pd.DataFrame:
    """What logs of failed attempts say: one row a log whose first cause is known.

    Rules read it first, then the site's own model. A log is read again only where its lines, our
    rules or the model have changed.
    """
    version = RULES_VERSION if model is None else f"{RULES_VERSION}+{model.version[:12]}"
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
        connection.register("log_rows", pd.DataFrame(rows))
        connection.execute("INSERT INTO log_verdicts BY NAME FROM log_rows")
        connection.unregister("log_rows")
    found = connection.execute(
        """SELECT attempt, 'job_log' AS kind, file || ':' || line_no AS key, node, 0.0 AS offset_s,
             'job_log' AS check_name, cause, confidence, method AS log_method, text,
             true AS job_named, 1.0 AS causal_ratio, 'node' AS scope
           FROM log_verdicts JOIN failed USING (cluster, attempt_key)
           WHERE method <> 'none' ORDER BY attempt"""
    ).df()
    likely = found.pop("confidence").clip(upper=0.999)
    return found.assign(odds=(likely / (1 - likely)).clip(upper=table.odds["most_of_log"]))


def _read_anew(
    connection: duckdb.DuckDBPyConnection, model: SiteModel | None
) -> Iterator[dict[str, object]]:
    """Verdicts of logs that have none yet."""
    found = connection.execute(
        """SELECT cluster, attempt_key, content, file, line_no, node, text
           FROM job_logs JOIN logged USING (cluster, attempt_key)
           WHERE (cluster, attempt_key) IN (SELECT cluster, attempt_key FROM failed)
             AND (cluster, attempt_key) NOT IN (SELECT cluster, attempt_key FROM log_verdicts)
           ORDER BY cluster, attempt_key, file, line_no"""
    )

    def lines() -> Iterator[tuple[str, str, str, str, int, str | None, str]]:
        while batch := found.fetchmany(LINES_FETCHED):
            yield from batch

    for (cluster, attempt_key, content), group in groupby(lines(), key=itemgetter(0, 1, 2)):
        log = list(group)
        starts = [at for at, row in enumerate(log) if at == 0 or row[3] != log[at - 1][3]]
        texts = [row[6] or "" for row in log]
        verdict = classify_log(texts, starts=starts)
        if verdict.method == "none" and model is not None:
            verdict = model.classify(texts)
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
