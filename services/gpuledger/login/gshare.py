"""``gshare``: shares, use and order of accounts, with the flags and columns of Slurm's ``sshare``."""

import argparse
import datetime as dt
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuledger.login import asking

if TYPE_CHECKING:
    from gpuledger.client import LedgerClient
    from gpuledger.client.records import Account
    from gpuledger.login.shares import Row

WINDOW = dt.timedelta(days=7)
"""How far back people's use is added up."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    made = asking.parser("gshare", "Show the shares of accounts, what they used, and who comes next.")
    asking.add_table_flags(made)
    made.add_argument(
        "-a", "--all", action="store_true", help="people too, with what they used in seven days"
    )
    made.add_argument("-u", "--users", metavar="LIST", help="these people; commas between")
    made.add_argument(
        "-U", "--Users", action="store_true", dest="people_alone", help="people alone, no accounts"
    )
    options = made.parse_args(arguments)
    return asking.end_of("gshare", lambda: _run(options), as_json=options.json)


def _run(options: argparse.Namespace) -> int:
    from gpuledger.login import shares
    from gpuledger.login.columns import Style, chosen, lines

    if options.helpformat:
        for name, meaning in shares.MEANINGS.items():
            print(f"{name:13} {meaning}")
        return 0
    style = asking.style_of(options)
    usual = shares.LONG if options.long else shares.USUAL
    columns = chosen(shares.columns(for_programs=style is not Style.ALIGNED), options.format or usual)
    with asking.open_client() as client:
        cluster = asking.cluster_of(client, options.cluster)
        cycle = client.allocations(cluster)
        rows = shares.of_accounts(_accounts(client), cycle.allocations)
        kept = asking.names_in(options.accounts)
        rows = tuple(row for row in rows if asking.is_within(row.account, kept))
        if options.all or options.users or options.people_alone:
            rows = _with_people(client, cluster, rows, asking.names_in(options.users), cycle.as_of)
        if options.people_alone:
            rows = tuple(row for row in rows if row.user)
    if options.json:
        shown = [row.as_json() for row in rows]
        asking.print_document(
            {"cluster": cluster, "cycle": cycle.cycle, "as_of": cycle.as_of, "shares": shown}
        )
        return 0
    for line in lines(columns, rows, style, with_header=not options.noheader):
        print(line)
    return 0


def _accounts(client: "LedgerClient") -> "list[Account]":
    found: list[Account] = []
    page = client.accounts()
    while True:
        found.extend(page.accounts)
        if page.next is None:
            return found
        page = client.accounts(after=page.next)


def _with_people(
    client: "LedgerClient", cluster: str, rows: "tuple[Row, ...]", kept: Sequence[str], as_of: str
) -> "tuple[Row, ...]":
    from gpuledger.login import shares

    end = dt.datetime.fromisoformat(as_of)
    used = {
        row.account: client.usage(
            "user", cluster=cluster, account=row.account, from_=end - WINDOW, to=end
        ).rows
        for row in rows
        if row.fair_share is not None  # a leaf
    }
    return shares.with_people(rows, used, kept)


if __name__ == "__main__":
    sys.exit(main())
