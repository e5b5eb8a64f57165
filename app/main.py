"""The dashboard: page configuration and navigation."""

import streamlit as st

from app.ask import cached
from app.show import first_sight
from app.widgets import empty_state, follow, frame, notice
from app.words import menu

st.set_page_config(page_icon=frame.ICON, layout="wide")  # else a page's icon is fetched as favicon
frame.style()
page = st.navigation(
    {
        section: [
            st.Page(
                menu.view(section, entry),
                title=entry.title,
                icon=f":material/{entry.icon}:",
                default=entry.name == menu.FIRST,
                visibility="visible" if entry.listed else "hidden",
            )
            for entry in pages
        ]
        for section, pages in menu.MENU.items()
    },
    expanded=True,
)
st.set_page_config(page_title=f"{page.title} · Faultline")
with notice.explained():
    follow.store(cached.snapshot())
    frame.log_out()  # a page may end before its end
    st.session_state[empty_state.PAGE] = page.url_path
    with first_sight.kept(page.url_path):
        page.run()
