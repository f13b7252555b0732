"""Admin: who may ask the API and how far they reach, and the accounts with the shares that are set."""

import streamlit as st

from gpuledger_dashboards import admin, data, figures, frame


def show_tokens() -> None:
    """Show tokens, to administrators."""
    st.subheader("Who may ask")
    if "read-tokens" not in frame.ask(data.me).rights:
        frame.explain(admin.not_an_admin())
        return
    found = frame.ask(data.tokens)
    st.markdown(f"**{figures.plain(admin.headline(found.tokens))}**")
    frame.table(
        admin.tokens(found.tokens),
        caption="Tokens with role, reach, last use and state; those that are good first",
        tall=True,
        texts=True,
    )
    st.caption(
        figures.plain(f"as of {figures.instant(found.as_of)} · times in UTC · secrets are kept nowhere")
    )
    context = {"as_of": found.as_of}
    frame.download(
        "Download the tokens (CSV)", admin.token_rows(found.tokens), "tokens.csv", context, "tokens-csv"
    )
    with st.expander("Make, replace or end one"):
        st.caption("On the ledger's own host, where its database is:")
        st.code(admin.COMMANDS, language=None, wrap_lines=True)


def show_accounts() -> None:
    """Show the tree of accounts with shares."""
    st.subheader("Accounts")
    found = frame.ask(data.accounts)
    if not found.accounts:
        frame.explain(admin.no_accounts())
        return
    frame.table(
        admin.accounts(found.accounts),
        caption="Accounts with the share and overdraft in force, how often shares were set, and since when they exist",
        tall=True,
        texts=True,
    )
    more = (
        ""
        if found.next is None
        else " · the first thousand accounts by path; GET /v1/accounts has the others"
    )
    st.caption(figures.plain(f"as of {figures.instant(found.as_of)} · times in UTC{more}"))
    context = {"as_of": found.as_of}
    frame.download(
        "Download the shares (CSV)", admin.account_rows(found.accounts), "shares.csv", context, "accounts-csv"
    )


def main() -> None:
    """Show the page."""
    st.title("Admin")
    st.markdown("Who may ask the ledger and how far they reach; which accounts there are, with their shares.")
    show_tokens()
    show_accounts()
    frame.working(
        [
            (
                "Share in force",
                "the one that was set last of those whose moment has come; 1 where none was set",
            )
        ],
        f"{data.api_url()}/v1/accounts",
        "gpuledger token list --json",
    )


main()
