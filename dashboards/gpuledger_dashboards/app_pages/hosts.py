"""Hosts: what is unwell, what is being emptied and until when, and what failures cost."""

import shlex
from urllib.parse import quote

import streamlit as st

from gpuledger_dashboards import data, figures, frame, hosts


def main() -> None:
    """Show the page."""
    st.title("Hosts")
    st.markdown("What is unwell, what is being emptied and until when, and what failures gave back.")
    names = list(frame.statuses())
    cluster = frame.choose("Cluster", {name: name for name in names}, "cluster", width=420)
    found = frame.ask(lambda: data.hosts(cluster))
    if not found.hosts:
        frame.end_with(hosts.no_hosts(cluster))
    drains = frame.ask(lambda: data.drains(cluster)).drains
    failures = frame.ask(lambda: data.incidents(cluster)).incidents
    note = figures.plain(f"as of {figures.instant(found.as_of)} · times in UTC")
    st.markdown(f"**{figures.plain(hosts.headline(found.hosts, drains))}**")
    st.subheader("Being emptied")
    if drains:
        frame.table(
            hosts.leaving(drains),
            caption="Hosts that take no new run: when each will be empty, and who is still there",
            texts=True,
        )
        st.caption("A bound holds whatever happens; an estimate moves with what runs.")
    else:
        st.caption("No host is being emptied.")
    st.subheader("Hosts, the worst first")
    frame.table(
        hosts.table(found.hosts),
        caption="Hosts with state, usable GPUs, since when and why, the worst first",
        tall=True,
        texts=True,
    )
    if (missing := hosts.left_out(found)) is not None:
        st.caption(figures.plain(missing))
    st.caption(note)
    context = {"as_of": found.as_of}
    frame.download("Download the hosts (CSV)", hosts.csv_rows(found.hosts), "hosts.csv", context, "hosts-csv")
    st.subheader("Failures of hardware")
    if failures:
        frame.table(
            hosts.failures(failures),
            caption="Failures, the newest first: host, fault, runs that it ended, GPU-hours given back",
        )
    else:
        st.caption("None is known.")
    frame.working(
        [
            (
                "Given back",
                "GPUs x min(charged time, time since the last checkpoint or start, the cap), once a run",
            )
        ],
        f"{data.api_url()}/v1/hosts?cluster={quote(cluster)}",
        shlex.join(("gpuledger", "incident", "list", "--cluster", cluster)),
    )


main()
