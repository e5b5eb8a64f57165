"""What fails, how often, whose fault is it?"""

import streamlit as st

from app.answers.efficiency import ledger
from app.answers.failures import summary, trust, verdicts
from app.ask import FEW
from app.ask.cached import ask, kept
from app.show import page
from app.widgets import filter_bar, fleet_line, inputs, ledger_build, page_head
from app.words import domains, terms

scope = filter_bar.of_store()
counts = ask(verdicts.summarised, scope.selection)
cost = ask(ledger.if_built, scope.selection)
shown = summary.headlines(counts, scope.selection, cost) if counts.n_ended else ()
page_head.show(
    summary.sentence(counts),
    scope,
    notes=summary.notes(ask, scope.selection),
    terms=[number.term for number in shown],
)
fleet = fleet_line.place()
if not counts.n_ended and not counts.n_failed:
    page.missing(summary.NOTHING_ENDED)
    fleet_line.show(fleet, scope)
    st.stop()
if counts.n_ended:
    page.headlines(shown, scope)
    ledger_build.offer()
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
drawn = [domain for domain in domains.TITLES if domain in chosen]
table = summary.by_cause(counts, scope.selection, cost)
by_cause = [*summary.ranking(counts, drawn), table]
page.blocks([kept(summary.by_week, counts, scope.selection, drawn)], scope)
if not counts.n_ended:
    page.blocks((*by_cause, summary.NO_JOBS), scope)
    st.stop()


def right_and_wrong() -> None:
    """Verdicts beside what was planted and what people decided."""
    matrices = ask(trust.matrices, scope.selection)
    if not matrices:
        page.missing(trust.NOT_CONFIRMED)
        return
    basis = inputs.choice(
        "Right causes as",
        list(matrices),
        default=next(iter(matrices)),
        format_func=lambda name: trust.BASES.get(name, name),
        key="basis",
    )
    page.answered(trust.of_verdicts(matrices[basis]), scope)


page.tabs(
    {
        "Causes": lambda: page.blocks(by_cause, scope),
        "Attempts": lambda: page.blocks(
            [verdicts.attempts(ask, scope.selection, limit=FEW)], scope, titled=False
        ),
        "States": lambda: page.blocks(
            [summary.states_chart(counts), summary.by_state(counts)], scope, titled=False
        ),
        "Checks": lambda: page.answered(trust.of_checks(ask, scope.selection), scope),
        "Right and wrong": right_and_wrong,
    },
    key="failures_tab",
)
fleet_line.show(fleet, scope)
