"""What a rule of alerts is: it finds episodes in the records, each with when it would have told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from app.ask import Ask
    from app.reports.redaction import Names
    from data.filters import Selection
    from data.site_alerts import AlertSettings

Severity = Literal["critical", "warning"]
SEVERITIES: tuple[Severity, ...] = ("critical", "warning")
"""The gravest first. Critical: work is being lost now, or will be within hours."""
For = Literal["cluster", "owner"]
"""Whom it is for: the team of a cluster, or the owner of a run or job."""
MONTH_HOURS = 30 * 24.0
RARER = 2.0
"""How many times as long as their bound says it takes, at least, until tests against a bound tell
by chance, for figures seldom lie right at it: what was measured stands in METHODS.md."""


@dataclass(frozen=True)
class Watch:
    """What rules look at: one cluster, and by which time."""

    selection: Selection
    """The cluster, and no period: a rule takes as much of the past as it needs."""
    from_at: datetime
    """What ended before that is not told."""
    now: datetime
    """Until when records count; looks are whole hours before it, however often rules are asked."""
    settings: AlertSettings
    share: float
    """Of the budget of false alarms, what the rule that is asked may spend in this cluster."""

    def hours_per_false_alarm(self, n_targets: int = 1) -> float:
        """Hours between two false alarms of one target of one rule, at least, so that all rules,
        clusters and targets together keep to the site's budget: shares of rates add up.
        """
        allowed = self.settings.false_alarms_per_month * self.share / max(n_targets, 1)
        return MONTH_HOURS / allowed

    def hours_to_bound(self, n_targets: int = 1) -> float:
        """The same for a test whose bound on them is that much too low: what it is held to."""
        return self.hours_per_false_alarm(n_targets) / RARER


@dataclass(frozen=True)
class Episode:
    """One time that a rule tells: from when its evidence stood until it was gone."""

    target: str
    """The thing: `incident:ID`, else `action:KIND-HASH` as the list of what to do calls it."""
    since_at: datetime
    """Since when it has been so, as far as the records say."""
    raised_at: datetime
    """When the evidence was enough: by records that end there the rule would have told it."""
    ended_at: datetime | None
    """When the evidence was gone; None while it stands."""
    sentence: str
    """What is so, with figure, interval and n; a line, without a full stop."""
    page: str
    """Page of the evidence, as in its address."""
    named: Mapping[str, str] = field(default_factory=dict)
    """What the address of that page names."""
    incident: str | None = None
    """The incident that it belongs to: alerts of one incident are one."""
    owner: str | None = None
    """User whose run or job it is; None where that is nobody's, or not known."""
    severity: Severity | None = None
    """Where it is another one than the rule's."""

    def redacted(self, names: Names) -> Episode:
        """The same without names of people."""
        return replace(
            self,
            target=names.target(self.target),
            sentence=names.sentence(self.sentence, self.owner, self.named),
            named=names.named(self.named),
            owner=self.owner and names.user(self.owner),
        )


@dataclass(frozen=True)
class Found:
    """What a rule says of a cluster."""

    episodes: tuple[Episode, ...] = ()
    """Those of the past too, in order of `raised_at`."""
    blind: str | None = None
    """Why it cannot be judged, as a sentence; None where the records let the rule see."""


@dataclass(frozen=True)
class Rule:
    """One rule: a module of `app.alerts.rules` has its RULE."""

    name: str
    """Of the command line and site.toml: lower case, with underscores."""
    title: str
    means: str
    """What it says of the cluster, as a sentence."""
    to_do: str
    """What to do, as a sentence."""
    severity: Severity
    find: Callable[[Ask, Watch], Found]
    told: For = "cluster"
    weight: float = 0.0
    """Of its share of the budget of false alarms, beside that of other rules; 0 where no chance can
    make it tell. A rule whose figure moves all others has the most, so that it tells first."""
    by_time: bool = False
    """Whether it judges by the time that passes: then it is asked, too, where records ended long
    ago."""
    on: bool = True
    """Where site.toml and people say nothing."""
    needs: str | None = None
    """Setting of [alerts] without which it has nothing to compare with, as `targets.ettr`."""


def shares(chosen: Iterable[Rule]) -> dict[str, float]:
    """Rule -> what it may spend of the budget: by weight, all of it together."""
    weights = {rule.name: rule.weight for rule in chosen}
    whole = sum(weights.values())
    return {name: weight / whole if whole else 0.0 for name, weight in weights.items()}


def select(
    rules: Iterable[Rule], settings: AlertSettings, switched: Mapping[str, bool]
) -> list[Rule]:
    """The rules that are on: as somebody switched them, else as site.toml says, else by default.

    A rule without the setting that it needs is off whatever anybody says.
    """

    def is_on(rule: Rule) -> bool:
        if rule.needs is not None and settings.value_of(rule.needs) is None:
            return False
        stated = rule.name in settings.on or (rule.on and rule.name not in settings.off)
        return switched.get(rule.name, stated)

    return [rule for rule in rules if is_on(rule)]
