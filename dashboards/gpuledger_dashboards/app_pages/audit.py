"""Audit: how far each book goes and which head proves it, what could not be read, and what is sealed."""

import streamlit as st

from gpuledger.kernel.errors import Forbidden
from gpuledger_dashboards import audit, data, figures, frame


def show_books() -> None:
    """Show chains and dead letters, to those who may see the books themselves."""
    st.subheader("Books")
    try:
        books = data.books()
    except Forbidden:
        st.caption("Heads of chains are for auditors and administrators.")
        return
    st.markdown(f"**{figures.plain(audit.headline(books))}**")
    frame.table(
        audit.chains(books.books),
        caption="Books with their number of rows, the time of the newest and the head of the chain",
        texts=True,
    )
    st.caption(
        figures.plain(
            f"as of {figures.instant(books.as_of)} · a head proves every row before it; one that was kept elsewhere"
            " shows that none is missing at the end"
        )
    )
    if books.dead_letters:
        frame.explain(audit.unread())
    frame.download(
        "Download the heads (CSV)",
        audit.csv_rows(books.books),
        "heads.csv",
        {"as_of": books.as_of},
        "heads-csv",
    )


def main() -> None:
    """Show the page."""
    st.title("Audit")
    st.markdown("How far each book goes, what could not be read, and what is sealed.")
    closes = frame.ask(data.closes).closes
    show_books()
    st.subheader("Closes")
    if closes:
        frame.table(
            audit.closes(closes),
            caption="Closes of budget periods with version, state, when each was sealed, and the digest of its file",
            texts=True,
        )
    else:
        frame.explain(audit.no_closes())
    frame.working(
        [
            ("Head", "SHA-256 over the canonical form of a row, its postings and the head before it"),
            ("Digest", "SHA-256 of the sealed file, which a verification makes anew from the journal"),
        ],
        f"{data.api_url()}/v1/closes",
        audit.verifying(closes),
    )


main()
