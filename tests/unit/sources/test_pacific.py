"""PST and PDT become offsets, and nothing else is touched."""

import pytest

from gpuledger.sources.pacific import with_offset


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2017-10-03 00:08:00 PDT", "2017-10-03 00:08:00-07:00"),
        ("2017-11-27 00:04:00 PST", "2017-11-27 00:04:00-08:00"),
        ("2017-11-27 00:04:00", "2017-11-27 00:04:00"),
        ("2017-11-27 00:04:00 CET", "2017-11-27 00:04:00 CET"),
        ("", ""),
    ],
)
def test_a_time_of_the_trace_has_its_offset(text: str, read: str) -> None:
    assert with_offset(text) == read
