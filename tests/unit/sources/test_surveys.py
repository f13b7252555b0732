"""Tables that are looked through beforehand."""

import gzip
from pathlib import Path

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.columns import Columns
from gpuledger.sources.lines import Broken
from gpuledger.sources.surveys import surveyed, surveyed_rows
from gpuledger.sources.table import open_table


def test_rows_are_surveyed_with_those_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(gzip.compress(b"a,b\n1,2\r\n\n3\n4,5")[:-6])
    first, second, *_, last = surveyed_rows(open_table(path))
    assert first == {"a": "1", "b": "2"}
    assert isinstance(second, BadRecord)
    assert isinstance(last, Broken)


def test_a_survey_sees_each_row_once_by_column_or_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "f"
    rows = [b"%d,a" % number for number in range(4000)]
    rows[1234], rows[3000] = b'1234,"a"', b"3000"
    path.write_bytes(b"id,user\n" + b"\n".join(rows) + b"\n")
    seen: list[str] = []
    for found in surveyed(open_table(path)):
        if isinstance(found, Columns):
            seen += found["id"]
        elif isinstance(found, dict):
            seen.append(found["id"])
        else:
            assert isinstance(found, BadRecord)
            seen.append("3000")
    assert seen == [str(number) for number in range(4000)]
