"""Answers of slurmrestd with jobs: those of the controller (``slurm``) and those of accounting (``slurmdb``)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from gpuledger.kernel.errors import Refused
from gpuledger.sources.documents import Document, open_document
from gpuledger.sources.files import file_size, path_text
from gpuledger.sources.pieces import interpret_again
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.slurm.controller import ControllerReader
from gpuledger.sources.slurm.live import LiveReader
from gpuledger.sources.slurm.reading import JobReader, read_jobs, with_banner
from gpuledger.sources.slurm.sacct_json import JOBS, AccountingReader

_OF_CONTROLLER = b'"job_state"'
"""A key that each job of the controller has, and no job of accounting."""

_LOOKED_AT = 100
"""A first job that is broken does not decide of the others: so many tell whose the answer is."""


class Slurmrestd:
    """Source ``slurmrestd``: an answer that holds jobs, whichever of the two it is."""

    name = "slurmrestd"

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every job of the answer; see ``Source.read``."""
        document = open_document(path)
        _check_errors(document)
        pieces = list(document.pieces(JOBS))
        reader = _kind(*(piece.raw for piece in pieces[:_LOOKED_AT]))(options)
        if isinstance(reader, LiveReader):
            reader.count_tasks(pieces)
        return with_banner(document, read_jobs(path, pieces, reader))

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        """Translate one job again; see ``Source.retry``."""
        return interpret_again(_kind(raw), raw, context)

    def size(self, path: Path) -> int:
        """Return the size of the file on disk."""
        return file_size(path)


def _kind(*records: bytes) -> type[JobReader]:
    return ControllerReader if any(_OF_CONTROLLER in raw for raw in records) else AccountingReader


def _check_errors(document: Document) -> None:
    errors = document.value("errors")
    if isinstance(errors, list) and errors and not document.value(JOBS):
        raise Refused(
            f"{path_text(document.path)}: the answer is an error: {str(errors[0])[:200]}",
            hint="ask slurmrestd again",
        )
