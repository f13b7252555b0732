"""``gpuledger user``."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.asking import confirmed
from gpuledger.cli.options import Json, Yes
from gpuledger.cli.output import note, print_json

if TYPE_CHECKING:
    from gpuledger.ledger.erasure import Erasure

SHOWN_MAX = 20

app = typer.Typer(help="People whose names the ledger keeps aside.", no_args_is_help=True)


@app.command("erase")
def erase(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name as the source writes it.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be erased and stop.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Erase a person: the key that ties the name to its token, and the texts kept aside of their work and orders.

    Texts of others that name them go too. Chain, balances and reports stay as they are; the token in them no longer
    leads to anybody. Dead letters that were read after all or discarded, and messages that are published, lose their
    bytes where they quote the name. Sources, topics and backups keep what they hold: erase there first.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ledger import erasure
    from gpuledger.ledger.attempts import booked

    with open_database(settings.load()) as engine:
        with reading(engine) as reader:
            found = erasure.plan(reader, name)
        for line in _shown(found):
            note(line)
        erased = not dry_run and confirmed(f"erase {name!r}? This cannot be undone", yes=yes)
        if erased:
            found = booked(engine, None, lambda writer: erasure.erase(writer, name))
    if as_json:
        print_json({"name": name, **asdict(found), "erased": erased})
    else:
        print("erased" if erased else "nothing erased")


def _shown(found: "Erasure") -> Iterator[str]:
    """Yield what goes and what is kept, a line each."""
    if found.token is not None:
        yield f"- name and key behind {found.token}, which {found.rows} journal rows carry and keep"
    if found.token is not None or found.texts:
        yield f"- {found.texts} texts kept aside"
    if read := found.dead_letters - len(found.waiting):
        yield f"- bytes of {read} dead letters that were read after all or discarded"
    if found.messages:
        yield f"- bytes of {found.messages} published messages"
    for letter in found.waiting[:SHOWN_MAX]:
        yield f"  kept: dead letter {letter.id}, {letter.place}, which waits"
    if len(found.waiting) > SHOWN_MAX:
        yield f"  ... and {len(found.waiting) - SHOWN_MAX} more; gpuledger user erase --dry-run --json lists all"
    if found.waiting:
        yield "  gpuledger dlq retry reads them when it can, dlq discard gives them up; erase again afterwards"
    if found.unpublished:
        yield f"  kept: {found.unpublished} messages that wait; gpuledger cycle publishes them, erase again afterwards"
