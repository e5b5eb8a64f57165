"""site.toml, the configuration of a site: read, validated, explained."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analytics.errors import AnalysisError
from analytics.failures.precedence import weights
from analytics.failures.taxonomy import Taxonomy, taxonomy
from data.errors import SiteError
from data.site import attribution, cluster, runs, smtp
from data.site.attribution import Attribution
from data.site.cluster import ClusterSite
from data.site.document import nearest, table
from data.site.runs import Assumed, Runs
from data.site.smtp import SECURITY, Smtp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "SECURITY",
    "Assumed",
    "Attribution",
    "ClusterSite",
    "Runs",
    "Site",
    "SiteError",
    "Smtp",
    "load_site",
]

RESERVED_SECTIONS = ("alerts", "access", "retention")
"""Sections of the format that no part of this version reads."""


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
    runs: Runs = field(default_factory=Runs)

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
    known = ("cluster", "attribution", "taxonomy", "reports", "runs", *RESERVED_SECTIONS)
    for section in document:
        if section not in known:
            raise SiteError(f"{path}: section [{section}] is unknown: {nearest(section, known)}")
    clusters = {
        name: cluster.read(path, name, values)
        for name, values in table(path, "cluster", document.get("cluster", {})).items()
    }
    weighing = attribution.read(path, document.get("attribution", {}))
    notices = tuple(
        f"{path}: section [{section}] is read by no part of this version"
        for section in RESERVED_SECTIONS
        if section in document
    )
    site = Site(
        clusters,
        weighing,
        digest,
        notices,
        smtp=smtp.read(path, document.get("reports", {})),
        taxonomy=_taxonomy(path, document.get("taxonomy", {})),
        runs=runs.read(path, document.get("runs", {})),
    )
    try:
        weights(weighing.table, site.causes)
    except AnalysisError as error:
        raise SiteError(f"{path}: {error}") from None
    return site


def _taxonomy(path: Path, values: object) -> dict[str, Any]:
    """The section [taxonomy], which the taxonomy itself understands or refuses."""
    own = table(path, "taxonomy", values)
    try:
        taxonomy(own)
    except AnalysisError as error:
        raise SiteError(f"{path}: taxonomy.{error}") from None
    return own
