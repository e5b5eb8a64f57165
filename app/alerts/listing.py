"""Which alerts are open, acknowledged, muted; which rules look, and what they cannot judge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from app.alerts import life
from app.alerts.rule import select
from app.alerts.rules import rules
from app.answers.content import Answer
from app.answers.described import JSON, TABLE, Rows, field
from app.words import moments, numbers
from app.words.addresses import Place
from app.words.glossary import of_alerts
from app.words.plain import in_a_row
from data.alerts import Alert, Alerts, Delivery, Evaluated
from data.site import load_site
from data.state import ACKNOWLEDGED, RESOLVED, RULE, SNOOZED_UNTIL, SWITCHED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.alerts.evaluate import Evaluation
    from app.alerts.rule import Rule
    from app.answers.content import Table
    from app.reports.redaction import Names
    from data.site_alerts import AlertSettings
    from data.state import Annotation
    from data.store import Store

SHOWN_RESOLVED = timedelta(days=14)
"""How long a resolved alert stays in the list."""
NONE = "No alert is open."
NOT_ASKED = "No rule was evaluated yet: `faultline check` asks them, and so does each ingest."
CANNOT = "cannot be judged: "
OLD = timedelta(days=1)
"""How long what was found is told as what is so now."""
NOBODY = "Nobody is told: site.toml names no receiver ([[alerts.receiver]])."
BUDGET = (
    "Rules that chance can set off share a budget of {} a month, over all clusters and things "
    "together. A back-test tells what a rule would have told in the last 90 days of records."
)
ORDER: Mapping[life.State, int] = {"open": 0, "acknowledged": 1, "muted": 2, "resolved": 3}


@dataclass(frozen=True)
class Known:
    """All that is kept of alerts and rules: what people say is in it, so it is read anew."""

    alerts: tuple[Alert, ...]
    said: life.Said
    deliveries: tuple[Delivery, ...]
    on: frozenset[str]
    """Names of the rules that are on."""
    settings: AlertSettings
    evaluated: Evaluated | None
    at: datetime
    """When this was read, by the clock of the store."""

    @property
    def since(self) -> str:
        """When the rules were last asked, where that is so long ago that it must be said; else
        nothing.
        """
        if self.evaluated is None:
            return ""
        asked = datetime.fromisoformat(self.evaluated.at)
        return f" on {moments.minute(asked)} UTC" if self.at - asked > OLD else ""

    def seeing(self, cluster: str | None) -> tuple[int, int]:
        """How many of the rules that are on had the records that they need when they were last
        asked, of a cluster or of every one; and how many are on.
        """
        blind = {} if self.evaluated is None else self.evaluated.blind
        lacking = [
            name for name in self.on & blind.keys() if cluster is None or cluster in blind[name]
        ]
        return len(self.on) - len(lacking), len(self.on)

    @property
    def receivers(self) -> int:
        """How many could be told."""
        return len(self.settings.receivers)

    def redacted(self, names: Names) -> Known:
        """The same without names of people."""
        return replace(
            self,
            alerts=life.redacted(self.alerts, names),
            said=self.said.redacted(names),
            deliveries=tuple(map(names.delivery, self.deliveries)),
        )

    def blind(self, rule: str) -> list[str]:
        """Why a rule could not be judged when it was last asked: each reason once, with its
        clusters where there are several.
        """
        found = {} if self.evaluated is None else self.evaluated.blind.get(rule, {})
        reasons: dict[str, list[str]] = {}
        for cluster, why in found.items():
            reasons.setdefault(why.rpartition(CANNOT)[2].rstrip("."), []).append(cluster)
        if len(reasons) == 1:
            return [*reasons]
        return [f"{in_a_row(clusters)}: {why}" for why, clusters in reasons.items()]

    def lacks(self, rule: Rule) -> bool:
        """Whether site.toml lacks the setting that a rule needs."""
        return rule.needs is not None and self.settings.value_of(rule.needs) is None

    def said_of_rule(self, rule: str, at: datetime) -> Annotation | None:
        """The last word on a rule that holds."""
        target = f"{RULE}{rule}"
        words = [self.said.words.get((target, SWITCHED))]
        if self.said.muted_until(target, at):
            words.append(self.said.words[target, SNOOZED_UNTIL])
        held = [said for said in words if said is not None]
        return max(held, key=lambda said: said.made_at, default=None)


def known(store: Store, now: datetime) -> Known:
    """What is kept of the alerts of a store, with those that were resolved of late."""
    kept = Alerts(store.root)
    said = life.Said.of(kept.annotations())
    alerts = kept.all(since=now - SHOWN_RESOLVED)
    settings = load_site(store.root).alerts
    return Known(
        tuple(alerts),
        said,
        tuple(kept.deliveries(alert_ids=[alert.alert_id for alert in alerts])),
        frozenset(rule.name for rule in select(rules(), settings, said.switched())),
        settings,
        kept.last_evaluated(),
        now,
    )


def titles() -> dict[str, str]:
    """Rule -> what it is called; of a rule that is no more, its name."""
    return {rule.name: rule.title for rule in rules()}


def called(alert: Alert) -> str:
    """The rules that see an alert."""
    of = titles()
    return in_a_row([of.get(name, name) for name in alert.rules])


def states(now: Known, at: datetime) -> dict[str, life.State]:
    """Alert's id -> what it is now."""
    return {alert.alert_id: life.state_of(alert, now.said, at) for alert in now.alerts}


def ordered(alerts: Sequence[Alert], states: Mapping[str, life.State]) -> list[Alert]:
    """Open ones first, the gravest of them first, then the latest."""
    latest = sorted(alerts, key=lambda one: one.opened_at, reverse=True)
    return sorted(latest, key=lambda one: (ORDER[states[one.alert_id]], one.severity))


def told(alert: Alert, now: Known) -> list[str]:
    """Receivers that were told of an alert."""
    own = [one for one in now.deliveries if one.alert_id == alert.alert_id]
    return sorted({one.receiver for one in own if one.outcome == "delivered"})


def told_in_words(alert: Alert, now: Known) -> str:
    """Who was told of an alert, or that somebody still has to be."""
    own = [one for one in now.deliveries if one.alert_id == alert.alert_id]
    who = told(alert, now)
    waiting = sorted({one.receiver for one in own if one.ended_at is None})
    parts = [f"told {in_a_row(who)}"] if who else []
    parts += [f"{in_a_row(waiting)} not told yet"] if waiting else []
    return "; ".join(parts) or "nobody was told"


def said_of(alert: Alert, state: life.State, now: Known, at: datetime) -> Annotation | None:
    """What somebody said of an alert that made it what it is: an undo takes that back."""
    if state == "muted":
        holds = now.said.muted_until(alert.target, at)
        return now.said.words[alert.target, SNOOZED_UNTIL] if holds else None
    word = {"acknowledged": ACKNOWLEDGED, "resolved": RESOLVED}.get(state)
    by_itself = alert.resolved_at is not None and alert.resolved_by is None
    return None if word is None or by_itself else now.said.status(alert, word)


def asked_at(now: Known) -> str:
    """When the rules were last asked."""
    if now.evaluated is None:
        return "The rules were never asked: `faultline check` does, as each ingest"
    at = datetime.fromisoformat(now.evaluated.at)
    n = numbers.counted(now.evaluated.n_rules, "rule")
    return f"{n} last asked {moments.minute(at)} UTC, of snapshot {now.evaluated.snapshot}"


ALERT_FIELDS = (
    field("state", "State", of=lambda row: row["state"]),
    field("severity", of="alert.severity", term=of_alerts.SEVERITY),
    field("sentence", "What", of="alert.sentence"),
    field("rule", of=lambda row: called(row["alert"]), term=of_alerts.RULE, on=TABLE),
    field("rule", of=lambda row: row["alert"].rules[0], on=("json", "csv")),
    field("rules", of=lambda row: list(row["alert"].rules), on=JSON),
    field("cluster", "Cluster", of="alert.cluster"),
    field("since_at", "Since", "time", of=lambda row: _at(row["alert"].since_at)),
    field("opened_at", "Opened", "time", of=lambda row: _at(row["alert"].opened_at)),
    field(
        "escalated_at",
        kind="time",
        of=lambda row: _at(row["alert"].escalated_at),
        term=of_alerts.ESCALATED,
        none="no",
        wide=True,
    ),
    field("resolved_at", "Resolved", "time", of=lambda row: _at(row["alert"].resolved_at), none="",
          wide=True),
    field("resolved_by", of="alert.resolved_by", on=JSON),
    field("owner", "Owner", of="alert.owner", none="", wide=True),
    field("told", "Told to", of=lambda row: row["told"], wide=True),
    field("target", "Target", of="alert.target", wide=True),
    field("alert_id", of="alert.alert_id", on=JSON),
    field("page", of="alert.page", on=JSON),
    field("named", of=lambda row: dict(row["alert"].named), on=JSON),
)  # fmt: skip
RULE_FIELDS = (
    field("title", of="rule.title", term=of_alerts.RULE, on=TABLE),
    field("rule", of="rule.name", on=("json", "csv")),
    field("on", "On", "flag"),
    field("severity", of="rule.severity", term=of_alerts.SEVERITY),
    field("means", "What it says", of="rule.means"),
    field("to_do", "What to do", of="rule.to_do", wide=True),
    field("for", "For", of=lambda row: "owner of the run or job" if row["rule"].told == "owner"
          else "team of the cluster", wide=True),
    field("decides", "Spends the budget", "flag", of=lambda row: row["rule"].weight > 0, wide=True),
    field("needs", "Needs", of="rule.needs", none="", wide=True),
    field("blind", "Cannot be judged", none="", wide=True),
)  # fmt: skip


def alert_rows(alerts: Sequence[Alert], now: Known, states: Mapping[str, life.State]) -> Rows:
    """A row an alert: open ones first, the gravest of them first."""
    return Rows(
        ALERT_FIELDS,
        [
            {
                "alert": alert,
                "state": states[alert.alert_id],
                "told": ", ".join(told(alert, now)) or "nobody",
            }
            for alert in ordered(alerts, states)
        ],
    )


def rule_rows(now: Known) -> Rows:
    """A row a rule."""
    return Rows(
        RULE_FIELDS,
        [
            {
                "rule": rule,
                "on": rule.name in now.on,
                "blind": "; ".join(now.blind(rule.name)) or None,
            }
            for rule in rules()
        ],
    )


def sentence(
    now: Known,
    alerts: Sequence[Alert],
    states: Mapping[str, life.State],
    cluster: str | None = None,
) -> str:
    """How many of these alerts are open, and how many rules see; a verdict needs sight."""
    if now.evaluated is None:
        return NOT_ASKED
    counts = Counter(states[alert.alert_id] for alert in alerts)
    critical = sum(
        alert.severity == "critical" and states[alert.alert_id] == "open" for alert in alerts
    )
    parts = [f"{numbers.counted(counts['open'], 'alert')} open{now.since}"]
    parts[0] += f", {critical:,} critical" if critical else ""
    parts += [f"{counts[state]:,} {state}" for state in ("acknowledged", "muted") if counts[state]]
    see, on = now.seeing(cluster)
    if not on:
        parts.append("no rule is on")
    elif not see:
        parts.append(f"none of {numbers.counted(on, 'rule')} finds the records that it needs")
    else:
        of_all = f" of {on:,}" if see < on else ""
        parts.append(f"{see:,}{of_all} rules have the records that they need")
    return f"{'; '.join(parts)}."


def in_short(now: Known, at: datetime, cluster: str | None) -> str:
    """How many alerts are open, for a line; that nobody looked, or could, where that is so."""
    if now.evaluated is None:
        return "never looked for"
    is_now = states(now, at)
    own = [a for a in now.alerts if cluster in (None, a.cluster) and is_now[a.alert_id] == "open"]
    critical = sum(alert.severity == "critical" for alert in own)
    if not own and not now.seeing(cluster)[0]:
        return f"cannot be judged{now.since}"
    return f"{len(own):,} open{now.since}" + (f", {critical:,} critical" if critical else "")


def answer(now: Known, at: datetime, cluster: str | None = None) -> Answer:
    """Which alerts are there, and which rules?"""
    now_is = states(now, at)
    chosen = [alert for alert in now.alerts if cluster in (None, alert.cluster)]
    shown, of_rules = alert_rows(chosen, now, now_is), rule_rows(now)
    return Answer(
        sentence(now, chosen, now_is, cluster),
        blocks=(alert_table(shown), of_rules.table("rules", "Rules", wrapped=True)),
        notes=notes(now),
        record={
            "alerts": shown.records(),
            "rules": of_rules.records(),
            "muted_rules": muted(now, at),
            "evaluated_at": None if now.evaluated is None else now.evaluated.at,
            "deliveries": deliveries(now),
        },
        sheet=shown.sheet(),
    )


def of_evaluation(done: Evaluation, now: Known) -> Answer:
    """What one evaluation found."""
    shown = alert_rows(done.alerts, now, done.states)
    return Answer(
        sentence(now, done.alerts, done.states),
        blocks=(alert_table(shown),),
        notes=notes(now),
        record={
            "alerts": shown.records(),
            "evaluated_at": done.at,
            "opened": done.n_opened,
            "resolved": done.n_resolved,
            "blind": done.blind,
            "deliveries": deliveries(now),
        },
        sheet=shown.sheet(),
    )


def alert_table(shown: Rows) -> Table:
    """The alerts; each leads to its evidence."""
    return shown.table(
        "alerts",
        "Alerts",
        empty=NONE,
        wrapped=True,
        places=tuple(Place(row["alert"].page, row["alert"].named) for row in shown.items),
    )


def notes(now: Known) -> tuple[str, ...]:
    """What keeps an alert from reaching anybody."""
    waiting = sum(one.ended_at is None for one in now.deliveries)
    lost = [one for one in now.deliveries if one.outcome in ("refused", "given up")]
    told = []
    if not now.receivers:
        told.append(NOBODY)
    if waiting:
        told.append(f"{numbers.counted(waiting, 'message')} not delivered yet, to be tried again.")
    if lost:
        told.append(
            f"{numbers.counted(len(lost), 'message')} reached nobody; the last to "
            f"{lost[0].receiver}: {lost[0].said}."
        )
    return tuple(told)


def muted(now: Known, at: datetime) -> list[dict[str, str]]:
    """Rules that are muted: until when, and by whom."""
    found = []
    for (target, _), said in now.said.words.items():
        if target.startswith(RULE) and now.said.muted_until(target, at):
            name = target.removeprefix(RULE)
            found.append({"rule": name, "until": said.value, "by": said.author})
    return found


def deliveries(now: Known) -> dict[str, Any]:
    """How many messages were sent, wait, and reached nobody."""
    outcomes = Counter(one.outcome or "waiting" for one in now.deliveries)
    return {name: outcomes[name] for name in ("delivered", "waiting", "refused", "given up")}


def _at(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
