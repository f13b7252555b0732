"""Source ``slurm-nodes``: the nodes of a Slurm cluster, in any form in which Slurm shows them.

``scontrol show node``, ``scontrol show nodes --json``, ``sinfo --json``, the answer of slurmrestd, and
``sinfo`` with bars between its columns; the first line of the file decides which form it is. When a picture
was taken it does not say as a rule: it is no older than the newest instant that any of its nodes tells.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.files import file_size, path_text
from gpuledger.sources.lines import BYTE_ORDER_MARK, Broken, Line, read_lines
from gpuledger.sources.pieces import interpret, interpret_again
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.slurm import node_json, node_text
from gpuledger.sources.slurm.node_facts import NodeForm, Picture
from gpuledger.sources.slurm.reading import with_banner

_FORMS: dict[str, type[NodeForm]] = {
    form.form: form for form in (node_json.NodeObject, node_json.GroupObject, node_text.Block, node_text.Row)
}

_SETTING = re.compile(rb"#|\{[%#{]|[A-Za-z][A-Za-z0-9]*\s*=")
"""How the first line of slurm.conf, of gres.conf, or of a template of them begins."""


class SlurmNodes:
    """Source ``slurm-nodes``."""

    name = "slurm-nodes"

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every node; see ``Source.read``. The file is held in memory: it is one moment of one cluster."""
        picture = _open(path)
        interpreter = picture.form(options, picture.context)
        seen_s = picture.seen_s or options.at_s or _newest_s(interpreter, picture.pieces)
        interpreter = picture.form(replace(options, at_s=seen_s), picture.context)
        items = interpret(path, picture.pieces, interpreter)
        return items if picture.document is None else with_banner(picture.document, items)

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        """Translate one node again; see ``Source.retry``."""
        return interpret_again(_FORMS.get(str(context.get("form")), node_json.NodeObject), raw, context)

    def size(self, path: Path) -> int:
        """Return the size of the file on disk."""
        return file_size(path)


def _open(path: Path) -> Picture:
    """Return the picture, read as the form that its first line shows.

    Raises:
        Refused: When it has none of them.
    """
    first = next((line.raw for line in read_lines(path) if line.raw.strip()), b"")
    first = first.removeprefix(BYTE_ORDER_MARK).lstrip()
    if first.startswith(node_text.MARK):
        return node_text.blocks(path)
    if _SETTING.match(first):
        raise Refused(
            f"{path_text(path)} reads like configuration, which says what should be there and not since when",
            hint="import the output of scontrol show nodes --json, or of scontrol show node; nothing was imported",
        )
    is_table = b"|" in first and not first.startswith((b"{", b"["))
    return node_text.rows(path) if is_table else node_json.picture(path)


def _newest_s(form: NodeForm, pieces: list[Line | Broken]) -> int | None:
    newest_s = 0
    for piece in pieces:
        if isinstance(piece, Line):
            try:
                newest_s = max(newest_s, form.node(piece.raw).newest_s())
            except BadRecord:
                continue  # it is reported when it is read
    return newest_s or None
