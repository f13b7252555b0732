"""Single fields: what is read, what is refused, and under which code."""

import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources import values
from gpuledger.sources.values import LocalTimes


def test_a_long_value_is_cut_where_it_is_shown() -> None:
    assert values.shown("x" * 60) == repr("x" * 60)
    assert values.shown("x" * 61) == repr("x" * 60 + "…")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "missing-value"),
        ("-5", "out-of-bounds"),
        ("1.0", "not-a-number"),
        ("+1", "not-a-number"),
        (" 1", "not-a-number"),
        ("٣", "not-a-number"),
        ("9" * 16, "not-a-number"),
    ],
)
def test_what_is_no_whole_number_is_refused(text: str, code: str) -> None:
    with pytest.raises(BadRecord, match=r"^field: ") as caught:
        values.whole_number("field", text)
    assert caught.value.code == code


def test_a_whole_number_has_at_most_fifteen_digits() -> None:
    assert values.whole_number("field", "007") == 7
    assert values.whole_number("field", "9" * 15) == 10**15 - 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("66", (66, "")),
        ("66.", (66, "")),
        ("66.0", (66, "")),
        ("66.500", (66, "5")),
        ("66.000", (66, "")),
        (".25", (0, "25")),
    ],
)
def test_a_duration_is_split_at_its_point(text: str, expected: tuple[int, str]) -> None:
    assert values.seconds_and_fraction("duration", text) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("-0.5", "end-before-start"),
        ("1.2.3", "not-a-number"),
        ("1.5s", "not-a-number"),
        ("", "missing-value"),
    ],
)
def test_what_is_no_duration_is_refused(text: str, code: str) -> None:
    with pytest.raises(BadRecord) as caught:
        values.seconds_and_fraction("duration", text)
    assert caught.value.code == code


def test_the_limits_of_gpus_are_inclusive() -> None:
    assert values.gpu_count("gpus", "1000000") == 1_000_000
    assert values.gpu_fraction("part", "1000") == 1000
    with pytest.raises(BadRecord, match="1000001 GPUs"):
        values.gpu_count("gpus", "1000001")
    with pytest.raises(BadRecord, match="1001 milli-GPU"):
        values.gpu_fraction("part", "1001")


@pytest.mark.parametrize(
    ("text", "written"), [("71.860", "71.860"), ("0", "0"), ("1E+2", "100"), ("-0.0", "0.0"), ("100", "100")]
)
def test_a_percentage_is_kept_as_written_in_plain_digits(text: str, written: str) -> None:
    number = values.percent("use", text)
    assert isinstance(number, Decimal)
    assert str(number) == written


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("100.0001", "out-of-bounds"),
        ("-0.1", "out-of-bounds"),
        ("1e-16", "out-of-bounds"),
        ("Infinity", "not-a-number"),
        ("1_0", "not-a-number"),
        ("half", "not-a-number"),
    ],
)
def test_what_is_no_percentage_is_refused(text: str, code: str) -> None:
    with pytest.raises(BadRecord) as caught:
        values.percent("use", text)
    assert caught.value.code == code


def test_instants_end_before_the_year_2101() -> None:
    assert values.epoch_second("time", "0") == 0
    assert values.epoch_second("time", "4133980799") == 4_133_980_799
    with pytest.raises(BadRecord, match="1970 to 2100"):
        values.epoch_second("time", "4133980800")
    with pytest.raises(BadRecord, match="1970 to 2100"):
        values.instant_in_bounds("time", -1, "-1")


def test_the_length_of_a_name_is_counted_in_bytes() -> None:
    assert values.name("user", "é" * 4, limit_bytes=8) == "é" * 4
    with pytest.raises(BadRecord, match="more than 8 bytes"):
        values.name("user", "é" * 5, limit_bytes=8)


@pytest.mark.parametrize("text", ["", "Big", "a/b", "a b", "~org", "a" * 129])
def test_a_name_that_is_no_part_of_a_path_cannot_be_a_cluster(text: str) -> None:
    with pytest.raises(Refused, match="--cluster"):
        values.cluster_name(text)


def test_a_cluster_may_have_digits_dashes_and_dots() -> None:
    assert values.cluster_name("west-2.a_b") == "west-2.a_b"


def test_a_time_without_offset_is_in_the_zone_of_the_import_and_else_utc() -> None:
    assert LocalTimes(None).read("t", "2017-10-09 07:01:55") == (1_507_532_515, None)
    assert LocalTimes("Europe/Berlin").read("t", "2017-10-09 07:01:55") == (1_507_525_315, None)
    assert LocalTimes("Europe/Berlin").read("t", "2017-10-09T07:01:55Z") == (1_507_532_515, None)


TURNS = {
    # zone: a local time beside which clocks were set, by an hour, half an hour, a day, and by 44 min 30 s
    "Europe/Berlin": "2017-10-29 02:30:00",
    "America/Los_Angeles": "2017-03-12 02:30:00",
    "Australia/Lord_Howe": "2017-04-02 01:45:00",
    "Pacific/Apia": "2011-12-30 12:00:00",
    "Africa/Monrovia": "1972-01-07 00:44:15",
}


@given(st.sampled_from(sorted(TURNS)), st.lists(st.integers(-100_000, 100_000), min_size=1, max_size=20))
def test_times_of_an_hour_that_was_read_already_are_the_same_as_without_it(
    zone: str, apart: list[int]
) -> None:
    times = LocalTimes(zone)
    for seconds in (*apart, *apart):
        local = dt.datetime.fromisoformat(TURNS[zone]) + dt.timedelta(seconds=seconds)
        at_s, odd = times.read("t", str(local))
        assert at_s == local.replace(tzinfo=ZoneInfo(zone)).timestamp()
        later = local.replace(tzinfo=ZoneInfo(zone), fold=1).timestamp()
        assert (odd is None) == (later == at_s)


@pytest.mark.parametrize(
    ("text", "at_s"),
    [
        ("2017W41T07+01:01:55", 1_507_528_685),
        ("2017-10-09 07:01:55.5", 1_507_532_515),
        ("2017W41T07+01:01:55.5", 1_507_528_684),
        ("2017-10-09 07:01:55+00:30", 1_507_530_715),
        ("2017-10-09 07:01:55+08:00", 1_507_503_715),
        ("2017-10-09 07:01:55Z", 1_507_532_515),
        ("2017-10-09 07:01:55.75-08:00", 1_507_561_315),
    ],
)
def test_an_hour_that_was_read_says_nothing_of_times_that_are_written_otherwise(text: str, at_s: int) -> None:
    times = LocalTimes(None)
    for hour in (
        "2017W41T07+01:00:00",
        "2017W41T07+01:00:00.5",
        "2017-10-09 07:00:00",
        "2017-10-09 07:59:00+08:00",
        "2017-10-09 07:00:00+07:00",
        "2017-10-09 07:00:00.75-08:00",
    ):
        times.read("t", hour)
    assert times.read("t", text) == (at_s, None)


def test_a_time_that_came_twice_is_the_first_and_is_told() -> None:
    at_s, odd = LocalTimes("Europe/Berlin").read("t", "2017-10-29 02:30:00")
    assert at_s == 1_509_237_000  # 00:30Z, still summer time
    assert odd is not None
    assert odd[0] == "ambiguous-time"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "missing-value"),
        ("2017-10-09", "not-a-time"),
        ("20171009", "not-a-time"),
        ("0001-01-01 00:00:00+23:59", "time-out-of-range"),
    ],
)
def test_what_is_no_time_is_refused(text: str, code: str) -> None:
    with pytest.raises(BadRecord) as caught:
        LocalTimes(None).read("t", text)
    assert caught.value.code == code


@pytest.mark.parametrize("zone", ["Mars/Base", "", "../etc/passwd"])
def test_a_zone_that_does_not_exist_is_refused(zone: str) -> None:
    with pytest.raises(Refused, match="--tz"):
        LocalTimes(zone)


@pytest.mark.parametrize("word", ["", "None", "NaN", "nan", "NaT", "null", "NULL"])
def test_words_for_nothing_are_nothing(word: str) -> None:
    assert values.present(word) == ""
    assert values.present(word + "x") == word + "x"


def test_an_instant_with_a_fraction_is_floored() -> None:
    assert values.epoch_floored("t", "1891252.0000000002") == 1_891_252
    assert values.epoch_floored("t", "7.999") == 7
    for text, code in (
        ("-1.5", "end-before-start"),
        ("1e9", "not-a-number"),
        ("5000000000", "time-out-of-range"),
    ):
        with pytest.raises(BadRecord) as caught:
            values.epoch_floored("t", text)
        assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50.0", (500, True)),
        ("800", (8000, True)),
        ("12.5", (125, True)),
        ("33.33", (333, False)),
        ("0", (0, True)),
    ],
)
def test_percent_of_a_gpu_become_thousandths(text: str, expected: tuple[int, bool]) -> None:
    assert values.gpus_of_percent("g", text) == expected


def test_more_percent_than_any_job_has_are_refused() -> None:
    with pytest.raises(BadRecord) as caught:
        values.gpus_of_percent("g", "100000100")
    assert caught.value.code == "out-of-bounds"


def test_the_midnight_after_an_instant_is_that_of_the_zone() -> None:
    berlin = LocalTimes("Europe/Berlin")
    assert berlin.following_midnight(berlin.read("t", "2017-10-28 23:59:59")[0]) == 1_509_228_000
    assert berlin.following_midnight(1_509_228_000) == 1_509_228_000 + 25 * 3600, "a day of 25 hours"


def test_a_column_of_times_says_what_each_says_by_itself() -> None:
    times = LocalTimes("America/Los_Angeles")
    usual = ["2017-10-09 07:01:55", "2017-10-09 08:00:00", "2017-10-09 07:59:59"]
    assert times.column(usual) == [times.read("t", value)[0] for value in usual]
    offset = ["2017-10-09 07:01:55-07:00", "2017-10-09 09:00:00-07:00"]
    assert times.column(offset) == [times.read("t", value)[0] for value in offset]


def test_a_column_of_times_leaves_to_others_what_is_odd() -> None:
    odd = ["2017-11-05 01:30:00", "2017-03-12 02:30:00", "", "x", "2017-10-09", "2017-10-09 08:01:55Z"]
    found = LocalTimes("America/Los_Angeles").column(["2017-10-09 07:01:55", *odd])
    assert found[0] == 1507557715
    assert all(at_s < 0 for at_s in found[1:])
    assert LocalTimes(None).column(["", "1969-12-31 23:59:59"])[1] < 0


def test_a_column_of_times_may_have_any_offset_and_leaves_fractions_to_others() -> None:
    times = LocalTimes(None)
    offsets = [f"2017-10-09 07:01:55+{hours:02}:00" for hours in range(12)]
    assert [times.column([value])[0] for value in offsets] == [times.read("t", value)[0] for value in offsets]
    assert times.column(["2017-10-09 07:01:55.1234567", "2017-10-09 07:01:55"])[0] < 0
