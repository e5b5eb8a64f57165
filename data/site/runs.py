"""The section [runs]: which jobs are one run, and what is assumed of checkpoints and restarts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from analytics.efficiency.run_rule import RunRule
from analytics.errors import AnalysisError
from data.errors import SiteError
from data.site.document import known_keys, table

if TYPE_CHECKING:
    from pathlib import Path

_MINUTES = {
    "checkpoint_interval_min": "interval_s",
    "checkpoint_write_min": "write_s",
    "restart_min": "restart_s",
}
_YEAR_MIN = 365 * 24 * 60
_RULE_KEYS = tuple(item.name for item in fields(RunRule))


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


def read(path: Path, values: object) -> Runs:
    """The section [runs] and its [runs.one_node].

    Raises
    ------
    SiteError
        Naming the file, the key, the rule, the value found and what to do.
    """
    own = table(path, "runs", values)
    known_keys(path, "runs", own, (*_RULE_KEYS, *_MINUTES, "one_node"))
    one = table(path, "runs.one_node", own.get("one_node", {}))
    known_keys(path, "runs.one_node", one, tuple(_MINUTES))
    stated: dict[str, Any] = {key: own[key] for key in _RULE_KEYS if key in own}
    if isinstance(names := stated.get("generic_names"), list):
        stated["generic_names"] = tuple(names)
    try:
        rule = RunRule(**stated)
    except AnalysisError as error:
        raise SiteError(f"{path}: runs.{error}") from None
    return Runs(rule, _assumed(path, "runs", own), _assumed(path, "runs.one_node", one))


def _assumed(path: Path, place: str, values: dict[str, Any]) -> Assumed:
    """The three times of one section."""
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
        raise SiteError(
            f"{place} must be minutes {'>= 0' if zero else '> 0'}, at most a year, or a range of "
            f"them, got {value!r}: write e.g. 30 or [15, 60]"
        )
    if ends[0] > ends[1]:
        raise SiteError(f"{place} must be a range [low, high], got {value!r}: swap its ends")
    return ends[0] * 60.0, ends[1] * 60.0
