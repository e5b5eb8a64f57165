"""Collecting: what is new in all sources of a site comes into its store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from data.audit import noted
from data.collect import collect, default_sources, load_sources

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from data.collect import Outcome
    from data.ingest import Options


def collect_sources(
    root: Path,
    config: Path | None,
    options: Options,
    *,
    now: datetime,
    since: datetime | None = None,
    wait_s: float = 0.0,
) -> tuple[list[Outcome], list[str]]:
    """Asks the sources of a configuration, or the commands of this Slurm host, for what is new.

    What became of each, and what was found of names of nodes, in sentences.

    Raises
    ------
    DataError
        Where the configuration is wrong or the store cannot be written; what was published before
        holds.
    """
    sources = default_sources() if config is None else load_sources(config)
    collected = collect(root, sources, options, now=now, since=since, wait_s=wait_s)
    told: list[str] = []
    if collected.new_names:
        from app.answers.fleet import names

        told = list(names.told([each[1:] for each in collected.new_names]))
    return [_audited(root, outcome) for outcome in collected.outcomes], told


def _audited(root: Path, outcome: Outcome) -> Outcome:
    """An outcome that the audit knows, or with a notice that it does not."""
    detail: dict[str, object] = {
        "name": outcome.settings.name,
        "ingest_ids": [each.ingest_id for each in outcome.results],
    }
    if outcome.collected_until is not None:
        detail["until"] = outcome.collected_until.isoformat()
    if outcome.error is not None:
        detail["error"] = outcome.error
    missed = noted(root, "collect", detail)
    return outcome if missed is None else replace(outcome, told=[*outcome.told, missed])
