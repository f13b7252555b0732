"""Proposals: who asks for which change of a budget, what it would change, and the answer."""

import shlex
import uuid

import streamlit as st

from gpuledger.client.outcomes import WhoAmI
from gpuledger.client.plans import Proposal, Step
from gpuledger.kernel.errors import GpuledgerError
from gpuledger_dashboards import data, figures, frame, proposals


def choose(found: list[Proposal]) -> Proposal | None:
    """Show what is proposed, and let the reader open one of it."""
    frame.table(
        proposals.table(found),
        caption="Proposals, the newest first: state, who made it and when, when an answer is due, what it asks for",
        texts=True,
    )
    names = {one.proposal: f"{one.proposal}, {one.by}" for one in found}
    opened = frame.choose("Open", names, "proposal", width=420)
    return next((one for one in found if one.proposal == opened), None)


def show(one: Proposal) -> None:
    """Show one proposal: its case, what it changes, what was said."""
    st.subheader(one.proposal)
    st.markdown(f"**{figures.plain(proposals.headline(one))}**")
    for sentence in proposals.changes(one):
        st.markdown(f"- {figures.plain(sentence)}")
    if one.effect is not None and one.effect.shares:
        st.markdown("What it changes")
        frame.table(
            proposals.effect_on_shares(one.effect),
            caption="Accounts whose part of a cluster changes: parts and GPU-hours before and after",
        )
        st.caption(
            figures.plain(
                f"GPU-h of what is installed in {one.effect.period} · as the books stood when it was proposed"
            )
        )
    if one.effect is not None and one.effect.budgets:
        st.markdown("What it changes")
        frame.table(
            proposals.effect_on_budgets(one.effect),
            caption="Accounts that GPU-time is given to or taken from, with what each had left before",
        )
        st.caption("As the books stood when it was proposed.")
    if one.simulation is not None:
        st.markdown("What a simulation says")
        frame.table(
            proposals.simulated(one.simulation), caption="Accounts with GPU-hours and waits before and after"
        )
        st.caption(
            figures.plain(
                f"scenario {one.simulation.get('scenario')} · {one.simulation.get('days')} days · as run by {one.by}"
            )
        )
    st.markdown("What was said")
    frame.table(proposals.said(one), caption="What was said of the proposal: when, by whom, what", texts=True)


def answer(one: Proposal, me: WhoAmI) -> None:
    """Let the reader say something, or decide."""
    steps = proposals.may_say(one, me.rights, me.name)
    if not steps:
        return
    # One key for one form: what was sent twice by a nervous finger is booked once.
    key = st.session_state.setdefault(f"key {one.proposal}", str(uuid.uuid4()))
    with st.form("answer"):
        reason = st.text_area(
            "What you say", max_chars=1000, placeholder="It is kept, with your name.", key=f"said {key}"
        )
        columns = st.columns(len(steps))
        pressed = [
            step
            for column, step in zip(columns, steps, strict=True)
            if column.form_submit_button(
                proposals.STEPS[step][0], icon=proposals.STEPS[step][1], width="stretch", key=step.value
            )
        ]
    if pressed and not reason.strip():
        st.warning("Say why: it is kept with the proposal.", icon=":material/edit:")
    elif pressed:
        _say(one, pressed[0], reason.strip(), f"{key} {pressed[0].value}")


def _say(one: Proposal, step: Step, reason: str, key: str) -> None:
    try:
        data.say(one.proposal, step, reason, key)
    except GpuledgerError as error:
        st.error(figures.plain(f"{error.message}. {error.hint}"), icon=":material/block:")
        return
    del st.session_state[f"key {one.proposal}"]
    data.forget()
    st.rerun()


def main() -> None:
    """Show the page."""
    st.title("Proposals")
    st.markdown("Who asks for another budget, what it would change, and the answer.")
    state = frame.choose("Show", proposals.STATES, "state", width=300)
    answered = frame.ask(lambda: data.proposals(None if state == "all" else state))
    if not answered.proposals:
        frame.end_with(proposals.none_there(state))
    found = list(answered.proposals)
    one = choose(found)
    context = {"as_of": answered.as_of}
    frame.download(
        "Download the list (CSV)", proposals.csv_rows(found), "proposals.csv", context, "proposals-csv"
    )
    if one is not None:
        show(one)
        answer(one, frame.ask(data.me))
        frame.working(
            [("Part", "product of share / siblings' shares down the path")],
            f"{data.api_url()}/v1/proposals/{one.proposal}",
            shlex.join(("gpuledger", "proposal", "show", one.proposal)),
        )


main()
