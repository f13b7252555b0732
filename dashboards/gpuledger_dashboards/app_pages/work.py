"""My work: what happened to a workload and why, what it cost, and while it waits, what for."""

import shlex
from urllib.parse import quote

import streamlit as st

from gpuledger.client.answers import ClusterStatus
from gpuledger.client.stories import Workload, WorkloadDecision
from gpuledger_dashboards import charts, data, empty, figures, frame, work

ANY = "any cluster"


def choose(statuses: dict[str, ClusterStatus]) -> tuple[str, str | None]:
    """Show what can be asked, kept in the page's address."""
    name, where = st.columns([2, 1])
    asked = name.text_input(
        "Workload",
        key="workload",
        bind="query-params",
        placeholder="8851",
        max_chars=1000,
        autocomplete="off",
    )
    cluster = where.selectbox("Cluster", [ANY, *statuses], key="cluster", bind="query-params")
    return asked.strip(), None if cluster == ANY else cluster


def show_course(told: Workload, note: str) -> None:
    """Show its life on a line of time, and when it was preempted for whom."""
    found = work.spans(told)
    if found:
        st.altair_chart(
            charts.course(found),
            key="course",
            alt="Bars on a line of time: when the workload waited and ran; the table below has each event",
        )
        st.caption(note)
    for sentence in work.preemptions(told):
        st.warning(figures.plain(sentence), icon=":material/logout:")


def show_decision(decision: WorkloadDecision) -> None:
    """Show why it waits: the sentence of the newest cycle, and where its accounts stood."""
    st.subheader("Why it waits")
    date = f" It starts by {figures.instant(decision.starts_by)}." if decision.starts_by else ""
    st.markdown(f"**{figures.plain(decision.reason)}{figures.plain(date)}**")
    if decision.chain:
        frame.table(
            work.chain(decision.chain),
            caption="From the root to the account: how far each was served, used and entitled GPU-hours",
        )
        st.caption(
            "From the root down, whoever was served least of what it is entitled to comes first. "
            "Served = (used + open holds) / (entitled + what may be caught up)."
        )


def main() -> None:
    """Show the page."""
    st.title("My work")
    st.markdown("What happened to a workload, why, and what it cost.")
    statuses = frame.statuses()
    name, cluster = choose(statuses)
    if not name:
        frame.explain(work.nothing_asked())
        st.stop()
    told = frame.ask(lambda: data.workload(name, cluster))
    st.markdown(f"**{figures.plain(work.headline(told))}**")
    note = figures.plain(f"as of {figures.instant(told.as_of)} · times in UTC · amounts in GPU-h")
    show_course(told, note)
    if told.state in ("waits", "not eligible"):
        if told.decision is not None:
            show_decision(told.decision)
        else:
            frame.explain(empty.undecided(told.cluster))
        if told.unpaid is not None:
            unpaid = f"Would run unallocated, and waits as such work does: {told.unpaid}."
            st.info(figures.plain(unpaid), icon=":material/account_balance_wallet:")
    st.subheader("What it cost")
    for column, (title, amount, meaning) in zip(st.columns(4), work.costs(told), strict=True):
        column.metric(title, amount, help=meaning)
    st.subheader("What happened")
    frame.table(work.events(told), caption="Every event of the workload with its time and run", texts=True)
    frame.download(
        "Download the story (CSV)", work.csv_rows(told), "story.csv", {"as_of": told.as_of}, "story-csv"
    )
    frame.working(
        [
            ("Charged", "GPUs x time, while it ran allocated"),
            (
                "Free",
                "GPUs x time, while it ran unallocated: never charged, and may be taken back at any moment",
            ),
        ],
        f"{data.api_url()}/v1/workloads/{quote(told.workload)}?cluster={quote(told.cluster)}",
        shlex.join(("gpuledger", "why", told.workload, "--cluster", told.cluster, "--what-if")),
    )


main()
