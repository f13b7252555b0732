"""``gpuledger backup`` and ``restore``."""

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import Json
from gpuledger.cli.output import note, print_json, print_table
from gpuledger.kernel.exits import PROBLEMS


def backup(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write; FILE.json says what it holds.")
    ],
    as_json: Json = False,
) -> None:
    """Write all that the ledger keeps into one file, of one moment, while everybody goes on working.

    Topics of the broker are not in it, nor the files of closes.
    """
    import msgspec

    from gpuledger import settings
    from gpuledger.backup.taking import take
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock

    with open_database(settings.load()) as engine:
        told = take(engine, file, SystemClock())
    if as_json:
        print_json({"file": str(file), **msgspec.to_builtins(told)})
        return
    print_table(["book", ">rows", "head"], [(h.book, f"{h.rows:,}", h.head[:16]) for h in told.heads])
    print(f"{file}: {told.bytes / 2**20:,.1f} MiB, SHA-256 {told.sha256}")


def restore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What gpuledger backup wrote, with FILE.json beside it.")
    ],
    as_json: Json = False,
) -> None:
    """Restore a backup into an empty database, then verify every row and compare every head with the backup's."""
    from gpuledger import settings
    from gpuledger.backup.restoring import restore as bring_back
    from gpuledger.database.opening import database_url

    with database_url(settings.load()) as url:
        found = bring_back(url, file, lambda step: note(f"  {step}"))
    if as_json:
        print_json(found.as_json())
    else:
        for difference in found.differences:
            print(f"{difference.book}: {difference.what}")
        for fault in found.audit.faults:
            print(fault)
        books = ", ".join(f"{head.book} ({head.rows:,})" for head in found.told.heads)
        print(f"{'restored and verified' if found.ok else 'restored, and it does not hold'}: {books}")
    if not found.ok:
        raise typer.Exit(PROBLEMS)
