"""Files that simulations leave: a page, and a table of every figure."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpuledger.cli.output import note
from gpuledger.kernel.errors import Refused

if TYPE_CHECKING:
    from gpuledger.simulator.document import Simulation


def see_to_place(option: str, path: Path) -> None:
    """Look whether a file can be written, before a simulation of hours that is to be written there.

    Raises:
        Refused: When it cannot.
    """
    if path.is_dir():
        why = "it is a folder"
    elif not path.parent.is_dir():
        why = f"there is no folder {path.parent}"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        why = "permission denied"
    else:
        return
    raise Refused(f"{option}: {path} cannot be written: {why}", hint="name another place")


def write_page(path: Path, reports: "Sequence[Simulation]", names: Sequence[str] = ()) -> None:
    """Write reports as a page that loads nothing, each under its name if need be.

    Raises:
        Refused: When the file cannot be written.
    """
    from gpuledger.simulator.report import page

    text = page(reports, names)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write("--report", path, error) from error
    note(f"{path}: written")


def parquet_writer(path: Path) -> "Callable[[Sequence[Simulation]], None]":
    """Return what writes every figure of reports as a row: scenario, world, seed, days, measure, value.

    Raises:
        Refused: When pyarrow is not installed; asked before anything is simulated.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise Refused(
            "--parquet: pyarrow is not installed",
            hint="it comes with an extra: pip install 'gpuledger[dashboards]', or use --json",
        ) from error

    def write(reports: "Sequence[Simulation]") -> None:
        from gpuledger.simulator.flat import Figure, figures

        rows = [figure for each in reports for figure in figures(each)]
        kinds = (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.string(), pa.float64())
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        try:
            pq.write_table(pa.table(arrays, names=Figure._fields), path)
        except OSError as error:
            raise cannot_write("--parquet", path, error) from error
        note(f"{path}: {len(rows)} rows written")

    return write


def cannot_write(option: str, path: Path, error: OSError) -> Refused:
    """Return the error of a file that cannot be written."""
    return Refused(
        f"{option}: {path} cannot be written: {error.strerror or error}", hint="name another place"
    )
