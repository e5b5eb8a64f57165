"""site.toml, the configuration of a site: read, validated, explained."""

from __future__ import annotations

import difflib
import hashlib
import re
import reprlib
import tomllib
import zoneinfo
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from analytics.efficiency.run_rule import RunRule
from analytics.errors import AnalysisError
from analytics.failures.precedence import weights
from analytics.failures.taxonomy import Taxonomy, taxonomy
from analytics.fleet.node_identity import folded
from data.access import READERS, WRITERS, Access
from data.current import read_small
from data.errors import SiteError
from data.limits import RANGES, Limits
from data.tables import forgettable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RESERVED_SECTIONS = ("alerts",)
"""Sections of the format that no part of this version reads."""
SECURITY = ("starttls", "tls", "none")
"""How the connection to a mail server is encrypted."""
_MINUTES = {
    "checkpoint_interval_min": "interval_s",
    "checkpoint_write_min": "write_s",
    "restart_min": "restart_s",
}
_YEAR_MIN = 365 * 24 * 60
MAX_BYTES = 1_000_000
"""Size of a site.toml."""
MAX_GPUS_PER_NODE = 1_024
MAX_PRICE = 1e6
MAX_SNAPSHOTS = 1_000
MAX_DAYS = 36_500
MAX_TEXT = 200
"""Characters of a name: model, zone, scheduler, currency."""


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
                raise _wrong(place, "a port", value, "e.g. 587")
            return int(text)
        if not isinstance(value, str) or any(char in value for char in "\r\n"):
            raise _wrong(place, "text on one line", value)
        if name == "security" and value not in SECURITY:
            raise _wrong(place, ", ".join(SECURITY), value, "choose one")
        return value


@dataclass(frozen=True)
class Retention:
    """What a site keeps, and for how long."""

    keep_snapshots: int = 8
    """Earlier snapshots that stay on disk, to go back to."""
    days: dict[str, int] = field(default_factory=dict)
    """Table of records -> days after which `faultline forget` removes them; others stay."""


@dataclass(frozen=True)
class Site:
    """The configuration of a site."""

    clusters: dict[str, ClusterSite] = field(default_factory=dict)
    attribution: Attribution = field(default_factory=Attribution)
    sha256: str = ""
    """Hash of the file; of nothing where there is none."""
    notices: tuple[str, ...] = ()
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


def site_version(root: Path) -> str:
    """Changes with site.toml: a price or a time zone counts at once; empty where there is none.

    Raises
    ------
    SiteError
        Where it cannot be read.
    """
    content = _content(root / "site.toml")
    return hashlib.sha256(content).hexdigest() if content else ""


def _content(path: Path) -> bytes:
    """What a site.toml holds; nothing where there is none."""
    try:
        content = read_small(path, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise SiteError(f"{path}: cannot be read ({error.strerror}): check access") from None
    if len(content) > MAX_BYTES:
        raise SiteError(f"{path}: is larger than {MAX_BYTES:,} bytes: shorten it")
    return content


def stated(root: Path) -> dict[str, Any]:
    """What site.toml says, section by section, before anything of it is understood.

    Raises
    ------
    SiteError
        Where it cannot be read, or is no TOML.
    """
    return _document(root / "site.toml", _content(root / "site.toml"))


def _document(path: Path, content: bytes) -> dict[str, Any]:
    """The TOML that a file holds."""
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except ValueError as error:  # broken TOML, no UTF-8, or a number of thousands of digits
        raise SiteError(f"{path}: is not TOML ({error}): mend that place") from None
    except RecursionError:
        raise SiteError(f"{path}: is nested too deeply: no setting needs that") from None


def load_site(root: Path) -> Site:
    """The configuration of a store; the defaults where it has no site.toml.

    Raises
    ------
    SiteError
        Naming the file, the place, the rule, the value found and what to do.
    """
    path = root / "site.toml"
    content = _content(path)
    document = _document(path, content)
    own = ("cluster", "attribution", "taxonomy", "reports", "runs", "nodes", "limits", "retention")
    known = (*own, "access", *RESERVED_SECTIONS)
    for section in document:
        if section not in known:
            raise SiteError(f"{path}: section [{section}] is unknown: {_nearest(section, known)}")
    clusters = {
        name: _cluster(path, name, values)
        for name, values in _section(path, "cluster", document.get("cluster", {})).items()
    }
    notices = tuple(
        f"{path}: section [{section}] is read by no part of this version"
        for section in RESERVED_SECTIONS
        if section in document
    )
    site = Site(
        clusters,
        _attribution(path, document.get("attribution", {})),
        hashlib.sha256(content).hexdigest(),
        notices,
        smtp=_smtp(path, document.get("reports", {})),
        address=_address(path, document.get("reports", {})),
        taxonomy=_taxonomy(path, document.get("taxonomy", {})),
        runs=_runs(path, document.get("runs", {})),
        nodes=_nodes(path, document.get("nodes", {})),
        limits=_limits(path, document.get("limits", {})),
        retention=_retention(path, document.get("retention", {})),
        access=_access(path, document.get("access", {})),
    )
    try:
        weights(site.attribution.table, site.causes)
    except AnalysisError as error:
        raise SiteError(f"{path}: {error}") from None
    return site


def _taxonomy(path: Path, values: object) -> dict[str, Any]:
    """The section [taxonomy], which the taxonomy itself understands or refuses."""
    own = _section(path, "taxonomy", values)
    try:
        taxonomy(own)
    except AnalysisError as error:
        raise SiteError(f"{path}: taxonomy.{error}") from None
    return own


def _cluster(path: Path, name: str, values: object) -> ClusterSite:
    place = f"cluster.{name}"
    if not name.strip():
        raise SiteError(f'{path}: [cluster."{name}"] has no name: write e.g. [cluster.a]')
    stated = _section(path, place, values, _names(ClusterSite))
    for key, kind, most, rule in (
        ("gpus_per_node", int, MAX_GPUS_PER_NODE, "a whole number > 0, at most 1,024, e.g. 8"),
        ("gpu_hour_price", (int, float), MAX_PRICE, "a number > 0, at most 1,000,000, e.g. 2.5"),
    ):
        value = stated.get(key)
        if value is not None and (
            not isinstance(value, kind) or value is True or not 0 < value <= most
        ):
            raise _wrong(f"{path}: {place}.{key}", rule, value)
    for key in ("gpu_model", "timezone", "scheduler", "currency"):
        value = stated.get(key, "")
        if not isinstance(value, str):
            raise _wrong(f"{path}: {place}.{key}", "text", value, "quote it")
        if len(value) > MAX_TEXT:
            rule = f"at most {MAX_TEXT} characters"
            raise _wrong(f"{path}: {place}.{key}", rule, value, "shorten it")
    zone = stated.get("timezone")
    if zone is not None and zone not in zoneinfo.available_timezones():
        meant = _nearest(zone, tuple(zoneinfo.available_timezones()), example="Europe/Berlin")
        raise _wrong(f"{path}: {place}.timezone", "an IANA zone", zone, meant)
    return ClusterSite(**stated)


def _attribution(path: Path, values: object) -> Attribution:
    stated = _section(path, "attribution", values, _names(Attribution))
    for key in ("before_minutes", "after_minutes"):
        value = stated.get(key, 0)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1440:
            raise _wrong(f"{path}: attribution.{key}", "minutes from 0 to 1440", value)
    weighing = _section(path, "attribution.weights", stated.get("weights", {}))
    rules = stated.get("rules", [])
    if not isinstance(rules, list):
        place = f"{path}: attribution.rules"
        raise _wrong(place, "sections", rules, "write [[attribution.rules]]")
    rules = tuple(_section(path, "attribution.rules", rule) for rule in rules)
    return Attribution(**(stated | {"weights": weighing, "rules": rules}))


def _runs(path: Path, values: object) -> Runs:
    """The section [runs] and its [runs.one_node]."""
    rule_keys = _names(RunRule)
    own = _section(path, "runs", values, (*rule_keys, *_MINUTES, "one_node"))
    one = _section(path, "runs.one_node", own.get("one_node", {}), tuple(_MINUTES))
    stated: dict[str, Any] = {key: own[key] for key in rule_keys if key in own}
    if isinstance(names := stated.get("generic_names"), list):
        stated["generic_names"] = tuple(names)
    try:
        rule = RunRule(**stated)
    except AnalysisError as error:
        raise SiteError(f"{path}: runs.{error}") from None
    return Runs(rule, _assumed(path, "runs", own), _assumed(path, "runs.one_node", one))


def _nodes(path: Path, values: object) -> dict[str, tuple[str, ...]]:
    """The section [nodes]: each node with its other names, of which none is another node's."""
    stated: dict[str, tuple[str, ...]] = {}
    owner: dict[str, str] = {}
    for node, names in _section(path, "nodes", values).items():
        place = f"{path}: nodes.{node}"
        if not isinstance(names, list) or not all(
            isinstance(name, str) and folded(name) for name in names
        ):
            raise SiteError(
                f"{place} must be a list of the node's other names, got {names!r}: write e.g. "
                f'"{node}" = ["{node}-mgmt", "10.0.0.17"]'
            )
        stated[node] = tuple(names)
        for name in (node, *names):
            other = owner.setdefault(folded(name), node)
            if other != node:
                raise SiteError(f"{place}: {name!r} is a name of {other!r} too: leave one of them")
    return stated


def _limits(path: Path, values: object) -> Limits:
    stated = _section(path, "limits", values, _names(Limits))
    for name, value in stated.items():
        least, most = RANGES[name]
        whole = isinstance(getattr(Limits, name), int)
        if type(value) not in ((int,) if whole else (int, float)) or not least <= value <= most:
            rule = f"a {'whole ' * whole}number from {least:,} to {most:,}"
            raise _wrong(f"{path}: limits.{name}", rule, value)
    return Limits(**stated)


def _retention(path: Path, values: object) -> Retention:
    """The section [retention]: how many snapshots, and for how many days each table."""
    days = _section(path, "retention", values, ("keep_snapshots", *forgettable()))
    for key, value in days.items():
        most, unit = (MAX_SNAPSHOTS, "") if key == "keep_snapshots" else (MAX_DAYS, " of days")
        if type(value) is not int or not 1 <= value <= most:
            rule = f"a whole number{unit} from 1 to {most:,}"
            raise _wrong(f"{path}: retention.{key}", rule, value)
    stated = {key: value for key, value in days.items() if key != "keep_snapshots"}
    return Retention(days.get("keep_snapshots", Retention.keep_snapshots), stated)


def _access(path: Path, values: object) -> Access:
    """The section [access]: who may read the files of the store, and write them."""
    stated = _section(path, "access", values, _names(Access))
    for key, known in (("read", READERS), ("write", WRITERS)):
        value = stated.get(key, "owner")
        if not isinstance(value, str) or value not in known:
            raise _wrong(f"{path}: access.{key}", ", ".join(known), value, "choose one")
    access = Access(**stated)
    if not access.is_sound:
        rule = "owner where access.read is owner"
        raise _wrong(f"{path}: access.write", rule, access.write, 'say read = "group" too')
    return access


def _assumed(path: Path, place: str, values: dict[str, Any]) -> Assumed:
    return Assumed(
        **{
            name: _range(f"{path}: {place}.{key}", values[key], zero=name != "interval_s")
            for key, name in _MINUTES.items()
            if key in values
        }
    )


def _range(place: str, value: object, *, zero: bool) -> tuple[float, float]:
    """Seconds, least and greatest, of minutes or of a range of minutes."""
    ends: list[Any] = value if isinstance(value, list) else [value, value]
    known = len(ends) == 2 and all(type(end) in (int, float) for end in ends)
    if not known or not all(0 <= end <= _YEAR_MIN and (zero or end > 0) for end in ends):
        rule = f"minutes {'>= 0' if zero else '> 0'}, at most a year, or a range of them"
        raise _wrong(place, rule, value, "write e.g. 30 or [15, 60]")
    if ends[0] > ends[1]:
        raise _wrong(place, "a range [low, high]", value, "swap its ends")
    return ends[0] * 60.0, ends[1] * 60.0


def _smtp(path: Path, values: object) -> Smtp:
    reports = _section(path, "reports", values)
    if unknown := set(reports) - {"address", "smtp"}:
        raise SiteError(
            f"{path}: reports.{min(unknown)} is unknown: there are address and [reports.smtp]"
        )
    stated = reports.get("smtp", {})
    if isinstance(stated, dict) and "password" in stated:
        raise SiteError(
            f"{path}: reports.smtp.password must not stand in a file: put it into the environment "
            "as FAULTLINE_SMTP_PASSWORD"
        )
    stated = _section(path, "reports.smtp", stated, _names(Smtp))
    try:
        settings: dict[str, Any] = {n: Smtp.checked(n, value) for n, value in stated.items()}
        return Smtp(**settings)
    except SiteError as error:
        raise SiteError(f"{path}: {error}") from None


def _address(path: Path, reports: dict[str, Any]) -> str:
    """The dashboard's address in [reports]: reports link to its pages."""
    value = reports.get("address", "")
    if value == "":
        return ""
    try:
        parts = urlsplit(value) if isinstance(value, str) else urlsplit("")
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        fits = fits and not re.search(r"[\s\x00-\x20<>|\"'`\\?#@]", value)
    except ValueError:  # a port that is none, half a bracket
        fits = False
    if not fits or len(value) > MAX_TEXT:
        remedy = "e.g. 'https://faultline.example.org/'"
        raise _wrong(f"{path}: reports.address", "the dashboard's address", value, remedy)
    return f"{value.rstrip('/')}/"


def _wrong(place: str, rule: str, value: object, remedy: str = "mend it") -> SiteError:
    """Refuses a value, which is cut where it is long."""
    cut = reprlib.Repr()
    cut.maxstring = cut.maxlong = cut.maxother = 100
    return SiteError(f"{place} must be {rule}, got {cut.repr(value)}: {remedy}")


def _section(path: Path, place: str, values: object, known: tuple[str, ...] = ()) -> dict[str, Any]:
    """A TOML table; where its keys are known, one that nothing reads is refused."""
    if not isinstance(values, dict):
        section = "cluster.<name>" if place.startswith("cluster") else place
        raise _wrong(f"{path}: {place}", "a section", values, f"write [{section}]")
    for key in values if known else ():
        if key not in known:
            raise SiteError(f"{path}: {place}.{key} is unknown: {_nearest(key, known)}")
    return values


def _names(settings: type) -> tuple[str, ...]:
    return tuple(item.name for item in fields(settings))


def _nearest(stated: str, known: tuple[str, ...], example: str | None = None) -> str:
    """What was probably meant, else what there is."""
    close = difflib.get_close_matches(stated, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"e.g. {example!r}" if example else f"there are {', '.join(known)}"
