"""The comments at the head of a log in the Standard Workload Format: ``; Label: value`` lines.

Read are ``UnixStartTime``, or else ``StartTime`` with ``TimeZoneString``; ``MaxProcs`` or else ``MaxNodes``;
``Queue`` and ``Partition``; and a ``Note`` that says what a processor is.
"""

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuledger.kernel.errors import Refused
from gpuledger.sources.files import path_text
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.values import LocalTimes, Odd, shown

_LABEL = re.compile(r";\s*([A-Za-z]+)\s*:\s*(.*?)\s*")
_UNIT = re.compile(r"processors? (?:are|is|=) (?:an? )?([a-z ]+?)s?\.?", re.IGNORECASE)
_NAMED = re.compile(r"(-?[0-9]+)\s*[:=,]?\s*(.*)")
_DIGITS = 15
_UNKNOWN = "-1"
_GPU = "gpu"


@dataclass(slots=True)
class Header:
    """What a log says about itself.

    Args:
        origin_s: The instant of second 0.
        processors: How many the machine has, where it says so.
        queues: Names of queues by number.
        partitions: Names of partitions by number.
        doubts: What is odd, to be told once.
    """

    origin_s: int = 0
    processors: int | None = None
    queues: dict[str, str] = field(default_factory=dict)
    partitions: dict[str, str] = field(default_factory=dict)
    doubts: list[Odd] = field(default_factory=list)

    def labels(self, *, queue: str, partition: str) -> dict[str, str]:
        """Return the names of a job's queue and partition; their numbers where they have no names."""
        labels = {}
        if queue != _UNKNOWN:
            labels["queue"] = self.queues.get(queue, queue)
        if partition != _UNKNOWN:
            labels["partition"] = self.partitions.get(partition, partition)
        return labels

    def first_doubts(self) -> list[Odd]:
        """Return what is odd about the header, the first time that it is asked."""
        told, self.doubts = self.doubts, []
        return told

    def remember(self) -> dict[str, object]:
        """Return what a retry needs; JSON types only."""
        return {
            "origin_s": self.origin_s,
            "processors": self.processors,
            "queues": self.queues,
            "partitions": self.partitions,
        }

    @classmethod
    def remembered(cls, context: Mapping[str, object]) -> "Header":
        """Return the header as a fault remembered it."""
        header = cls()
        if isinstance(origin_s := context.get("origin_s"), int):
            header.origin_s = origin_s
        if isinstance(processors := context.get("processors"), int):
            header.processors = processors
        header.queues, header.partitions = _names(context, "queues"), _names(context, "partitions")
        return header


def _names(context: Mapping[str, object], key: str) -> dict[str, str]:
    kept = context.get(key)
    return {str(number): str(name) for number, name in kept.items()} if isinstance(kept, dict) else {}


def read_header(path: Path, comments: Sequence[bytes], options: ImportOptions) -> Header:
    """Read the comments at the head of a file.

    Raises:
        Refused: When the header says that a processor is no GPU, or its start or its zone cannot be read.
    """
    labels: dict[str, list[str]] = {}
    for comment in comments:
        if found := _LABEL.fullmatch(comment.decode("utf-8", "replace")):
            labels.setdefault(found[1].lower(), []).append(found[2])
    header = Header(
        processors=_number(labels, "maxprocs") or _number(labels, "maxnodes"),
        queues=dict(_numbered(labels.get("queue", ()))),
        partitions=dict(_numbered(labels.get("partition", ()))),
    )
    header.doubts += _unit(path, labels.get("note", ()))
    origin_s = _origin(path, labels, options)
    if origin_s is None:
        message = "the header has no UnixStartTime: second 0 is put at 1970-01-01T00:00:00Z"
        header.doubts.append(("no-start-time", message))
    header.origin_s = origin_s or 0
    return header


def _unit(path: Path, notes: Sequence[str]) -> Iterator[Odd]:
    """Make sure that a processor may be taken for a GPU; say so when the file does not."""
    for note in notes:
        if said := _UNIT.fullmatch(note):
            if said[1].lower() == _GPU:
                return
            raise Refused(
                f"{path_text(path)}: its header says that {shown(note)}; GPU-time cannot be booked from it",
                hint="only a log whose processors are GPUs can be imported; nothing was imported",
            )
    yield (
        "processors-as-gpus",
        "each processor is booked as one GPU; the header line '; Note: processors are GPUs' would say so",
    )


def _origin(path: Path, labels: Mapping[str, Sequence[str]], options: ImportOptions) -> int | None:
    """Return the instant of second 0, or None when the header does not say."""
    unix = next(iter(labels.get("unixstarttime", ())), _UNKNOWN)
    if unix != _UNKNOWN:
        if not (unix.isascii() and unix.isdigit() and len(unix) <= _DIGITS):
            raise Refused(
                f"{path_text(path)}: UnixStartTime {shown(unix)} is no number of seconds",
                hint="correct the header; nothing was imported",
            )
        return int(unix)
    written = next(iter(labels.get("starttime", ())), None)
    zone = next(iter(labels.get("timezonestring", ())), None) or options.timezone
    if written is None or zone is None:
        return None
    words = written.split()
    if len(words) == 6:  # noqa: PLR2004 - as date(1) prints it: the abbreviation of the zone says less than its name
        del words[4]
    try:
        local = dt.datetime.strptime(" ".join(words), "%a %b %d %H:%M:%S %Y")  # noqa: DTZ007 - the zone follows
    except ValueError as error:
        raise Refused(
            f"{path_text(path)}: StartTime {shown(written)} cannot be read",
            hint="write it as date(1) does, such as Tue Feb 21 18:44:15 IST 2006, or give UnixStartTime",
        ) from error
    return LocalTimes(zone).read("StartTime", local.isoformat(" "))[0]


def _number(labels: Mapping[str, Sequence[str]], label: str) -> int | None:
    value = next(iter(labels.get(label, ())), "")
    return int(value) if value.isascii() and value.isdigit() and len(value) <= _DIGITS else None


def _numbered(values: Sequence[str]) -> Iterator[tuple[str, str]]:
    for value in values:
        if (found := _NAMED.fullmatch(value)) and found[2]:
            yield found[1], found[2]
