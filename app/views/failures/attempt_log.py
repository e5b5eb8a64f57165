"""What the log of an attempt says around the lines of its first cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from app.answers.failures import job
from app.ask import FEW
from app.ask.cached import ask
from app.show import page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.show.scope import Scope

AROUND = 8
"""Lines shown before and after one that counts."""
LAST = 25
"""Lines of the end shown where no line names a cause."""


def show(attempt: Mapping[Any, Any], scope: Scope) -> None:
    """The excerpt, then all lines, or what would bring a log."""
    st.header("Log", anchor=False)
    cluster, key = str(attempt["cluster"]), str(attempt["attempt_key"])
    read = job.log_lines(ask, cluster, key)
    if read.empty:
        page.missing(job.NO_LOG)
        return
    evidence = attempt["evidence"] if isinstance(attempt["cause"], str) else ()
    excerpts = job.excerpts(read, evidence, title="", around=AROUND, last=LAST)
    if not any(line.counts for excerpt in excerpts for line in excerpt.lines):
        st.caption("No line of the log names a cause; these are its last lines.")
    page.blocks(excerpts, scope)
    with st.expander(f"All {len(read):,} lines", type="compact"):
        page.blocks([job.log_table(ask, cluster, key, limit=FEW)], scope, titled=False)
