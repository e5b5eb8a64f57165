"""The configuration of a collector: which sources it asks, and how; a TOML file.

[[source]]
kind = "slurm"

[[source]]
name = "kernel logs"
kind = "folder"
path = "/var/log/hosts/*/kern.log*"
reader = "kernel-log"
cluster = "alps"
whole_cluster = true
"""

from __future__ import annotations

import urllib.parse
from dataclasses import replace
from glob import has_magic
from typing import TYPE_CHECKING, Any

from data.collect.address import Address, Prometheus
from data.collect.folder import Folder
from data.collect.reduction import Reduction
from data.collect.slurm import COMMANDS, READERS, TIMINGS
from data.collect.source import Settings, Timing, host
from data.errors import DataError
from data.ingest.readers import known_readers
from data.toml import (
    Broken,
    Toml,
    anything,
    choice,
    filled,
    flag,
    must_be,
    number,
    sign,
    texts,
    zone,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from data.collect.source import Source
    from data.toml import Check

REDUCTIONS = frozenset({"reduced-metrics", "reduced-events", "reduced-jobs"})
"""Readers of folders that `faultline reduce` fills day by day."""


def _whole(unit: str, least: int, most: int) -> Check:
    return number(least, most, f"{unit}, {least} to {most}", whole=True)


def _are_variables(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value.values())


_COMMON = {"name": filled, "cluster": filled, "timeout_s": _whole("seconds", 1, 86_400)}
_READ = {
    "reader": filled,
    "timezone": zone,
    "mapping": filled,
    "columns": texts('names, e.g. ["JobID", "State"]'),
    "delimiter": sign,
    "node": filled,
    "pattern": filled,
    "job_id": filled,
    "run_id": filled,
    "whole_cluster": flag,
}
_TIMED = {
    "first_days": _whole("days", 0, 36_500),
    "overlap_minutes": _whole("minutes", 0, 525_600),
    "look_back_days": _whole("days", 0, 3_650),
    "margin_s": _whole("seconds", 0, 86_400),
}
_WEB = {
    "url": filled,
    "headers": must_be(
        'names of variables, e.g. {Authorization = "METRICS_TOKEN"}', _are_variables
    ),
    "max_mb": _whole("MB", 1, 1_000_000),
}
_KINDS: Mapping[str, Mapping[str, Check]] = {
    "slurm": {"commands": texts(f"some of {', '.join(COMMANDS)}"), **_TIMED},
    "folder": {"path": filled, "settle_s": _whole("seconds", 0, 86_400), **_READ},
    "url": {**_WEB, **_READ, **_TIMED},
    "prometheus": {
        "query": texts("queries of PromQL, a list"),
        "step_s": _whole("seconds", 1, 86_400),
        **_WEB,
        **_READ,
        **_TIMED,
    },
}
_NEEDED = {
    "slurm": (),
    "folder": ("path", "reader"),
    "url": ("url", "reader"),
    "prometheus": ("url", "query"),
}
_OPTIONS = ("cluster", "timezone", "mapping", "delimiter", "node", "pattern", "job_id", "run_id")
SETTLE_S = 60
_READER = "prometheus-json"
"""Of a source that states none: other kinds must."""
STEP_S = 60
OF_WEB = Timing(first_days=7, overlap_s=300, margin_s=60)


def default_sources() -> list[Source]:
    """The commands of this Slurm host."""
    return _slurm({}, Toml("", DataError))


def load_sources(path: Path) -> list[Source]:
    """The sources of a configuration, in its order.

    Raises
    ------
    DataError
        Naming the file, the place, the rule, the value found and what to do.
    """
    toml = Toml(str(path), DataError)
    document = toml.section("", toml.document(toml.read(path)), {"source": anything})
    stated = document.get("source", [])
    if not isinstance(stated, list) or not stated or not all(isinstance(s, dict) for s in stated):
        raise DataError(f"{path}: holds no source: write [[source]] before each")
    found: list[Source] = []
    for place, values in enumerate(stated, 1):
        found += _sources(Toml(f"{path}: source {place}", DataError), values, path.parent)
    names = [source.settings.name for source in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: two sources are called {twice!r}: give each a name of its own")
    return found


def _sources(toml: Toml, values: Mapping[str, Any], folder: Path) -> list[Source]:
    """The sources of one [[source]]: a Slurm host has several."""
    kind = toml.checked("kind", values.get("kind"), choice(_KINDS))
    toml.section("", values, {"kind": filled, **_COMMON, **_KINDS[kind]}, needed=_NEEDED[kind])
    if kind == "slurm":
        return _slurm(values, toml)
    settings = _settings(toml, values, folder)
    if kind == "folder" and settings.reader in REDUCTIONS and not has_magic(values["path"]):
        return [Reduction(settings, str(folder / values["path"]))]
    if kind == "folder":
        return [Folder(settings, str(folder / values["path"]), values.get("settle_s", SETTLE_S))]
    _refuse_address(toml, values["url"])
    headers = values.get("headers", {})
    max_bytes = values["max_mb"] * 1e6 if "max_mb" in values else None
    if kind == "url":
        return [Address(settings, values["url"], headers, max_bytes)]
    return [
        Prometheus(
            settings,
            values["url"],
            headers,
            max_bytes,
            queries=tuple(values["query"]),
            step_s=values.get("step_s", STEP_S),
        )
    ]


def _slurm(values: Mapping[str, Any], toml: Toml) -> list[Source]:
    """The commands of a Slurm host, each a source of its own."""
    found: list[Source] = []
    for command in values.get("commands", list(COMMANDS)):
        toml.known("command", command, COMMANDS)
        own_log = command == "journalctl"
        name = f"{READERS[command]}@{host()}" if own_log else READERS[command]
        cluster = {"cluster": values["cluster"]} if "cluster" in values else {}
        settings = Settings(
            f"{values['name']} {name}" if "name" in values else name,
            READERS[command],
            {"timezone": "UTC", "own_zone": True, **cluster},
            timing=_timing(TIMINGS[command], values),
            timeout_s=values.get("timeout_s", Settings.timeout_s),
            whole_cluster=not own_log,
            node=host() if own_log else None,
        )
        found.append(COMMANDS[command](settings))
    return found


def _settings(toml: Toml, values: Mapping[str, Any], folder: Path) -> Settings:
    """What all sources but a Slurm host state."""
    reader = toml.known("reader", values.get("reader", _READER), (*known_readers(), "auto"))
    options = {key: values[key] for key in _OPTIONS if key in values}
    if "columns" in values:
        options["columns"] = tuple(values["columns"])
    if str(options.get("mapping", "")).endswith(".toml"):
        options["mapping"] = str(folder / options["mapping"])
    return Settings(
        values.get("name", reader),
        reader,
        options,
        timing=_timing(OF_WEB, values),
        timeout_s=values.get("timeout_s", Settings.timeout_s),
        whole_cluster=values.get("whole_cluster", False),
    )


def _timing(timing: Timing, values: Mapping[str, Any]) -> Timing:
    """How a source is asked, as far as that is stated."""
    stated: dict[str, int] = {
        key: values[key] for key in ("first_days", "look_back_days", "margin_s") if key in values
    }
    if "overlap_minutes" in values:
        stated["overlap_s"] = 60 * values["overlap_minutes"]
    return replace(timing, **stated)


def _refuse_address(toml: Toml, url: str) -> None:
    """Refuses an address that is none of the web, or holds a secret."""
    try:
        parts = urllib.parse.urlsplit(url)
        has_host = bool(parts.hostname)
    except ValueError:
        has_host = False
    if not has_host or parts.scheme not in ("http", "https"):
        raise toml.wrong("url", url, Broken("an address that begins with https:// or http://"))
    if parts.password is not None or parts.username is not None:
        raise DataError(
            f"{toml.origin}: url must hold no user and password: put what the header Authorization "
            "says into the environment, and name the variable in headers"
        )
    if ("{from}" in url) != ("{until}" in url):
        raise DataError(f"{toml.origin}: url must hold both {{from}} and {{until}}, or neither")
