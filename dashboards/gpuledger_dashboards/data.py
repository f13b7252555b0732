"""What the pages ask the API, kept for a moment so that a click does not ask again.

Errors are not kept: the next click tries again.
"""

import datetime as dt

import streamlit as st

from gpuledger import settings
from gpuledger.client import LedgerClient, answers

TTL_S = 30
"""How old a figure on a page may be; each figure says as of when it is."""


def open_client(url: str) -> LedgerClient:
    """Return a client of the API at an address."""
    return LedgerClient(url)


@st.cache_resource(show_spinner=False)
def _client(url: str) -> LedgerClient:
    return open_client(url)


def api_url() -> str:
    """Return where the API answers."""
    return settings.load().api_url


def clusters() -> answers.Clusters:
    """List the clusters and what can be asked of each."""
    return _clusters(api_url())


def layers(by: str, cluster: str, first: dt.date, last: dt.date) -> answers.Layers:
    """Return the four layers of the days from first to last, both included."""
    return _layers(api_url(), by, cluster, first, last + dt.timedelta(days=1))


def budget_vs_actual(cluster: str, period: str | None) -> answers.BudgetVersusActual:
    """Return budget against actual of a period, the newest unless given."""
    return _budget_vs_actual(api_url(), cluster, period)


def forget() -> None:
    """Ask again at the next look."""
    for cached in (_clusters, _layers, _budget_vs_actual):
        cached.clear()


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _clusters(url: str) -> answers.Clusters:
    return _client(url).clusters()


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _layers(url: str, by: str, cluster: str, from_: dt.date, to: dt.date) -> answers.Layers:
    return _client(url).layers(by, cluster=cluster, from_=from_, to=to)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _budget_vs_actual(url: str, cluster: str, period: str | None) -> answers.BudgetVersusActual:
    return _client(url).budget_vs_actual(cluster=cluster, period=period)
