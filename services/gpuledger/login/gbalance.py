"""``gbalance``: what accounts were given, have used and have left; and the line that a login shows."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--login"]:
        return _login()
    from gpuledger.login import asking  # it and what it needs would take longer than the line at login

    made = asking.parser("gbalance", "Show what accounts were given, used and have left, in GPU-hours.")
    asking.add_table_flags(made)
    made.add_argument("--period", metavar="PERIOD", help="this budget period; the newest unless given")
    made.add_argument(
        "--login",
        action="store_true",
        help="print a line for each of your accounts from the file that login nodes keep, ask nobody, and"
        " never fail; alone",
    )
    options = made.parse_args(given)
    if options.login:
        made.error("--login goes alone")
    return asking.end_of("gbalance", lambda: _run(options), as_json=options.json)


def _run(options: "argparse.Namespace") -> int:
    from gpuledger.login import asking, balances
    from gpuledger.login.columns import chosen, lines

    if options.helpformat:
        for name, meaning in balances.MEANINGS.items():
            print(f"{name:11} {meaning}")
        return 0
    with asking.open_client() as client:
        answer = client.balances(cluster=options.cluster, period=options.period)
    kept = asking.names_in(options.accounts)
    found = (each for each in answer.balances if asking.is_within(each.account, kept))
    rows = balances.newest(found, options.period)
    are_several = len({row.cluster for row in rows}) > 1
    usual = balances.LONG if options.long else balances.OF_SEVERAL if are_several else balances.USUAL
    columns = chosen(balances.columns(), options.format or usual)
    if options.json:
        asking.print_document({"balances": balances.as_json(rows), "as_of": answer.as_of})
        return 0
    for line in lines(columns, rows, asking.style_of(options), with_header=not options.noheader):
        print(line)
    return 0


def _login() -> int:
    """Print what the kept file says of who logs in; whatever is wrong, nothing is said, and no login waits or fails."""
    try:
        from gpuledger.kernel.clock import SystemClock
        from gpuledger.login import kept

        for line in kept.lines_for(_person(), kept.file_named(os.environ), SystemClock().now()):
            print(line)
        sys.stdout.flush()
    except Exception:  # noqa: BLE001 - a login shell is the wrong place for any complaint
        return 0
    return 0


def _person() -> str:
    import pwd  # the file's names are those of the system, not what a variable says

    return pwd.getpwuid(os.getuid()).pw_name


if __name__ == "__main__":
    sys.exit(main())
