"""``gpuledger token``: who may ask the API. Made on the ledger's own host alone, by who may reach its database."""

import datetime as dt
from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.asking import confirmed, who
from gpuledger.cli.options import Json, Yes
from gpuledger.cli.output import note, print_json, print_table
from gpuledger.identity.roles import Role

if TYPE_CHECKING:
    from gpuledger.identity.store import Token

app = typer.Typer(
    help="Tokens: who may ask the API, in which role, and how far they reach.", no_args_is_help=True
)

TokenId = Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `token list` shows it.")]
Days = Annotated[int, typer.Option("--days", min=1, max=3660, help="How long it is good for.")]


@app.command("create")
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Who or what will use it; orders are kept under it.")
    ],
    *,
    role: Annotated[Role, typer.Option("--role", help="What it may do.")],
    subtree: Annotated[
        str | None,
        typer.Option("--subtree", help="An account: it and all below it is what the token reaches."),
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option("--cluster", help="A cluster that it reaches; repeat for more; all unless given."),
    ] = None,
    days: Days = 365,
    as_json: Json = False,
) -> None:
    """Make a token and print its text, this once: the ledger keeps a digest alone."""
    from gpuledger import settings
    from gpuledger.database.engine import writing
    from gpuledger.database.opening import open_database
    from gpuledger.identity import store
    from gpuledger.identity.caller import Scope
    from gpuledger.kernel.clock import SystemClock

    scope = Scope(subtree, tuple(sorted(set(cluster or ()))))
    order = store.Order(name, role, scope, dt.timedelta(days=days), who())
    with open_database(settings.load()) as engine, writing(engine) as writer:
        text, token = store.create(writer, order, SystemClock().now())
    _print_made(text, token, as_json=as_json)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the tokens there are and were; their secrets are not kept."""
    from gpuledger import settings
    from gpuledger.database.engine import writing
    from gpuledger.database.opening import open_database
    from gpuledger.identity import store
    from gpuledger.kernel.clock import SystemClock

    now = SystemClock().now()
    with open_database(settings.load()) as engine, writing(engine) as writer:
        found = store.every(writer)
    if as_json:
        print_json({"tokens": [{**token.as_json(), "good": token.is_good(now)} for token in found]})
        return
    shown = [
        (token.id, token.name, token.role, token.scope.subtree or "every account",
         ", ".join(token.scope.clusters) or "every cluster", _until(token, now), _minute(token.last_used_at))
        for token in found
    ]  # fmt: skip
    print_table(["id", "name", "role", "accounts", "clusters", "good until", "last used"], shown)


@app.command("rotate")
def rotate(
    token: TokenId,
    *,
    overlap_hours: Annotated[
        int, typer.Option("--overlap-hours", min=0, max=24 * 90, help="How long the old one stays good.")
    ] = 24,
    days: Days = 365,
    as_json: Json = False,
) -> None:
    """Make a token in place of another; both are good until the overlap ends, so that nothing stands still."""
    from gpuledger import settings
    from gpuledger.database.engine import writing
    from gpuledger.database.opening import open_database
    from gpuledger.identity import store
    from gpuledger.kernel.clock import SystemClock

    overlap, lifetime = dt.timedelta(hours=overlap_hours), dt.timedelta(days=days)
    with open_database(settings.load()) as engine, writing(engine) as writer:
        text, made = store.rotate(
            writer, token, overlap=overlap, lifetime=lifetime, by=who(), now=SystemClock().now()
        )
    _print_made(text, made, as_json=as_json)


@app.command("revoke")
def revoke(token: TokenId, *, yes: Yes = False, as_json: Json = False) -> None:
    """End a token at once."""
    from gpuledger import settings
    from gpuledger.database.engine import writing
    from gpuledger.database.opening import open_database
    from gpuledger.identity import store
    from gpuledger.kernel.clock import SystemClock

    with open_database(settings.load()) as engine:
        with writing(engine) as writer:
            found = store.get(writer, token)
        if confirmed(f"revoke {found.id}, {found.role} {found.name}?", yes=yes):
            with writing(engine) as writer:
                found = store.revoke(writer, token, by=who(), now=SystemClock().now())
    if as_json:
        print_json(found.as_json())
    else:
        print(f"{found.id} {'is revoked' if found.revoked_at else 'stays'}")


def _print_made(text: str, token: "Token", *, as_json: bool) -> None:
    if as_json:
        print_json({"token": text, **token.as_json()})
        return
    print(text)
    note(
        f"id {token.id}: {token.role} {token.name}, good until {_minute(token.expires_at)}; it is not shown again"
    )


def _until(token: "Token", now: dt.datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return _minute(token.expires_at) if token.is_good(now) else "over"


def _minute(at: dt.datetime | None) -> str:
    return "never" if at is None else f"{at:%Y-%m-%d %H:%MZ}"
