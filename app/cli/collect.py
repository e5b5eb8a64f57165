"""faultline collect: ask Slurm on this host, or the sources of a file, for what is new."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

    from app.actions import IngestResult
    from data.collect import Outcome

EXAMPLE = (
    'printf \'[[source]]\\nkind = "folder"\\npath = "/var/log/kern.log*"\\nreader = '
    '"kernel-log"\\n\' | faultline collect --config /dev/stdin --store ./own-store'
)
COUNTS = ("rows_read", "rows_kept", "rows_skipped", "rows_rejected")
TOTALS = ("skipped_by_reason", "rejected_by_reason", "tables")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to ask, since when, and how long to wait."""
    options.add(parser, "store")
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="sources as TOML: folders, addresses, Prometheus (default: sacct, sacctmgr, scontrol "
        "and journalctl of this host)",
    )
    parser.add_argument(
        "--since",
        type=_since,
        default=None,
        metavar="TIME",
        help="ask from this time on (default `last`: from where each source was collected until)",
    )
    options.add_wait(parser)
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Asks every source and prints what became of each; exit 2 where one failed."""
    from app import actions

    now = datetime.now(UTC)
    if arguments.since is not None and arguments.since >= now:
        raise DataError(
            f"--since {arguments.since:%Y-%m-%dT%H:%M} is not over yet: give a past time"
        )
    outcomes, told = actions.collect_sources(
        arguments.store,
        arguments.config,
        actions.Options(progress=terminal.progress),
        now=now,
        since=arguments.since,
        wait_s=arguments.wait,
    )
    terminal.progress_done()
    if terminal.chosen(arguments.format) == "table":  # else they stand in what is printed
        for text in [*told, *(text for outcome in outcomes for text in outcome.notices)]:
            terminal.notice(text)
    for outcome in outcomes:
        if outcome.told_rejected is not None:
            terminal.notice(f"faultline collect: {outcome.told_rejected}")
        if outcome.error is not None:
            terminal.notice(f"faultline collect: {outcome.settings.name}: {outcome.error}")
    for text in actions.tell_alerts(arguments.store):
        terminal.notice(f"faultline collect: {text}")
    terminal.print_record(_record(outcomes) | {"notices": told}, arguments.format)
    return 2 if any(outcome.error for outcome in outcomes) else 0


def _since(text: str) -> datetime | None:
    """A time, or the word for where each source was collected until."""
    return None if text == "last" else options.moment(text)


def _record(outcomes: list[Outcome]) -> terminal.Row:
    """Totals of all sources, then each source with its own."""
    results = [result for outcome in outcomes for result in outcome.results]
    return {
        **_totals(results),
        "collected_until": {outcome.settings.name: outcome.collected_until for outcome in outcomes},
        "sources": [
            {
                "name": outcome.settings.name,
                "source": outcome.settings.reader,
                "ingest_id": outcome.results[-1].ingest_id if outcome.results else None,
                **_totals(outcome.results),
                "collected_until": outcome.collected_until,
                "error": outcome.error,
                "notices": outcome.notices,
            }
            for outcome in outcomes
        ],
    }


def _totals(results: list[IngestResult]) -> terminal.Row:
    """What became of the records of some answers."""
    totals: dict[str, Counter[str]] = {name: Counter() for name in TOTALS}
    for result in results:
        for name, counts in totals.items():
            counts.update(getattr(result, name))
    return {
        **{name: sum(getattr(result, name) for result in results) for name in COUNTS},
        **{name: dict(counts) for name, counts in totals.items()},
    }
