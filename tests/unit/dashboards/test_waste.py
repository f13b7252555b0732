"""The page of waste: what was not used, whose it was, fair words, and each reason for having nothing."""

from decimal import Decimal

import msgspec
from tests.unit.dashboards.answers import HOUR, status
from tests.unit.dashboards.pages import WASTE, FakeClient, run_page, text_of

from gpuledger.api.examples import EXAMPLES
from gpuledger.client.waiting import WasteRow
from gpuledger_dashboards import charts, waste

ROW = msgspec.convert(EXAMPLES["listWaste"]["rows"][0], WasteRow)
UNMEASURED = msgspec.structs.replace(
    ROW, key="philly/b", account="philly/b", sampled_gpu_ms=0, used_gpu_ms=0, idle_gpu_ms=0, squatted_gpu_ms=0,
    low_gpu_ms=0, coverage=Decimal("0.0000"), idle_of_sampled=None, squatted_of_budget=None, budget_gpu_ms=None,
)  # fmt: skip


def shown(client: FakeClient, **query: str) -> str:
    app = run_page(WASTE, cluster="alpha", **query)
    return "".join(element.proto.body for element in app.get("html"))


def test_it_answers_at_a_glance_in_fair_words(client: FakeClient) -> None:
    client.wasted, client.rights = (ROW,), ("read-work",)
    text = text_of(run_page(WASTE, cluster="alpha"))
    assert "Of 81,000.0 measured GPU-h that were paid for, 8,100.0 were idle (10.0 %)" in text
    assert "6,000.0 of them for more than 30 minutes at a stretch, which is 5.0 % of the budgets." in text
    assert "It says nothing of why" in text
    assert "coverage 90.0 % of charged GPU-time measured" in text
    assert "gpuledger waste --by account --cluster alpha --period 2017-10 --json" in text


def test_accounts_and_people_have_their_shares(client: FakeClient) -> None:
    unbudgeted = msgspec.structs.replace(ROW, key="philly/c", squatted_of_budget=None, budget_gpu_ms=None)
    client.wasted, client.rights = (ROW, UNMEASURED, unbudgeted), ("read-work",)
    found = shown(client)
    assert "philly/ee9e8c, philly/ee9e8c" in found
    assert "5.0 %" in found
    assert "no budget" in found
    assert "unknown" in found, "what was not measured is not nothing"


def test_it_asks_little_and_people_only_for_who_may_see_work(client: FakeClient) -> None:
    client.wasted, client.rights = (ROW,), ("read-work",)
    run_page(WASTE, cluster="alpha")
    asked = [(by, period) for kind, by, _, period in client.asked if kind == "waste"]
    assert asked == [("account", None), ("total", "2017-10"), ("user", "2017-10"), ("day", "2017-10")]
    client.asked.clear()
    client.rights = ()
    from gpuledger_dashboards import data

    data.forget()
    assert "People are shown to who may see work" in text_of(run_page(WASTE, cluster="alpha"))
    assert "user" not in [asked[1] for asked in client.asked if asked[0] == "waste"]


def test_another_period_is_asked_for_by_its_name(client: FakeClient) -> None:
    client.wasted, client.wasted_in = (ROW,), ("2017-09", "2017-10")
    run_page(WASTE, cluster="alpha", period="2017-09")
    assert [asked[3] for asked in client.asked if asked[0] == "waste"][:2] == [None, "2017-09"]


def test_nothing_measured_says_what_measures(client: FakeClient) -> None:
    client.wasted, client.rights = (UNMEASURED,), ("read-work",)
    text = text_of(run_page(WASTE, cluster="alpha"))
    assert "none of them was measured" in text
    assert "gpuledger agent nvml" in text
    assert "Nobody's charged time was measured idle or little used." in text


def test_no_period_names_the_roll_up(client: FakeClient) -> None:
    client.wasted_in = ()
    assert "No charged time of alpha is rolled up" in text_of(run_page(WASTE, cluster="alpha"))
    client.statuses = (status(rolled_up=False),)
    from gpuledger_dashboards import data

    data.forget()
    assert "nothing of it has been rolled up" in text_of(run_page(WASTE, cluster="alpha"))


def test_parts_sum_to_what_was_charged() -> None:
    for one in (ROW, UNMEASURED):
        assert sum(waste.parts_of(one).values()) == one.allocated_gpu_ms
    # A sample that reaches beyond its run makes no negative part.
    more = msgspec.structs.replace(ROW, sampled_gpu_ms=ROW.allocated_gpu_ms + HOUR)
    assert waste.parts_of(more)[waste.UNMEASURED] == 0
    assert sum(waste.parts_of(more).values()) == more.allocated_gpu_ms


def test_charts_keep_the_order_of_parts_and_accounts() -> None:
    parts = waste.parts([UNMEASURED, ROW])
    spec = charts.waste(parts).to_dict()
    assert spec["encoding"]["y"]["sort"] == ["b", "ee9e8c"]
    assert spec["encoding"]["color"]["scale"]["domain"] == list(waste.parts_of(ROW))
    assert (
        charts.waste_days(waste.parts([ROW], within_account=False)).to_dict()["encoding"]["x"]["field"]
        == "key"
    )


def test_the_download_has_amounts_and_budgets() -> None:
    (row,) = waste.csv_rows([ROW])
    assert (row["squatted_gpu_ms"], row["budget_gpu_ms"]) == (6000 * HOUR, 120_000 * HOUR)
    assert waste.day_table([ROW])[0][waste.SQUATTED] == "6,000.0"
    assert waste.coverage_of(None) == "unknown of charged GPU-time measured"
