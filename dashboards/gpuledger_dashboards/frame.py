"""What every page has: asking the API, saying why there is nothing, footnotes, downloads, tables."""

import datetime as dt
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NoReturn, TypeVar

import streamlit as st

from gpuledger.client.answers import ClusterStatus
from gpuledger.kernel.errors import GpuledgerError, NotFound, Unidentified
from gpuledger_dashboards import charts, data, empty, figures, tables, views
from gpuledger_dashboards.parquet import parquet_of

T = TypeVar("T")
PARQUET = "application/vnd.apache.parquet"


def ask(question: Callable[[], T], *, absent: empty.Why | None = None) -> T:
    """Return the API's answer, or say on the page why there is none and end the run.

    Args:
        question: Asks the API.
        absent: What to say of what does not exist, where the page knows better than the API.
    """
    try:
        return question()
    except Unidentified as error:
        ask_who(error)
    except GpuledgerError as error:
        if absent is not None and isinstance(error, NotFound):
            end_with(absent)
        end_with(empty.of_error(error, data.api_url()))


def statuses() -> dict[str, ClusterStatus]:
    """Return the clusters by name, or say on the page that there is none and end the run."""
    found = {status.cluster: status for status in ask(data.clusters).clusters}
    if not found:
        end_with(empty.no_clusters())
    return found


def ask_or(question: Callable[[], T], why: empty.Why) -> T | None:
    """Return the API's answer; where there is no such thing, say why in its place and let the page go on."""
    try:
        return question()
    except NotFound:
        explain(why)
        return None
    except Unidentified as error:
        ask_who(error)
    except GpuledgerError as error:
        end_with(empty.of_error(error, data.api_url()))


def opening_first(statuses: Mapping[str, ClusterStatus]) -> dict[str, str]:
    """Return clusters to choose from, first the one that a page opens with."""
    names = list(statuses)
    opening = views.opening_cluster(list(statuses.values()))
    return {name: name for name in [names[opening], *names[:opening], *names[opening + 1 :]]}


def ask_who(error: Unidentified) -> NoReturn:
    """Ask for a token where the API needs one or takes this one no more, and end the run."""
    with st.form("sign-in", width=480):
        st.subheader("Sign in")
        if data.SIGNED_IN in st.session_state:
            st.warning(
                figures.plain(f"That did not open the door: {error.message}."), icon=":material/key_off:"
            )
        token = st.text_input("Token", type="password", autocomplete="current-password")
        st.caption("Whoever runs the ledger makes one for you: it says what you may see.")
        if st.form_submit_button("Sign in", icon=":material/login:") and token.strip():
            data.sign_in(token)
            st.rerun()
    st.stop()


def end_with(why: empty.Why) -> NoReturn:
    """Say why the page has nothing to show, and end the run."""
    explain(why)
    if st.button("Try again", icon=":material/refresh:"):
        data.forget()
        st.rerun()
    st.stop()


def explain(why: empty.Why) -> None:
    """Say what is missing, and the command that mends it."""
    st.info(figures.plain(" ".join(filter(None, (why.sentence, why.remedy)))), icon=":material/help:")
    if why.command:
        st.code(why.command, language=None, wrap_lines=True)


def choose(
    label: str, options: Mapping[str, str], name: str, *, width: int | Literal["stretch"] = "stretch"
) -> str:
    """Let the reader choose one of several; the choice stands in the page's address under a name of its own.

    Args:
        label: What is chosen.
        options: Name in the address -> what the reader sees; the first is chosen unless the address says otherwise.
        name: The parameter of the address.
        width: Of the box, in pixels; as wide as there is room unless given.
    """
    names = list(options)
    asked = st.query_params.get(name)
    index = names.index(asked) if asked in names else 0
    chosen: str = st.selectbox(
        label, names, index=index, format_func=options.__getitem__, key=name, width=width
    )
    st.query_params[name] = chosen
    return chosen


def _days_follow(statuses: dict[str, ClusterStatus]) -> None:
    """Give the chosen cluster the days it has, for another cluster's may lie elsewhere."""
    opening = views.opening_days(statuses[st.session_state["cluster"]])
    if opening is not None:
        st.session_state["from"], st.session_state["to"] = opening


def cluster_and_days(statuses: dict[str, ClusterStatus]) -> tuple[ClusterStatus, dt.date, dt.date]:
    """Let the reader choose a cluster and days; all of it stands in the page's address."""
    pick, start, end = st.columns([2, 1, 1])
    cluster = pick.selectbox(
        "Cluster",
        list(statuses),
        index=views.opening_cluster(list(statuses.values())),
        key="cluster",
        bind="query-params",
        on_change=_days_follow,
        args=(statuses,),
    )
    status = statuses[cluster]
    opening = views.opening_days(status)
    if opening is None:
        end_with(empty.not_rolled_up(status))
    first = start.date_input(
        "First day",
        opening[0],
        key="from",
        bind="query-params",
        format="YYYY-MM-DD",
        min_value=dt.date(1970, 1, 1),
    )
    last = end.date_input(
        "Last day",
        opening[1],
        key="to",
        bind="query-params",
        format="YYYY-MM-DD",
        min_value=dt.date(1970, 1, 1),
    )
    if first > last:
        end_with(empty.Why("The first day is after the last one.", "Choose another first or last day."))
    return status, first, last


def ink() -> str:
    """Return the colour of text inside a chart under the viewer's theme."""
    return charts.INK.get(st.context.theme.type or "light", charts.INK["light"])


def table(
    rows: Sequence[Mapping[str, str]], *, caption: str, tall: bool = False, texts: bool = False
) -> None:
    """Show a plain table; a tall one scrolls inside its frame, one of texts breaks its lines."""
    height = tables.TALL if tall else "none"
    st.html(tables.table(rows, caption=caption, height=height, texts=texts))


def download(
    label: str, rows: Sequence[Mapping[str, object]], file_name: str, context: Mapping[str, object], key: str
) -> None:
    """Offer the figure's rows as CSV and as Parquet, with window, as-of time and zone beside every row.

    A file is made when it is asked for. A chart's picture is offered by the chart itself (its menu, on hover or focus).
    """
    stem, of_csv = file_name.removesuffix(".csv"), partial(figures.csv_of, rows, context)
    files = (
        (label, f"{stem}.csv", of_csv, "text/csv", key),
        ("Parquet", f"{stem}.parquet", partial(parquet_of, rows, context), PARQUET, f"{key}-parquet"),
    )
    with st.container(horizontal=True):
        for name, file, made, kind, own_key in files:
            st.download_button(
                name,
                made,
                file_name=file,
                mime=kind,
                key=own_key,
                icon=":material/download:",
                on_click="ignore",
            )


def words(*given: object) -> str:
    """Return a call of ``gpuledger`` whose words each mean themselves to a shell."""
    return shlex.join(("gpuledger", *map(str, given), "--json"))


def working(formulas: Sequence[tuple[str, str]], call: str, command: str = "") -> None:
    """Offer how the figures were worked out, and how to ask for them elsewhere.

    Args:
        formulas: (figure, how it is worked out).
        call: The API's address for it, as ``urllib.parse.quote`` leaves it.
        command: The words of a command line, each as ``shlex.quote`` leaves it: whoever copies it runs no other.
    """
    with st.expander("Show the working"):
        for name, formula in formulas:
            st.markdown(f"**{figures.plain(name)}** = {figures.plain(formula)}")
        st.caption("The same figures from a terminal:")
        st.code(
            "\n".join(filter(None, (command, f"curl {shlex.quote(call)}"))), language=None, wrap_lines=True
        )
