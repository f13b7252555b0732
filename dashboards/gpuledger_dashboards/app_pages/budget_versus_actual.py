"""Budget versus actual: what each account had, what it got, and why the two differ."""

import streamlit as st

from gpuledger.client.answers import BudgetVersusActual, ClusterStatus
from gpuledger_dashboards import budgets, charts, data, empty, figures, frame, views


def period_changes(statuses: dict[str, ClusterStatus]) -> None:
    """Give the chosen cluster its newest period, for it may not have the other's."""
    periods = statuses[st.session_state["cluster"]].periods
    if periods:
        st.session_state["period"] = periods[-1]


def choose(statuses: dict[str, ClusterStatus]) -> tuple[ClusterStatus, str]:
    """Show the filters, all of them kept in the page's address."""
    pick, when = st.columns(2)
    cluster = pick.selectbox(
        "Cluster",
        list(statuses),
        index=views.opening_cluster(list(statuses.values())),
        key="cluster",
        bind="query-params",
        on_change=period_changes,
        args=(statuses,),
    )
    status = statuses[cluster]
    if not status.periods:
        frame.end_with(empty.no_budget(status))
    newest_first = list(reversed(status.periods))
    period = when.selectbox("Period", newest_first, key="period", bind="query-params")
    return status, period


def show_bars(nodes: list[budgets.Node], note: str) -> None:
    """Show a bar per account."""
    st.subheader("Budget and use by account")
    bars, marks = budgets.bars(nodes)
    st.altair_chart(
        charts.budget_bars(bars, marks, frame.ink()),
        key="bars",
        alt="Bar per account: budget, charged and free use in GPU-hours, with a mark where owed; table below",
    )
    mark = "The upright mark is what the account was owed. " if marks else ""
    st.caption(
        f"{mark}Free use is work that ran unallocated: it is not charged and may be preempted at any time."
    )
    st.caption(note)


def show_tree(nodes: list[budgets.Node], answer: BudgetVersusActual, context: dict[str, object]) -> None:
    """Show the tree of accounts as a table."""
    st.subheader("Accounts, in GPU-h")
    frame.table(
        budgets.table(nodes),
        caption="Tree of accounts with budget, charged, held, available, owed, delivered and free use in GPU-hours",
    )
    st.caption(
        "An account above others is the sum of those below it. "
        "Available = budget + transfers + credits - expired - charged - held."
    )
    frame.download(
        "Download the accounts (CSV)",
        budgets.csv_rows(answer.rows),
        "budget-vs-actual.csv",
        context,
        "accounts-csv",
    )


def show_variance(
    nodes: list[budgets.Node], answer: BudgetVersusActual, note: str, context: dict[str, object]
) -> None:
    """Show why delivered is not the budget."""
    st.subheader("Why delivered is not the budget")
    found = budgets.causes(nodes)
    if not found:
        frame.explain(empty.Why("Every account was delivered its budget exactly."))
        return
    accounts = [budgets.label(node.account) for node in budgets.leaves(nodes)]
    st.altair_chart(
        charts.variance(found, accounts),
        key="variance",
        alt="Bar per account of budget less delivered, stacked by cause; the table below has the same values",
    )
    st.caption(" · ".join(f"**{name}**: {words}" for name, words in budgets.CAUSES_IN_WORDS.items()))
    st.caption(note)
    with st.expander("The same as a table"):
        frame.table(
            budgets.variance_table(nodes),
            caption="Tree of accounts with budget less delivered and its causes in GPU-hours",
        )
    frame.download(
        "Download the causes (CSV)", budgets.csv_rows(answer.rows), "variance.csv", context, "variance-csv"
    )


def main() -> None:
    """Show the page."""
    st.title("Budget versus actual")
    statuses = frame.statuses()
    status, period = choose(statuses)
    answer = frame.ask(lambda: data.budget_vs_actual(status.cluster, period))
    if not answer.rows:
        frame.end_with(empty.no_budget(status))
    nodes = budgets.tree(answer.rows)
    reason = budgets.reason(answer.rows)
    st.markdown(f"**{figures.plain(budgets.summary(nodes))}**")
    note = figures.footnote(
        window=f"{period}, {figures.instant(answer.from_)} to {figures.instant(answer.to)}",
        timezone=answer.timezone,
        as_of=answer.as_of,
        coverage="all runs in the book" if reason is None else "runs in the book; no inventory",
    )
    context: dict[str, object] = {"timezone": answer.timezone, "as_of": answer.as_of}
    show_bars(nodes, note)
    show_tree(nodes, answer, context)
    if reason is not None:
        st.subheader("Why delivered is not the budget")
        frame.explain(empty.of_layer("impact", reason))
    else:
        show_variance(nodes, answer, note, context)
    frame.working(
        [
            ("Budget - delivered", " + ".join(title.lower() for title in budgets.CAUSES.values())),
            ("Owed", "min(entitlement, demand), hour by hour"),
            ("Delivered", "allocated GPU-time, less credits"),
        ],
        f"{data.api_url()}/v1/budget-vs-actual?cluster={status.cluster}&period={period}",
    )


main()
