"""Fault checklist 33: ten thousand starts in one second, told at once."""

import datetime as dt

from tests.integration.ledger.books import GPU_HOUR, HOUR, Ledger, ended, started, told

from gpuledger.database.engine import reading
from gpuledger.events.budget import AccountCreated
from gpuledger.ledger.audit import verify
from gpuledger.ledger.rebuild import check

RUNS = {"short": 1000, "full": 10_000}
BATCH = 2500


def test_ten_thousand_starts_in_one_second_are_each_charged(ledger: Ledger, test_form: str) -> None:
    runs = RUNS[test_form]
    ledger.append(told(0, AccountCreated(account="org/vision")))
    starts = [told(0, started(f"w{n}", account="org/vision", user=f"user{n % 100}")) for n in range(runs)]
    for first in range(0, runs, BATCH):
        ledger.append(*starts[first : first + BATCH])
    assert ledger.value("SELECT count(*) FROM ledger.segments WHERE to_at IS NULL") == runs

    stops = [told(HOUR, ended(f"w{n}")) for n in range(runs)]
    for first in range(0, runs, BATCH):
        ledger.append(*stops[first : first + BATCH])

    assert ledger.balance("org/vision").charged_gpu_ms == runs * 8 * GPU_HOUR
    rows, last, smallest_step = ledger.rows(
        "SELECT count(*), max(seq), min(step) FROM (SELECT seq, recorded_at - lag(recorded_at) OVER (ORDER BY seq)"
        " AS step FROM ledger.journal WHERE book = 'alpha') AS steps"
    )[0]
    assert rows == last == 2 * runs
    assert smallest_step >= dt.timedelta(microseconds=1)
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
        assert check(reader, ledger.calendar).ok
