"""The page of fair share: who was served how far, who comes next, and each reason for having nothing."""

from tests.unit.dashboards.answers import allocation, cycle
from tests.unit.dashboards.pages import SHARES, FakeClient, run_page, text_of

from gpuledger.client import answers
from gpuledger_dashboards import charts, fair_share


def test_it_answers_at_a_glance(client: FakeClient) -> None:
    text = text_of(run_page(SHARES, cluster="alpha"))
    assert "16 of 16 GPUs are issued; alpha/a was served least (0.400000), alpha/b most (0.900000)." in text
    assert "cycle alpha@1 · as of 2026-03-11 06:00 UTC" in text
    assert client.asked == [("alpha",)]
    assert "gpuledger cycle --cluster alpha --dry-run" in text


def test_before_the_first_cycle_it_names_the_command(client: FakeClient) -> None:
    client.newest = None
    assert "gpuledger cycle --cluster alpha" in text_of(run_page(SHARES, cluster="alpha"))


def test_a_cycle_without_accounts_says_where_shares_are_set(client: FakeClient) -> None:
    client.newest = answers.Cycle(
        cluster="alpha",
        cursor=1,
        cycle="1",
        supply_gpus=0,
        allocations=(),
        decisions=(),
        as_of="2026-03-11T06:00:00Z",
    )
    assert "gpuledger budget apply" in text_of(run_page(SHARES, cluster="alpha"))


def test_a_queue_that_is_not_kept_says_so(client: FakeClient) -> None:
    client.newest = cycle(waiting=0)
    assert "Nothing was decided about a workload" in text_of(run_page(SHARES, cluster="alpha"))


def test_a_long_queue_is_counted_and_not_shown_whole(client: FakeClient) -> None:
    client.newest = cycle(waiting=fair_share.NEXT_SHOWN + 5)
    assert "And 5 more." in text_of(run_page(SHARES, cluster="alpha"))
    assert len(fair_share.order(client.newest.decisions)) == fair_share.NEXT_SHOWN


def test_who_is_entitled_to_nothing_comes_last() -> None:
    found = cycle(allocation("a", None), allocation("c", "10.000000"), allocation("b", "9.000000"))
    assert [one.account for one in fair_share.served_least_first(found)] == ["b", "c", "a"]
    assert fair_share.table(found.allocations)[0]["Served"] == "entitled to nothing"


def test_one_account_alone_has_nobody_to_be_compared_with() -> None:
    assert fair_share.headline(cycle(allocation("a", "0.5"))) == "8 of 16 GPUs are issued."


def test_fractions_of_gpus_are_summed_exactly() -> None:
    part = answers.Allocation(
        account="a", share_ppm=1, used_gpu_ms=0, entitled_gpu_ms=0, ratio=None, demand_gpus="0.100",
        issued_gpus="0.100",
    )  # fmt: skip
    assert fair_share.headline(cycle(part, part, part)).startswith("0.300 of 16 GPUs")


def test_bars_keep_the_order_of_the_accounts() -> None:
    accounts = fair_share.served_least_first(cycle())
    bars = fair_share.bars(accounts)
    assert [(bar.account, bar.part, bar.gpu_hours) for bar in bars[:2]] == [
        ("alpha/a", "Entitled", 100.0), ("alpha/a", "Used", 40.0),
    ]  # fmt: skip
    spec = charts.served(bars, [one.account for one in accounts]).to_dict()
    assert [layer["encoding"]["y"]["sort"] for layer in spec["layer"]] == [["alpha/a", "alpha/b"]] * 2
    assert [row["account"] for row in fair_share.csv_rows(cycle())] == ["alpha/b", "alpha/a"]
