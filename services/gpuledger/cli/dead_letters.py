"""``gpuledger dlq``: what could not be read, and what becomes of it."""

import base64
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuledger.cli.asking import confirmed, who
from gpuledger.cli.options import AsOf, Cluster, From, Json, To, Yes, recorded, recorded_window
from gpuledger.cli.output import note, print_json, print_table
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.exits import PROBLEMS

if TYPE_CHECKING:
    import sqlalchemy as sa

    from gpuledger.ingest.dead_letters import Entry, State, Stored

app = typer.Typer(help="Records that could not be read.", no_args_is_help=True)

SHOWN_MAX = 20
"""Failures of a retry that are shown one by one."""

RAW_SHOWN_MAX = 2000
"""How much of a value ``show`` prints for people."""

EVERY = "all"

Ids = Annotated[list[int] | None, typer.Argument(metavar="[ID]...", help="Numbers from `dlq list`.")]
Id = Annotated[int, typer.Argument(metavar="ID", help="A number from `dlq list`.")]
Code = Annotated[str | None, typer.Option("--code", help="One kind of fault, such as bad-field.")]
Stream = Annotated[
    str | None, typer.Option("--stream", help="One topic, or one import as import/SOURCE/CLUSTER.")
]
All = Annotated[bool, typer.Option("--all", help="All that wait.")]


@app.command("list")
def list_(
    cluster: Cluster = None,
    *,
    code: Code = None,
    stream: Stream = None,
    state: Annotated[str, typer.Option("--state", help="waiting, resolved, discarded or all.")] = "waiting",
    from_: From = None,
    to: To = None,
    as_of: AsOf = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="No more than so many; all unless given.")
    ] = None,
    after: Annotated[int, typer.Option("--after", min=0, help="Go on behind this number.")] = 0,
    as_json: Json = False,
) -> None:
    """List what could not be read, with its place, reason and remedy.

    A window is of the time of receipt; --cluster keeps what is known to be of that cluster.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ingest import dead_letters
    from gpuledger.ledger import queries

    config, wanted, known_at = settings.load(), _state(state), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        window = recorded_window(from_, to, queries.calendar(reader, config.calendar, known_at))
        query = dead_letters.LettersQuery(
            cluster, *window, as_of=known_at, code=code, stream=stream, state=wanted
        )
        found = dead_letters.list_entries(reader, query, after=after, limit=limit and limit + 1)
    page = found[:limit]
    next_ = page[-1].id if len(found) > len(page) else None
    if as_json:
        print_json({"dead_letters": [_document(entry) for entry in page], "next": next_})
    elif not page:
        print("no dead letters")
    else:
        print_table([">id", "place", "code", "reason"], [(e.id, e.place, e.code, e.reason) for e in page])
        if next_ is not None:
            note(f"there are more: --after {next_}")


@app.command("show")
def show(
    id_: Id,
    raw: Annotated[bool, typer.Option("--raw", help="The bytes as they came, and nothing else.")] = False,
    as_json: Json = False,
) -> None:
    """Show one record that could not be read: where it stood, why, what to do, and its bytes."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ingest import dead_letters
    from gpuledger.ingest.discarding import find_decision
    from gpuledger.kernel.reasons import sentence_of

    with open_database(settings.load()) as engine, reading(engine) as reader:
        entry = dead_letters.get_entry(reader, id_)
        (stored,) = dead_letters.waiting(reader, dead_letters.LettersQuery(ids=[id_], state=None))
        decision = find_decision(reader, id_)
    if raw:
        sys.stdout.buffer.write(stored.letter.raw)
        return
    document = _document(entry) | {"meaning": sentence_of(entry.code), "context": dict(stored.letter.context)}
    if decision is not None:
        document |= {"discarded_by": decision.by, "discarded_for": decision.reason}
    if as_json:
        print_json(document | _as_text(stored.letter.raw))
        return
    for key, value in document.items():
        if value not in (None, "", {}):
            print(f"{key:14} {value}")
    print()
    print(_shown(stored.letter.raw))


@app.command("retry")
def retry(
    ids: Ids = None,
    code: Code = None,
    stream: Stream = None,
    cluster: Cluster = None,
    all_: All = False,
    mended: Annotated[
        Path | None,
        typer.Option(
            "--mended", help="Book the bytes of this file in place of those of the one letter named."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read dead letters again with the code of today; what is understood now is booked. All that wait unless told.

    A letter is resolved in the transaction that books what it says, so that running it again changes nothing.
    """
    from gpuledger import settings
    from gpuledger.database.opening import open_database
    from gpuledger.ingest import dead_letters, retrying
    from gpuledger.ingest.intake import Intake
    from gpuledger.kernel.clock import SystemClock

    _check_selection(ids, all_, code, stream, cluster)
    replacement = None if mended is None else _mended(mended, ids)
    config = settings.load()
    failures = _Failures()
    with open_database(config) as engine:
        intake = Intake(engine, SystemClock(), config.calendar)
        if ids:
            _check_there(engine, ids)
        if replacement is not None and ids:
            done = retrying.retry_mended(intake, ids[0], replacement, failures)
        else:
            query = dead_letters.LettersQuery(cluster, code=code, stream=stream, ids=ids)
            done = retrying.retry(intake, dead_letters.iter_entries(engine, query), failures)
        intake.open_periods(sorted(done.clusters))
    failures.told()
    document = {"resolved": done.resolved, "failed": done.failed}
    print_json(document) if as_json else print(f"{done.resolved} resolved, {done.failed} still bad")
    if done.failed:
        raise typer.Exit(PROBLEMS)


@app.command("discard")
def discard(
    ids: Ids = None,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why nobody needs them; kept with who and when.")],
    code: Code = None,
    stream: Stream = None,
    cluster: Cluster = None,
    all_: All = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be discarded and stop.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Let records wait no longer that nobody needs. The row stays, with who decided so, when and why."""
    from gpuledger import settings
    from gpuledger.database.opening import open_database
    from gpuledger.ingest import dead_letters, discarding
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.ledger.attempts import booked

    _check_selection(ids, all_, code, stream, cluster)
    if not (ids or all_ or code or stream or cluster):
        raise Refused("discard: nothing is named", hint="name numbers, --code, --stream, --cluster or --all")
    config = settings.load()
    done = discarding.Discarded(0, 0)
    with open_database(config) as engine:
        chosen = ids
        if chosen is None:
            query = dead_letters.LettersQuery(cluster, code=code, stream=stream)
            chosen = [entry.id for entry in dead_letters.iter_entries(engine, query)]
        else:
            _check_there(engine, chosen)
        note(f"~ discard  {len(chosen)} dead letters: {reason}")
        applied = not dry_run and (not chosen or confirmed(f"discard {len(chosen)} dead letters?", yes=yes))
        if applied:
            now = SystemClock().now()
            done = booked(engine, None, lambda writer: discarding.discard(writer, chosen, who(), reason, now))
    if as_json:
        print_json({**done._asdict(), "applied": applied})
    else:
        print(
            f"{done.discarded} discarded, {done.repeated} discarded before"
            if applied
            else "nothing discarded"
        )


class _Failures:
    """Keeps what to tell of letters that still cannot be read."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._more = 0

    def __call__(self, stored: "Stored", error: Refused) -> None:
        if len(self._lines) == SHOWN_MAX:
            self._more += 1
            return
        place = "" if error.message.startswith(stored.letter.place) else f"{stored.letter.place}: "
        self._lines.append(f"  {stored.id}: {place}{error.message}")

    def told(self) -> None:
        """Tell it."""
        for line in self._lines:
            note(line)
        if self._more:
            note(f"  ... and {self._more} more; gpuledger dlq list shows all")


def _check_selection(ids: Sequence[int] | None, all_: bool, *filters: str | None) -> None:
    if ids and (all_ or any(filters)):
        raise Refused(
            "numbers and filters are both given",
            hint="name the letters by number, or by what they have in common",
        )
    if all_ and any(filters):
        raise Refused("--all leaves nothing out", hint="give --all, or what the letters have in common")


def _check_there(engine: "sa.Engine", ids: Sequence[int]) -> None:
    """Make sure that letters exist, so that a mistyped number is no retry of nothing."""
    from gpuledger.database.engine import reading
    from gpuledger.ingest import dead_letters

    with reading(engine) as reader:
        for id_ in ids:
            dead_letters.get_entry(reader, id_)


def _mended(path: Path, ids: Sequence[int] | None) -> bytes:
    if ids is None or len(ids) != 1:
        raise Refused("--mended: one letter must be named", hint="gpuledger dlq retry ID --mended FILE")
    try:
        return path.read_bytes().removesuffix(b"\n")
    except OSError as error:
        raise Refused(f"--mended: {path} cannot be read: {error.strerror}", hint="check the path") from error


def _state(text: str) -> "State | None":
    from gpuledger.ingest.dead_letters import State

    if text == EVERY:
        return None
    try:
        return State(text)
    except ValueError as error:
        raise Refused(f"--state: {text!r} is none", hint=f"one of {', '.join([*State, EVERY])}") from error


def _document(entry: "Entry") -> dict[str, Any]:
    return {
        **entry._asdict(),
        "received_at": entry.received_at.isoformat(),
        "ended_at": None if entry.ended_at is None else entry.ended_at.isoformat(),
    }


def _as_text(raw: bytes) -> dict[str, str]:
    """Return bytes as JSON can hold them."""
    try:
        return {"raw": raw.decode(), "raw_encoding": "utf-8"}
    except UnicodeDecodeError:
        return {"raw": base64.b64encode(raw).decode(), "raw_encoding": "base64"}


def _shown(raw: bytes) -> str:
    """Return the beginning of a value as a terminal can bear it."""
    text = raw[:RAW_SHOWN_MAX].decode("utf-8", "backslashreplace")
    safe = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
    rest = len(raw) - RAW_SHOWN_MAX
    return f"{safe} ... and {rest} bytes more; --raw prints all" if rest > 0 else safe
