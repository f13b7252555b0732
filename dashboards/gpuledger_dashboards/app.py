"""The router: which pages there are. Each page is a script of its own in ``app_pages``."""

from pathlib import Path

import streamlit as st

from gpuledger_dashboards import door

PAGES = Path(__file__).parent / "app_pages"
# A picture of our own: a named icon would be fetched from the internet.
ICON = Path(__file__).with_name("favicon.svg")

st.set_page_config(page_title="gpuledger", page_icon=ICON, layout="wide")
page = st.navigation(
    [
        st.Page(
            PAGES / "overview.py",
            title="Overview",
            icon=":material/dashboard:",
            url_path="overview",
            default=True,
        ),
        st.Page(
            PAGES / "pyramid.py",
            title="Pyramid",
            icon=":material/change_history:",
            url_path="pyramid",
        ),
        st.Page(
            PAGES / "budget_versus_actual.py",
            title="Budget versus actual",
            icon=":material/account_balance:",
            url_path="budget-versus-actual",
        ),
        st.Page(
            PAGES / "fair_share.py",
            title="Fair share",
            icon=":material/balance:",
            url_path="fair-share",
        ),
        st.Page(
            PAGES / "waits.py",
            title="Queue and waits",
            icon=":material/hourglass_top:",
            url_path="waits",
        ),
        st.Page(
            PAGES / "work.py",
            title="My work",
            icon=":material/timeline:",
            url_path="work",
        ),
        st.Page(
            PAGES / "waste.py",
            title="Waste",
            icon=":material/hourglass_disabled:",
            url_path="waste",
        ),
        st.Page(
            PAGES / "hosts.py",
            title="Hosts",
            icon=":material/dns:",
            url_path="hosts",
        ),
        st.Page(
            PAGES / "audit.py",
            title="Audit",
            icon=":material/verified_user:",
            url_path="audit",
        ),
        st.Page(
            PAGES / "planning.py",
            title="Planning",
            icon=":material/tune:",
            url_path="planning",
        ),
        st.Page(
            PAGES / "proposals.py",
            title="Proposals",
            icon=":material/how_to_vote:",
            url_path="proposals",
        ),
        st.Page(
            PAGES / "admin.py",
            title="Admin",
            icon=":material/admin_panel_settings:",
            url_path="admin",
        ),
        st.Page(
            PAGES / "lesson.py",
            title="Lesson",
            icon=":material/school:",
            url_path="lesson",
        ),
    ],
    position="top",
)
door.enter()
door.show()
page.run()
