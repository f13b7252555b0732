"""The tables of the PAI trace have no header, and an instance needs three of them."""

import gzip
from pathlib import Path

import pytest
from tests.unit.sources.traces import FIXTURES

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.lines import Line, each_line
from gpuledger.sources.pai_tables import (
    INSTANCES,
    JOBS,
    MACHINES,
    Plan,
    Tables,
    files,
    open_bare,
    read_tables,
    time_of,
)

PAI = FIXTURES / "pai"


def rows(path: Path) -> list[bytes]:
    lines = each_line(open_bare(path, ("a", "b")).lines)
    return [line.raw for line in lines if isinstance(line, Line)]


def test_a_table_has_no_header_and_one_in_front_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"1,2\n3,4\n")
    assert rows(path) == [b"1,2", b"3,4"]
    path.write_bytes(b"a,b\r\n3,4\n")
    assert rows(path) == [b"3,4"]


@pytest.mark.parametrize("content", [b"1,2,3\n", b"x\n"])
def test_another_number_of_columns_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(Refused, match="but 2 are published"):
        open_bare(tmp_path / "t", ("a", "b"))


def test_a_damaged_first_row_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(gzip.compress(b"1,2")[:-6])
    with pytest.raises(Refused, match="there is no row"):
        open_bare(tmp_path / "t", ("a", "b"))


def test_the_folder_must_hold_jobs_tasks_and_instances(tmp_path: Path) -> None:
    with pytest.raises(
        Refused, match=r"holds no pai_job_table\.csv, no pai_task_table\.csv, no pai_instance_table\.csv"
    ):
        files(tmp_path)
    assert set(files(PAI)) == {"pai_job_table", "pai_task_table", "pai_instance_table", "pai_machine_spec"}
    assert files(PAI / "pai_instance_table.csv") == files(PAI)


def test_packed_tables_are_found(tmp_path: Path) -> None:
    for file in PAI.glob("pai_*.csv"):
        (tmp_path / (file.name + ".gz")).write_bytes(gzip.compress(file.read_bytes()))
    assert read_tables(files(tmp_path)) == read_tables(files(PAI))


def test_jobs_and_tasks_are_known_by_name() -> None:
    tables = read_tables(files(PAI))
    assert tables.job("job0001") == ("user01", 4_550_879)
    assert tables.plan("job0001", "worker") == Plan("50.0", "MISC")
    assert tables.plan("job0001", "ps") == Plan("", "")
    assert tables.end_s == 4_552_000


def test_an_unreadable_row_is_missed_by_its_instances(tmp_path: Path) -> None:
    for kind, row in ((JOBS, "job1,i,,Running,1.0,\n"), (INSTANCES, "a,b,c,d,e,f,g,h,i\n")):
        (tmp_path / f"{kind.name}.csv").write_text(row)
    (tmp_path / "pai_task_table.csv").write_text("job1,t,1.0,Running,soon,,600.0,29.3,50.0,T4\n")
    tables = read_tables(files(tmp_path))
    with pytest.raises(BadRecord, match="the job table has no readable row of 'job1'"):
        tables.job("job1")
    with pytest.raises(BadRecord, match="the task table has no readable row of 't' of 'job1'"):
        tables.plan("job1", "t")


def test_what_is_remembered_of_an_instance_is_enough_for_it() -> None:
    tables = read_tables(files(PAI))
    again = Tables.remembered(tables.remember("job0001", "worker"))
    assert (again.job("job0001"), again.end_s) == (tables.job("job0001"), tables.end_s)
    assert again.plan("job0001", "worker") == tables.plan("job0001", "worker")
    assert Tables.remembered(tables.remember("none", "none")) == Tables(end_s=tables.end_s)
    assert Tables.remembered({"job": 3, "of_job": "x"}) == Tables()


def test_a_time_may_be_missing() -> None:
    assert (time_of("t", ""), time_of("t", "nan"), time_of("t", "7.9")) == (None, None, 7)
    assert MACHINES.columns[-1] == "cap_gpu"
