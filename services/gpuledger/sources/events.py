"""Events as this ledger speaks them: CloudEvents in structured JSON, one on each line.

Nothing is translated: identity, source, time and cluster are those of the event, and the bytes that go on are
those of the file. A line is taken or refused exactly as on a stream, orders about budgets too.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from gpuledger.events.acceptance import understood
from gpuledger.kernel.errors import Refused
from gpuledger.sources.lines import open_lines
from gpuledger.sources.pieces import Facts, Interpreter, PieceSource, interpret
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.values import LocalTimes


class _Lines(Interpreter):
    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        LocalTimes(options.timezone)  # the times are instants; a zone that does not exist is still refused
        if options.cluster is not None:
            raise Refused("--cluster: each event names its own cluster", hint="leave --cluster out")

    def translate(self, raw: bytes) -> Facts:
        line = raw.strip()  # line ends of another system are no part of the event
        return ((understood(line), line),), ()


class Events(PieceSource):
    """Source ``events``: newline-delimited CloudEvents."""

    name = "events"
    interpreter = _Lines

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every line of the file; see ``Source.read``."""
        interpreter = _Lines(options)
        return interpret(path, open_lines(path), interpreter)
