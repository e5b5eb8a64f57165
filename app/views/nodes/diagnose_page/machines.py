"""Which machine is faulty right now?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.nodes import machines
from app.ask.cached import ask
from app.show import page
from app.widgets import inputs, notice, page_head, upload

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.answers.content import Answer
    from app.show.scope import Scope

FILE, STORE = "a file", "this store"


def show(head: DeltaGenerator, scope: Scope) -> None:
    """The verdict on the machines of a file, or of the last samples in the store."""
    stored = not scope.empty and ask(machines.has_samples)
    of = FILE
    if stored:
        of = inputs.choice("Metrics of", [FILE, STORE], default=STORE, key="metrics_of")
    answer = _of_store(scope) if of == STORE else _of_file()
    shown = answer or machines.NOTHING
    with head:
        page_head.of_one(shown.sentence, shown.about, scope, notes=shown.notes)
    if answer is not None:
        page.headlines(answer.numbers, scope)
        page.blocks(answer.blocks, scope)


def _of_store(scope: Scope) -> Answer | None:
    """What the last half hour of samples says; None where it says nothing, which is explained."""
    job = inputs.searched("Job", key="machines_job", placeholder="Job, or all nodes with samples")
    with notice.explained():
        return machines.answer(ask(machines.examined_store, scope.selection.cluster, job or None))
    return None


def _of_file() -> Answer | None:
    """What files say; None before there are any, and where they cannot be read."""
    sent = upload.several(
        "Metrics of a job's machines, 1 to 60 s apart (Parquet, CSV, Prometheus JSON)",
        key="machines_files",
    )
    roles = st.text_input(
        "Roles that differ from the others",
        key="machines_roles",
        placeholder="embedding=gpu-00* loss=gpu-31",
        help="ROLE=NAMES, several apart by spaces: machines of a role are compared with each other "
        "alone.",
    )
    if not sent:
        return machines.NOTHING
    with notice.explained():
        return machines.answer(upload.examined("machines", sent, roles=roles))
    return None
