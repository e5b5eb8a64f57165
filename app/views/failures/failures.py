"""What fails, how often, whose fault is it?"""

import streamlit as st

from app.answers.failures import checks, confusion, summary, verdicts
from app.ask import FEW
from app.ask.cached import ask
from app.show import page
from app.widgets import empty_state, filter_bar, page_head
from app.words import domains, terms

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    st.stop()
counts = ask(verdicts.summarised, scope.selection)
page_head.show(summary.sentence(counts), scope)
if not counts.n_ended and not counts.n_failed:
    page.missing(summary.NOTHING_ENDED)
    st.stop()
if counts.n_ended:
    page.headlines(summary.headlines(counts, scope.selection), scope)
chosen = st.pills(
    "Domains shown",
    list(domains.TITLES),
    selection_mode="multi",
    default=summary.ACTIONABLE,
    format_func=domains.title,
    key="domain",
    bind="query-params",
    help="\n\n".join(f"**{term.label}.** {term.definition}" for term in terms.DOMAINS),
)
shown = [domain for domain in domains.TITLES if domain in chosen]
by_cause = summary.causes(counts, scope.selection, shown)
page.blocks([summary.by_week(counts, scope.selection, shown)], scope)
if not counts.n_ended:
    page.blocks((*by_cause, summary.NO_JOBS), scope)
    st.stop()
causes, attempts, states, trust, right = st.tabs(
    ["Causes", "Attempts", "States", "Checks", "Right and wrong"],
    key="tab",
    on_change="rerun",
    bind="query-params",
)
if causes.open:
    with causes:
        page.blocks(by_cause, scope)
if attempts.open:
    with attempts:
        page.blocks([verdicts.attempts(ask, scope.selection, limit=FEW)], scope, titled=False)
if states.open:
    with states:
        page.blocks([summary.states_chart(counts), summary.by_state(counts)], scope, titled=False)
if trust.open:
    with trust:
        page.answered(checks.answer(ask, scope.selection), scope)
if right.open and (matrices := ask(confusion.matrices, scope.selection)):
    with right:
        basis = st.segmented_control(
            "Right causes as",
            list(matrices),
            default=next(iter(matrices)),
            required=True,
            format_func=lambda name: confusion.BASES.get(name, name),
            key="basis",
            bind="query-params",
        )
        page.answered(confusion.answer(matrices[basis]), scope)
elif right.open:
    with right:
        page.missing(confusion.NOT_CONFIRMED)
