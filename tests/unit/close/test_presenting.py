"""What people see: every amount once, rounded where it is shown, and whatever was unusual about the close."""

import msgspec
from tests.unit.close.close_said import W_HOUR, document, line

from gpuledger.close.document import Document, Superseded, digest, encode
from gpuledger.close.presenting import COLUMNS, NOTHING, Statement, Table, hours, present


def table(statement: Statement, title: str) -> Table:
    return next(each for each in statement.tables if each.title.startswith(title))


def facts(said: Document) -> dict[str, str]:
    return dict(present(said).facts)


def test_each_account_has_a_line_and_all_have_a_total() -> None:
    accounts = table(present(document()), "Accounts")
    assert [row[0] for row in accounts.rows] == ["org/speech", "org/vision"]
    by_name = dict(zip(accounts.columns, accounts.rows[0], strict=True))
    assert by_name == {
        "Account": "org/speech", "Granted": "50.0", "Brought in": NOTHING, "Transferred": NOTHING, "Credited": NOTHING,
        "Charged": "60.0", "Held": NOTHING, "Expired": "-10.0", "Carried on": "-10.0", "Free use": NOTHING,
        "Physical": "60.0",
    }  # fmt: skip
    total = dict(zip(accounts.columns, accounts.total, strict=True))
    assert (total["Granted"], total["Charged"], total["Physical"]) == ("150.0", "100.0", "100.0")


def test_every_weighted_amount_of_a_line_but_what_is_left_has_a_column() -> None:
    names = {name for name, _ in COLUMNS}
    assert names == set(document().accounts[0].weighted.__struct_fields__) - {"left"}


def test_amounts_are_rounded_for_people_and_never_to_a_negative_nothing() -> None:
    assert hours(1234 * W_HOUR + W_HOUR // 4) == "1,234.2"
    assert hours(-W_HOUR // 1000) == "0.0"
    assert hours(-3 * W_HOUR) == "-3.0"


def test_the_headline_is_of_all_accounts() -> None:
    headline = dict(present(document()).headline)
    assert (headline["budget"], headline["charged"], headline["carried on"]) == ("150.0", "100.0", "20.0")


def test_what_was_unusual_is_said() -> None:
    told = facts(document())
    assert told["silent sources"] == "slurm/alpha"
    assert told["scheduler's record"] == "2 runs compared: 1 late; 0 without a cause"
    assert told["period"] == "2026-11, 2026-11-01T00:00:00Z to 2026-12-01T00:00:00Z, exclusive"
    assert told["time zone"] == "UTC, data 2026b"
    quiet = msgspec.structs.replace(document(), sources=[], reconciled=None, late=[])
    assert (facts(quiet)["silent sources"], facts(quiet)["scheduler's record"]) == ("none", "nobody compared")
    assert not any(each.title.startswith("Corrections") for each in present(quiet).tables)
    assert table(present(document()), "Corrections").rows[0][:2] == ["org/vision", "2026-10"]


def test_a_later_version_names_the_one_before() -> None:
    said = msgspec.structs.replace(
        document(), version=2, supersedes=Superseded(version=1, digest="ab", reopened_seq=91)
    )
    assert facts(said)["in place of"] == "version 1, ab, reopened by row 91"
    unsealed = msgspec.structs.replace(said, supersedes=Superseded(version=1, digest=None, reopened_seq=91))
    assert facts(unsealed)["in place of"] == "version 1, never sealed, reopened by row 91"


def test_the_foot_is_the_digest_of_the_sealed_file() -> None:
    said = document(line("org/a"))
    assert digest(encode(said)) in present(said).foot


def test_every_row_has_a_cell_for_each_column() -> None:
    for each in present(document()).tables:
        assert all(len(row) == len(each.columns) for row in each.rows)
        assert not each.total or len(each.total) == len(each.columns)
        assert len(each.texts) <= len(each.columns)
        assert sum(each.texts) <= 100
