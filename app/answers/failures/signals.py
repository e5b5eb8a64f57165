"""Which checks and codes come together in incidents?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.failures.co_occurrence import Companion, co_occurrence, companions
from app.answers.content import Answer, Missing
from app.answers.described import CSV, TABLE, Rows, field
from app.ask import EVERYTHING
from app.words import terms
from app.words.glossary import of_failures
from app.words.numbers import number, percent
from data.queries import incidents as incident_queries

if TYPE_CHECKING:
    from app.answers.failures.incidents import Kind
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

PUBLISHED = (
    "Published: of the PCIe errors of two clusters 43 % and 63 % came with XID 79 "
    "(Kokolis et al., arXiv 2410.21680)."
)
DESCRIBED = (
    field("given", "Of incidents with"),
    field(
        "comes_with",
        "Come with",
        of=lambda companion: " + ".join(companion.companions),
        term=terms.COMPANIONS,
    ),
    field("share", "Share", "share", on=TABLE),
    field(
        "share",
        of=lambda c: (
            f"{number(c.share.value)} ({number(c.share.lower)} to "
            f"{number(c.share.upper)}, {percent(c.share.conf_level)}, n {c.share.n:,})"
        ),
        on=CSV,
    ),
    field("n_both", "Incidents with both", "count"),
    field("of", "Incidents", "count", "share.n", on=TABLE, term=of_failures.SHOWING_FIRST),
    field("lift", "Lift", "number", term=of_failures.LIFT),
)
NONE_TOGETHER = Missing(
    "signals",
    "No two checks or codes in one incident of this selection.",
    "Kernel logs and health checks bring them:",
    (
        "faultline ingest kernel-log kernel-*.log",
        "faultline ingest gcm-health health.jsonl",
    ),
)


def together(
    store: Store,
    selection: Selection,
    kind: Kind,
    *,
    conf_level: float = 0.90,
) -> tuple[Companion, ...]:
    """Signals that come with others; an incident counts once, however many events it holds."""
    rows = incident_queries.incident_rows(store, selection, **vars(kind), limit=EVERYTHING)
    signals = incident_queries.signal_rows(store, rows["incident_id"].tolist())
    sets = co_occurrence(
        signals.rename(columns={"incident_id": "failure"}), len(rows), conf_level=conf_level
    )
    return companions(sets)


def answer(ask: Ask, selection: Selection, kind: Kind, *, conf_level: float = 0.90) -> Answer:
    """Which checks and codes come together, and how often?"""
    shown = ask(together, selection, kind, conf_level=conf_level)
    rows = Rows(DESCRIBED, shown)
    table = rows.table("signals", terms.COMPANIONS.label, note=PUBLISHED)
    return Answer(
        "",
        blocks=(table if shown else NONE_TOGETHER,),
        record=[vars(companion) for companion in shown],
        sheet=rows.sheet(),
    )
