"""Numbers of Slurm's JSON in both shapes, and what stands there for none."""

import msgspec
import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.slurm.shapes import (
    UNSET,
    Number,
    TresItem,
    Value,
    bad_shape,
    count_of,
    duration_of,
    gres,
    instant_of,
    limit_of,
    plain,
    small,
)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("7", 7),
        ("null", None),
        ("7.0", 7),
        ('{"set": true, "infinite": false, "number": 7}', 7),
        ('{"set": false, "infinite": false, "number": 7}', None),
        ('{"set": true, "infinite": true, "number": 7}', None),
        ('{"set": true}', None),
        ("4294967294", None),
        ("4294967295", None),
        ("-2", -2),
        ("1e300", None),
    ],
)
def test_a_number_in_either_shape(body: str, value: int | None) -> None:
    assert plain(msgspec.json.decode(body, type=Value)) == value


@pytest.mark.parametrize("sentinel", sorted(UNSET))
def test_sentinels_are_no_times(sentinel: int) -> None:
    assert instant_of("time.end", sentinel) is None


def test_zero_is_no_time() -> None:
    assert instant_of("time.end", 0) is None
    assert instant_of("time.end", Number(set=True, number=1_793_484_000)) == 1_793_484_000


@pytest.mark.parametrize("value", [-1, 9_999_999_999])
def test_a_time_outside_all_years_is_refused(value: int) -> None:
    with pytest.raises(BadRecord, match=r"time\.end"):
        instant_of("time.end", value)


def test_durations_counts_and_limits_have_bounds() -> None:
    assert duration_of("d", 83) == 83
    assert duration_of("d", None) is None
    assert count_of("c", None) == 0
    assert small(-1) is None
    assert small(2) == 2
    assert limit_of(480, 60) == 28_800
    assert limit_of(0, 60) is None
    assert limit_of(2**62, 60) is None
    for value in (-1, 2**40):
        with pytest.raises(BadRecord):
            duration_of("d", value)
        with pytest.raises(BadRecord):
            count_of("c", value)


def test_generic_resources_alone_are_told() -> None:
    items = [
        TresItem("cpu", None, 4),
        TresItem("gres", "gpu:h100", Number(set=True, number=2)),
        TresItem("gres"),
    ]
    assert gres(items) == [("gpu:h100", 2)]


def test_a_record_of_another_shape_is_shown() -> None:
    fault = bad_shape(b'{"job_id": "x"}', ValueError("Expected int"))
    assert fault.code == "bad-shape"
    assert "job_id" in fault.message
