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
    first, *more = (
        f"{_share(share)} of the {what}."
        for share, what in (
            (matrix.right_where_named_ratio, "verdicts that name a cause are right"),
            (matrix.right_with_event_ratio, "causes that a health event shows are found"),
            (matrix.not_misled_ratio, "attempts without such an event are right or left unknown"),
            (matrix.user_called_hardware_ratio, "failures of user programs are called hardware"),
            (matrix.right_ratio, "failed attempts have their right cause, unknown ones included"),
        )
        if share.value is not None
    )
    return f"**{first}** {' '.join(more)}"


def _share(share: Estimate) -> str:
    """A share with its interval and n."""
    interval = numbers.percent_interval(share)
    return f"{numbers.percent(share.value)} ({interval}, n = {share.n:,})"
