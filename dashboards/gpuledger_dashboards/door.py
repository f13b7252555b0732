"""Who looks at the pages: signed in by an address of the demo, shown on every page, signed out again."""

import streamlit as st

from gpuledger.kernel.errors import GpuledgerError
from gpuledger_dashboards import data, figures, people

AS = "as"
"""The parameter of an address that names one of the demo's people."""

_CAME_AS = "came_as"


def enter() -> None:
    """Sign in whom the address names, once: who signs out or in as another afterwards stays so."""
    asked = st.query_params.get(AS)
    if asked is None or st.session_state.get(_CAME_AS) == asked:
        return
    st.session_state[_CAME_AS] = asked
    if (person := people.named(data.demo_people(), asked)) is not None:
        data.sign_in(person.token)


def show() -> None:
    """Show who looks, and let them sign out, or in as somebody else of the demo."""
    folk = data.demo_people()
    if not folk and not data.is_signed_in():
        return
    with (
        st.container(horizontal=True, horizontal_alignment="right"),
        st.popover(_label(), icon=":material/person:"),
    ):
        _show_me()
        for person in folk:
            if st.button(f"Look as {figures.plain(person.name)}", key=f"as-{person.key}", width="stretch"):
                st.query_params[AS] = person.key
                st.session_state[_CAME_AS] = person.key
                data.sign_in(person.token)
                st.rerun()
            st.caption(figures.plain(f"{person.about}: {person.attempt}."))


def _label() -> str:
    if not data.is_signed_in():
        return "Look as somebody"
    try:
        return figures.plain(data.me().name)
    except GpuledgerError:
        return "Not let in"


def _show_me() -> None:
    """Show how far the viewer reaches, and the way out."""
    if not data.is_signed_in():
        return
    try:
        st.markdown(figures.plain(people.scope(data.me())))
    except GpuledgerError as error:
        st.caption(figures.plain(error.message))
    if st.button("Sign out", icon=":material/logout:", width="stretch"):
        st.query_params.pop(AS, None)
        data.sign_out()
        st.rerun()
