"""site.toml, the configuration of a site: read, validated, explained."""

from __future__ import annotations

import difflib
import hashlib
import math
import tomllib
import zoneinfo
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from analytics.errors import AnalysisError
from analytics.failures.precedence import weights
from analytics.failures.taxonomy import Taxonomy, taxonomy
from data.errors import SiteError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RESERVED_SECTIONS = ("runs", "alerts", "access", "retention")
"""Sections of the format that no part of this version reads."""
SECURITY = ("starttls", "tls", "none")
"""How the connection to a mail server is encrypted."""


@dataclass(frozen=True)
class ClusterSite:
    """What a site states about one cluster; None where it states nothing."""

    gpus_per_node: int | None = None
    gpu_model: str | None = None
    timezone: str | None = None
    """IANA zone of the local times in the cluster's sources."""
    scheduler: str | None = None
    gpu_hour_price: float | None = None
    currency: str | None = None


@dataclass(frozen=True)
class Attribution:
    """How evidence is weighed: the window around the end of an attempt, and a site's own table."""

    before_minutes: float = 10.0
    after_minutes: float = 5.0
    weights: dict[str, float] = field(default_factory=dict)
    """Kind of evidence -> odds, in place of ours (`analytics/failures/attribution.toml`)."""
    rules: tuple[dict[str, str], ...] = ()
    """Rules (check, text, cause) that come before ours."""

    @property
    def table(self) -> dict[str, Any]:
        """Weights and rules, for `analytics.failures.precedence.weights`."""
        return {"weights": self.weights, "rules": self.rules}


@dataclass(frozen=True)
class Smtp:
    """The server that mails reports."""

    host: str = ""
    port: int = 587
    sender: str = ""
    """Address that mails come from; the first receiver's where it is empty."""
    user: str = ""
    """Who logs in; nobody does where it is empty. The password is never in a file."""
    security: str = "starttls"
    """starttls, tls or none."""

    @staticmethod
    def checked(name: str, value: object) -> str | int:
        """The value of a setting.

        Raises
        ------
        SiteError
            Naming the setting, the rule and the value found.
        """
        place = f"reports.smtp.{name}"
        if name == "port":
            text = str(value)
            if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 65536:
                raise SiteError(f"{place} must be a port, got {value!r}: e.g. 587")
            return int(text)
        if not isinstance(value, str) or any(char in value for char in "\r\n"):
            raise SiteError(f"{place} must be text on one line, got {value!r}: mend it")
        if name == "security" and value not in SECURITY:
            raise SiteError(f"{place} must be {', '.join(SECURITY)}, got {value!r}: choose one")
        return value


@dataclass(frozen=True)
class Site:
    """The configuration of a site."""

    clusters: dict[str, ClusterSite] = field(default_factory=dict)
    attribution: Attribution = field(default_factory=Attribution)
    sha256: str = ""
    """Hash of the file; of nothing where there is none."""
    notices: tuple[str, ...] = ()
    smtp: Smtp = field(default_factory=Smtp)
    taxonomy: Mapping[str, Any] = field(default_factory=dict)
    """The site's own causes and labels, checked; for `analytics.failures.taxonomy.taxonomy`."""

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
    path = root / "site.toml"
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        content = b""
    except OSError as error:
        raise SiteError(f"{path}: cannot be read ({error.strerror}): check access") from None
    digest = hashlib.sha256(content).hexdigest()
    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SiteError(f"{path}: is not TOML ({error}): mend that place") from None
    known = ("cluster", "attribution", "taxonomy", "reports", *RESERVED_SECTIONS)
    for section in document:
        if section not in known:
            raise SiteError(f"{path}: section [{section}] is unknown: {_nearest(section, known)}")
    clusters = {
        name: _cluster(path, name, values)
        for name, values in _table(path, "cluster", document.get("cluster", {})).items()
    }
    window = _window(path, _table(path, "attribution", document.get("attribution", {})))
    notices = tuple(
        f"{path}: section [{section}] is read by no part of this version"
        for section in RESERVED_SECTIONS
        if section in document
    )
    site = Site(
        clusters,
        window,
        digest,
        notices,
        smtp=_smtp(path, _table(path, "reports", document.get("reports", {}))),
        taxonomy=_taxonomy(path, document.get("taxonomy", {})),
    )
    try:
        weights(window.table, site.causes)
    except AnalysisError as error:
        raise SiteError(f"{path}: {error}") from None
    return site


def _cluster(path: Path, name: str, values: object) -> ClusterSite:
    """One [cluster.<name>]."""
    place = f"cluster.{name}"
    table = _table(path, place, values)
    _known_keys(path, place, table, ClusterSite)
    for key, kind, rule in (
        ("gpus_per_node", int, "a whole number > 0, e.g. 8"),
        ("gpu_hour_price", (int, float), "a number > 0, e.g. 2.5"),
    ):
        value = table.get(key)
        if value is not None and (
            not isinstance(value, kind) or value is True or not 0 < value < math.inf
        ):
            raise SiteError(f"{path}: {place}.{key} must be {rule}, got {value!r}: mend it")
    for key in ("gpu_model", "timezone", "scheduler", "currency"):
        if not isinstance(table.get(key, ""), str):
            raise SiteError(f"{path}: {place}.{key} must be text, got {table[key]!r}: quote it")
    zone = table.get("timezone")
    if zone is not None and zone not in zoneinfo.available_timezones():
        raise SiteError(
            f"{path}: {place}.timezone must be an IANA zone, got {zone!r}: "
            + _nearest(zone, tuple(zoneinfo.available_timezones()), example="Europe/Berlin")
        )
    return ClusterSite(**table)


def _window(path: Path, table: dict[str, Any]) -> Attribution:
    """The section [attribution]."""
    _known_keys(path, "attribution", table, Attribution)
    for key in ("before_minutes", "after_minutes"):
        value = table.get(key, 0)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1440:
            raise SiteError(
                f"{path}: attribution.{key} must be minutes from 0 to 1440, got {value!r}: mend it"
            )
    own = {
        "weights": _table(path, "attribution.weights", table.get("weights", {})),
        "rules": _rules(path, table.get("rules", [])),
    }
    return Attribution(**(table | own))


def _smtp(path: Path, reports: dict[str, Any]) -> Smtp:
    """The section [reports.smtp]."""
    if unknown := set(reports) - {"smtp"}:
        raise SiteError(f"{path}: reports.{min(unknown)} is unknown: there is [reports.smtp]")
    table = _table(path, "reports.smtp", reports.get("smtp", {}))
    if "password" in table:
        raise SiteError(
            f"{path}: reports.smtp.password must not stand in a file: put it into the environment "
            "as FAULTLINE_SMTP_PASSWORD"
        )
    _known_keys(path, "reports.smtp", table, Smtp)
    try:
        settings: dict[str, Any] = {n: Smtp.checked(n, value) for n, value in table.items()}
        return Smtp(**settings)
    except SiteError as error:
        raise SiteError(f"{path}: {error}") from None


def _rules(path: Path, values: object) -> tuple[dict[str, str], ...]:
    """The sections [[attribution.rules]]."""
    if not isinstance(values, list):
        raise SiteError(
            f"{path}: attribution.rules must be sections, got {values!r}: "
            "write [[attribution.rules]]"
        )
    return tuple(_table(path, "attribution.rules", one) for one in values)


def _taxonomy(path: Path, values: object) -> dict[str, Any]:
    """The section [taxonomy], which the taxonomy itself understands or refuses."""
    table = _table(path, "taxonomy", values)
    try:
        taxonomy(table)
    except AnalysisError as error:
        raise SiteError(f"{path}: taxonomy.{error}") from None
    return table


def _table(path: Path, place: str, values: object) -> dict[str, Any]:
    """A TOML table."""
    if not isinstance(values, dict):
        section = "cluster.<name>" if place.startswith("cluster") else place
        raise SiteError(f"{path}: {place} must be a section, got {values!r}: write [{section}]")
    return values


def _known_keys(path: Path, place: str, table: dict[str, Any], kind: type) -> None:
    """Refuses keys that nothing reads."""
    known = tuple(item.name for item in fields(kind))
    for key in table:
        if key not in known:
            raise SiteError(f"{path}: {place}.{key} is unknown: {_nearest(key, known)}")


def _nearest(found: str, known: tuple[str, ...], example: str | None = None) -> str:
    """What was probably meant, else what there is."""
    close = difflib.get_close_matches(found, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"e.g. {example!r}" if example else f"there are {', '.join(known)}"
