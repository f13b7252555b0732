"""``gpuledger audit`` and ``rebuild``: the book itself."""

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.options import AsOf, Cluster, From, Json, To, recorded, recorded_window
from gpuledger.cli.output import note, print_json, print_table, progress
from gpuledger.kernel.exits import PROBLEMS

if TYPE_CHECKING:
    from gpuledger.ledger.heads import ExportedHead

audit_app = typer.Typer(help="Verify the ledger.", no_args_is_help=True)


@audit_app.command("verify")
def verify(
    cluster: Cluster = None,
    from_: From = None,
    to: To = None,
    as_of: AsOf = None,
    heads: Annotated[
        Path | None,
        typer.Option(
            "--heads", help="Also hold the books against heads that `audit export-heads` wrote here."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute every hash, sequence and balance; names the first bad row of each book.

    A window is of recorded time: only the rows recorded in it are read, chained to the row before.
    Exported heads are all held against the books, whatever the window.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ledger import audit, queries
    from gpuledger.ledger.heads import contradicted, held_against

    exported = [] if heads is None else _exported(heads, cluster)
    config, known_at = settings.load(), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        if not exported:  # a book that vanished is what the heads of a cluster are for
            queries.require_cluster(reader, cluster)
        from_at, to_at = recorded_window(from_, to, queries.calendar(reader, config.calendar, known_at))
        if known_at is not None:
            end = known_at + dt.timedelta.resolution
            to_at = end if to_at is None else min(to_at, end)
        query = audit.AuditQuery(cluster, from_at, to_at)
        with progress("verifying", audit.row_count(reader, query)) as advance:
            result = audit.verify(reader, query, lambda done, _: advance(done))
        result = held_against(result, contradicted(reader, exported))
    if as_json:
        print_json(result.as_json())
    else:
        rows = [
            (b.book, f"{b.rows:,}", b.head[:16], b.first_bad.told() if b.first_bad else "holds")
            for b in result.books
        ]  # fmt: skip
        print_table(["book", ">rows", "head", "verdict"], rows)
        for fault in result.faults:
            print(f"guard: {fault}")
        print("the ledger holds" if result.ok else "the ledger does NOT hold")
    if not result.ok:
        raise typer.Exit(PROBLEMS)


def _exported(path: Path, cluster: str | None) -> "list[ExportedHead]":
    from gpuledger.ledger import head_files

    exports = head_files.read(path)
    if exports.rest:
        note(f"{path}: the last line does not end; it was never exported and is passed over")
    own = [head for head in exports.heads if cluster in (None, head.book)]
    if not own:
        note(f"{path}: no head of {cluster} was ever exported; its chain alone is verified")
    return own


def rebuild(
    check: Annotated[bool, typer.Option("--check", help="Compare only; change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Rebuild balances and projections from the journal, or check that they would come out the same."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ingest.collector import relax_collector
    from gpuledger.ledger import rebuild as rebuilding
    from gpuledger.ledger.attempts import booked

    config = settings.load()
    relax_collector()
    with open_database(config) as engine:
        if not check:
            booked(engine, None, lambda writer: rebuilding.rebuild(writer, config.calendar))
        with reading(engine) as reader:
            result = rebuilding.check(reader, config.calendar)
    if as_json:
        print_json(result.as_json())
    else:
        for line in result.differences:
            print(line)
        print(f"state digest {result.state_digest}: {'agrees with the journal' if result.ok else 'DIFFERS'}")
    if not result.ok:
        raise typer.Exit(PROBLEMS)
