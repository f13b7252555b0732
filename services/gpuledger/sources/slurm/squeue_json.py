"""Source ``slurm-squeue-json``: what ``squeue --json`` and ``scontrol show job --json`` print.

The options that select jobs do not work together with ``--json`` in every version: all that the controller
remembers may be in the document, whatever was asked for.
"""

from collections.abc import Iterator
from pathlib import Path

from gpuledger.sources.documents import open_document
from gpuledger.sources.pieces import PieceSource
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.slurm.controller import ControllerReader
from gpuledger.sources.slurm.reading import read_jobs, with_banner

JOBS = "jobs"


class SqueueJson(PieceSource):
    """Source ``slurm-squeue-json``."""

    name = "slurm-squeue-json"
    interpreter = ControllerReader

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every job of the document; see ``Source.read``."""
        document = open_document(path)
        pieces = list(document.pieces(JOBS))
        reader = ControllerReader(options)
        reader.count_tasks(pieces)
        return with_banner(document, read_jobs(path, pieces, reader))
