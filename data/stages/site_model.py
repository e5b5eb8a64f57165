"""The site's own classifier of logs, trained anew when people confirmed further causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from data.models import load_model, save_model

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from data.stages import Context

READS = ("annotations", "jobs", "job_logs", "job_logs.attempt_key")
WRITES = ("models",)
INPUTS = ("analytics.failures.text_model",)
NEEDS = ("annotations",)
CONCERNS = {
    "jobs": """SELECT 1 FROM touched_jobs JOIN annotations
      ON target = 'attempt:' || cluster || '/' || attempt_key"""
}


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Trains on confirmed causes with a log, where these labels were not learnt yet."""
    confirmed = connection.execute(
        """SELECT cluster || '/' || attempt_key AS key, annotations.value
           FROM annotations JOIN jobs
             ON target = 'attempt:' || cluster || '/' || attempt_key
           WHERE field = 'cause' AND (cluster, attempt_key) IN (
             SELECT cluster, attempt_key FROM job_logs) ORDER BY end_at, key"""
    ).fetchall()
    if confirmed:
        _train(connection, context.root, dict(confirmed))


def _train(connection: duckdb.DuckDBPyConnection, root: Path, confirmed: dict[str, str]) -> None:
    """Trains on confirmed causes, where they are enough; the model becomes the site's."""
    from analytics.failures.text_model.job_logs import LOG_COLUMN, training_rows
    from analytics.failures.text_model.model import to_document
    from analytics.failures.text_model.training import train, training_sha256

    logs: dict[str, list[str]] = {key: [] for key in confirmed}
    for key, text in connection.execute(
        """SELECT cluster || '/' || attempt_key AS key, text FROM job_logs
           WHERE list_contains($keys, cluster || '/' || attempt_key)
           ORDER BY key, file, line_no""",
        {"keys": list(confirmed)},
    ).fetchall():
        logs[key].append(text or "")
    rows, labels = training_rows(confirmed, logs)
    digest = training_sha256(rows, labels, [LOG_COLUMN], in_time_order=True)
    if load_model(root, digest) is not None:
        return
    try:
        model = train(rows, labels, columns=[LOG_COLUMN], in_time_order=True).model
    except AnalysisError:
        return  # too few labels yet: nothing is learnt, and nothing is claimed
    save_model(root, digest, to_document(model))
