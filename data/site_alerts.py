"""The section [alerts] of site.toml: which rules are on, what is aimed at, and who is told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from data.toml import (
    MAX_TEXT,
    Broken,
    anything,
    choice,
    filled,
    flag,
    must_be,
    number,
    setting,
    settings,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from data.toml import Toml

KINDS = ("webhook", "slack", "teams", "alertmanager", "mail")
"""Forms in which a receiver takes alerts."""
_RATIO = number(0, 1, "a number > 0, at most 1, e.g. 0.95", above=True)


def _is_http(value: object) -> bool:
    """Whether a text is an address of the web; a path and a query may follow."""
    if not isinstance(value, str) or len(value) > 2_000 or any(c.isspace() for c in value):
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


_ADDRESS = must_be("an address of http or https", _is_http, "e.g. 'https://alerts.example.org/in'")
_WORDS = texts("a list of texts")
_PATH = must_be(
    "an absolute path",
    lambda value: isinstance(value, str) and len(value) < 4_096 and Path(value).is_absolute(),
)


@dataclass(frozen=True)
class Targets:
    """What a site aims at; None where it states nothing."""

    availability: float | None = setting(None, _RATIO)
    """Share of the node-days in service."""
    ettr: float | None = setting(None, _RATIO)
    """Share of the GPU-time of jobs that was productive."""
    failures_per_1000_node_days: float | None = setting(
        None, number(0, 1e6, "a number > 0, e.g. 5", above=True)
    )


@dataclass(frozen=True)
class Receiver:
    """One who is told."""

    name: str = setting("", filled)
    kind: str = setting("webhook", choice(KINDS))
    address: str = setting("", _ADDRESS)
    """Of any kind but mail."""
    to: str = setting("", filled)
    """Addresses of mail, between commas; the server is that of [reports.smtp]."""
    secret_variable: str = setting("", filled)
    """Variable of the environment that holds the key by which a webhook is signed."""
    severity: str = setting("warning", choice(("critical", "warning")))
    """The least that is told."""
    clusters: tuple[str, ...] = setting((), _WORDS)
    """Whose alerts; all where none is named."""
    rules: tuple[str, ...] = setting((), _WORDS)
    """Which rules; all where none is named."""
    escalation: bool = setting(False, flag)
    """Told only what nobody has acknowledged within the hours stated."""
    redact: bool = setting(False, flag)
    """Pseudonyms in place of users, accounts and names of jobs."""
    resolved: bool = setting(True, flag)
    """Told too when an alert is resolved."""


@dataclass(frozen=True)
class AlertSettings:
    """What a site says of alerts."""

    false_alarms_per_month: float = setting(1.0, number(0.001, 1_000))
    """Of all rules, clusters and targets together, in 30 days."""
    on: tuple[str, ...] = setting((), _WORDS)
    """Rules that are off by default, and on here."""
    off: tuple[str, ...] = setting((), _WORDS)
    """Rules that are on by default, and off here."""
    runs: tuple[str, ...] = setting((), _WORDS)
    """Runs whose ETTR is watched, besides that of sizes."""
    large_gpus: int | None = setting(None, number(1, 1_000_000, whole=True))
    """From how many GPUs on a job is large; a quarter of its cluster's, 128 at least, where nothing
    is stated."""
    escalate_after_hours: float = setting(4.0, number(0, 1_000, "hours > 0", above=True))
    """How long an alert waits for somebody to acknowledge it."""
    textfile: str = setting("", _PATH)
    """File that is written for Prometheus' node exporter after each evaluation."""
    targets: Targets = field(default_factory=Targets)
    targets_of: Mapping[str, Targets] = field(default_factory=dict)
    """Cluster -> its own targets, where it states any."""
    receivers: tuple[Receiver, ...] = ()

    def aims(self, cluster: str | None) -> Targets:
        """What is aimed at in a cluster."""
        return self.targets_of.get(cluster or "", self.targets)

    def value_of(self, name: str) -> Any:
        """A setting by its name in the section; None where it, and any cluster, states nothing.

        >>> AlertSettings(targets=Targets(ettr=0.9)).value_of("targets.ettr")
        0.9
        """
        section, _, key = name.rpartition(".")
        if section == "targets":
            stated = [getattr(aimed, key) for aimed in (self.targets, *self.targets_of.values())]
            return next((value for value in stated if value is not None), None)
        return getattr(self, key) or None


def read(toml: Toml, values: object) -> AlertSettings:
    """The section [alerts], checked.

    Raises
    ------
    SiteError
        Naming the setting, the rule and the value found.
    """
    checks = settings(AlertSettings) | dict.fromkeys(("targets", "receiver"), anything)
    for name in ("targets_of", "receivers"):
        del checks[name]
    stated = dict(toml.section("alerts", values, checks))
    aimed, own = _targets(toml, stated.pop("targets", {}))
    receivers = tuple(_receivers(toml, stated.pop("receiver", [])))
    return AlertSettings(**_tuples(stated), targets=aimed, targets_of=own, receivers=receivers)


def _targets(toml: Toml, values: object) -> tuple[Targets, dict[str, Targets]]:
    """[alerts.targets], and the sections in it that name a cluster."""
    section = toml.section("alerts.targets", values)
    clusters = {name: value for name, value in section.items() if isinstance(value, dict)}
    common = {name: value for name, value in section.items() if name not in clusters}
    checks = settings(Targets)
    of_all = Targets(**toml.section("alerts.targets", common, checks))
    own = {
        name: replace(of_all, **toml.section(f"alerts.targets.{name}", value, checks))
        for name, value in clusters.items()
    }
    return of_all, own


def _receivers(toml: Toml, values: object) -> list[Receiver]:
    """The sections [[alerts.receiver]], of which each has its own name."""
    is_list = must_be(
        "sections", lambda value: isinstance(value, list), "write [[alerts.receiver]]"
    )
    toml.checked("alerts.receiver", values, is_list)
    found: list[Receiver] = []
    for n, value in enumerate(values if isinstance(values, list) else [], 1):
        place = f"alerts.receiver {n}"
        kind = value.get("kind", "webhook") if isinstance(value, dict) else "webhook"
        if isinstance(value, dict) and {"secret", "password"} & set(value):
            raise toml.error(
                f"{toml.origin}: {place}: a key must not stand in a file: put it into the "
                "environment and name the variable as secret_variable"
            )
        needed = ("name", "to" if kind == "mail" else "address")
        stated = toml.section(
            place, value, settings(Receiver), needed=needed, written="[alerts.receiver]"
        )
        receiver = Receiver(**_tuples(stated))
        if any(receiver.name == other.name for other in found):
            broken = Broken("another name than any other receiver's", "each is told by its name")
            raise toml.wrong(f"{place}.name", receiver.name[:MAX_TEXT], broken)
        found.append(receiver)
    return found


def _tuples(stated: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a section, lists as what nobody changes."""
    return {key: tuple(one) if isinstance(one, list) else one for key, one in stated.items()}
