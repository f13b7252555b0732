"""Waste: what was paid for and not used, by account, by person and by day, in GPU-hours and beside the budget."""

from urllib.parse import quote

import streamlit as st

from gpuledger.client.answers import ClusterStatus
from gpuledger.client.waiting import Waste, WasteRow
from gpuledger_dashboards import charts, data, empty, figures, frame, waste


def choose(statuses: dict[str, ClusterStatus]) -> tuple[ClusterStatus, Waste]:
    """Show the filters, kept in the page's address, and ask for the accounts of the period."""
    pick, when = st.columns(2)
    with pick:
        cluster = frame.choose("Cluster", frame.opening_first(statuses), "cluster")
    status = statuses[cluster]
    newest = frame.ask(lambda: data.waste("account", cluster, None))
    if newest.period is None:
        frame.end_with(waste.no_waste(cluster) if status.rolled_up_from else empty.not_rolled_up(status))
    with when:
        periods = {period: period for period in reversed(newest.periods)}
        period = frame.choose("Period", periods, "period")
    if period == newest.period:
        return status, newest
    return status, frame.ask(lambda: data.waste("account", cluster, period))


def show_accounts(found: Waste, note: str, context: dict[str, object]) -> None:
    """Show what each account's charged time is made of."""
    st.subheader("By account, in GPU-h")
    st.altair_chart(
        charts.waste(waste.parts(found.rows)),
        key="accounts",
        alt="Bar per account of charged time: squatted, idle, little used, used more, not measured; table below",
    )
    frame.table(
        waste.account_table(found.rows),
        caption="Accounts with charged, measured, idle, squatted and little used GPU-hours, and the share of budget",
    )
    st.caption(note)
    frame.download(
        "Download the accounts (CSV)", waste.csv_rows(found.rows), "waste.csv", context, "accounts-csv"
    )


def show_people(cluster: str, period: str | None, note: str, context: dict[str, object]) -> None:
    """Show people, to who may see work."""
    st.subheader("By person, in GPU-h")
    if "read-work" not in frame.ask(data.me).rights:
        st.caption("People are shown to who may see work; your token reads figures of accounts.")
        return
    rows = frame.ask(lambda: data.waste("user", cluster, period)).rows
    shown = waste.user_table(rows)
    if not shown:
        frame.explain(empty.Why("Nobody's charged time was measured idle or little used."))
        return
    frame.table(
        shown,
        caption="People with charged, measured, idle, squatted and little used GPU-hours, who squatted most first",
        tall=True,
    )
    st.caption(
        "A person is written as the journal knows them: names are kept apart, so that they can be forgotten. "
        "The budget is that of the account, of all its people."
    )
    st.caption(note)
    frame.download(
        "Download the people (CSV)", waste.csv_rows(rows), "waste-people.csv", context, "people-csv"
    )


def show_days(rows: tuple[WasteRow, ...], note: str) -> None:
    """Show the period day by day."""
    st.subheader("Day by day, in GPU-h")
    st.altair_chart(
        charts.waste_days(waste.parts(rows, within_account=False)),
        key="days",
        alt=f"Bars of {len(rows)} days of charged time, stacked by what became of it; the download has the values",
    )
    st.caption(note)
    with st.expander("The same as a table"):
        frame.table(waste.day_table(rows), caption="Charged time, a row per day", tall=True)


def main() -> None:
    """Show the page."""
    st.title("Waste")
    st.markdown("What was paid for and not used: idle for long, idle for a while, little used.")
    status, found = choose(frame.statuses())
    cluster, period = status.cluster, found.period
    total = frame.ask(lambda: data.waste("total", cluster, period)).rows
    summed = total[0] if total else None
    if summed is not None:
        st.markdown(f"**{figures.plain(waste.headline(summed))}**")
    st.caption(waste.MEANING)
    if summed is None or not summed.sampled_gpu_ms:
        frame.explain(waste.not_measured())
    note = figures.footnote(
        window=f"{period}, {figures.instant(found.from_)} to {figures.instant(found.to)}",
        timezone=found.timezone,
        as_of=found.as_of,
        coverage=waste.coverage_of(summed),
        rung="gpu_util",
    )
    context: dict[str, object] = {"period": period, "timezone": found.timezone, "as_of": found.as_of}
    show_accounts(found, note, context)
    show_people(cluster, period, note, context)
    show_days(frame.ask(lambda: data.waste("day", cluster, period)).rows, note)
    frame.working(
        [
            (
                "Idle",
                "measured time of charged runs in which all GPUs of the run together were used below 5 %",
            ),
            (
                "Squatted",
                "idle time in stretches of more than 30 minutes; a gap in the samples ends a stretch",
            ),
            ("of budget", "squatted / (budget + transfers) of the account in the period"),
            ("Measured", "sampled / charged GPU-time; what was not measured is in no other part"),
        ],
        f"{data.api_url()}/v1/waste?by=account&cluster={quote(cluster)}&period={period}",
        frame.words("waste", "--by", "account", "--cluster", cluster, "--period", period),
    )


main()
