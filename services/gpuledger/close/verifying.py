"""Whether a sealed close is still what was sealed: made anew from the journal, byte for byte, with all it stands on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import sqlalchemy as sa

from gpuledger.close import files, store
from gpuledger.close.comparing import JOURNAL, ZONES, Differs, differences
from gpuledger.close.document import Document, decode, encode
from gpuledger.close.document import digest as digest_of
from gpuledger.close.making import Made, make
from gpuledger.close.rendering import render
from gpuledger.close.steps import Closer
from gpuledger.close.store import Place
from gpuledger.database.engine import Reader, reading
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import Corrupt, Refused
from gpuledger.ledger import audit
from gpuledger.ledger.close_rows import close_of

FILE, WAREHOUSE, GUARDS = "file", "warehouse", "guards of the database"


@dataclass(frozen=True, slots=True)
class Verification:
    """What became of a sealed close.

    Args:
        place: The close.
        digest: What was sealed.
        rebuilt: The digest of what the journal gives now; None when nothing can be made of it.
        findings: What is not what was sealed.
    """

    place: Place
    digest: str
    rebuilt: str | None
    findings: list[Differs]

    @property
    def ok(self) -> bool:
        """Whether everything is what was sealed."""
        return not self.findings and self.rebuilt == self.digest

    def as_json(self) -> dict[str, Any]:
        """Return it under the published keys."""
        return {
            "ok": self.ok,
            **self.place._asdict(),
            "digest": self.digest,
            "rebuilt_digest": self.rebuilt,
            "findings": [finding._asdict() for finding in self.findings],
        }


def verify(closer: Closer, version: int | None = None) -> Verification:
    """Make a sealed close anew and hold against it: chain, file, warehouse, zone.

    Args:
        closer: Which close, and where its files are.
        version: The version; the newest unless given.

    Raises:
        NotFound: When there is no such close.
        Refused: When it is not sealed.
        Unavailable: When the database or a file cannot be read.
    """
    with reading(closer.engine) as reader:
        rows = close_of(reader, closer.cluster, closer.period, version)
        place = closer.place(rows.version)
        if rows.digest is None:
            raise Refused(
                f"version {place.version} of the close of {place.period} of {place.cluster} is not sealed",
                hint=f"gpuledger close run {place.period} --cluster {place.cluster} goes on with it",
            )
        findings = list(_of_books(reader, closer))
        made: Made | None = None
        try:
            made = make(reader, closer.cluster, closer.period, rows.version)
        except (Corrupt, msgspec.MsgspecError, sa.exc.DataError, ValueError) as error:
            findings.append(Differs(JOURNAL, f"book {closer.cluster}", f"nothing can be made of it: {error}"))
        stored = store.find(reader, place)
        lines = list(store.iter_lines(reader, place))
    on_disk = files.read(closer.folder(place.version) / files.CANONICAL)
    in_table = stored.document.encode() if stored and stored.document is not None else None
    sealed = _sealed(rows.digest, place, made, on_disk, in_table)
    if made is not None and sealed is not None:
        findings += differences(sealed, made.document)
    if sealed is not None:
        findings += _of_files(closer, place, sealed, on_disk)
        findings += _of_warehouse(sealed, stored, lines)
        findings += _of_zone(sealed)
    elif made is None or made.digest != rows.digest:
        findings.append(
            Differs(FILE, files.CANONICAL, "no copy of it is what was sealed: nothing says what was")
        )
    return Verification(place, rows.digest, made and made.digest, findings)


def _sealed(
    digest: str, place: Place, made: Made | None, on_disk: bytes | None, in_table: bytes | None
) -> Document | None:
    """Return what was sealed, from whichever copy still has its digest."""
    for content in (on_disk, in_table, made and made.content):
        if content is not None and digest_of(content) == digest:
            return decode(content, f"version {place.version} of the close")
    return None


def _of_books(reader: Reader, closer: Closer) -> Iterator[Differs]:
    """What the audit of the two books says: the first row that does not hold, balances, identities, guards."""
    for book in (closer.cluster, ORG_BOOK):
        found = audit.verify(reader, audit.AuditQuery(cluster=book))
        for each in found.books:
            if each.first_bad is not None:
                place = "book" if each.first_bad.seq is None else f"row {each.first_bad.seq}"
                yield Differs(JOURNAL, f"{place} of {book}", each.first_bad.what)
        if book == ORG_BOOK:  # they are those of the whole database
            yield from (Differs(GUARDS, "database", fault) for fault in found.faults)


def _of_files(closer: Closer, place: Place, sealed: Document, on_disk: bytes | None) -> Iterator[Differs]:
    folder = closer.folder(place.version)
    wanted = render(encode(sealed), sealed).files
    for name, content in {**wanted, files.SUMS: files.sums(wanted)}.items():
        found = on_disk if name == files.CANONICAL else files.read(folder / name)
        if found is None:
            yield Differs(FILE, str(folder / name), "it is missing")
        elif found != content:
            yield Differs(FILE, str(folder / name), f"byte {_first_difference(content, found)} is another")


def _of_warehouse(
    sealed: Document, stored: store.Stored | None, lines: list[dict[str, str | int]]
) -> Iterator[Differs]:
    if stored is None:
        yield Differs(WAREHOUSE, "warehouse.close", "there is no row of it")
    elif stored.document is None or stored.document.encode() != encode(sealed):
        yield Differs(WAREHOUSE, "warehouse.close, column document", "it is not what was sealed")
    elif stored.digest != digest_of(encode(sealed)):
        yield Differs(WAREHOUSE, "warehouse.close, column digest", "it is not what was sealed")
    want = {line.account: store.flat(line) for line in sealed.accounts}
    have = {str(line["account"]): line for line in lines}
    for account in sorted(want.keys() | have.keys()):
        if want.get(account) != have.get(account):
            yield Differs(WAREHOUSE, f"warehouse.statement, account {account}", "it is not what was sealed")


def _of_zone(sealed: Document) -> Iterator[Differs]:
    """The machine's time-zone data still cut the period where it was cut."""
    try:
        bounds = Calendar(sealed.time.timezone).period_bounds_s(sealed.period)
    except Refused as error:
        yield Differs(ZONES, sealed.time.timezone, error.message)
        return
    if bounds != (seconds(sealed.time.starts_at), seconds(sealed.time.ends_at)):
        yield Differs(
            ZONES,
            sealed.time.timezone,
            f"the period begins or ends elsewhere than by version {sealed.time.tzdata}",
        )


def _first_difference(wanted: bytes, found: bytes) -> int:
    """Return the place of the first byte that differs, from 0; the shorter length where one begins the other."""
    pairs = zip(wanted, found, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(wanted), len(found)))
