"""Tables as files: which there are, and how they get onto a disk, whole or not at all."""

from collections.abc import AsyncIterable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple
from urllib.parse import quote

from gpuledger.client.asking import Moment, Parameter, texts
from gpuledger.kernel.errors import Refused

Form = Literal["csv", "parquet", "arrow"]


class Export(NamedTuple):
    """A table that can be had as a file.

    Args:
        path: The path, with what is odd in it escaped.
        params: The query.
    """

    path: str
    params: dict[str, str]


def entries(
    cluster: str,
    *,
    form: Form = "csv",
    period: str | None = None,
    account: str | None = None,
    as_of: Moment | None = None,
) -> Export:
    """Both sides of every posting of a cluster's book, of the accounts within reach."""
    return _export("entries", form, cluster=cluster, period=period, account=account, as_of=as_of)


def usage(
    by: str = "account",
    *,
    form: Form = "csv",
    cluster: str | None = None,
    account: str | None = None,
    from_: Moment | None = None,
    to: Moment | None = None,
    as_of: Moment | None = None,
) -> Export:
    """GPU-time used, keyed as the question of that name is; ``to`` is exclusive."""
    return _export(
        "usage", form, by=by, cluster=cluster, account=account, **{"from": from_}, to=to, as_of=as_of
    )


def statement(
    cluster: str,
    period: str,
    *,
    form: Form = "csv",
    version: int | None = None,
    as_of: Moment | None = None,
) -> Export:
    """The lines of a close's statement, of its newest version unless given."""
    path = f"statements/{quote(cluster, safe='')}/{quote(period, safe='')}"
    return _export(path, form, version=version, as_of=as_of)


def _export(path: str, form: Form, **parameters: Parameter) -> Export:
    return Export(f"/v1/exports/{path}", texts(format=form, **parameters))


def write(to: Path, pieces: Iterable[bytes]) -> int:
    """Write a file whole or not at all; return its bytes.

    Raises:
        Refused: When it cannot be written.
    """
    with _whole(to) as file:
        return sum(file.write(piece) for piece in pieces)


async def write_awaited(to: Path, pieces: AsyncIterable[bytes]) -> int:
    """Write pieces that are awaited; as ``write`` otherwise."""
    with _whole(to) as file:
        return sum([file.write(piece) async for piece in pieces])


@contextmanager
def _whole(to: Path) -> Iterator[BinaryIO]:
    """Open a file beside another that takes its place once it is written; what ends early leaves nothing."""
    draft = to.with_name(f".{to.name}.part")
    try:
        try:
            with draft.open("wb") as file:
                yield file
            draft.replace(to)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise Refused(
            f"{to} cannot be written: {error.strerror or error}",
            hint="name a file in a folder that you may write to",
        ) from error
