"""``gpuledger user``."""

from dataclasses import asdict
from typing import Annotated

import typer

from gpuledger.cli.asking import confirmed
from gpuledger.cli.options import Json
from gpuledger.cli.output import note, print_json

app = typer.Typer(help="People whose names the ledger keeps aside.", no_args_is_help=True)


@app.command("erase")
def erase(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name as the source writes it.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be erased and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Erase a person: the key that ties the name to its token, and the texts kept aside of their work.

    Chain, balances and reports stay as they are; the token in them no longer leads to anybody. Sources,
    topics and backups keep what they hold: erase there first.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading, writing
    from gpuledger.database.opening import open_database
    from gpuledger.ledger import erasure

    with open_database(settings.load()) as engine:
        with reading(engine) as reader:
            found = erasure.plan(reader, name)
        note(f"- name and key behind {found.token}, which {found.rows} journal rows carry and keep")
        note(f"- {found.texts} texts kept aside")
        if found.dead_letters:
            note(
                f"  kept: {found.dead_letters} dead letters in which {name!r} occurs; see gpuledger dlq list"
            )
        erased = not dry_run and confirmed(f"erase {name!r}? This cannot be undone", yes=yes)
        if erased:
            with writing(engine) as writer:
                found = erasure.erase(writer, name)
    if as_json:
        print_json({"name": name, **asdict(found), "erased": erased})
    else:
        print("erased" if erased else "nothing erased")
