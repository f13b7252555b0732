"""Queue and waits: what waits now, how long it takes by class and size, and by what order."""

import datetime as dt
from urllib.parse import quote

import streamlit as st

from gpuledger.client.waiting import WaitsRow
from gpuledger_dashboards import charts, data, empty, fair_share, figures, frame, waits


def show_now(cluster: str) -> None:
    """Show what the newest cycle decided, as far as the viewer may see work."""
    st.subheader("Now")
    if "read-work" not in frame.ask(data.me).rights:
        st.caption("Which work waits is shown to who may see work; your token reads figures of accounts.")
        return
    cycle = frame.ask_or(lambda: data.allocations(cluster), empty.no_cycle(cluster))
    if cycle is None:
        return
    st.markdown(f"**{figures.plain(waits.now(cycle))}**")
    if cycle.decisions:
        frame.table(
            fair_share.order(cycle.decisions),
            caption="Workloads in the order of the newest cycle, each with what was decided and why",
            texts=True,
            tall=True,
        )
        if (more := len(cycle.decisions) - fair_share.NEXT_SHOWN) > 0:
            st.caption(f"And {more} more. The page My work tells of each.")
    st.caption(figures.plain(f"cycle {cycle.cycle} · as of {figures.instant(cycle.as_of)}"))


def show_order() -> None:
    """Say by what order the queue is served."""
    with st.expander("Who comes next? The order explained", expanded=False):
        st.markdown("\n".join(f"{n}. {sentence}" for n, sentence in enumerate(waits.ORDER, 1)))


def show_sizes(by_class: dict[str, tuple[WaitsRow, ...]], note: str, context: dict[str, object]) -> None:
    """Show half and nine in ten of each size and class."""
    st.subheader("How long it takes, by class and size")
    st.altair_chart(
        charts.waits(waits.stretches(by_class)),
        key="sizes",
        alt="A bar per class and size from the time within which half had started to that of nine in ten; table below",
    )
    st.caption(
        "A bar reaches from the dot, when half had started, to when nine in ten had, on an axis of powers of ten."
    )
    frame.table(
        waits.table(by_class),
        caption="Requests by GPUs asked for and class: how many, and within how long half and nine in ten had started",
    )
    st.caption(note)
    frame.download("Download the sizes (CSV)", waits.csv_rows(by_class), "waits.csv", context, "waits-csv")


def show_days(rows: tuple[WaitsRow, ...], note: str) -> None:
    """Show half and nine in ten day by day."""
    st.subheader("Day by day")
    values = waits.by_day(rows)
    if not any(value.minutes is not None for value in values):
        frame.explain(empty.Why("On none of these days is a quantile known yet: too few had started."))
        return
    st.altair_chart(
        charts.wait_days(values),
        key="days",
        alt=f"Two lines over {len(rows)} days: within how long half and nine in ten had started; table below",
    )
    st.caption(note)
    with st.expander("The same as a table"):
        frame.table(waits.day_table(rows), caption="Waits, a row per day", tall=True)


def main() -> None:
    """Show the page."""
    st.title("Queue and waits")
    st.markdown("Who waits now and why, and how long it took by class and size.")
    statuses = frame.statuses()
    status, first, last = frame.cluster_and_days(statuses)
    cluster = status.cluster
    total = frame.ask(lambda: data.waits("total", cluster, first, last))
    if total.rows:
        st.markdown(f"**{figures.plain(waits.headline(total.rows[0]))}**")
    show_now(cluster)
    show_order()
    if not total.rows:
        frame.explain(waits.no_waits(cluster, str(first), str(last)))
        return
    by_class = {
        klass: frame.ask(lambda klass=klass: data.waits("size", cluster, first, last, klass)).rows  # type: ignore[misc]
        for klass in waits.CLASSES
    }
    window = figures.days(first, last)
    note = figures.plain(
        f"Requests that could first run from {window} (days of {total.timezone}) · as of"
        f" {figures.instant(total.as_of)} · coverage every submitted request · times in s, min, h, d"
    )
    context: dict[str, object] = {"window": window, "timezone": total.timezone, "as_of": total.as_of}
    show_sizes(by_class, note, context)
    show_days(frame.ask(lambda: data.waits("day", cluster, first, last)).rows, note)
    after = last + dt.timedelta(days=1)
    frame.working(
        [
            (
                "Half, nine in ten",
                "the estimate of Kaplan and Meier: who has not started counts as waiting at least so long",
            ),
            (
                "Wait",
                "from the moment from which the request could run to its start; again after each preemption",
            ),
        ],
        f"{data.api_url()}/v1/waits?by=size&cluster={quote(cluster)}&from={first}&to={after}",
        frame.words("waits", "--by", "size", "--cluster", cluster, "--from", first, "--to", after),
    )


main()
