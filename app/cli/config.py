"""faultline config: check site.toml."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.errors import SiteError, StoreError
from data.toml import nearest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from data.site_alerts import AlertSettings

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
    for text in _unknown(site.alerts, arguments.store):
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


def _unknown(alerts: AlertSettings, root: Path) -> Iterator[str]:
    """A line for each rule and cluster that [alerts] names and nobody knows."""
    from app.alerts.rules import rules

    of_rules = {"on": alerts.on, "off": alerts.off}
    of_clusters = {"targets": tuple(alerts.targets_of)}
    for receiver in alerts.receivers:
        of_rules[f"rules of the receiver {receiver.name}"] = receiver.rules
        of_clusters[f"clusters of the receiver {receiver.name}"] = receiver.clusters
    yield from _missing("rule", of_rules, {rule.name for rule in rules()})
    if any(of_clusters.values()) and (known := _clusters(root)):
        yield from _missing("cluster", of_clusters, known)


def _missing(
    kind: str, stated: dict[str, tuple[str, ...]], known: Collection[str]
) -> Iterator[str]:
    for setting, names in stated.items():
        for name in names:
            if name not in known:
                there = nearest(name, sorted(known))
                yield f"site.toml: [alerts] {setting}: no {kind} is called {name!r}: {there}"


def _clusters(root: Path) -> list[str]:
    """The clusters of the store; none where none is published that can be read."""
    from data.queries import fleet
    from data.store import Store

    try:
        with closing(Store.open(root)) as store:
            return fleet.distinct(store, "cluster")
    except StoreError:
        return []
