"""What the pages ask the API, kept for a moment so that a click does not ask again.

Errors are not kept: the next click tries again.
"""

import datetime as dt
from typing import NamedTuple

import streamlit as st

from gpuledger import settings
from gpuledger.client import LedgerClient, answers, outcomes, plans, records, stories, waiting
from gpuledger.client.shown import token_in
from gpuledger_dashboards import people

TTL_S = 30
"""How old a figure on a page may be; each figure says as of when it is."""


SIGNED_IN = "signed_in_with"
"""Where a viewer's token stands in their session; it is gone when the page is closed."""


class Asker(NamedTuple):
    """Whose question it is. Answers are kept for each apart: nobody sees what was fetched for somebody else."""

    url: str
    token: str | None


def open_client(url: str, token: str | None = None) -> LedgerClient:
    """Return a client of the API at an address."""
    return LedgerClient(url, token)


@st.cache_resource(show_spinner=False, max_entries=100)
def _client(asker: Asker) -> LedgerClient:
    return open_client(*asker)


def asker() -> Asker:
    """Return who looks at the page: as they signed in, else as the pages themselves may ask."""
    config = settings.load()
    own: str | None = st.session_state.get(SIGNED_IN)
    return Asker(config.api_url, own or token_in(config.api_token_file))


def sign_in(token: str) -> None:
    """Ask as a token from now on, in this session."""
    st.session_state[SIGNED_IN] = token.strip()


def sign_out() -> None:
    """Ask as nobody in particular from now on; what was fetched as somebody is shown to nobody else."""
    st.session_state.pop(SIGNED_IN, None)


def is_signed_in() -> bool:
    """Say whether the viewer signed in with a token of their own."""
    return SIGNED_IN in st.session_state


def demo_people() -> list[people.Person]:
    """Return the people of a demo; there are none elsewhere."""
    return people.read(settings.load().demo_people)


def api_url() -> str:
    """Return where the API answers."""
    return settings.load().api_url


def clusters() -> answers.Clusters:
    """List the clusters and what can be asked of each."""
    return _clusters(asker())


def layers(by: str, cluster: str, first: dt.date, last: dt.date) -> answers.Layers:
    """Return the four layers of the days from first to last, both included."""
    return _layers(asker(), by, cluster, first, last + dt.timedelta(days=1))


def budget_vs_actual(cluster: str, period: str | None) -> answers.BudgetVersusActual:
    """Return budget against actual of a period, the newest unless given."""
    return _budget_vs_actual(asker(), cluster, period)


def allocations(cluster: str) -> answers.Cycle:
    """Return the newest cycle of a cluster."""
    return _allocations(asker(), cluster)


def workload(name: str, cluster: str | None) -> stories.Workload:
    """Return a workload's story."""
    return _workload(asker(), name, cluster)


def divide(tree: plans.Tree) -> plans.Divided:
    """Return how the policy divides a tree that was made up."""
    return _divide(asker(), tree)


def proposals(state: str | None) -> plans.Proposals:
    """Return the proposals of a state, of all unless given; the newest page."""
    return _proposals(asker(), state)


def accounts() -> records.Accounts:
    """Return the tree of accounts with their shares."""
    return _accounts(asker())


def hosts(cluster: str) -> records.Hosts:
    """Return the hosts of a cluster; the first page of a thousand."""
    return _hosts(asker(), cluster)


def drains(cluster: str) -> records.Drains:
    """Return the hosts that are being emptied."""
    return _drains(asker(), cluster)


def incidents(cluster: str, first: dt.date | None = None, last: dt.date | None = None) -> records.Incidents:
    """Return the failures of hardware that are known, of the days from first to last where they are given."""
    return _incidents(asker(), cluster, first, None if last is None else last + dt.timedelta(days=1))


def waits(by: str, cluster: str, first: dt.date, last: dt.date, klass: str | None = None) -> waiting.Waits:
    """Return how long requests waited, of the days from first to last, both included."""
    return _waits(asker(), by, cluster, first, last + dt.timedelta(days=1), klass)


def waste(by: str, cluster: str, period: str | None) -> waiting.Waste:
    """Return what of the charged time of a period was not used, of the newest unless given."""
    return _waste(asker(), by, cluster, period)


def books() -> answers.Books:
    """Return the books with their heads, and how many records could not be read."""
    return _books(asker())


def closes() -> records.Closes:
    """Return the closes of every cluster that the viewer reaches."""
    return _closes(asker())


def what_if(wish: plans.Wish) -> plans.Made:
    """Return what a proposal would change, and make none."""
    return _what_if(asker(), wish)


def propose(wish: plans.Wish, key: str) -> plans.Made:
    """Make a proposal, as who looks at the page.

    Raises:
        GpuledgerError: When the API does not take it.
    """
    return _client(asker()).propose(wish, key=key)


def tokens() -> outcomes.Tokens:
    """Return who may ask the API."""
    return _tokens(asker())


def me() -> outcomes.WhoAmI:
    """Return who looks at the page."""
    return _me(asker())


def say(proposal: str, step: plans.Step, reason: str, key: str) -> None:
    """Comment on a proposal or decide it, as who looks at the page.

    Raises:
        GpuledgerError: When the API does not take it.
    """
    _client(asker()).say(proposal, step, reason, key=key)


def forget() -> None:
    """Ask again at the next look."""
    for cached in (
        _clusters,
        _layers,
        _budget_vs_actual,
        _allocations,
        _workload,
        _proposals,
        _me,
        _tokens,
        _accounts,
        _hosts,
        _drains,
        _incidents,
        _waits,
        _waste,
        _books,
        _closes,
        _what_if,
    ):
        cached.clear()


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _clusters(asker: Asker) -> answers.Clusters:
    return _client(asker).clusters()


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _layers(asker: Asker, by: str, cluster: str, from_: dt.date, to: dt.date) -> answers.Layers:
    return _client(asker).layers(by, cluster=cluster, from_=from_, to=to)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _budget_vs_actual(asker: Asker, cluster: str, period: str | None) -> answers.BudgetVersusActual:
    return _client(asker).budget_vs_actual(cluster=cluster, period=period)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _allocations(asker: Asker, cluster: str) -> answers.Cycle:
    return _client(asker).allocations(cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _workload(asker: Asker, name: str, cluster: str | None) -> stories.Workload:
    return _client(asker).workload(name, cluster=cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _proposals(asker: Asker, state: str | None) -> plans.Proposals:
    return _client(asker).proposals(state=state)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _accounts(asker: Asker) -> records.Accounts:
    return _client(asker).accounts()


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _hosts(asker: Asker, cluster: str) -> records.Hosts:
    return _client(asker).hosts(cluster=cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _drains(asker: Asker, cluster: str) -> records.Drains:
    return _client(asker).drains(cluster=cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _incidents(asker: Asker, cluster: str, from_: dt.date | None, to: dt.date | None) -> records.Incidents:
    return _client(asker).incidents(cluster=cluster, from_=from_, to=to)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _waits(
    asker: Asker, by: str, cluster: str, from_: dt.date, to: dt.date, klass: str | None
) -> waiting.Waits:
    return _client(asker).waits(by, cluster=cluster, from_=from_, to=to, class_=klass)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _waste(asker: Asker, by: str, cluster: str, period: str | None) -> waiting.Waste:
    return _client(asker).waste(by, cluster=cluster, period=period)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _books(asker: Asker) -> answers.Books:
    return _client(asker).books()


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _closes(asker: Asker) -> records.Closes:
    return _client(asker).closes()


@st.cache_data(ttl=TTL_S, max_entries=1000, show_spinner=False, hash_funcs={plans.Wish: repr})
def _what_if(asker: Asker, wish: plans.Wish) -> plans.Made:
    return _client(asker).propose(wish, dry_run=True)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _tokens(asker: Asker) -> outcomes.Tokens:
    return _client(asker).tokens()


@st.cache_data(ttl=TTL_S, show_spinner=False)
def _me(asker: Asker) -> outcomes.WhoAmI:
    return _client(asker).me()


@st.cache_data(ttl=3600, max_entries=1000, show_spinner=False, hash_funcs={plans.Tree: repr})
def _divide(asker: Asker, tree: plans.Tree) -> plans.Divided:
    """Ask once for each tree: nothing that anybody books changes the answer."""
    return _client(asker).divide(tree)
