"""The exit status tells what happened; stdout holds data only, stderr the rest."""

import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger
from tests.commands.running import PROGRAM, environment, finish, start
from tests.commands.traces import ALEX, PHILLY

TRACE = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-01 00:00:00,3600.0,1,3600.0,vc\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


@pytest.fixture
def dead_port() -> Iterator[str]:
    """An address where nobody listens, and nobody else can begin to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_0_done(ledger: Ledger, trace: Path) -> None:
    ran = ledger.fresh("import", "philly", trace)
    assert ran.status == 0
    assert ran.out == "1 records: 1 accepted, 0 repeated, 0 dead-lettered\n"


def test_1_failed(ledger: Ledger) -> None:
    """The ledger was made by a version that this one does not know."""
    ledger.change("UPDATE public.alembic_version SET version_num = '9999'")
    ran = ledger.fresh("db", "upgrade")
    assert ran.status == 1


@pytest.mark.parametrize(
    "arguments",
    [["usage", "--nosuch"], ["nosuch"], ["balance"], ["import", "nosuch", "file"], ["usage", "--by", "team"]],
)
def test_2_bad_usage(ledger: Ledger, arguments: list[str]) -> None:
    people = ledger(*arguments)
    assert (people.status, people.out) == (2, "")
    assert people.err
    program = ledger(*arguments, "--json")
    assert (program.status, program.out) == (2, "")
    assert program.problem.keys() == {"error", "hint", "exit"}
    assert program.problem["exit"] == 2


def test_3_a_check_found_problems(ledger: Ledger, trace: Path) -> None:
    trace.write_text(TRACE + "nonsense\n")
    assert ledger.fresh("import", "philly", trace).status == 3


def test_4_not_found(ledger: Ledger) -> None:
    ran = ledger.fresh("balance", "no/such/account", "--json")
    assert (ran.status, ran.out) == (4, "")
    assert ran.problem["exit"] == 4


def test_75_no_database(ledger: Ledger, trace: Path, dead_port: str) -> None:
    began = time.monotonic()
    url = f"postgresql+psycopg://nobody@{dead_port}/nothing"
    for arguments in (["usage"], ["import", "philly", trace], ["audit", "verify"], ["db", "upgrade"]):
        ran = ledger(*arguments, GPULEDGER_DATABASE_URL=url)
        assert (ran.status, ran.out) == (75, "")
        assert "the database cannot be" in ran.err
        assert "hint: check GPULEDGER_DATABASE_URL" in ran.err
        assert "Traceback" not in ran.err
    assert time.monotonic() - began < 60


def test_75_no_broker(ledger: Ledger, trace: Path, dead_port: str) -> None:
    for arguments in (["import", "philly", trace, "--json"], ["ingest", "--once"]):
        began = time.monotonic()
        ran = ledger(*arguments, GPULEDGER_KAFKA_BOOTSTRAP=dead_port)
        assert (ran.status, ran.out) == (75, "")
        assert f"Kafka at {dead_port} did not answer" in ran.err
        assert "Traceback" not in ran.err
        assert time.monotonic() - began < 60
    assert ledger.rows("SELECT count(*) FROM ledger.journal") == [(0,)]


def test_130_interrupted(ledger: Ledger) -> None:
    process = start("import", "philly", PHILLY, settings=ledger.settings)
    deadline = time.monotonic() + 120
    while ledger.rows("SELECT 1 FROM ledger.books WHERE book = 'philly'") == []:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)

    ran = finish(process, within_s=60)

    assert ran.status == 130
    assert ran.out == ""
    assert ran.err.endswith("gpuledger: interrupted; what is booked stays booked\n")
    assert "Traceback" not in ran.err
    ((booked,),) = ledger.rows("SELECT count(*) FROM ledger.journal WHERE book = 'philly'")
    assert 0 < booked < 3 * 82_247
    ledger.checked_digest()


def test_a_database_of_another_version_says_what_to_do(ledger: Ledger) -> None:
    ledger.change("UPDATE public.alembic_version SET version_num = '0001'")
    ran = ledger("usage", "--json")
    assert ran.status == 2
    assert ran.problem["hint"] == "run gpuledger db upgrade"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("GPULEDGER_TIMEZONE", "Mars/Olympus", "time zone 'Mars/Olympus' is not known"),
        ("GPULEDGER_DATABASE_URL", "mysql://host/db", "GPULEDGER_DATABASE_URL: "),
        ("GPULEDGER_DATABASE_URL", "postgresql://host:port/db", "GPULEDGER_DATABASE_URL: "),
    ],
)
def test_a_setting_that_cannot_be_is_bad_usage(ledger: Ledger, name: str, value: str, expected: str) -> None:
    ran = ledger("usage", "--json", **{name: value})
    assert (ran.status, ran.out) == (2, "")
    assert expected in ran.problem["error"]
    assert ran.problem["hint"]


def test_json_is_one_document_and_alone_on_stdout(ledger: Ledger, trace: Path) -> None:
    trace.write_text(TRACE + "nonsense\n")
    imported = ledger("import", "philly", trace, "--json")
    assert imported.json.keys() == {"records", "accepted", "repeated", "dead_lettered", "anomalies", "faults"}
    for arguments in (
        ["usage"],
        ["balance", "philly/vc"],
        ["layers"],
        ["audit", "verify"],
        ["rebuild", "--check"],
        ["dlq", "list"],
        ["dlq", "retry"],
        ["db", "url"],
    ):
        ran = ledger(*arguments, "--json")
        assert isinstance(json.loads(ran.out), dict)
        assert ran.out.count("\n") == 1
        assert ran.out.endswith("\n")


def test_progress_goes_to_stderr(ledger: Ledger) -> None:
    ran = ledger("import", "clustercockpit", ALEX, "--json")
    assert isinstance(ran.json, dict)
    assert "import clustercockpit: 100 %" in ran.err


def test_there_are_no_escape_codes_without_a_terminal(ledger: Ledger, trace: Path) -> None:
    for settings in ({"NO_COLOR": "1"}, {"NO_COLOR": "", "TERM": "xterm-256color", "COLORTERM": "truecolor"}):
        for arguments in (
            ["import", "philly", trace],
            ["usage"],
            ["audit", "verify"],
            ["usage", "--nosuch"],
            ["--help"],
        ):
            ran = ledger(*arguments, **settings)
            assert not re.search("\x1b", ran.out + ran.err)


def test_no_color_on_a_terminal(ledger: Ledger, trace: Path) -> None:
    """``script`` gives the command a terminal of its own."""
    ledger("import", "philly", trace)
    shown = {}
    for no_color in ("", "1"):
        done = subprocess.run(
            ["script", "-qec", f"{PROGRAM} usage", "/dev/null"],
            env=environment({**ledger.settings, "NO_COLOR": no_color, "TERM": "xterm-256color"}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0
        shown[no_color] = done.stdout
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", shown["1"]), "no colour"
    assert "philly/vc" in shown["1"]


def test_a_reader_that_goes_away_is_no_failure(ledger: Ledger, trace: Path) -> None:
    ledger("import", "philly", trace)
    done = subprocess.run(
        ["bash", "-c", f"{PROGRAM} usage --json | true; echo ${{PIPESTATUS[0]}}"],
        env=environment(ledger.settings),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "0\n"
    assert done.stderr == ""


@pytest.mark.parametrize("place", ["/proc/none/here", "{file}", "{file}/below"])
def test_2_a_data_folder_that_cannot_be_made(ledger: Ledger, tmp_path: Path, place: str) -> None:
    file = tmp_path / "file"
    file.touch()
    settings = {"GPULEDGER_HOME": place.format(file=file)}
    ran = finish(start("db", "url", "--json", settings=settings))
    assert (ran.status, ran.out) == (2, "")
    assert ran.problem["error"].startswith(f"the data folder {place.format(file=file)} cannot be made: ")
    assert "GPULEDGER_HOME" in ran.problem["hint"]


def test_2_a_window_that_ends_before_it_begins(ledger: Ledger) -> None:
    for command in (["usage"], ["layers"], ["audit", "verify"], ["dlq", "list"], ["balance", "x"]):
        ran = ledger(*command, "--from", "2017-12-01", "--to", "2017-11-30")
        assert (ran.status, ran.out) == (2, ""), command
        assert "--to: '2017-11-30' lies before --from '2017-12-01'" in ran.err


def test_2_an_empty_cluster(ledger: Ledger, trace: Path) -> None:
    ran = ledger("import", "philly", trace, "--cluster", "")
    assert (ran.status, ran.out) == (2, "")
    assert "--cluster: is empty" in ran.err


def test_1_a_full_disk_is_told_without_a_traceback(ledger: Ledger) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PROGRAM, "usage", "--json"], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            env=environment(ledger.settings),
        )  # fmt: skip
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
