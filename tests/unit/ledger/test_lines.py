"""Rows as lines: what was read from two places compares as one text."""

import datetime as dt

from gpuledger.ledger.lines import line


def test_instants_are_whole_seconds_whatever_their_zone() -> None:
    utc = dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC)
    tokyo = utc.astimezone(dt.timezone(dt.timedelta(hours=9)))
    assert line(("alpha", utc, None, 5)) == line(["alpha", tokyo, None, 5]) == "alpha\t3600\tNone\t5"
