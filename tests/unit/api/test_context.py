"""Small things that every answer needs."""

import datetime as dt

from gpuledger.api.context import Context, hours_of
from gpuledger.database.engine import make_engine
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, iso


def test_hours_stand_beside_amounts_and_unknown_stays_unknown() -> None:
    row = {"account": "a", "owed_gpu_ms": 5_400_000, "delivered_gpu_ms": None}
    assert hours_of(row) == {"owed": "1.500", "delivered": None}


def test_instants_are_utc() -> None:
    berlin = dt.timezone(dt.timedelta(hours=1))
    assert iso(dt.datetime(2026, 1, 1, 1, tzinfo=berlin)) == "2026-01-01T00:00:00Z"


def test_the_present_is_the_clocks() -> None:
    clock = FixedClock(dt.datetime(1970, 1, 2, tzinfo=dt.UTC))
    context = Context(make_engine("postgresql+psycopg://nobody@127.0.0.1:1/nothing"), clock, Calendar())
    assert (context.now_s(), context.as_of()) == (86_400, "1970-01-02T00:00:00Z")
