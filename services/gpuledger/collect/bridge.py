"""A topic that Slurm itself writes to (jobcomp/kafka) -> facts, each record exactly once.

The documents carry no key and no type, and any of them may come late or not at all: ``reconcile slurm`` finds what
never came. Positions move in the transaction that books what was read up to there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa

from gpuledger.events.envelope import Event
from gpuledger.ingest.batches import Understood
from gpuledger.ingest.dead_letters import IMPORT_STREAM, DeadLetter
from gpuledger.ingest.known_runs import LedgerRuns
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.protocol import Fault, ImportOptions, Source, Translated
from gpuledger.streams.protocol import Record

CONSUMER = "jobcomp"

_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")
"""Between the tokens of a JSON document a line end is a space, and inside a string there is none."""


@dataclass(frozen=True, slots=True)
class Documents:
    """Understands the values of a foreign topic as records of a source that has one JSON document on each line.

    Args:
        engine: The ledger, whose runs the records may belong to.
        source: Whose records they are.
        cluster: The cluster they belong to; the record's own when None.
    """

    engine: sa.Engine
    source: Source
    cluster: str | None = None

    def __call__(self, records: Sequence[Record]) -> Understood:
        """Return the facts of a batch, and dead letters for the values that hold none."""
        events: list[Event] = []
        letters: list[DeadLetter] = []
        for record, found in self._read(records):
            if isinstance(found, Translated):
                events += [event for event, _ in found.events]
            else:
                letters.append(self._letter(record, found))
        return events, letters

    def _read(self, records: Sequence[Record]) -> Iterator[tuple[Record, Translated | Fault | BadRecord]]:
        """Yield what each value holds; a batch is read as one file, for runs that belong together."""
        documents = [record for record in records if record.value.lstrip().startswith(b"{")]
        if documents:
            with TemporaryDirectory(prefix="gpuledger-") as folder:
                path = Path(folder) / "documents.ndjson"
                path.write_bytes(b"".join(r.value.translate(_LINE_ENDS) + b"\n" for r in documents))
                options = ImportOptions(cluster=self.cluster, known=LedgerRuns(self.engine))
                for found in self.source.read(path, options):
                    yield documents[found.line - 1], found
        for record in records:
            value = record.value.lstrip()
            if value and not value.startswith(b"{"):
                yield (
                    record,
                    BadRecord(
                        "the value is no JSON document", code="bad-shape", hint="look who writes to the topic"
                    ),
                )

    def _letter(self, record: Record, fault: Fault | BadRecord) -> DeadLetter:
        place = f"{record.topic}[{record.partition}]"
        kept = fault.context if isinstance(fault, Fault) else {"cluster": self.cluster, "timezone": None}
        reason = fault.message
        if isinstance(fault, Fault):
            reason = reason.replace(f"{fault.path}:{fault.line}", f"{place}:{record.position}")
        return DeadLetter(
            stream=f"{IMPORT_STREAM}{self.source.name}/{self.cluster or self.source.name}",
            partition=record.partition,
            position=record.position,
            place=f"{place}:{record.position}",
            code=fault.code,
            reason=reason,
            hint=fault.hint,
            raw=record.value,
            context={**kept, "path": place, "line": record.position, "source": self.source.name},
        )
