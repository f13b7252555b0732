"""Overview: the four layers of a week with trend and target, what changed since the week before, and alerts."""

import datetime as dt
from pathlib import Path
from urllib.parse import quote

import streamlit as st

from gpuledger.client.answers import ClusterStatus, Layers
from gpuledger_dashboards import charts, data, empty, figures, frame, overview, views

PAGES = Path(__file__).parent


def week_follows(statuses: dict[str, ClusterStatus]) -> None:
    """Give the chosen cluster its newest week, for another cluster's may lie elsewhere."""
    newest = overview.last_whole_day(statuses[st.session_state["cluster"]])
    if newest is not None:
        st.session_state["to"] = newest


def choose(statuses: dict[str, ClusterStatus]) -> tuple[ClusterStatus, dt.date]:
    """Show the filters, both kept in the page's address."""
    pick, when = st.columns([2, 1])
    cluster = pick.selectbox(
        "Cluster",
        list(statuses),
        index=views.opening_cluster(list(statuses.values())),
        key="cluster",
        bind="query-params",
        on_change=week_follows,
        args=(statuses,),
    )
    status = statuses[cluster]
    newest = overview.last_whole_day(status)
    if newest is None:
        frame.end_with(empty.not_rolled_up(status))
    last: dt.date = when.date_input(
        "Week that ends on",
        newest,
        key="to",
        bind="query-params",
        format="YYYY-MM-DD",
        min_value=dt.date(1970, 1, 1),
    )
    return status, last


def alerts(
    status: ClusterStatus, week: tuple[dt.date, dt.date], found: list[overview.Change], as_of: str
) -> list[overview.Alert]:
    """Ask for what may need somebody, as far as the viewer may know of it."""
    rights = frame.ask(data.me).rights
    period = f"{week[1]:%Y-%m}"
    raised = [*overview.of_roll_up(status, as_of), *overview.of_layers(found)]
    if period in status.periods:
        rows = frame.ask(lambda: data.budget_vs_actual(status.cluster, period)).rows
        raised += overview.of_budgets(rows, period)
    raised += overview.of_hosts(frame.ask(lambda: data.hosts(status.cluster)).hosts)
    if "read-work" in rights:
        failures = frame.ask(lambda: data.incidents(status.cluster, *week)).incidents
        raised += overview.of_incidents(failures)
    if "read-books" in rights:
        raised += overview.of_books(frame.ask(data.books))
    return raised


def show_alerts(raised: list[overview.Alert], cluster: str) -> None:
    """Show what needs somebody, each with the page that tells more."""
    st.subheader("What needs somebody")
    if not raised:
        st.success("Nothing: no target is missed, no account is over budget, no host is unwell.")
        return
    for alert in raised:
        # A link breaks no lines, so that the sentence stands above it.
        with st.container(gap="xsmall"):
            st.markdown(f":material/error: {figures.plain(alert.sentence)}")
            st.page_link(
                PAGES / f"{alert.page}.py",
                label=f"Open {alert.title}",
                icon=":material/arrow_forward:",
                query_params={"cluster": cluster},
            )


def show_trends(found: list[overview.Change], daily: Layers, note: str) -> None:
    """Show each layer with its course over four weeks and its target."""
    st.subheader("Four weeks, and the targets")
    values = views.trend(daily)
    for column, change in zip(st.columns(len(found)), found, strict=True):
        with column:
            layer = change.layer
            still = change.points == overview.UNCHANGED
            st.metric(
                layer.title,
                layer.text,
                delta=change.points,
                delta_color="off" if still else "normal",
                delta_arrow="off" if still else "auto",
                help=layer.formula,
            )
            own = [value for value in values if value.layer == layer.title]
            if any(value.value is not None for value in own):
                st.altair_chart(
                    charts.course_of_layer(own, change.target, frame.ink()),
                    key=f"course-{layer.name}",
                    alt=f"{layer.title} of each of {len(own)} days as a line; {change.aim}",
                )
            st.caption(f"{change.aim[:1].upper()}{change.aim[1:]}.")
    st.caption(note)
    with st.expander("The days as a table"):
        frame.table(views.trend_table(daily), caption="The four layers, a row per day", tall=True)


def main() -> None:
    """Show the page."""
    st.title("Overview")
    statuses = frame.statuses()
    status, last = choose(statuses)
    week, before, trend = overview.days_of(last)
    now = frame.ask(lambda: data.layers("cluster", status.cluster, *week))
    if not now.rows:
        known = views.known_days(status)
        frame.end_with(empty.outside(status.cluster, *week, known or week))
    earlier = frame.ask(lambda: data.layers("cluster", status.cluster, *before))
    daily = frame.ask(lambda: data.layers("day", status.cluster, *trend))
    row = now.rows[0]
    found = overview.changes(row, earlier.rows[0] if earlier.rows else None, now.targets)
    raised = alerts(status, week, found, now.as_of)
    st.markdown(f"**{figures.plain(overview.headline(found, raised))}**")
    window = figures.days(*week)
    note = figures.footnote(
        window=window,
        timezone=now.timezone,
        as_of=now.as_of,
        coverage=views.coverage_of(row),
        rung=row.utilisation.rung,
    )
    layers = [change.layer for change in found]
    left, right = st.columns([5, 6], gap="large")
    with left:
        st.altair_chart(
            charts.pyramid(layers, frame.ink()),
            key="pyramid",
            alt=f"Pyramid of four layers, from the base up: {views.summary(layers)}",
        )
    with right:
        st.subheader("What changed since the week before")
        for change in found:
            st.markdown(f"- {figures.plain(change.sentence)}")
        show_alerts(raised, status.cluster)
    st.caption(note)
    show_trends(found, daily, note)
    context: dict[str, object] = {"window": window, "timezone": now.timezone, "as_of": now.as_of}
    frame.download(
        "Download the week (CSV)", overview.csv_rows(found), "overview.csv", context, "overview-csv"
    )
    frame.working(
        [
            *((layer.title, layer.formula) for layer in layers),
            ("Target", "policy data: the setting LAYER_target_permille of a policy file, from its moment on"),
        ],
        f"{data.api_url()}/v1/layers?cluster={quote(status.cluster)}&from={week[0]}&to={last + dt.timedelta(days=1)}",
        frame.words(
            "layers", "--cluster", status.cluster, "--from", week[0], "--to", last + dt.timedelta(days=1)
        ),
    )


main()
