"""Bulk writes keep every value as it is."""

from tests.integration.ledger.books import NOON, Ledger

from gpuledger.database.engine import Writer, writing
from gpuledger.ledger.copying import copy_rows, driver

ODD = 'tab\t newline\n quote" backslash\\ \\N umlaut ö emoji \N{GRINNING FACE} end'


def test_copied_text_bytes_lists_and_nulls_arrive_unchanged(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        copy_rows(
            writer,
            "ledger.segments",
            ("book", "workload", "run", "account", "class", "user_token", "gpus_milli", "gpu_model", "hosts",
             "from_at", "estimated", "since_seq"),
            [(ODD, "", "\\.", "a", "c", "u", 2**62, None, [ODD, "", "{}"], NOON, True, 1)],
        )  # fmt: skip
        copy_rows(writer, "side.texts", ("ref", "salt", "body"), [(b"\x00\xff\\", b"", ODD.encode())])
    assert ledger.rows(
        "SELECT book, workload, run, gpus_milli, gpu_model, hosts, from_at FROM ledger.segments"
    ) == [(ODD, "", "\\.", 2**62, None, [ODD, "", "{}"], NOON)]
    ((ref, salt, body),) = ledger.rows("SELECT ref, salt, body FROM side.texts")
    assert (bytes(ref), bytes(salt), bytes(body)) == (b"\x00\xff\\", b"", ODD.encode())


def test_nothing_to_copy_copies_nothing(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        copy_rows(writer, "side.texts", ("ref", "salt", "body"), [])
    assert ledger.value("SELECT count(*) FROM side.texts") == 0


def test_the_driver_works_in_the_transaction_of_the_writer(ledger: Ledger) -> None:
    with ledger.engine.connect() as connection, connection.begin() as transaction:
        driver(Writer(connection)).execute("INSERT INTO side.texts VALUES ('a', 'b', 'c')")
        assert connection.exec_driver_sql("SELECT count(*) FROM side.texts").scalar() == 1
        transaction.rollback()
    assert ledger.value("SELECT count(*) FROM side.texts") == 0
