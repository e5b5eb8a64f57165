"""The site's own classifier of logs, trained anew when people confirmed further causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from data.models import load_model, save_model

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb

    from analytics.failures.log_classifier import LogVerdict
    from analytics.failures.taxonomy import Taxonomy
    from analytics.failures.text_model import TextModel


@dataclass(frozen=True)
class SiteModel:
    """What a site's labels taught."""

    model: TextModel
    taxonomy: Taxonomy
    version: str
    """Changes with what it was trained on."""

    def classify(self, lines: Sequence[str]) -> LogVerdict:
        """What it says of a log."""
        from analytics.failures.text_model.job_logs import classify_by_model

        return classify_by_model(lines, self.model, self.taxonomy)


def site_model(
    connection: duckdb.DuckDBPyConnection, root: Path, taxonomy: Taxonomy
) -> SiteModel | None:
    """The classifier that was trained last, by hand or on confirmed causes; None where none was.

    It is trained here when the confirmed causes with a log are not those of the last training.
    """
    confirmed = connection.execute(
        """SELECT cluster || '/' || attempt_key AS key, annotations.value
           FROM annotations JOIN jobs
             ON target = 'attempt:' || cluster || '/' || attempt_key
           WHERE field = 'cause' AND (cluster, attempt_key) IN (
             SELECT cluster, attempt_key FROM job_logs) ORDER BY end_at, key"""
    ).fetchall()
    if confirmed:
        _train(connection, root, dict(confirmed))
    document = load_model(root)
    if document is None:
        return None
    from analytics.failures.text_model import from_document

    model = from_document(document)
    return SiteModel(model, taxonomy, model.training_sha256)


def _train(connection: duckdb.DuckDBPyConnection, root: Path, confirmed: dict[str, str]) -> None:
    """Trains on confirmed causes, where these labels were not learnt yet and are enough."""
    from analytics.failures.text_model import to_document, train_text_model, training_sha256
    from analytics.failures.text_model.job_logs import LOG_COLUMN, training_rows

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
        model = train_text_model(rows, labels, columns=[LOG_COLUMN], in_time_order=True)
    except AnalysisError:
        return  # too few labels yet: nothing is learnt, and nothing is claimed
    save_model(root, digest, to_document(model))
