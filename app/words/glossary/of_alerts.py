"""Terms of Alerts."""

from __future__ import annotations

from app.words.terms import Term

_ALERTS = ("alerts",)
ALERT = Term(
    "Alert",
    "One thing that somebody should know of, however many rules see it; what belongs to one "
    "incident is one alert. It is open from when its evidence was enough until that is gone, or "
    "somebody resolves it.",
    pages=_ALERTS,
)
RULE = Term(
    "Rule",
    "What has to be so that an alert opens. Rules that decide by chance share one budget of false "
    "alarms; the others tell of facts.",
    pages=_ALERTS,
    of_column=True,
)
SEVERITY = Term(
    "Severity",
    "Critical: work is lost now, or will be within hours. Warning: it should be looked at in "
    "working hours.",
    pages=_ALERTS,
    of_column=True,
)
FALSE_ALARMS = Term(
    "Budget of false alarms",
    "How many alerts a month may be opened by chance alone, over all rules, clusters and things "
    "together; [alerts] false_alarms_per_month of site.toml, 1 unless it says more.",
    source="Shin, Ramdas, Rinaldo, E-detectors, arXiv 2203.03532",
    pages=_ALERTS,
)
WOULD_HAVE_TOLD = Term(
    "Would have told",
    "When the evidence of a past episode was enough: with the records up to then the rule would "
    "have opened an alert. The same function finds the alerts of today.",
    pages=_ALERTS,
    of_column=True,
)
MUTED = Term(
    "Muted",
    "Nobody is told until the time stated; it stands in the list. Where it still stands then, and "
    "was never told, it is told.",
    pages=_ALERTS,
)
ESCALATED = Term(
    "Escalated",
    "Told to the receivers of escalations too, since nobody acknowledged it within the hours that "
    "site.toml states, 4 unless it says otherwise.",
    pages=_ALERTS,
    of_column=True,
)
