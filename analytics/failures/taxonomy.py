"""Symptoms and causes of failed jobs, their domains, and the labels of other schemes for them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from typing import Any, Literal, get_args

from analytics.errors import AnalysisError

Domain = Literal["user", "system_software", "hardware", "unknown"]

DOMAINS: tuple[Domain, ...] = get_args(Domain)
"""Who is at fault: the program, system software, hardware, or nobody knows."""
NO_FAILURE = ""
"""Cause of a label that means no failure."""

_OWNERS: dict[str, str] = {"user": "user", "hardware": "hardware repair"}
_OWNER, _ACTION = "cluster operations", "Look at the evidence and decide."
_BLANK = re.compile(r"[\s_-]+")
_KEYS = ("title", "domain", "component", "owner", "action")


@dataclass(frozen=True, slots=True)
class Cause:
    """What was at fault."""

    name: str
    """Identifier, e.g. ``gpu_memory``."""
    title: str
    """In plain words."""
    domain: str
    """``user``, ``system_software``, ``hardware`` or ``unknown``."""
    component: str
    """Part of the system."""
    owner: str
    """Who acts."""
    action: str
    """What they do first, one sentence."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """What is seen of a failure: it leaves some domains possible and excludes the others."""

    name: str
    title: str
    domains: tuple[str, ...]
    """Domains that remain possible."""
    causes: tuple[str, ...]
    """Likely causes by name."""


@dataclass(frozen=True)
class LabelScheme:
    """The labels of a scheme, from and to causes."""

    causes: Mapping[str, str]
    """Label -> cause, `NO_FAILURE` for a label that means none."""
    further: Mapping[str, str] = field(default_factory=dict)
    """Cause -> label, for causes that no label means exactly."""
    longest_known: bool = False
    """Whether a label that goes on after a known one, by words, means the same."""

    def cause_of(self, label: str) -> str | None:
        """Cause that a label means; None for an unknown label and for one that means no failure.

        Letter case, dashes, underscores and spaces do not count. ``A/B`` is subcause B of cause A,
        and A where B is unknown.

        Examples
        --------
        >>> scheme = LabelScheme({"Software": "software", "OS": "operating_system"})
        >>> [scheme.cause_of(label) for label in ("os", "Software/OS", "Software/other", "other")]
        ['operating_system', 'operating_system', 'software', None]
        """
        words = normal(label)
        if words in self._by_label:
            return self._by_label[words] or None
        head, slash, rest = (part.strip() for part in words.partition("/"))
        if slash and head in self._by_label:
            return self._by_label.get(rest, self._by_label[head]) or None
        while self.longest_known and " " in words:
            words = words.rpartition(" ")[0]
            if words in self._by_label:
                return self._by_label[words] or None
        return None

    def with_own(self, own: Mapping[str, str]) -> LabelScheme:
        """The scheme with a site's labels, which win."""
        taken = {normal(label) for label in own}
        kept = {la: cause for la, cause in self.causes.items() if normal(la) not in taken}
        return LabelScheme({**own, **kept}, self.further, self.longest_known)

    @cached_property
    def _by_label(self) -> dict[str, str]:
        return {normal(label): cause for label, cause in self.causes.items()}

    @cached_property
    def by_cause(self) -> dict[str, str]:
        """Cause -> the label that means it, of several the first, else the nearest."""
        table: dict[str, str] = {}
        for label, cause in self.causes.items():
            if cause:
                table.setdefault(cause, label)
        return {**self.further, **table}


@dataclass(frozen=True)
class Taxonomy:
    """The causes and symptoms of a site, with the labels of other schemes."""

    causes: Mapping[str, Cause]
    symptoms: Mapping[str, Symptom]
    schemes: Mapping[str, LabelScheme]
    """Labels by the name of their scheme."""

    def domain_of(self, cause: str) -> str:
        """Domain of a cause.

        Raises
        ------
        AnalysisError
            Where the taxonomy has no such cause.

        Examples
        --------
        >>> taxonomy().domain_of("gpu_memory")
        'hardware'
        """
        if cause not in self.causes:
            raise AnalysisError(
                f"cause must be one of the taxonomy's {len(self.causes)}, got {cause!r}: "
                "see analytics/failures/taxonomy.toml, or add it to [taxonomy.causes] of site.toml"
            )
        return self.causes[cause].domain

    def cause_of(self, scheme: str, label: str) -> str | None:
        """Cause that a label of another scheme means.

        Letter case, dashes, underscores and spaces do not count. ``A/B`` is subcause B of cause
        A, and A alone where B is unknown. A state of Slurm or a check of GCM may go on after a
        known one, e.g. ``CANCELLED by 1001`` or ``check-ib --verbose``; the longest known counts.

        Parameters
        ----------
        scheme : str
            ``rsc``, ``acme``, ``llama3``, ``lanl``, ``pnnl``, ``gcm`` (name of a check),
            ``slurm`` (state of a job), or a site's own.
        label : str
            As the scheme writes it.

        Returns
        -------
        str or None
            Name of the cause; None for an unknown label and for one that means no failure.

        Raises
        ------
        AnalysisError
            Where the scheme is unknown.

        Examples
        --------
        >>> [taxonomy().cause_of("acme", label) for label in ("NVLink", "S3", "no such label")]
        ['nvlink', 'object_storage', None]
        >>> taxonomy().cause_of("gcm", "check-ibstat"), taxonomy().cause_of("lanl", "Hardware/CPU")
        ('ib_link', 'cpu')
        """
        return self._scheme(scheme).cause_of(label)

    def causes_stated(self, rows: Iterable[tuple[str, str | None, str | None]]) -> dict[Any, str]:
        """Causes that records state in their own words.

        Parameters
        ----------
        rows
            Scheme, cause and subcause of each record, None where it has none. A scheme that the
            taxonomy does not know has no labels of its own.

        Returns
        -------
        dict
            Each row -> name of a cause, by the labels of its scheme, else by names and titles of
            causes; ``unknown`` where neither says one.

        Examples
        --------
        >>> rows = [("our_log", "Hardware", None), ("our_log", "hardware", "NVLink"),
        ...         ("pnnl", "DIMM", None), ("our_log", "gremlin", None)]
        >>> list(taxonomy().causes_stated(rows).values())
        ['hardware', 'nvlink', 'host_memory', 'unknown']
        """
        titles = {cause.title: name for name, cause in self.causes.items()}
        names = LabelScheme(titles | {name: name for name in self.causes})
        distinct = dict.fromkeys(rows)
        labels = {
            scheme: names.with_own(self.schemes[scheme].causes) if scheme in self.schemes else names
            for scheme in {scheme for scheme, *_ in distinct}
        }
        return {
            (scheme, *words): labels[scheme].cause_of("/".join(filter(None, words))) or "unknown"
            for scheme, *words in distinct
        }

    def label_of(self, scheme: str, cause: str) -> str | None:
        """Label of a cause in another scheme: the one that means it, else the nearest.

        Parameters
        ----------
        scheme : str
            As in `cause_of`.
        cause : str
            Name of a cause.

        Returns
        -------
        str or None
            As the scheme spells it; None where the scheme has no label for that cause.

        Raises
        ------
        AnalysisError
            Where the scheme is unknown.

        Examples
        --------
        >>> taxonomy().label_of("llama3", "gpu_sram"), taxonomy().label_of("acme", "gpu_sram")
        ('SRAM', 'ECC')
        """
        return self._scheme(scheme).by_cause.get(cause)

    def _scheme(self, name: str) -> LabelScheme:
        if name not in self.schemes:
            raise AnalysisError(
                f"scheme must be one of {', '.join(self.schemes)}, got {name!r}: name one of them"
            )
        return self.schemes[name]


def taxonomy(site: Mapping[str, Any] | None = None) -> Taxonomy:
    """The taxonomy of failures, with a site's own causes and labels on top.

    Parameters
    ----------
    site : mapping, optional
        Section ``[taxonomy]`` of site.toml: ``causes`` (name -> title, domain, component, owner,
        action; a new cause needs title and domain, a known one keeps what is not given) and
        ``labels`` (scheme -> label -> cause; a scheme may be new).

    Returns
    -------
    Taxonomy
        Without `site`, one object for all callers.

    Raises
    ------
    AnalysisError
        Where the section holds a mistake; the message names the place below ``taxonomy``.

    References
    ----------
    Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters",
    arXiv 2410.21680, Table I (symptoms, domains); Hu et al., arXiv 2403.07648, Table 3; The Llama
    3 Herd of Models, arXiv 2407.21783, Table 5.

    Examples
    --------
    >>> taxonomy().symptoms["nccl_timeout"].domains
    ('user', 'system_software', 'hardware')
    >>> own = taxonomy({"causes": {"licence": {"title": "No licence", "domain": "user"}}})
    >>> own.causes["licence"].owner
    'user'
    """
    return _extended(_shipped(), site) if site else _shipped()


@cache
def _shipped() -> Taxonomy:
    """The taxonomy without any site."""
    document = shipped_document("taxonomy.toml")
    return Taxonomy(
        causes={name: Cause(name, **row) for name, row in document["causes"].items()},
        symptoms={
            name: Symptom(name, row["title"], tuple(row["domains"]), tuple(row["causes"]))
            for name, row in document["symptoms"].items()
        },
        schemes={
            name: LabelScheme(
                causes=row["causes"] | dict.fromkeys(row.get("no_failure", ()), NO_FAILURE),
                further=row.get("labels", {}),
                longest_known=row.get("longest_known", False),
            )
            for name, row in shipped_document("labels.toml").items()
        },
    )


def _extended(base: Taxonomy, site: Mapping[str, Any]) -> Taxonomy:
    """A taxonomy with the section of a site on top."""
    for key in site:
        if key not in ("causes", "labels"):
            raise AnalysisError(f"{key} is unknown: there are causes and labels")
    causes = dict(base.causes)
    for name, row in _section("causes", site.get("causes", {})).items():
        causes[name] = _site_cause(name, _section(f"causes.{name}", row), causes.get(name))
    schemes = dict(base.schemes)
    for scheme, rows in _section("labels", site.get("labels", {})).items():
        own = _section(f"labels.{scheme}", rows)
        for label, cause in own.items():
            if not isinstance(cause, str) or cause not in causes:
                raise AnalysisError(
                    f'labels.{scheme}."{label}" must name a cause, got {cause!r}: '
                    "name one there is or add it below [taxonomy.causes]"
                )
        schemes[scheme] = schemes.get(scheme, LabelScheme({})).with_own(own)
    return replace(base, causes=causes, schemes=schemes)


def _site_cause(name: str, row: Mapping[str, Any], known: Cause | None) -> Cause:
    """A cause that a site adds or changes."""
    place = f"causes.{name}"
    for key, value in row.items():
        if key not in _KEYS:
            raise AnalysisError(f"{place}.{key} is unknown: there are {', '.join(_KEYS)}")
        if not isinstance(value, str) or not value.strip():
            raise AnalysisError(f"{place}.{key} must be text, got {value!r}: mend it")
    if row.get("domain", "user") not in DOMAINS:
        raise AnalysisError(
            f"{place}.domain must be one of {', '.join(DOMAINS)}, got {row['domain']!r}: name one"
        )
    if known is not None:
        return replace(known, **row)
    for key in ("title", "domain"):
        if key not in row:
            raise AnalysisError(f"{place}.{key} is missing: a new cause needs title and domain")
    owner = _OWNERS.get(row["domain"], _OWNER)
    return Cause(name, **{"component": "not stated", "owner": owner, "action": _ACTION, **row})


def _section(place: str, value: object) -> Mapping[str, Any]:
    """A table of the section."""
    if not isinstance(value, Mapping):
        raise AnalysisError(f"{place} must be a section, got {value!r}: write [taxonomy.{place}]")
    return value


def shipped_document(name: str) -> dict[str, Any]:
    """A TOML file that this package ships."""
    text = resources.files("analytics.failures").joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(text)


def normal(label: str) -> str:
    """A label without what does not count.

    Examples
    --------
    >>> normal(" Check-IB_link ")
    'check ib link'
    """
    return _BLANK.sub(" ", label).strip().casefold()
