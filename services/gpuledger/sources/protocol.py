"""What every source promises: foreign records in, facts or faults out, nothing lost on the way."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from gpuledger.events.envelope import Event
from gpuledger.kernel.errors import BadRecord


class KnownRun(NamedTuple):
    """A run of a job whose number a scheduler gives out again, as a ledger knows it.

    Args:
        workload: The workload that it was booked to.
        submitted_s: When it was submitted, which tells the runs of one number apart.
        ended_s: When it ended; None while that is not known.
    """

    workload: str
    submitted_s: int
    ended_s: int | None


@runtime_checkable
class KnownRuns(Protocol):
    """The runs that a ledger knows already: a run that was booked to a workload stays with it."""

    def of(self, cluster: str, jobs: Collection[str]) -> Mapping[str, Sequence[KnownRun]]:
        """Return the runs of jobs, by the scheduler's own number of the job; a job without runs is absent."""
        ...


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the person who imports says about the records, and what the ledger knows of them.

    Args:
        cluster: The cluster they belong to; the source's own default when None.
        timezone: IANA zone of times without an offset; UTC when None.
        host: The host they were taken on, where they do not name it.
        at_s: When they were taken, or the host booted that counts from there, where they do not say.
        fractions: Resource -> milli-GPU of one unit, for parts of GPUs whose size no record tells, such as
            ``{"shard": 125}``.
        known: The runs that are booked already; None when there is no ledger.
    """

    cluster: str | None = None
    timezone: str | None = None
    host: str | None = None
    at_s: int | None = None
    fractions: Mapping[str, int] = field(default_factory=dict)
    known: KnownRuns | None = None


class Anomaly(msgspec.Struct, frozen=True, gc=False):
    """Something odd in a record that was accepted all the same.

    Args:
        code: A short stable word, such as ``identical-row``.
        line: The physical line, 1 for the first of the decompressed file.
        message: What is odd, with its place.
    """

    code: str
    line: int
    message: str


class Translated(msgspec.Struct, frozen=True, gc=False):
    """One record, understood.

    Args:
        line: The physical line, 1 for the first of the decompressed file.
        events: Each fact with its bytes as they go onto a stream.
        anomalies: What was odd about the record.
        bytes_read: Position in the file on disk (compressed), for a progress bar.
        as_fault: Makes a fault of it when the ledger cannot hold what it says, given its line; None for one that was
            read again.
    """

    line: int
    events: tuple[tuple[Event, bytes], ...]
    anomalies: tuple[Anomaly, ...] = ()
    bytes_read: int = 0
    as_fault: "Callable[[int, BadRecord], Fault] | None" = None


@dataclass(frozen=True, slots=True)
class Fault:
    """One record that could not be understood; the others go on.

    Args:
        line: The physical line, 1 for the first of the decompressed file.
        code: A short stable word for the kind of fault, such as ``end-before-start``.
        message: What was wrong, with file, line, field and value.
        hint: What a person can do about it.
        raw: The bytes of the record, without its newline.
        context: What ``Source.retry`` needs besides the bytes; JSON types only.
        path: The file that the record came from.
        bytes_read: Position in the file on disk (compressed), for a progress bar.
    """

    line: int
    code: str
    message: str
    hint: str
    raw: bytes
    context: dict[str, object]
    path: str
    bytes_read: int = 0


class Source(Protocol):
    """A kind of foreign file."""

    name: str
    """The word on the command line, such as ``philly``."""

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every record of the file or folder, in order, as facts or as a fault.

        A record that says nothing about GPUs (an empty line, a host without any) is passed over.

        Raises:
            Refused: When the file is missing or empty, or its header shows that it is of another kind.
                Nothing of that file was yielded before.
        """
        ...

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        """Translate one record again from what its fault kept.

        Raises:
            BadRecord: When it still cannot be understood.
        """
        ...

    def size(self, path: Path) -> int:
        """Return the bytes on disk that ``read`` will pass through, for a progress bar.

        Raises:
            Refused: When the path does not exist.
        """
        ...
