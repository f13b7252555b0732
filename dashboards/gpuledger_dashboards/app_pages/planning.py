"""Planning: another split of a node, what it would change, and the proposal of it."""

import datetime as dt
import uuid
from typing import Any

import streamlit as st

from gpuledger.client import compared
from gpuledger.kernel.errors import GpuledgerError, Refused
from gpuledger_dashboards import data, figures, frame, planning, proposals


def choose_shares(node: str, before: dict[str, int]) -> dict[str, int]:
    """Let the reader set the children's shares."""
    after = {}
    for account, share in before.items():
        after[account] = int(
            st.number_input(
                account, 0, planning.SHARE_MAX, share, step=1, key=f"share {node} {account}", width=320
            )
        )
    return after


def show_effect(changed: dict[str, int], rights: tuple[str, ...]) -> None:
    """Show what the new shares would change, as the ledger works it out."""
    if "propose" not in rights:
        st.caption("What it would change in GPU-hours is worked out for those who may propose it.")
        return
    wish = planning.wish(changed, "what if", from_=None, decide_by=None, simulation=None)
    try:
        effect = data.what_if(wish).effect
    except GpuledgerError as error:
        st.warning(figures.plain(f"{error.message}. {error.hint}"), icon=":material/block:")
        return
    if effect is None or not effect.shares:
        st.caption("No cluster that you see is divided differently by it.")
        return
    frame.table(
        proposals.effect_on_shares(effect),
        caption="Accounts whose part of a cluster would change: parts and GPU-hours before and after",
    )
    st.caption(figures.plain(f"GPU-h of what is installed in {effect.period} · as if it held from now on"))


def propose(changed: dict[str, int]) -> None:
    """Let the reader propose the new shares."""
    key = st.session_state.setdefault("planning key", str(uuid.uuid4()))
    with st.form("propose"):
        reason = st.text_area(
            "Why", max_chars=1000, placeholder="It is kept, with your name.", key=f"why {key}"
        )
        first, second = st.columns(2)
        from_ = first.date_input("It holds from (UTC)", value=None, help="From the approval on unless given.")
        due = second.date_input("An answer is due by (UTC)", value=None)
        file = st.file_uploader(
            "What a simulation says",
            type="json",
            help="What gpuledger simulate compare SCENARIO A B --json printed: those who decide see it.",
        )
        pressed = st.form_submit_button("Propose it", icon=":material/how_to_vote:")
    if not pressed:
        return
    if not reason.strip():
        st.warning("Say why: those who decide read it first.", icon=":material/edit:")
        return
    try:
        simulation = None if file is None else compared.read(file.getvalue())
        wish = planning.wish(
            changed, reason.strip(), from_=_day(from_), decide_by=_day(due), simulation=simulation
        )
        made = data.propose(wish, key)
    except GpuledgerError as error:
        st.error(figures.plain(f"{error.message}. {error.hint}"), icon=":material/block:")
        return
    del st.session_state["planning key"]
    data.forget()
    st.success(
        figures.plain(f"Proposed as {made.proposal}; the page Proposals shows it."), icon=":material/check:"
    )


def _day(chosen: Any) -> dt.date | None:  # noqa: ANN401 - a date, or a tuple of dates that is not asked for
    if chosen is not None and not isinstance(chosen, dt.date):
        raise Refused("choose one day", hint="click on it")
    return chosen


def main() -> None:
    """Show the page."""
    st.title("Planning")
    st.markdown("Divide a budget differently, see what it would change, and propose it.")
    accounts = frame.ask(data.accounts)
    nodes = planning.splits(accounts.accounts)
    if not nodes:
        frame.end_with(planning.nothing_to_divide())
    node = frame.choose("Divide", planning.titles(nodes), "node", width=420)
    before = planning.shares_of(nodes[node])
    after = choose_shares(node, before)
    frame.table(
        planning.table(before, after), caption="Accounts with share and part of the node, before and after"
    )
    st.caption(figures.plain(f"as of {figures.instant(accounts.as_of)} · a share is a weight among siblings"))
    changed = planning.changed(before, after)
    rights = frame.ask(data.me).rights
    if not changed:
        st.info("Change a share to see what it would do.", icon=":material/tune:")
    else:
        st.subheader("What it would change")
        show_effect(changed, rights)
        if "propose" in rights:
            st.subheader("Propose it")
            propose(changed)
    frame.working(
        [
            ("Part of a cluster", "product of share / siblings' shares down the path"),
            ("GPU-h", "part x what is installed over the period"),
        ],
        f"{data.api_url()}/v1/accounts",
        planning.command(changed, ""),
    )


main()
