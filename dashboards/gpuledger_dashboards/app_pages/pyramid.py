"""The pyramid: availability, occupancy, impact and utilisation of a cluster, now and over the days."""

import datetime as dt

import streamlit as st

from gpuledger.client.answers import Layers, LayersRow
from gpuledger_dashboards import charts, data, empty, figures, frame, views


def show_layers(layers: list[views.Layer], row: LayersRow, note: str, context: dict[str, object]) -> None:
    """Show the pyramid, and beside it each layer with both sides of its ratio."""
    left, right = st.columns([5, 6], gap="large")
    with left:
        st.altair_chart(
            charts.pyramid(layers, frame.ink()),
            key="pyramid",
            alt=f"Pyramid of four layers, from the base up: {views.summary(layers)}",
        )
    with right:
        frame.table(
            [
                {
                    "Layer": layer.title,
                    "Value": layer.text,
                    "Part, GPU-h": figures.hours(layer.part_gpu_ms),
                    "Whole, GPU-h": figures.hours(layer.whole_gpu_ms),
                }
                for layer in reversed(layers)
            ],
            caption="The four layers, each with its value and both sides of the ratio in GPU-hours",
        )
        for layer in reversed(layers):
            st.markdown(f"**{layer.title}.** {layer.question} {figures.plain(layer.answer)}")
    for titles, why in views.unknown(layers):
        st.markdown(f"**{titles}: unknown**")
        frame.explain(why)
    if row.reason is not None and not row.reasons:
        st.caption(figures.plain(row.reason[:1].upper() + row.reason[1:] + "."))
    st.caption(note)
    frame.download(
        "Download the layers (CSV)", [views.layers_csv(row, "cluster")], "layers.csv", context, "layers-csv"
    )


def show_trend(daily: Layers, note: str, context: dict[str, object]) -> None:
    """Show the layers day by day, as lines and as a table."""
    st.subheader("Day by day")
    values = views.trend(daily)
    if not any(value.value is not None for value in values):
        frame.explain(empty.Why("No layer has a value on any of these days.", "The reasons stand above."))
        return
    st.altair_chart(
        charts.trend(values),
        key="trend",
        alt=f"Line chart of the four layers over {len(daily.rows)} days; the table below has the same values",
    )
    st.caption(note)
    with st.expander("The same as a table"):
        frame.table(views.trend_table(daily), caption="The four layers, a row per day", tall=True)
    frame.download(
        "Download the days (CSV)", views.trend_csv(daily), "layers-by-day.csv", context, "days-csv"
    )


def main() -> None:
    """Show the page."""
    st.title("Pyramid")
    st.markdown(
        "Four layers, each resting on the one below: GPUs that work, GPUs that are held, accounts that get what "
        "they are owed, GPUs that are busy."
    )
    statuses = frame.statuses()
    status, first, last = frame.cluster_and_days(statuses)
    total = frame.ask(lambda: data.layers("cluster", status.cluster, first, last))
    if not total.rows:
        known = views.known_days(status)
        frame.end_with(empty.outside(status.cluster, first, last, known or (first, last)))
    daily = frame.ask(lambda: data.layers("day", status.cluster, first, last))
    row = total.rows[0]
    layers = views.pyramid(row)
    window = figures.days(first, last)
    note = figures.footnote(
        window=window,
        timezone=total.timezone,
        as_of=total.as_of,
        coverage=views.coverage_of(row),
        rung=row.utilisation.rung,
    )
    context: dict[str, object] = {"window": window, "timezone": total.timezone, "as_of": total.as_of}
    show_layers(layers, row, note, context)
    frame.working(
        [(layer.title, layer.formula) for layer in layers],
        f"{data.api_url()}/v1/layers?cluster={status.cluster}&from={first}&to={last + dt.timedelta(days=1)}",
    )
    show_trend(daily, note, context)


main()
