"""Fair share: how far each account was served of what it is entitled to, and who comes next."""

import shlex
from urllib.parse import quote

import streamlit as st

from gpuledger.client.answers import ClusterStatus, Cycle
from gpuledger_dashboards import charts, data, empty, fair_share, figures, frame, views


def choose(statuses: dict[str, ClusterStatus]) -> str:
    """Show the filter, kept in the page's address."""
    chosen: str = st.selectbox(
        "Cluster",
        list(statuses),
        index=views.opening_cluster(list(statuses.values())),
        key="cluster",
        bind="query-params",
    )
    return chosen


def show_accounts(cycle: Cycle, note: str, context: dict[str, object]) -> None:
    """Show how far each account was served."""
    accounts = fair_share.served_least_first(cycle)
    st.subheader("Used and entitled, least served first")
    st.altair_chart(
        charts.served(fair_share.bars(accounts), [one.account for one in accounts]),
        key="served",
        alt="Two bars per account: what it is entitled to over the window, and what it used; table below",
    )
    st.caption(note)
    frame.table(
        fair_share.table(accounts),
        caption="Accounts with share, used and entitled GPU-hours, how far they were served, GPUs asked for and issued",
    )
    st.caption(
        "Served = (used + open holds) / (entitled + what may be caught up): the number that sorts the queue, level by "
        "level from the root down. Whoever has the lowest comes first."
    )
    frame.download(
        "Download the accounts (CSV)", fair_share.csv_rows(cycle), "fair-share.csv", context, "shares-csv"
    )


def show_order(cycle: Cycle) -> None:
    """Show who comes next, and why."""
    st.subheader("Who comes next, and why")
    if not cycle.decisions:
        frame.explain(empty.Why("Nothing was decided about a workload, or what waits is kept no longer."))
        return
    frame.table(
        fair_share.order(cycle.decisions),
        caption="Workloads in the order of the newest cycle, each with what was decided and why",
        texts=True,
    )
    if (more := len(cycle.decisions) - fair_share.NEXT_SHOWN) > 0:
        st.caption(f"And {more} more. The page My work tells of each.")


def main() -> None:
    """Show the page."""
    st.title("Fair share")
    st.markdown("How far each account was served of what it is entitled to, and who comes next.")
    statuses = frame.statuses()
    cluster = choose(statuses)
    cycle = frame.ask(lambda: data.allocations(cluster), absent=empty.no_cycle(cluster))
    if not cycle.allocations:
        frame.end_with(fair_share.nobody())
    st.markdown(f"**{figures.plain(fair_share.headline(cycle))}**")
    note = figures.plain(f"cycle {cycle.cycle} · as of {figures.instant(cycle.as_of)} · amounts in GPU-h")
    show_accounts(cycle, note, {"cycle": cycle.cycle, "as_of": cycle.as_of})
    show_order(cycle)
    frame.working(
        [
            (
                "Entitled",
                "product of share / siblings' shares down the path x healthy capacity, over the window",
            ),
            ("Issued", "max-min by shares at each level, never above what is asked for"),
        ],
        f"{data.api_url()}/v1/allocations/current?cluster={quote(cluster)}",
        shlex.join(("gpuledger", "cycle", "--cluster", cluster, "--dry-run")),
    )


main()
