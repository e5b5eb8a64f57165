"""site.toml, the configuration of a site: read, validated, explained."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from analytics.efficiency.run_rule import RunRule
from analytics.errors import AnalysisError
from analytics.failures.taxonomy import Taxonomy, taxonomy
from analytics.fleet.node_identity import folded
from data import site_alerts, site_file
from data.access import READERS, WRITERS, Access
from data.errors import SiteError
from data.limits import RANGES, Limits
from data.site_alerts import AlertSettings
from data.tables import forgettable
from data.toml import (
    MAX_TEXT,
    Broken,
    Check,
    Toml,
    anything,
    choice,
    must_be,
    number,
    setting,
    settings,
    text,
    zone,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SECTIONS = (
    *("cluster", "attribution", "taxonomy", "reports", "runs", "nodes", "limits", "retention"),
    *("access", "language_model", "alerts"),
)
_MINUTES = {
    "checkpoint_interval_min": "interval_s",
    "checkpoint_write_min": "write_s",
    "restart_min": "restart_s",
}
_YEAR_MIN = 365 * 24 * 60
_WINDOW = number(0, 1440, "minutes from 0 to 1440")
_LINE = must_be(
    "text on one line",
    lambda value: isinstance(value, str) and not any(char in value for char in "\r\n"),
)

_FILLED = must_be(
    "text on one line, not empty",
    lambda value: _LINE(value) is None and 0 < len(value.strip()) == len(value) <= MAX_TEXT,
)


def _is_port(value: object) -> bool:
    """Whether a number, or a text of the environment, is a port."""
    digits = str(value)
    return digits.isascii() and digits.isdecimal() and 0 < int(digits[:6]) < 65536


def _is_address(value: object) -> bool:
    """Whether a text is an address to which paths can be added; it may be empty."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return False
    try:
        parts = urlsplit(value)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none, half a bracket
        return False
    return not value or bool(fits and not re.search(r"[\s\x00-\x20<>|\"'`\\?#@]", value))


@dataclass(frozen=True)
class ClusterSite:
    """What a site states about one cluster; None where it states nothing."""

    gpus_per_node: int | None = setting(
        None, number(1, 1_024, "a whole number > 0, at most 1,024, e.g. 8", whole=True)
    )
    gpu_model: str | None = setting(None, text)
    timezone: str | None = setting(None, zone)
    """IANA zone of the local times in the cluster's sources."""
    scheduler: str | None = setting(None, text)
    gpu_hour_price: float | None = setting(
        None, number(0, 1e6, "a number > 0, at most 1,000,000, e.g. 2.5", above=True)
    )
    currency: str | None = setting(None, text)


@dataclass(frozen=True)
class Attribution:
    """How evidence is weighed: the window around the end of an attempt, and a site's own table."""

    before_minutes: float = setting(10.0, _WINDOW)
    after_minutes: float = setting(5.0, _WINDOW)
    weights: dict[str, float] = field(default_factory=dict)
    """Kind of evidence -> odds, in place of ours (`analytics/failures/attribution.toml`)."""
    rules: tuple[dict[str, str], ...] = setting(
        (),
        must_be("sections", lambda value: isinstance(value, list), "write [[attribution.rules]]"),
    )
    """Rules (check, text, cause) that come before ours."""

    @property
    def table(self) -> dict[str, Any]:
        """Weights and rules, for `analytics.failures.precedence.weights`."""
        return {"weights": self.weights, "rules": self.rules}


@dataclass(frozen=True)
class Assumed:
    """What a site states about its jobs, each as (least, greatest) in seconds; None: not stated."""

    interval_s: tuple[float, float] | None = None
    """Working time between two checkpoints."""
    write_s: tuple[float, float] | None = None
    """How long a checkpoint stops the job."""
    restart_s: tuple[float, float] | None = None
    """From the start of an attempt to its first step."""

    @property
    def minutes(self) -> dict[str, list[float]]:
        """What is stated, under the keys of site.toml, in minutes."""
        stated = {key: getattr(self, name) for key, name in _MINUTES.items()}
        return {key: [end / 60.0 for end in ends] for key, ends in stated.items() if ends}


@dataclass(frozen=True)
class Runs:
    """Which attempts are one run, and what is assumed of them."""

    rule: RunRule = field(default_factory=RunRule)
    several_nodes: Assumed = field(default_factory=Assumed)
    """Of jobs on several nodes."""
    one_node: Assumed = field(default_factory=Assumed)
    """Of jobs on one node."""

    @property
    def rule_keys(self) -> dict[str, Any]:
        """The rule under the keys of site.toml; a limit that is not set is left out."""
        return {key: value for key, value in asdict(self.rule).items() if value is not None}


@dataclass(frozen=True)
class Smtp:
    """The server that mails reports."""

    host: str = setting("", _LINE)
    port: int = setting(587, must_be("a port", _is_port, "e.g. 587"))
    sender: str = setting("", _LINE)
    """Address that mails come from; the first receiver's where it is empty."""
    user: str = setting("", _LINE)
    """Who logs in; nobody does where it is empty. The password is never in a file."""
    security: str = setting("starttls", choice(("starttls", "tls", "none")))
    """How the connection is encrypted: starttls, tls or none."""

    def but(self, stated: Mapping[str, Any], of: Toml, place: str = "") -> Smtp:
        """The same with the settings that are stated, each checked.

        Raises
        ------
        SiteError
            Naming the setting, the rule and the value found.
        """
        if isinstance(stated, dict) and "password" in stated:
            raise of.error(
                f"{of.origin}: {place}.password must not stand in a file: put it into the "
                "environment as FAULTLINE_SMTP_PASSWORD"
            )
        own = of.section(place, stated, settings(Smtp))
        return replace(self, **own | {"port": int(own.get("port", self.port))})


@dataclass(frozen=True)
class Retention:
    """What a site keeps, and for how long."""

    keep_snapshots: int = 8
    """Earlier snapshots that stay on disk, to go back to."""
    days: dict[str, int] = field(default_factory=dict)
    """Table of records -> days after which `faultline forget` removes them; others stay."""


@dataclass(frozen=True)
class LanguageModel:
    """The site's own language model; without an address there is none, and nothing is asked."""

    address: str = setting(
        "", must_be("an address", _is_address, "e.g. 'https://llm.example.org/v1'")
    )
    """Of the OpenAI interface; questions go to ADDRESS/chat/completions."""
    model: str = setting("", _FILLED)
    key_variable: str = setting("", _FILLED)
    """Variable of the environment that holds the key."""
    key_file: str = setting("", _FILLED)
    """File that holds it, where no variable does; without either none is sent."""
    timeout_s: float = setting(60.0, number(0, 600, "seconds > 0, at most 600", above=True))
    max_characters: int = setting(12_000, number(1_000, 100_000, whole=True))
    """Of the masked lines of one log."""
    calls_a_day: int = setting(100, number(1, 100_000, whole=True))
    """Days are those of UTC."""


@dataclass(frozen=True)
class Site:
    """The configuration of a site."""

    clusters: dict[str, ClusterSite] = field(default_factory=dict)
    attribution: Attribution = field(default_factory=Attribution)
    sha256: str = ""
    """Hash of the file; of nothing where there is none."""
    smtp: Smtp = field(default_factory=Smtp)
    address: str = ""
    """Where readers of reports find the dashboard, with a slash at its end; empty: not stated."""
    taxonomy: Mapping[str, Any] = field(default_factory=dict)
    """The site's own causes and labels, checked; for `analytics.failures.taxonomy.taxonomy`."""
    runs: Runs = field(default_factory=Runs)
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Node -> its other names; a node without any is never taken for another one."""
    limits: Limits = field(default_factory=Limits)
    retention: Retention = field(default_factory=Retention)
    access: Access = field(default_factory=Access)
    language_model: LanguageModel = field(default_factory=LanguageModel)
    alerts: AlertSettings = field(default_factory=AlertSettings)

    @property
    def causes(self) -> Taxonomy:
        """The taxonomy of failures with the site's own causes and labels."""
        return taxonomy(self.taxonomy)

    @property
    def timezones(self) -> dict[str, str]:
        """Zone of each cluster that states one."""
        return {name: c.timezone for name, c in self.clusters.items() if c.timezone}

    @property
    def default_cluster(self) -> str:
        """Cluster of records that name none: the site's only one."""
        return next(iter(self.clusters)) if len(self.clusters) == 1 else "cluster"


def load_site(root: Path) -> Site:
    """The configuration of a store; the defaults where it has no site.toml.

    Raises
    ------
    SiteError
        Naming the file, the place, the rule, the value found and what to do.
    """
    toml, content = site_file.document(root), site_file.content(root)
    document = toml.section("", toml.document(content), dict.fromkeys(_SECTIONS, anything))
    reports = toml.section("reports", document.get("reports", {}), _REPORTS)
    site = Site(
        _clusters(toml, document.get("cluster", {})),
        _attribution(toml, document.get("attribution", {})),
        hashlib.sha256(content).hexdigest(),
        smtp=Smtp().but(reports.get("smtp", {}), toml, "reports.smtp"),
        address=f"{address.rstrip('/')}/" if (address := reports.get("address")) else "",
        taxonomy=_taxonomy(toml, document.get("taxonomy", {})),
        runs=_runs(toml, document.get("runs", {})),
        nodes=_nodes(toml, document.get("nodes", {})),
        limits=Limits(**toml.section("limits", document.get("limits", {}), _LIMITS)),
        retention=_retention(toml, document.get("retention", {})),
        access=_access(toml, document.get("access", {})),
        language_model=_language_model(toml, document.get("language_model", {})),
        alerts=site_alerts.read(toml, document.get("alerts", {})),
    )
    if {"attribution", "taxonomy"} & document.keys():  # what is shipped holds
        from analytics.failures.precedence import weights

        try:
            weights(site.attribution.table, site.causes)
        except AnalysisError as error:
            raise SiteError(f"{toml.origin}: {error}") from None
    return site


def _clusters(toml: Toml, values: object) -> dict[str, ClusterSite]:
    """The sections [cluster.<name>]."""
    header = "cluster.<name>"
    clusters: dict[str, ClusterSite] = {}
    for name, stated in toml.section("cluster", values, written=header).items():
        if not name.strip():
            place = f'{toml.origin}: [cluster."{name}"]'
            raise SiteError(f"{place} has no name: write e.g. [cluster.a]")
        clusters[name] = ClusterSite(
            **toml.section(f"cluster.{name}", stated, settings(ClusterSite), written=header)
        )
    return clusters


def _taxonomy(toml: Toml, values: object) -> dict[str, Any]:
    """The section [taxonomy], which the taxonomy itself understands or refuses."""
    own = toml.section("taxonomy", values)
    try:
        taxonomy(own)
    except AnalysisError as error:
        raise SiteError(f"{toml.origin}: taxonomy.{error}") from None
    return own


def _attribution(toml: Toml, values: object) -> Attribution:
    stated = toml.section("attribution", values, settings(Attribution))
    weighing = toml.section("attribution.weights", stated.get("weights", {}))
    rules = (toml.section("attribution.rules", rule) for rule in stated.get("rules", []))
    return Attribution(**(stated | {"weights": weighing, "rules": tuple(rules)}))


def _runs(toml: Toml, values: object) -> Runs:
    """The section [runs] and its [runs.one_node]."""
    own = toml.section("runs", values, _RUNS)
    one = toml.section("runs.one_node", own.get("one_node", {}), _ASSUMED)
    stated = {key: own[key] for key in _RULE if key in own}
    if isinstance(names := stated.get("generic_names"), list):
        stated["generic_names"] = tuple(names)
    try:
        rule = RunRule(**stated)
    except AnalysisError as error:
        raise SiteError(f"{toml.origin}: runs.{error}") from None
    return Runs(rule, _assumed(own), _assumed(one))


def _assumed(stated: Mapping[str, Any]) -> Assumed:
    """Seconds, least and greatest, of minutes or of ranges of minutes."""
    ends = {key: stated[key] for key in _MINUTES if key in stated}
    ranges = {key: end if isinstance(end, list) else [end, end] for key, end in ends.items()}
    return Assumed(
        **{_MINUTES[key]: (low * 60.0, high * 60.0) for key, (low, high) in ranges.items()}
    )


def _nodes(toml: Toml, values: object) -> dict[str, tuple[str, ...]]:
    """The section [nodes]: each node with its other names, of which none is another node's."""
    stated: dict[str, tuple[str, ...]] = {}
    owner: dict[str, str] = {}
    for node, names in toml.section("nodes", values).items():
        example = f'write e.g. "{node}" = ["{node}-mgmt", "10.0.0.17"]'
        toml.checked(
            f"nodes.{node}", names, must_be("a list of the node's other names", _are_names, example)
        )
        stated[node] = tuple(names)
        for name in (node, *names):
            other = owner.setdefault(folded(name), node)
            if other != node:
                place = f"{toml.origin}: nodes.{node}"
                raise SiteError(f"{place}: {name!r} is a name of {other!r} too: leave one of them")
    return stated


def _retention(toml: Toml, values: object) -> Retention:
    """The section [retention]: how many snapshots, and for how many days each table."""
    n_snapshots = number(1, 1_000, whole=True)
    n_days = number(1, 36_500, "a whole number of days from 1 to 36,500", whole=True)
    checks = {"keep_snapshots": n_snapshots, **dict.fromkeys(forgettable(), n_days)}
    days = dict(toml.section("retention", values, checks))
    return Retention(days.pop("keep_snapshots", Retention.keep_snapshots), days)


def _access(toml: Toml, values: object) -> Access:
    """The section [access]: who may read the files of the store, and write them."""
    access = Access(**toml.section("access", values, _ACCESS))
    if not access.is_sound:
        broken = Broken("owner where access.read is owner", 'say read = "group" too')
        raise toml.wrong("access.write", access.write, broken)
    return access


def _language_model(toml: Toml, values: object) -> LanguageModel:
    """The section [language_model], which holds no key."""
    if isinstance(values, dict) and "key" in values:
        raise toml.error(
            f"{toml.origin}: language_model.key must not stand in a file: put it into the "
            "environment and name the variable as key_variable, or its file as key_file"
        )
    needed = ("address", "model") if values else ()
    checks = settings(LanguageModel)
    return LanguageModel(**toml.section("language_model", values, checks, needed=needed))


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(name, str) and bool(folded(name)) for name in value
    )


def _minutes(*, above: bool) -> Check:
    """Minutes from zero on or above it, or a range of them."""
    rule = f"minutes {'> 0' if above else '>= 0'}, at most a year, or a range of them"
    broken = Broken(rule, "write e.g. 30 or [15, 60]")
    one = number(0, _YEAR_MIN, above=above)

    def check(value: Any) -> Broken | None:
        ends = value if isinstance(value, list) else [value, value]
        if len(ends) != 2 or any(one(end) for end in ends):
            return broken
        return Broken("a range [low, high]", "swap its ends") if ends[0] > ends[1] else None

    return check


_REPORTS: dict[str, Check] = {
    "address": must_be(
        "the dashboard's address", _is_address, "e.g. 'https://faultline.example.org/'"
    ),
    "smtp": anything,
}
_ASSUMED = {key: _minutes(above=key == "checkpoint_interval_min") for key in _MINUTES}
_RULE = settings(RunRule)
_RUNS: dict[str, Check] = {**_RULE, **_ASSUMED, "one_node": anything}
_LIMITS = {
    name: number(*ends, whole=isinstance(getattr(Limits, name), int))
    for name, ends in RANGES.items()
}
_ACCESS = {"read": choice(READERS), "write": choice(WRITERS)}
