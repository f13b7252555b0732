"""The page of the queue: who waits now, how long it takes, by what order, and each reason for having nothing."""

import msgspec
import pytest
from tests.unit.dashboards.answers import cycle, status
from tests.unit.dashboards.pages import WAITS, FakeClient, run_page, text_of

from gpuledger.api.examples import EXAMPLES
from gpuledger.client.waiting import WaitsRow
from gpuledger_dashboards import charts, fair_share, waits

ROW = msgspec.convert(EXAMPLES["listWaits"]["rows"][0], WaitsRow)


def row(key: str, **changes: int | None) -> WaitsRow:
    return msgspec.structs.replace(ROW, key=key, **changes)


def test_it_answers_at_a_glance(client: FakeClient) -> None:
    client.waited, client.rights = (ROW,), ("read-work",)
    app = run_page(WAITS, cluster="alpha")
    text = text_of(app)
    assert (
        "1,200 requests: 1,150 started, 300 of them at once; half within 1 min, nine in ten within 1 h 30 min"
        in text
    )
    assert "20 waited still at the last roll-up. The longest wait is 2 d." in text
    assert "The newest cycle starts 0, lets 2 wait and has 0 leave." in text
    assert "gpuledger waits --by size --cluster alpha --from 2026-02-09 --to 2026-03-11 --json" in text
    shown = "".join(element.proto.body for element in app.get("html"))
    assert "3-4, paid for" in shown
    assert "3-4, free" in shown
    assert "Waits at place 1." in shown


def test_the_order_is_explained_in_numbered_sentences(client: FakeClient) -> None:
    client.waited = (ROW,)
    text = text_of(run_page(WAITS, cluster="alpha"))
    assert "1. **Who was served least comes first.**" in text
    assert f"{len(waits.ORDER)}. **Work that is paid for starts protected**" in text


def test_it_asks_little_and_each_class_apart(client: FakeClient) -> None:
    client.waited, client.rights = (ROW,), ("read-work",)
    run_page(WAITS, cluster="alpha", from_="2026-03-01", to="2026-03-02")
    kinds = [asked for asked in client.asked if asked[0] == "waits"]
    assert [(by, klass) for _, by, _, _, _, klass in kinds] == [
        ("total", None), ("size", "allocated"), ("size", "unallocated"), ("day", None),
    ]  # fmt: skip
    assert {asked[3:5] for asked in kinds} == {("2026-03-01", "2026-03-03")}
    assert len(client.asked) <= 10


def test_who_may_not_see_work_is_told_so_and_nothing_is_fetched(client: FakeClient) -> None:
    client.waited, client.rights = (ROW,), ()
    assert "shown to who may see work" in text_of(run_page(WAITS, cluster="alpha"))
    assert ("alpha",) not in client.asked


def test_before_the_first_cycle_waits_are_shown_all_the_same(client: FakeClient) -> None:
    client.waited, client.rights, client.newest = (ROW,), ("read-work",), None
    text = text_of(run_page(WAITS, cluster="alpha"))
    assert "gpuledger cycle --cluster alpha" in text
    assert "How long it takes, by class and size" in text


def test_a_long_queue_is_counted(client: FakeClient) -> None:
    client.waited, client.rights = (ROW,), ("read-work",)
    client.newest = cycle(waiting=fair_share.NEXT_SHOWN + 5)
    assert "And 5 more." in text_of(run_page(WAITS, cluster="alpha"))


def test_a_quiet_cycle_and_days_without_a_quantile_say_so(client: FakeClient) -> None:
    client.waited, client.rights = (row("1", p50_s=None, p90_s=None),), ("read-work",)
    client.newest = cycle(waiting=0)
    text = text_of(run_page(WAITS, cluster="alpha"))
    assert "Nothing waits that the newest cycle tells of." in text
    assert "On none of these days is a quantile known yet" in text
    assert "half at a time that is not known yet" in text


def test_a_window_without_waits_says_what_has_none(client: FakeClient) -> None:
    client.waited = ()
    text = text_of(run_page(WAITS, cluster="alpha"))
    assert "Sources that know no submit times have none" in text
    client.statuses = (status(rolled_up=False),)


def test_a_cluster_that_is_not_rolled_up_names_the_command(client: FakeClient) -> None:
    client.statuses = (status(rolled_up=False),)
    assert "gpuledger rollup" in text_of(run_page(WAITS))


@pytest.mark.parametrize(
    ("length_s", "text"),
    [
        (None, "not known yet"), (0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"),
        (5400, "1 h 30 min"), (86_399, "23 h 59 min"), (86_400, "1 d"), (180_000, "2 d 2 h"),
    ],
)  # fmt: skip
def test_lengths_are_written_for_people(length_s: int | None, text: str) -> None:
    assert waits.duration(length_s) == text


def test_a_bar_reaches_from_half_to_nine_in_ten_and_nothing_is_a_second() -> None:
    stretches = waits.stretches({"allocated": [row("9-16", p50_s=0, p90_s=600)], "unallocated": [row("<1")]})
    assert (stretches[0].p50_min, stretches[0].p90_min) == (1 / 60, 10.0)
    for layer in charts.waits(stretches).to_dict()["layer"]:
        assert layer["encoding"]["y"]["sort"] == ["<1", "9-16"]
        assert layer["encoding"]["x"]["scale"]["type"] == "log"


def test_lines_of_days_have_gaps_where_nothing_is_known() -> None:
    values = waits.by_day([row("2026-03-01"), row("2026-03-02", p50_s=None, p90_s=None)])
    assert [value.minutes for value in values] == [1.5, 90.0, None, None]
    assert charts.wait_days(values).to_dict()["encoding"]["x"]["scale"] == {"type": "utc"}


def test_the_download_has_seconds() -> None:
    (found,) = waits.csv_rows({"allocated": [ROW]})
    assert (found["class"], found["size"], found["p90_s"]) == ("allocated", "3-4", 5400)
