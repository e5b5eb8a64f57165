"""What does the site's own language model say of a log of which the rules say nothing?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from app.actions import third_opinion
from app.answers.failures import job
from app.answers.failures import third_opinion as words
from app.answers.failures.taxonomy import taxonomy
from app.ask import reader
from app.ask.cached import ask, store_root
from app.show import page
from app.widgets import notice
from app.words import escaping

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from app.show.scope import Scope

HELP = (
    "Sends lines of this log, with names, addresses and paths masked, to the address in site.toml. "
    "The same log is sent once. The answer is no evidence and counts in no rate."
)


def show(attempt: Mapping[Any, Any], scope: Scope) -> None:
    """The button that asks, and the answer; nothing where there is no model or the cause is known.

    Nothing is sent before somebody presses it.
    """
    if attempt["cause"] != "unknown" or attempt["method"] == "human":
        return
    with notice.explained():
        model = third_opinion.model_of(store_root())
        read = job.log_lines(ask, str(attempt["cluster"]), str(attempt["attempt_key"]))
        if not model or read.empty:
            return
        kept = f"third_opinion {attempt['cluster']}/{attempt['attempt_key']}"
        if st.button(
            f"Ask the language model {escaping.escaped(model)}", key=f"ask {kept}", help=HELP
        ):
            with st.spinner("Asking"):
                lines = read["text"].fillna("").tolist()
                asked = third_opinion.ask(store_root(), lines, person=reader.author())
                st.session_state[kept] = asked
        if kept in st.session_state:
            _show(st.session_state[kept], read, scope)


def _show(asked: words.Asked, read: pd.DataFrame, scope: Scope) -> None:
    """The sentence, what it cost, and the lines that it cites."""
    places = [f"{file}:{line}" for file, line in zip(read["file"], read["line_no"], strict=True)]
    st.markdown(escaping.escaped(words.sentence(asked, places, ask(taxonomy))))
    st.caption(escaping.escaped(words.cost(asked)))
    if asked.opinion is not None and asked.opinion.lines:
        cited = [{"kind": "job_log", "key": places[number - 1]} for number in asked.opinion.lines]
        page.blocks(job.excerpts(read, cited, title="Cited in ", around=1, last=0), scope)
