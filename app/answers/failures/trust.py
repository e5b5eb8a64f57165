"""How far can checks and verdicts be trusted?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.failures import calibration
from analytics.failures.calibration import SizeChance, misattribution
from analytics.failures.confusion import ConfusionMatrix, confusion_matrix
from app.answers.content import Answer, Chart, Missing, Table
from app.answers.described import Rows, field
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_failures
from data.queries import failures as failure_queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.failures.calibration import CheckTrust
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store


CHECKS = (
    Column("signal", "Check or code"),
    Column("severity", "Severity"),
    Column("percent_of_completed_attempts", "Of completed attempts (%)", "number",
           none="none completed"),
    Column("over_1_percent", "Over 1 %", "flag"),
    Column("percent_of_failed_nodes", "Of failed nodes (%)", "number", none="none failed"),
    Column("causal_ratio", of_failures.CAUSAL_RATIO.label, "ratio",
           help=of_failures.CAUSAL_RATIO.definition),
    Column("discounted", "Discounted", "flag", help=of_failures.DISCOUNTED.definition),
    Column("n_completed_attempts_hit", "Completed attempts hit", "count"),
    Column("n_completed_attempts", "Completed attempts", "count"),
    Column("n_failed_hits", "Failed nodes hit", "count"),
    Column("n_failed", "Failed nodes", "count"),
    Column("cluster", "Cluster"),
)  # fmt: skip
NO_CHECKS = Missing(
    "checks",
    "No health check or kernel event is known.",
    "Without events every verdict rests on the scheduler and on logs alone. Kernel logs "
    "and health checks say more:",
    (
        "journalctl _TRANSPORT=kernel -o short-iso-precise > kernel-$(hostname).log",
        "faultline ingest kernel-log kernel-*.log",
        "faultline ingest gcm-health health.jsonl",
    ),
)


def hits(store: Store, selection: Selection) -> CheckTrust:
    """Hits of each check around failures and successes."""
    return calibration.check_trust(failure_queries.check_calibration(store, selection))


def by_chance(
    store: Store, selection: Selection, *, conf_level: float = 0.90
) -> tuple[SizeChance, ...]:
    """What chance makes of failed attempts, by size."""
    checks = failure_queries.check_calibration(store, selection)
    sizes = failure_queries.failed_sizes(store, selection)
    return misattribution(checks[checks["speaks"].eq(True)], sizes, conf_level=conf_level)


def by_size(sizes: Sequence[SizeChance]) -> Table:
    """How often does chance hit failed attempts of each size, and how often does it name them?"""
    described = (
        field("nodes", "Nodes", of=lambda size: numbers.nodes(size.nodes_from, size.nodes_to)),
        field("attempts", "Failed attempts", "count", "n_attempts"),
        field("hit_by_chance", kind="share", term=of_failures.HIT_BY_CHANCE),
        field("misattributed", kind="share", term=of_failures.MISATTRIBUTED),
    )
    return Rows(described, sizes).table(
        "misattribution_by_size",
        "What chance would make of failed attempts, by size",
        empty="No check or outage near a failed attempt is known: none can be misled by one.",
    )


def of_checks(ask: Ask, selection: Selection) -> Answer:
    """How far can each check be trusted?"""
    trusted = ask(hits, selection)
    if trusted.checks.empty:
        return Answer("", blocks=(NO_CHECKS,))
    sizes = by_size(ask(by_chance, selection))
    over, discounted = trusted.n_over, trusted.n_discounted
    fires, are = "fires" if over == 1 else "fire", "is" if discounted == 1 else "are"
    note = (
        "Whole store as of the last publish, whatever the period. The paper asks that under 1 % of "
        "completed jobs see a failed check (Kokolis et al., arXiv 2410.21680). "
        f"{of_failures.CAUSAL_RATIO.label}: {of_failures.CAUSAL_RATIO.definition}"
    )
    return Answer(
        f"{numbers.counted(over, 'check')} of {len(trusted.checks):,} {fires} around the end of "
        f"more than 1 % of completed attempts; {discounted:,} {are} discounted as evidence.",
        blocks=(Table("check_calibration", "Checks", CHECKS, trusted.checks), sizes),
        notes=(note,),
    )


BASES = {"planted": "planted in the demo", "confirmed": "confirmed by people"}
"""Where right causes come from."""
NOT_CONFIRMED = Missing(
    "confusion",
    "No cause was confirmed in this selection.",
    "How right the verdicts are shows once people say the cause of some attempts: open "
    "an attempt and confirm or change its cause, or on the command line:",
    ("faultline annotate attempt:CLUSTER/KEY --cause gpu_memory",),
)
SCORES = (
    field("cause", "Cause"),
    field("domain", "Domain"),
    field("actual", "Right cause of", "count", "n_actual", term=of_failures.RIGHT_CAUSE_OF),
    field("found", "Named for", "count", "n_found", term=of_failures.NAMED_FOR),
    field("right", "Both", "count", "n_right"),
    field("precision", "Precision", "share", term=of_failures.PRECISION),
    field("recall", "Recall", "share", term=of_failures.RECALL),
)
PAIRS = ("actual", "found", "attempts", "share_of_actual")


def matrices(store: Store, selection: Selection) -> dict[str, ConfusionMatrix]:
    """Verdicts beside the right causes, by where these come from: planted, confirmed."""
    pairs = failure_queries.confusion(store, selection).groupby("basis", sort=False)
    return {str(basis): confusion_matrix(rows) for basis, rows in pairs}


def of_verdicts(matrix: ConfusionMatrix) -> Answer:
    """Which causes are taken for which others, and how often is each right?"""
    pairs = [
        dict(zip(PAIRS, (actual, named, n, share), strict=True))
        for actual, row, shares in zip(
            matrix.actual, matrix.counts, matrix.shares_of_actual, strict=True
        )
        for named, n, share in zip(matrix.found, row, shares, strict=True)
        if n
    ]
    shown = Chart(
        "failures.confusion",
        "Which causes are taken for which others?",
        "Right causes beside those found; colour is the share of the row. The download has the "
        "values.",
        (matrix,),
        rows=Rows(PAIRS, pairs),
    )
    scores = Rows(SCORES, matrix.scores).table("confusion_scores", "Precision and recall")
    return Answer(sentence(matrix), blocks=(shown, scores))


def sentence(matrix: ConfusionMatrix) -> str:
    """The shares that are known, the most telling first."""
    return " ".join(
        f"{numbers.percent(share.value)} ({numbers.percent_interval(share)}, n = {share.n:,}) of "
        f"the {what}."
        for share, what in (
            (matrix.right_where_named_ratio, "verdicts that name a cause are right"),
            (matrix.right_with_event_ratio, "causes that a health event shows are found"),
            (matrix.not_misled_ratio, "attempts without such an event are right or left unknown"),
            (matrix.user_called_hardware_ratio, "failures of user programs are called hardware"),
            (matrix.right_ratio, "failed attempts have their right cause, unknown ones included"),
        )
        if share.value is not None
    )
