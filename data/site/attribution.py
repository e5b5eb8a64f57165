"""The section [attribution]: how evidence is weighed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from data.errors import SiteError
from data.site.document import known_keys, table

if TYPE_CHECKING:
    from pathlib import Path


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


def read(path: Path, values: object) -> Attribution:
    """The section [attribution]."""
    stated = table(path, "attribution", values)
    known_keys(path, "attribution", stated, Attribution)
    for key in ("before_minutes", "after_minutes"):
        value = stated.get(key, 0)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1440:
            raise SiteError(
                f"{path}: attribution.{key} must be minutes from 0 to 1440, got {value!r}: mend it"
            )
    own = {
        "weights": table(path, "attribution.weights", stated.get("weights", {})),
        "rules": _rules(path, stated.get("rules", [])),
    }
    return Attribution(**(stated | own))


def _rules(path: Path, values: object) -> tuple[dict[str, str], ...]:
    """The sections [[attribution.rules]]."""
    if not isinstance(values, list):
        raise SiteError(
            f"{path}: attribution.rules must be sections, got {values!r}: "
            "write [[attribution.rules]]"
        )
    return tuple(table(path, "attribution.rules", one) for one in values)
