"""Broken files through the command: one clear message per fault, and nothing else is lost."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger

from gpuledger.sources.registry import names

HEADER = b"timestamp,duration,num_gpus,gpu_time,cluster"
GOOD = [b"2017-10-01 00:00:%02d,3600.0,%d,%d.0,vc" % (n, n + 1, 3600 * (n + 1)) for n in range(4)]
"""One to four GPUs for an hour: 10 GPU-hours together."""

PODS = b"name,num_gpu,gpu_milli,qos,pod_phase,creation_time,deletion_time,scheduled_time"


def with_fault(row: bytes) -> bytes:
    """A file of four good rows with another one between them, on line 4."""
    return b"\n".join([HEADER, *GOOD[:2], row, *GOOD[2:], b""])


ROWS = {
    "wrong-columns": b"2017-10-01 00:00:09,3600.0,1,3600.0",
    "not-utf8": b"2017-10-01 00:00:09,3600.0,1,3600.0,M\xfcnchen",
    "nul-byte": b"2017-10-01 00:00:09,3600.0,1,3600.0,v\0c",
    "line-too-long": b"2017-10-01 00:00:09,3600.0,1,3600.0," + b"v" * 10 * 2**20,
    "bad-csv": b'2017-10-01 00:00:09,3600.0,1,3600.0,"vc',
}


@pytest.mark.parametrize("code", ROWS)
def test_a_bad_row_is_a_dead_letter_and_the_rest_is_booked(
    ledger: Ledger,
    tmp_path: Path,
    code: str,
) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(with_fault(ROWS[code]))

    ran = ledger("import", "philly", path, "--json")

    assert ran.status == 3
    report = ran.json
    counts = {name: report[name] for name in ("records", "accepted", "repeated", "dead_lettered")}
    assert counts == {"records": 5, "accepted": 4, "repeated": 0, "dead_lettered": 1}
    told = [line for line in ran.err.splitlines() if f"{path}:4: " in line]
    assert len(told) == 1
    assert len(told[0]) < 600, "a message for people, not the line itself"
    assert ledger.hours("account") == {"philly/vc": "10.000"}
    assert dead_letters(ledger) == [(f"{path}:4", code)]


def test_importing_a_broken_file_again_adds_nothing(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(b"\n".join([HEADER, GOOD[0], *ROWS.values(), *GOOD[1:], b""]))

    first = ledger("import", "philly", path, "--json")
    heads, letters = ledger.heads(), dead_letters(ledger)
    again = ledger("import", "philly", path, "--json")

    assert (first.status, first.json["accepted"], first.json["dead_lettered"]) == (3, 4, 5)
    assert (again.status, again.json["accepted"], again.json["repeated"], again.json["dead_lettered"]) == (
        3,
        0,
        4,
        5,
    )
    assert [place for place, _ in letters] == [f"{path}:{line}" for line in range(3, 8)]
    assert dead_letters(ledger) == letters
    assert ledger.heads() == heads


def test_a_dead_letter_stays_one_while_it_is_bad(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(with_fault(ROWS["wrong-columns"]))
    ledger("import", "philly", path)

    retried = ledger("dlq", "retry", "--json")

    assert retried.status == 3
    assert retried.json == {"resolved": 0, "failed": 1}
    assert f"{path}:4" in retried.err
    assert dead_letters(ledger) == [(f"{path}:4", "wrong-columns")]


def test_a_truncated_gzip_gives_what_it_holds(ledger: Ledger, tmp_path: Path) -> None:
    rows = [
        b"2017-10-01 %02d:%02d:%02d,3600.0,1,3600.0,vc" % (n // 3600, n // 60 % 60, n % 60)
        for n in range(5000)
    ]
    whole = gzip.compress(b"\n".join([HEADER, *rows, b""]))
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(whole[: len(whole) * 2 // 3])

    ran = ledger("import", "philly", path, "--json")

    accepted = ran.json["accepted"]
    assert ran.status == 3
    assert 2000 < accepted < 5000
    assert ran.json["dead_lettered"] == 1
    line = accepted + 2  # behind the header and the good ones
    assert [text for text in ran.err.splitlines() if f"{path}:{line}: " in text]
    assert dead_letters(ledger) == [(f"{path}:{line}", "truncated-gzip")]
    assert ledger.hours("account") == {"philly/vc": f"{accepted}.000"}

    path.write_bytes(whole)
    whole_again = ledger("import", "philly", path, "--json")
    assert (whole_again.status, whole_again.json["repeated"]) == (0, accepted)
    assert ledger.hours("account") == {"philly/vc": "5000.000"}


def test_a_row_that_ends_before_it_starts(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_bytes(
        b"\n".join([PODS, b"p1,1,500,LS,Running,0,7200,0", b"p2,1,1000,LS,Running,0,50,100", b""])
    )

    ran = ledger("import", "openb", path, "--json")

    assert ran.status == 3
    assert ran.json["accepted"] == 1
    assert "50 is before scheduled_time 100" in ran.err
    assert dead_letters(ledger) == [(f"{path}:3", "end-before-start")]
    assert ledger.hours("account") == {"openb/ls": "1.000"}


WHOLE = {
    "a-wrong-column": (
        lambda path: path.write_bytes(HEADER.replace(b"num_gpus", b"gpus")),
        ":1: the columns do not fit",
    ),
    "an-empty-file": (lambda path: path.write_bytes(b""), "is empty"),
    "a-folder": (lambda path: path.mkdir(), "is a folder"),
    "nothing": (lambda _: None, "No such file"),
    "binary-junk": (lambda path: path.write_bytes(bytes(range(256)) * 64), ":1: the header cannot be read"),
    "latin-1": (lambda path: path.write_bytes(b"dur\xe9e\n"), ":1: the header cannot be read"),
    "cut-within-the-header": (
        lambda path: path.write_bytes(gzip.compress(HEADER)[:20]),
        "there is no header",
    ),
}


@pytest.mark.parametrize("what", WHOLE)
def test_a_file_that_is_no_trace_is_refused_whole(
    ledger: Ledger,
    tmp_path: Path,
    what: str,
) -> None:
    make: Callable[[Path], object]
    make, expected = WHOLE[what]
    path = tmp_path / "trace.csv"
    make(path)

    ran = ledger("import", "philly", path, "--json")

    assert ran.status == 2
    assert ran.out == ""
    assert ran.problem["error"].startswith(str(path))
    assert expected in ran.problem["error"]
    assert ran.problem["hint"]
    assert ledger.heads() == []
    assert dead_letters(ledger) == []


def test_an_unknown_source_is_bad_usage(ledger: Ledger, tmp_path: Path) -> None:
    ran = ledger("import", "nosuch", tmp_path, "--json")

    assert ran.status == 2
    assert ran.problem == {
        "error": "source 'nosuch' is not known",
        "hint": f"known sources: {', '.join(names())}",
        "exit": 2,
    }


def test_an_unknown_zone_is_bad_usage(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(with_fault(GOOD[0]))

    ran = ledger("import", "philly", path, "--tz", "Mars/Olympus")

    assert ran.status == 2
    assert "Mars/Olympus" in ran.err
    assert ledger.heads() == []


def test_many_faults_are_counted_and_the_first_are_shown(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    bad = [b"2017-10-01 00:00:09,3600.0,-%d,3600.0,vc" % (n + 1) for n in range(1200)]
    path.write_bytes(b"\n".join([HEADER, *GOOD, *bad, b""]))

    ran = ledger("import", "philly", path)

    assert ran.status == 3
    assert ran.out.startswith("1,204 records: 4 accepted, 0 repeated, 1,200 dead-lettered\n")
    assert ran.err.count("dead letter: ") == 20
    assert "and 1180 more; gpuledger dlq list shows all" in ran.err
    assert len(dead_letters(ledger)) == 1200


def test_what_waits_is_announced_on_its_topic(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(with_fault(ROWS["wrong-columns"]))
    ledger("import", "philly", path)

    queued = ledger.rows("SELECT topic, key, value FROM ledger.outbox")

    assert [(topic, key) for topic, key, _ in queued] == [("gpu.dead-letters", "import/philly/philly")]
    note = json.loads(bytes(queued[0][2]))
    assert (note["place"], note["code"]) == (f"{path}:4", "wrong-columns")
    assert note["reason"]
    assert note["hint"]


def dead_letters(ledger: Ledger) -> list[tuple[str, str]]:
    """Place and code of all that waits, as the command lists them."""
    listed = ledger.done("dlq", "list")["dead_letters"]
    assert all(letter["reason"] and letter["hint"] for letter in listed)
    return [(letter["place"], letter["code"]) for letter in listed]
