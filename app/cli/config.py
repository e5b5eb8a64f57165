"""faultline config: check site.toml."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.errors import SiteError

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline config check --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The one thing to do, and the store."""
    parser.add_argument("action", choices=("check",), help="what to do")
    options.add(parser, "store", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what was understood; a mistake is one line on stderr and exit 2."""
    from data.audit import login
    from data.site import load_site
    from data.site_changes import changes, take

    if not arguments.store.is_dir():
        raise SiteError(f"{arguments.store}: is no folder: make it, its site.toml goes there")
    site = load_site(arguments.store)
    changed = changes(arguments.store)
    for text in changed:
        terminal.notice(text)
    terminal.print_record(
        {
            "valid": True,
            "path": str(arguments.store / "site.toml"),
            "exists": (arguments.store / "site.toml").is_file(),
            "sha256": site.sha256,
            "clusters": sorted(site.clusters),
            "attribution_before_minutes": site.attribution.before_minutes,
            "attribution_after_minutes": site.attribution.after_minutes,
            "runs": site.runs.rule_keys | site.runs.several_nodes.minutes,
            "runs_one_node": site.runs.one_node.minutes,
            "nodes": {node: list(names) for node, names in site.nodes.items()},
            "limits": asdict(site.limits),
            "access": asdict(site.access),
            "language_model": asdict(site.language_model),
            "alerts": asdict(site.alerts),
            "changes": list(changed),
        },
        arguments.format,
    )
    if changed:
        take(arguments.store, author=login())
    return 0
