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

import difflib
import reprlib
import tomllib
import urllib.parse
import zoneinfo
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from data.collect.address import Address, Prometheus
from data.collect.folder import Folder
from data.collect.slurm import COMMANDS, READERS, TIMINGS
from data.collect.source import Settings, Timing, host
from data.errors import DataError
from data.ingest.readers import known_readers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from data.collect.source import Source

MAX_BYTES = 1_000_000
_COMMON = {
    "name": (str, "text"),
    "kind": (str, "text"),
    "cluster": (str, "text"),
    "timeout_s": (int, "seconds, 1 to 86400"),
}
_READ = {
    "reader": (str, "a source of `faultline ingest --list`"),
    "timezone": (str, 'an IANA zone, e.g. "Europe/Berlin"'),
    "mapping": (str, "text"),
    "columns": (list, 'names, e.g. ["JobID", "State"]'),
    "delimiter": (str, "text"),
    "node": (str, "text"),
    "pattern": (str, "text"),
    "job_id": (str, "text"),
    "run_id": (str, "text"),
    "whole_cluster": (bool, "true or false"),
}
_TIMED = {
    "first_days": (int, "days, 0 to 36500"),
    "overlap_minutes": (int, "minutes, 0 to 525600"),
    "look_back_days": (int, "days, 0 to 3650"),
    "margin_s": (int, "seconds, 0 to 86400"),
}
_WEB = {
    "url": (str, "an address"),
    "headers": (dict, 'names of variables, e.g. {Authorization = "METRICS_TOKEN"}'),
    "max_mb": (int, "MB, 1 to 1000000"),
}
_KINDS: Mapping[str, Mapping[str, tuple[type, str]]] = {
    "slurm": {"commands": (list, f"some of {', '.join(COMMANDS)}"), **_TIMED},
    "folder": {"path": (str, "a path or pattern"), "settle_s": (int, "seconds, 0 to 86400")}
    | _READ,
    "url": {**_WEB, **_READ, **_TIMED},
    "prometheus": {
        "query": (list, "queries of PromQL, a list"),
        "step_s": (int, "seconds, 1 to 86400"),
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
_MOST = {
    "timeout_s": 86_400,
    "first_days": 36_500,
    "look_back_days": 3_650,
    "overlap_minutes": 525_600,
    "margin_s": 86_400,
    "max_mb": 1_000_000,
    "settle_s": 86_400,
    "step_s": 86_400,
}
_LEAST_ONE = ("timeout_s", "max_mb", "step_s")
_OPTIONS = ("cluster", "timezone", "mapping", "delimiter", "node", "pattern", "job_id", "run_id")
SETTLE_S = 60
_READER = "prometheus-json"
"""Of a source that states none: other kinds must."""
STEP_S = 60
OF_WEB = Timing(first_days=7, overlap_s=300, margin_s=60)


def default_sources() -> list[Source]:
    """The commands of this Slurm host."""
    return _slurm({}, "")


def load_sources(path: Path) -> list[Source]:
    """The sources of a configuration, in its order.

    Raises
    ------
    DataError
        Naming the file, the place, the rule, the value found and what to do.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}): check the path") from None
    if len(content) > MAX_BYTES:
        raise DataError(f"{path}: is larger than {MAX_BYTES:,} bytes: shorten it")
    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{path}: is not TOML ({error}): mend that place") from None
    except RecursionError:
        raise DataError(f"{path}: is nested too deeply: no setting needs that") from None
    _refuse_unknown(str(path), document, ("source",))
    stated = document.get("source", [])
    if not isinstance(stated, list) or not stated or not all(isinstance(s, dict) for s in stated):
        raise DataError(f"{path}: holds no source: write [[source]] before each")
    found: list[Source] = []
    for number, values in enumerate(stated, 1):
        found += _sources(f"{path}: source {number}", values, path.parent)
    names = [each.settings.name for each in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: two sources are called {twice!r}: give each a name of its own")
    return found


def _sources(place: str, values: Mapping[str, Any], folder: Path) -> list[Source]:
    """The sources of one [[source]]: a Slurm host has several."""
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise DataError(
            f"{place}: kind must be one of {', '.join(_KINDS)}, got {_shown(kind)}: write e.g. "
            'kind = "folder"'
        )
    known = {**_COMMON, **_KINDS[kind]}
    _refuse_unknown(place, values, tuple(known))
    for key, value in values.items():
        _refuse_wrong(f"{place}: {key}", key, value, known[key])
    for key in _NEEDED[kind]:
        if not values.get(key):
            raise DataError(f"{place}: a source of kind {kind!r} needs {key}: state it")
    if kind == "slurm":
        return _slurm(values, place)
    settings = _settings(place, values, folder)
    if kind == "folder":
        return [Folder(settings, str(folder / values["path"]), values.get("settle_s", SETTLE_S))]
    _refuse_address(place, values["url"])
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


def _slurm(values: Mapping[str, Any], place: str) -> list[Source]:
    """The commands of a Slurm host, each a source of its own."""
    found: list[Source] = []
    for command in values.get("commands", list(COMMANDS)):
        if command not in COMMANDS:
            raise DataError(
                f"{place}: commands: {command!r} is unknown: {_nearest(command, COMMANDS)}"
            )
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


def _settings(place: str, values: Mapping[str, Any], folder: Path) -> Settings:
    """What all sources but a Slurm host state."""
    reader = values.get("reader", _READER)
    if reader not in known_readers() and reader != "auto":
        raise DataError(
            f"{place}: reader {reader!r} is unknown: {_nearest(reader, (*known_readers(), 'auto'))}"
        )
    options = {key: values[key] for key in _OPTIONS if key in values}
    if "columns" in values:
        options["columns"] = tuple(values["columns"])
    zone = options.get("timezone")
    if zone is not None and zone not in zoneinfo.available_timezones():
        raise DataError(
            f"{place}: timezone must be an IANA zone, got {_shown(zone)}: write e.g. "
            '"Europe/Berlin"'
        )
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


def _refuse_address(place: str, url: str) -> None:
    """Refuses an address that is none of the web, or holds a secret."""
    try:
        parts = urllib.parse.urlsplit(url)
        has_host = bool(parts.hostname)
    except ValueError:
        has_host = False
    if not has_host or parts.scheme not in ("http", "https"):
        raise DataError(f"{place}: url must begin with https:// or http://, got {_shown(url)}")
    if parts.password is not None or parts.username is not None:
        raise DataError(
            f"{place}: url must hold no user and password: put what the header Authorization says "
            "into the environment, and name the variable in headers"
        )
    if ("{from}" in url) != ("{until}" in url):
        raise DataError(f"{place}: url must hold both {{from}} and {{until}}, or neither")


def _refuse_wrong(place: str, key: str, value: object, rule: tuple[type, str]) -> None:
    """Refuses a value of another type than its setting has, or out of range."""
    kind, text = rule
    least = 1 if key in _LEAST_ONE else 0
    inside = not isinstance(value, list | dict) or all(
        isinstance(each, str) for each in (value.values() if isinstance(value, dict) else value)
    )
    if isinstance(value, str) and not (value.strip() or (value and key == "delimiter")):
        raise DataError(f"{place} is empty: state it, or leave the key out")
    ranged = kind is not int or (type(value) is int and least <= value <= _MOST[key])
    if type(value) is not kind or not inside or not ranged:
        raise DataError(f"{place} must be {text}, got {_shown(value)}: mend it")


def _refuse_unknown(place: str, values: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in values:
        if key not in known:
            raise DataError(f"{place}: {key} is unknown: {_nearest(key, known)}")


def _nearest(stated: str, known: Iterable[str]) -> str:
    """What was probably meant, else what there is."""
    close = difflib.get_close_matches(stated, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"


def _shown(value: object) -> str:
    """A value as it was written, cut where it is long."""
    cut = reprlib.Repr()
    cut.maxstring = cut.maxother = 100
    return cut.repr(value)
