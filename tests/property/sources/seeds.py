"""What the tests that go over every source read of each: the seeds of tests/fixtures/sources."""

import gzip
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.protocol import Fault, ImportOptions
from gpuledger.sources.registry import source

REPOSITORY = Path(__file__).parents[3]
FIXTURES = REPOSITORY / "tests/fixtures/sources"
SAMPLE = 80
"""Records that tests draw from."""


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of a ``seed.toml``; the keys are told in the README beside it."""

    path: str
    records: str
    mutate: str = ""
    head: int = 0
    keys: list[str] = []
    mark: str = ""
    timezone: str | None = None
    cluster: str | None = None
    host: str | None = None
    at_s: int | None = None
    keyless: bool = False
    ordered: bool = False
    silent: bool = False
    forgotten: list[str] = []


@dataclass(frozen=True)
class Seed:
    """Real records of a source.

    Args:
        source: Its name.
        entry: What its ``seed.toml`` says.
    """

    source: str
    entry: Entry

    def __str__(self) -> str:
        return f"{self.source}-{self.file.name.partition('.')[0]}"

    @property
    def path(self) -> Path:
        """What is given to the source."""
        return REPOSITORY / self.entry.path

    @property
    def file(self) -> Path:
        """The file that holds the records."""
        return self.path / self.entry.mutate if self.entry.mutate else self.path

    @property
    def options(self) -> ImportOptions:
        """What the person who imports says."""
        said = self.entry
        return ImportOptions(said.cluster, said.timezone, said.host, said.at_s)

    @property
    def delimiter(self) -> bytes:
        """What stands between the columns of a table; empty where the records are no rows of one."""
        if self.entry.records != "lines" or self.entry.head != 1:
            return b""
        return next((found for found in (b"|#", b"|", b",") if found in self.head), b"")

    @cached_property
    def content(self) -> bytes:
        """The file, decompressed."""
        packed = self.file.read_bytes()
        return gzip.decompress(packed) if packed.startswith(b"\x1f\x8b") else packed

    @cached_property
    def head(self) -> bytes:
        """The lines before the first record."""
        return b"".join(self.content.splitlines(keepends=True)[: self.entry.head])

    @cached_property
    def sample(self) -> Sequence[bytes]:
        """The first records: of a long file the beginning is enough."""
        return self.records(SAMPLE)

    @cached_property
    def _mark(self) -> re.Pattern[bytes]:
        return re.compile(rb"^(?=" + re.escape(self.entry.mark.encode()) + rb")", re.MULTILINE)

    def records(self, most: int) -> Sequence[bytes]:
        """Return the records of the file, so many at most."""
        if self.entry.records == "whole":
            return [self.content]
        if self.entry.records == "members":
            raw = msgspec.Raw(self.content)
            for key in self.entry.keys:
                raw = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])[key]
            return [bytes(member) for member in msgspec.json.decode(raw, type=list[msgspec.Raw])][:most]
        rest = self.content[len(self.head) :].strip(b"\n")
        if self.entry.records == "blocks":
            return [block.rstrip(b"\n") for block in self._mark.split(rest)[1 : most + 1]]
        return rest.split(b"\n", most)[:most]

    def put_together(self, records: Sequence[bytes]) -> bytes:
        """Return a file of the kind with other records in it."""
        if self.entry.records == "whole":
            return records[0]
        if self.entry.records == "members":
            document: object = msgspec.Raw(b"[" + b",".join(records) + b"]")
            for key in reversed(self.entry.keys):
                document = {key: document}
            return msgspec.json.encode(document)
        return self.head + b"\n".join(records) + b"\n"

    def write(self, folder: Path, content: bytes) -> Path:
        """Write a file of the kind, with what must stand beside it; return what is given to the source."""
        if not self.entry.mutate:
            path = folder / "records"
            path.write_bytes(content)
            return path
        for other in self.path.iterdir():
            if other != self.file and not (folder / other.name).exists():
                (folder / other.name).write_bytes(other.read_bytes())
        (folder / self.file.name).write_bytes(content)
        return folder


def _seeds(file: Path) -> list[Seed]:
    entries = tomllib.loads(file.read_text())["seed"]
    return [Seed(file.parent.name, entry) for entry in msgspec.convert(entries, list[Entry])]


def check_retry(fault: Fault, name: str) -> None:
    """A fault is read again from what it kept, and is the same fault; what came before it may be forgotten."""
    context = msgspec.json.decode(msgspec.json.encode(fault.context))
    with pytest.raises(BadRecord) as caught:
        source(name).retry(fault.raw, context)
    forgotten = {code for seed in SEEDS if seed.source == name for code in seed.entry.forgotten}
    assert caught.value.code in {fault.code, "partial-line"} | forgotten


SEEDS = [seed for file in sorted(FIXTURES.glob("*/seed.toml")) for seed in _seeds(file)]
