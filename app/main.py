"""The dashboard: page configuration and navigation."""

import streamlit as st

from app.ask import cached
from app.show import first_sight
from app.widgets import follow, frame, notice

st.set_page_config(page_icon=frame.ICON, layout="wide")  # else a page's icon is fetched as favicon
frame.style()
page = st.navigation(
    {
        "Fleet": [
            st.Page(
                "views/fleet/overview.py",
                title="Overview",
                icon=":material/dashboard:",
                default=True,
            ),
            st.Page("views/fleet/data.py", title="Data", icon=":material/database:"),
        ],
        "Failures": [
            st.Page("views/failures/failures.py", title="Failures", icon=":material/error:"),
            st.Page("views/failures/incidents.py", title="Incidents", icon=":material/bolt:"),
            st.Page("views/failures/incident.py", title="Incident", icon=":material/timeline:"),
            st.Page("views/failures/job.py", title="Job", icon=":material/work_history:"),
            st.Page("views/failures/node.py", title="Node", icon=":material/dns:"),
        ],
        "Reliability": [
            st.Page("views/reliability/mttf.py", title="MTTF", icon=":material/timer:"),
        ],
        "Efficiency": [
            st.Page("views/efficiency/my_runs.py", title="My runs", icon=":material/person:"),
            st.Page("views/efficiency/ettr.py", title="ETTR", icon=":material/speed:"),
            st.Page("views/efficiency/ledger.py", title="Ledger", icon=":material/balance:"),
            st.Page("views/efficiency/what_if.py", title="What if", icon=":material/alt_route:"),
        ],
        "Nodes": [
            st.Page("views/nodes/lemons.py", title="Lemons", icon=":material/nutrition:"),
            st.Page("views/nodes/machines.py", title="Machines", icon=":material/memory:"),
            st.Page("views/nodes/links.py", title="Links", icon=":material/lan:"),
            st.Page("views/nodes/repairs.py", title="Repairs", icon=":material/build:"),
            st.Page("views/nodes/validation.py", title="Validation", icon=":material/checklist:"),
        ],
        "Training": [
            st.Page(
                "views/training/stragglers.py",
                title="Stragglers",
                icon=":material/hourglass_top:",
            ),
        ],
        "Explore": [
            st.Page("views/explore/find.py", title="Find", icon=":material/search:"),
            st.Page("views/explore/sql.py", title="SQL", icon=":material/code:"),
            st.Page("views/explore/reports.py", title="Reports", icon=":material/description:"),
            st.Page("views/explore/glossary.py", title="Glossary", icon=":material/menu_book:"),
        ],
    },
    expanded=True,
)
st.set_page_config(page_title=f"{page.title} · Faultline")
with notice.explained():
    follow.store(cached.snapshot())
    frame.log_out()  # a page may end before its end
    with first_sight.kept(page.url_path):
        page.run()
