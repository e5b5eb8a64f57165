"""What does this rest on, and what is missing?"""

import streamlit as st

from app import loaders
from app.components import (
    add_data,
    coverage_block,
    empty_state,
    filter_bar,
    ingest_tables,
    page_head,
    table,
    verdict,
)

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    add_data.show(scope)
    st.stop()
held = loaders.coverage(scope.selection)
page_head.show(verdict.coverage(held), held, scope)
add_data.answer()
coverage_block.show(held, scope)
sources, ingests, rejected, add = st.tabs(
    ["Sources", "Ingests", "Rejected rows", "Add data"],
    key="tab",
    on_change="rerun",
    bind="query-params",
)
if sources.open:
    with sources:
        table.show(held.sources, name="sources", scope=scope)
if ingests.open:
    with ingests:
        ingest_tables.ingests(scope)
if rejected.open:
    with rejected:
        ingest_tables.rejected(scope)
if add.open:
    with add:
        add_data.show(scope)
