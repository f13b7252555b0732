"""``gpuledger notify``: tell people what follows from the books. Without ``--send`` nothing is written or sent."""

from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.asking import who
from gpuledger.cli.options import Json
from gpuledger.cli.output import counted, note, print_json, print_table
from gpuledger.kernel.exits import TRY_AGAIN

if TYPE_CHECKING:
    from gpuledger.notify.recipients import Recipients
    from gpuledger.notify.running import Told
    from gpuledger.settings import Settings

app = typer.Typer(
    help="Notices of budgets, checks and closes: webhooks and mail. A dry run unless told otherwise.",
    no_args_is_help=True,
)

Send = Annotated[bool, typer.Option("--send", help="Really write it down and send it.")]


@app.command("run")
def run(send: Send = False, as_json: Json = False) -> None:
    """Notice what is new, and tell who is still to be told; without --send only say what that would be."""
    from gpuledger import settings
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.notify import running

    config = settings.load()
    recipients = _recipients(config)
    with open_database(config) as engine:
        told = running.run(running.notifier_of(config, engine, recipients, SystemClock()), send=send)
    if as_json:
        print_json(told.as_json())
    else:
        _show(told)
    if told.failed:
        raise typer.Exit(TRY_AGAIN)


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many, the newest first.")] = 50,
    as_json: Json = False,
) -> None:
    """List what was noticed, and how far each recipient has been told."""
    from gpuledger import settings
    from gpuledger.database.engine import writing
    from gpuledger.database.opening import open_database
    from gpuledger.notify import outbox

    with open_database(settings.load()) as engine, writing(engine) as writer:
        found = outbox.listed(writer, limit)
    if as_json:
        print_json({"notices": found})
        return
    rows = []
    for each in found:
        about = each["account"] or each["cluster"] or ""
        said = [
            f"{way['target']}: {way['state']}" + (f" ({way['said']})" if way["said"] else "")
            for way in each["deliveries"]
        ]
        rows.append((each["noticed_at"], each["id"], each["type"], about, "; ".join(said) or "nobody"))
    print_table(["noticed", "id", "type", "about", "told"], rows)


@app.command("show")
def show(
    notice: Annotated[str, typer.Argument(metavar="ID", help="The notice's id, as `notify list` shows it.")],
    *,
    html: Annotated[bool, typer.Option("--html", help="The mail as HTML.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The payload, byte for byte as webhooks are sent it.")
    ] = False,
) -> None:
    """Print a notice as its readers have it: the text of the mail, its HTML, or the payload."""
    from gpuledger import settings
    from gpuledger.database.engine import writing
    from gpuledger.database.opening import open_database
    from gpuledger.notify import outbox
    from gpuledger.notify.rendering import render

    with open_database(settings.load()) as engine, writing(engine) as writer:
        body = outbox.get_body(writer, notice)
    if as_json:
        print(body.decode())
        return
    rendered = render(body)
    print(rendered.html if html else f"Subject: {rendered.subject}\n\n{rendered.text}", end="")


@app.command("test")
def try_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of the file of recipients.")],
    *,
    send: Send = False,
    as_json: Json = False,
) -> None:
    """Send one recipient of the file a notice that says nothing but that it arrives."""
    from gpuledger import settings
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.kernel.errors import NotFound
    from gpuledger.notify import running
    from gpuledger.notify.sending import Undelivered

    config = settings.load()
    recipients = _recipients(config)
    chosen = [each for each in recipients.targets if each.name.split("/")[1] == name]
    if not chosen:
        known = sorted({each.name.split("/")[1] for each in recipients.targets})
        raise NotFound(f"nobody is called {name!r}", hint=f"the file has {', '.join(known) or 'nobody'}")
    outcomes: dict[str, str] = {each.name: "not sent" for each in chosen}
    if send:
        with open_database(config) as engine:
            notifier = running.notifier_of(config, engine, recipients, SystemClock())
            for target in outcomes:
                try:
                    running.send_to(notifier, target, running.trial(target, who(), notifier.clock))
                    outcomes[target] = "sent"
                except Undelivered as error:
                    outcomes[target] = error.message
    if as_json:
        print_json({"sent_for_real": send, "targets": outcomes})
    else:
        for target, outcome in outcomes.items():
            print(f"{target}: {outcome}")
        if not send:
            note("a dry run: --send sends it")
    if send and set(outcomes.values()) != {"sent"}:
        raise typer.Exit(TRY_AGAIN)


def _recipients(config: "Settings") -> "Recipients":
    from gpuledger.kernel.errors import Refused
    from gpuledger.notify.recipients import load_recipients

    found = load_recipients(config)
    if found is None:
        raise Refused(
            "nobody is to be told anything: GPULEDGER_NOTIFICATIONS is not set",
            hint="name a file of recipients; docs/notifications.md shows one",
        )
    return found


def _show(told: "Told") -> None:
    for new in told.as_json()["noticed"]:
        whom = "overtaken by another" if new["overtaken"] else ", ".join(new["targets"]) or "nobody"
        print(f"+ {new['subject']}  ->  {whom}")
    for notice, target in told.sent:
        print(f"sent    {notice} to {target}")
    for notice, target, said in told.failed:
        print(f"failed  {notice} to {target}: {said}")
    for each in told.waiting:
        print(f"due     {each.notice} to {each.target}")
    print(
        f"{counted(len(told.noticed), 'new notice')}, {len(told.sent)} sent, {len(told.failed)} failed,"
        f" {len(told.waiting)} waiting"
    )
    if not told.is_sent:
        note("a dry run: nothing was written or sent; --send does both")
