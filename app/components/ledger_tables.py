"""The tables of the ledger, and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from analytics.efficiency.buckets import BUCKETS
from app import loaders
from app.components import glossary, ledger_rows, notice, table
from app.figures import numbers
from app.figures.efficiency import buckets, ledger_waterfall

if TYPE_CHECKING:
    from analytics.efficiency.goodput import GoodputLedger, Loss
    from app.components.scope import Scope

NO_PRICE = (
    "What the losses cost shows once site.toml states the price of a GPU-hour: "
    '`gpu_hour_price = 2.5` and `currency = "EUR"` in `[cluster.NAME]`.'
)
NO_TRACES = (
    "No run with a straggler trace is in this selection: what workers waited for the slowest is "
    "not known and counts as productive."
)


def losses(ledger: GoodputLedger, scope: Scope) -> None:
    """Lost work by cause, the paper's rule beside the estimate."""
    st.header("Lost work by cause", anchor=False, help=glossary.THIRTY_MINUTES.definition)
    if not ledger.losses:
        st.markdown("No attempt is known to have lost work to failures or preemption.")
        return
    titles = loaders.cause_titles()
    frame = pd.DataFrame([_loss(each, titles) for each in ledger.losses])

    def opened(picked: pd.Series) -> None:
        cause = None if pd.isna(picked["cause_name"]) else str(picked["cause_name"])
        ledger_rows.loss(scope, str(picked["bucket"]), cause)

    table.show(frame, name="losses", scope=scope, opens=opened)
    first, second = ledger.rule_first_order_gpu_hours, ledger.rule_second_order_gpu_hours
    said = (
        f"By the 30-minute rule of the RSC paper failed jobs lost {numbers.number(first)} "
        f"GPU-hours (first order), jobs that their requeue preempted {numbers.number(second)} "
        "(second order)."
    )
    notice.notes([said])


def all_buckets(ledger: GoodputLedger, scope: Scope) -> None:
    """Every bucket, with what it cost where a price is known."""

    def opened(picked: pd.Series) -> None:
        ledger_rows.bucket(scope, str(picked["bucket"]))

    table.show(ledger_waterfall.frame(ledger), name="buckets", scope=scope, opens=opened)
    if ledger.currency is None:
        st.caption(f":material/info: {NO_PRICE}")


def basis(ledger: GoodputLedger) -> None:
    """What the estimates take for granted, and what each bucket means."""
    straggler = ledger.bucket("straggler")
    untraced = straggler is not None and not straggler.gpu_hours.upper
    notice.notes([*ledger.notes, *([NO_TRACES] if untraced else [])])
    with st.expander("What the buckets mean", icon=":material/function:", type="compact"):
        for kind in BUCKETS.values():
            term = kind.goodput_term or ledger_waterfall.OUTSIDE
            how = "estimated" if kind.estimated else "as recorded"
            st.markdown(f"**{kind.title}** ({how}; Google's term: `{term}`). {kind.meaning}")
        st.markdown(
            "The terms are those of Google's ml-goodput-measurement. Buckets are whole GPU-seconds "
            "and add up to the total exactly."
        )


def _loss(loss: Loss, titles: dict[str, str]) -> dict[str, object]:
    """A row of the table."""
    return {
        "loss": buckets.title(loss.bucket),
        "cause": _cause(loss, titles),
        "attempts": loss.n_attempts,
        "gpu_hours": loss.gpu_hours.value,
        "lower": loss.gpu_hours.lower,
        "upper": loss.gpu_hours.upper,
        "by_30_minute_rule": loss.rule_gpu_hours,
        "cause_name": loss.cause,
        "bucket": loss.bucket,
    }


def _cause(loss: Loss, titles: dict[str, str]) -> str:
    """What caused a loss, in words."""
    if loss.cause is not None:
        return titles.get(loss.cause, loss.cause)
    return buckets.WITHOUT_CAUSE[loss.bucket]
