"""The files that a close leaves: the one that is sealed, and those that are made from it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gpuledger.close.document import Document
from gpuledger.close.files import CANONICAL


class Rendered(NamedTuple):
    """The files of a close.

    Args:
        files: Name -> bytes; the sealed one first.
        left_out: Files that were not made, and why.
    """

    files: dict[str, bytes]
    left_out: Sequence[str]


Renderer = Callable[[Document], bytes]


def _html(document: Document) -> bytes:
    from gpuledger.close.html_page import page

    return page(document)


def _pdf(document: Document) -> bytes:
    from gpuledger.close.pdf_page import statement

    return statement(document)


def _parquet(document: Document) -> bytes:
    from gpuledger.close.parquet_table import table

    return table(document)


RENDERERS: dict[str, Renderer] = {
    "statement.html": _html,
    "statement.pdf": _pdf,
    "statement.parquet": _parquet,
}
"""Name of a file -> what makes it from what the close says; it raises ImportError where its library is missing."""


def render(content: bytes, document: Document) -> Rendered:
    """Make every file of a close.

    Args:
        content: The canonical form.
        document: What it says.
    """
    made, left_out = {CANONICAL: content}, []
    for name, renderer in RENDERERS.items():
        try:
            made[name] = renderer(document)
        except ImportError as error:
            left_out.append(
                f"{name}: {error.name} is not installed; pip install 'gpuledger[pipelines]' brings it"
            )
    return Rendered(made, left_out)
