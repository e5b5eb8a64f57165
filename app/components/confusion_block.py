"""How right the verdicts are: the matrix, three shares, precision and recall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import empty_state, figure_block, table
from app.figures import numbers
from app.figures.failures import confusion

if TYPE_CHECKING:
    from analytics.estimate import Estimate
    from analytics.failures.confusion import ConfusionMatrix
    from app.components.scope import Scope

BASES = {
    "planted": "planted in the demo",
    "confirmed": "confirmed by people",
}


def show(scope: Scope) -> None:
    """The matrix of one basis, or how to get one."""
    matrices = loaders.confusion(scope.selection)
    if not matrices:
        empty_state.no_confirmed_causes()
        return
    basis = st.segmented_control(
        "Right causes as",
        list(matrices),
        default=next(iter(matrices)),
        required=True,
        format_func=lambda name: BASES.get(name, name),
        key="basis",
        bind="query-params",
    )
    matrix = matrices[basis]
    st.markdown(_sentence(matrix))
    figure = confusion.figure(matrix, mode=scope.mode, note=scope.note)
    figure_block.show(figure, confusion.frame(matrix), name="confusion", scope=scope)
    table.show(confusion.scores(matrix), name="confusion_scores", scope=scope)


def _sentence(matrix: ConfusionMatrix) -> str:
    """The shares that are known."""
    parts = [f"**{_share(matrix.right_ratio)} of the verdicts are right.**"]
    named = (
        (matrix.right_with_event_ratio, "right where a health event shows the cause"),
        (matrix.not_misled_ratio, "right or left unknown where none does"),
        (matrix.user_called_hardware_ratio, "of failures of user programs called hardware"),
    )
    parts += [f"{_share(share)} {what}." for share, what in named if share.value is not None]
    return " ".join(parts)


def _share(share: Estimate) -> str:
    """A share with its interval and n."""
    interval = numbers.percent_interval(share)
    return f"{numbers.percent(share.value)} ({interval}, n = {share.n:,})"
