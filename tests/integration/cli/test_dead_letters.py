"""``dlq``: what could not be read is listed, shown, read again or discarded; nothing of it is deleted."""

import base64
import json
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger
from tests.commands.running import gpuledger

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster\n"
GOOD = "2017-10-01 00:00:00,3600.0,2,7200.0,vc\n"
BAD = ("2017-10-01 00:00:01,-5.0,1,3600.0,vc\n", "2017-10-01 00:00:02,3600.0,x,0.0,vc\n")
MENDED = "2017-10-01 00:00:02,3600.0,4,14400.0,vc\n"
KEYS = {
    "id", "received_at", "stream", "partition", "position", "cluster", "place", "code", "reason", "hint", "bytes",
    "state", "ended_at",
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace of one good row, and two that cannot be read."""
    path = tmp_path / "broken.csv"
    path.write_text(HEADER + GOOD + "".join(BAD))
    return path


@pytest.fixture
def broken(ledger: Ledger, path: Path) -> Ledger:
    assert ledger("import", "philly", path).status == 3
    return ledger


def ids(ledger: Ledger, *options: str) -> list[int]:
    return [letter["id"] for letter in ledger.done("dlq", "list", *options)["dead_letters"]]


def test_nothing_waits(ledger: Ledger) -> None:
    assert ledger.done("dlq", "list") == {"dead_letters": [], "next": None}
    assert ledger("dlq", "list").out == "no dead letters\n"
    assert ledger.done("dlq", "retry") == {"resolved": 0, "failed": 0}
    assert ledger.done("dlq", "discard", "--all", "--reason", "none") == {
        "discarded": 0, "repeated": 0, "applied": True,
    }  # fmt: skip


def test_a_list_says_where_and_why(broken: Ledger, path: Path) -> None:
    letters = broken.done("dlq", "list")["dead_letters"]
    assert [letter.keys() for letter in letters] == [KEYS] * 2
    assert [letter["place"] for letter in letters] == [f"{path}:3", f"{path}:4"]
    assert [letter["code"] for letter in letters] == ["end-before-start", "not-a-number"]
    assert {letter["cluster"] for letter in letters} == {"philly"}
    assert f"{path}:4" in broken("dlq", "list").out


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--cluster", "philly"], 2),
        (["--cluster", "openb"], 0),
        (["--to", "2001-01-01"], 0),
        (["--from", "2001-01-01"], 2),
        (["--as-of", "2001-01-01T00:00:00Z"], 0),
        (["--code", "not-a-number"], 1),
        (["--stream", "import/philly/philly"], 2),
        (["--stream", "gpu.telemetry"], 0),
        (["--state", "resolved"], 0),
        (["--state", "all", "--code", "not-a-number"], 1),
    ],
)
def test_a_list_of_what_letters_have_in_common(broken: Ledger, options: list[str], count: int) -> None:
    assert len(ids(broken, *options)) == count


def test_a_list_in_pages(broken: Ledger) -> None:
    first = broken.done("dlq", "list", "--limit", 1)
    assert first["next"] == first["dead_letters"][0]["id"]
    second = broken.done("dlq", "list", "--limit", 1, "--after", first["next"])
    assert second["next"] is None
    assert [p["dead_letters"][0]["id"] for p in (first, second)] == ids(broken)
    assert f"there are more: --after {first['next']}" in broken("dlq", "list", "--limit", 1).err


def test_one_letter_is_shown_whole(broken: Ledger, path: Path) -> None:
    _, id_ = ids(broken)
    shown = broken.done("dlq", "show", id_)
    assert shown.keys() == KEYS | {"meaning", "context", "raw", "raw_encoding"}
    assert (shown["raw"], shown["raw_encoding"]) == (BAD[1].rstrip(), "utf-8")
    assert shown["meaning"] == "A field that holds a number holds something else."
    assert shown["context"]["path"] == str(path)
    text = broken("dlq", "show", id_).out
    for said in (
        f"{path}:4",
        "not-a-number",
        shown["meaning"],
        shown["reason"],
        shown["hint"],
        BAD[1].rstrip(),
    ):
        assert said in text
    assert broken("dlq", "show", id_, "--raw").out == BAD[1].rstrip()


def test_bytes_that_are_no_text(broken: Ledger) -> None:
    broken.change(r"UPDATE ledger.dead_letters SET raw = '\x1b5b41ff0061'")
    id_, _ = ids(broken)
    shown = broken.done("dlq", "show", id_)
    assert shown["raw_encoding"] == "base64"
    assert base64.b64decode(shown["raw"]) == b"\x1b[A\xff\0a"
    assert r"\x1b[A\xff\x00a" in broken("dlq", "show", id_).out


def test_a_long_value_is_shown_in_part(broken: Ledger) -> None:
    broken.change("UPDATE ledger.dead_letters SET raw = convert_to(repeat('x', 3000), 'UTF8')")
    shown = broken("dlq", "show", ids(broken)[0])
    assert shown.out.endswith(f"{'x' * 2000} ... and 1000 bytes more; --raw prints all\n")


def test_what_is_understood_by_now_is_booked(broken: Ledger) -> None:
    """A later version reads what an earlier one could not; here the letter itself is mended."""
    _, id_ = ids(broken)
    broken.change(f"UPDATE ledger.dead_letters SET raw = '{MENDED.rstrip()}' WHERE id = {id_}")

    retried = broken("dlq", "retry", "--json")

    assert (retried.status, retried.json) == (3, {"resolved": 1, "failed": 1})
    assert "is negative: the end is before the start" in retried.err
    assert len(ids(broken)) == 1
    assert ids(broken, "--state", "resolved") == [id_]
    assert broken.hours("account") == {"philly/vc": "6.000"}
    digest = broken.checked_digest()
    assert broken("dlq", "retry", "--json").json == {"resolved": 0, "failed": 1}
    assert broken.checked_digest() == digest


def test_a_retry_of_some(broken: Ledger) -> None:
    first, second = ids(broken)
    for chosen, failed in (
        ([first], 1), ([first, second], 2), (["--code", "bad-field"], 0), (["--code", "not-a-number"], 1),
        (["--stream", "gpu.telemetry"], 0), (["--cluster", "philly"], 2), (["--all"], 2),
    ):  # fmt: skip
        assert broken("dlq", "retry", *chosen, "--json").json == {"resolved": 0, "failed": failed}


def test_a_mended_record_is_booked_in_place_of_the_letters_own(broken: Ledger, tmp_path: Path) -> None:
    _, id_ = ids(broken)
    mended = tmp_path / "mended.csv"
    mended.write_text(MENDED)
    assert broken.done("dlq", "retry", id_, "--mended", mended) == {"resolved": 1, "failed": 0}
    assert broken.hours("account") == {"philly/vc": "6.000"}
    assert broken.done("dlq", "show", id_)["raw"] == BAD[1].rstrip(), "what came stays as it came"
    again = broken("dlq", "retry", id_, "--mended", mended, "--json")
    assert again.status == 2
    assert f"dead letter {id_} was resolved at " in again.problem["error"]
    broken.checked_digest()


def test_what_nobody_needs_waits_no_longer_and_stays(broken: Ledger) -> None:
    first, second = ids(broken)
    reason = "the trace is known to hold it"
    planned = broken("dlq", "discard", first, "--reason", reason, "--dry-run")
    assert (planned.status, planned.out) == (0, "nothing discarded\n")
    assert ids(broken) == [first, second]

    done = broken.done("dlq", "discard", first, "--reason", reason, LOGNAME="ada")

    assert done == {"discarded": 1, "repeated": 0, "applied": True}
    assert ids(broken) == [second]
    shown = broken.done("dlq", "show", first)
    assert (shown["state"], shown["discarded_by"], shown["discarded_for"]) == ("discarded", "ada", reason)
    assert shown["raw"] == BAD[0].rstrip()
    assert broken("dlq", "retry", "--json").json == {"resolved": 0, "failed": 1}
    again = broken("dlq", "discard", first, "--reason", "other", LOGNAME="grace")
    assert again.out == "0 discarded, 1 discarded before\n"
    assert broken.done("dlq", "show", first)["discarded_by"] == "ada"


def test_an_erased_person_who_discarded_is_a_token_without_words(broken: Ledger) -> None:
    id_, _ = ids(broken)
    broken.done("dlq", "discard", id_, "--reason", "secret words", LOGNAME="ada")
    assert broken("user", "erase", "ada", "--yes").status == 0
    shown = broken.done("dlq", "show", id_)
    assert shown["discarded_by"].startswith("u-")
    assert shown["discarded_for"] is None
    assert shown["state"] == "discarded"


def test_discarding_by_what_letters_have_in_common(broken: Ledger) -> None:
    done = broken.done("dlq", "discard", "--code", "not-a-number", "--reason", "test rows")
    assert done["discarded"] == 1
    assert [letter["code"] for letter in broken.done("dlq", "list")["dead_letters"]] == ["end-before-start"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["show", "99"], 4, "no dead letter 99"),
        (["retry", "99"], 4, "no dead letter 99"),
        (["discard", "99", "--reason", "x"], 4, "no dead letter 99"),
        (["discard", "--reason", "x"], 2, "nothing is named"),
        (["discard", "--all", "--reason", " "], 2, "--reason"),
        (["discard", "--all"], 2, "--reason"),
        (["discard", "1", "--all", "--reason", "x"], 2, "both given"),
        (["retry", "1", "--code", "bad-field"], 2, "both given"),
        (["retry", "--all", "--code", "bad-field"], 2, "--all leaves nothing out"),
        (["retry", "--mended", "nowhere"], 2, "one letter must be named"),
        (["retry", "1", "--mended", "nowhere"], 2, "cannot be read"),
        (["list", "--state", "gone"], 2, "--state: 'gone'"),
        (["list", "--limit", "0"], 2, "--limit"),
    ],
)
def test_what_is_asked_wrongly(broken: Ledger, arguments: list[str], status: int, said: str) -> None:
    ran = broken("dlq", *arguments, "--json")
    assert (ran.status, ran.out) == (status, "")
    assert said in ran.problem["error"]


def test_raw_bytes_are_printed_as_they_are(broken: Ledger) -> None:
    """Through a pipe of bytes: a terminal's encoding must not touch them."""
    broken.change(r"UPDATE ledger.dead_letters SET raw = '\xc3a9'")
    ran = gpuledger("dlq", "show", ids(broken)[0], "--raw", settings=broken.settings)
    assert ran.out == "é"


def test_failures_are_told_one_by_one_up_to_a_number(ledger: Ledger, path: Path) -> None:
    path.write_text(HEADER + BAD[1] * 25)
    ledger("import", "philly", path)
    ran = ledger("dlq", "retry", "--json")
    assert json.loads(ran.out)["failed"] == 25
    assert len(ran.err.splitlines()) == 21
    assert ran.err.endswith("... and 5 more; gpuledger dlq list shows all\n")
