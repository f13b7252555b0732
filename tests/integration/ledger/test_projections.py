"""Segments, waits, hosts and the organisation's tables: versions in force, and those before."""

from pathlib import Path

from tests.integration.ledger.books import (
    CLUSTER,
    HOUR,
    Ledger,
    ended,
    registered,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import writing
from gpuledger.events import budget, host
from gpuledger.ledger.append import append

SEGMENTS = (
    "SELECT extract(epoch FROM from_at)::bigint, extract(epoch FROM to_at)::bigint, since_seq, until_seq"
    " FROM ledger.segments WHERE workload = :workload ORDER BY id"
)
WAITS = SEGMENTS.replace("segments", "waits")


def test_an_open_segment_is_superseded_by_the_closed_one(ledger: Ledger) -> None:
    ledger.append(told(0, submitted()), told(5, started()))
    ledger.append(told(9, ended()))
    assert ledger.rows(SEGMENTS, workload="w1") == [(5, None, 2, 3), (5, 9, 3, None)]
    assert ledger.rows(WAITS, workload="w1") == [(0, 5, 2, None)]


def test_a_batch_leaves_no_version_that_nobody_could_have_seen(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    assert ledger.rows(SEGMENTS, workload="w1") == [(0, HOUR, 3, None)]


def test_what_did_not_change_keeps_its_version(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    ledger.append(told(2 * HOUR, started(run="r2")))
    assert ledger.rows(SEGMENTS, workload="w1") == [(0, HOUR, 3, None), (2 * HOUR, None, 4, None)]


def test_a_batch_reads_what_is_in_force_of_its_own_workloads_whatever_else_the_book_holds(
    ledger: Ledger,
) -> None:
    """Before the planner has statistics it would read every segment in force, as many as the book has runs."""
    # Autovacuum on a busy machine may have given it some: of a book as small as this it would read all, and be right.
    for table in ("segments", "waits"):
        ledger.change(
            f"ALTER TABLE ledger.{table} SET (autovacuum_enabled = false);"
            f"DELETE FROM pg_statistic WHERE starelid = 'ledger.{table}'::regclass;"
            f"UPDATE pg_class SET relpages = 0, reltuples = -1 WHERE oid = 'ledger.{table}'::regclass"
        )
    names = [f"w{number}" for number in range(2000)]
    for some in (names[:1000], names[1000:]):
        ledger.append(
            *(event for name in some for event in (told(0, submitted(name)), told(5, started(name))))
        )
    for first in range(0, 20, 5):
        with writing(ledger.engine) as writer:
            ends = [told(9, ended(name)) for name in names[first : first + 5]]
            append(writer, CLUSTER, ends, clock=ledger.clock, calendar=ledger.calendar)
            read = writer.exec_driver_sql(
                "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables"
                " WHERE schemaname = 'ledger' AND relname IN ('segments', 'waits')"
            ).scalar_one()
            # Its segment and its wait, and the segment once more where it is superseded; of all batches so far.
            assert 0 < read <= 4 * (first + 5)


def test_a_run_that_turns_out_to_hold_nothing_is_superseded_by_nothing(ledger: Ledger) -> None:
    ledger.append(*run_of(10, HOUR))
    ledger.append(told(10, ended(), source="reconcile/x"))
    assert ledger.rows(SEGMENTS, workload="w1") == [(10, HOUR, 3, 4)]
    assert ledger.used() == {}


def test_a_row_says_all_that_is_known_of_the_run(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR, hosts=["h2", "h1"], gpu_model="H100", klass="unallocated", gpus_milli=142))
    row = ledger.rows(
        "SELECT book, run, account, class, gpus_milli, gpu_model, hosts, estimated FROM ledger.segments"
    )
    assert row == [(CLUSTER, "r1", "org/vision", "unallocated", 142, "H100", ["h1", "h2"], False)]


def test_hosts_are_written_anew_with_each_fact_about_them(ledger: Ledger) -> None:
    ledger.append(told(0, registered("h1", 8)), told(0, registered("h2", 4)))
    ledger.append(told(50, host.Retired(cluster=CLUSTER, host="h1", gpus=8, gpu_model="H100")))
    query = "SELECT host, gpus, extract(epoch FROM to_at)::bigint, since_seq, until_seq FROM ledger.hosts ORDER BY id"
    assert ledger.rows(query) == [("h1", 8, None, 2, 3), ("h2", 4, None, 2, None), ("h1", 8, 50, 3, None)]


def test_an_account_is_created_once_and_by_the_organisations_book_alone(ledger: Ledger) -> None:
    ledger.append(
        told(0, budget.AccountCreated(account="org")), told(1, budget.AccountCreated(account="org"))
    )
    assert ledger.rows("SELECT account, path, created_seq FROM ledger.accounts") == [("org", "org", 1)]


def test_shares_zones_and_periods_are_kept_with_the_row_that_set_them(ledger: Ledger) -> None:
    ledger.append(
        told(7, budget.ShareSet(account="org", share=3, reason="t", by="t")),
        told(7, budget.PolicyChanged(policy="organisation", timezone="Asia/Tokyo", period="month")),
    )
    opened = budget.PeriodOpened(cluster=CLUSTER, period="1970-01", installed_gpu_ms=5, grants=[], org_seq=2)
    ledger.append(told(7, opened), told(8, opened))
    assert ledger.rows(
        "SELECT account, extract(epoch FROM from_at)::bigint, share, set_seq FROM ledger.shares"
    ) == [("org", 7, 3, 1)]
    assert ledger.rows("SELECT * FROM ledger.organisation") == [(2, "Asia/Tokyo", "month")]
    assert ledger.rows("SELECT book, period, opened_seq, installed_gpu_ms, state FROM ledger.periods") == [
        (CLUSTER, "1970-01", 1, 5, "open")
    ]


def test_what_was_told_otherwise_of_a_host_is_listed_by_the_documented_query(
    ledger: Ledger, repository: Path
) -> None:
    """Two sources disagree at one instant; a third says what one of them says, and at another instant all agree."""
    small, large = registered("h1", 4), registered("h1", 8)
    ledger.append(
        told(5, small, source="inventory"),
        told(5, large, source="reconcile/slurm"),
        told(9, large, source="inventory"),
        told(9, large, source="stream/slurm"),
        told(5, registered("h2", 4)),
    )
    page = (repository / "docs/inventory-file.md").read_text()
    query = (
        page.partition("```sql\n")[2]
        .partition("```")[0]
        .rstrip()
        .removesuffix(";")
        .replace(":text", "\\:text")
    )
    rows = ledger.rows(f"SELECT host, seq, source, counts FROM ({query}) AS listed")
    assert rows == [("h1", 1, "inventory", "8 healthy"), ("h1", 2, "reconcile/slurm", "8 healthy")]
