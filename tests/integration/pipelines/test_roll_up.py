"""Hand-made ledgers through the whole graph, gates included, against figures worked out by hand."""

import datetime as dt

import pytest
from tests.integration.pipelines.rows import (
    DAY,
    DAY_S,
    HOUR_S,
    START_S,
    TABLES,
    Database,
    Facts,
    Host,
    Segment,
    Share,
    Wait,
)  # fmt: skip
from tests.integration.pipelines.running import failed_gates, materialised, roll_up, why

NOON_S = START_S + 12 * HOUR_S
LATER_S = START_S + 400 * DAY_S
GPU_HOUR = 1000 * HOUR_S


def day_of_work() -> Facts:
    """Ten GPUs; a runs 4 from 10:10 to 12:40, b runs 2 unallocated for an hour, c waits for 3 for an hour."""
    return Facts(
        segments=[
            Segment("c/a", 4000, START_S + 10 * HOUR_S + 600, NOON_S + 2400),
            Segment("c/b", 2000, NOON_S, NOON_S + HOUR_S, klass="unallocated"),
            Segment("c/a", 0, START_S, START_S + HOUR_S),  # on CPUs alone
        ],
        waits=[Wait("c/c", 3000, NOON_S, NOON_S + HOUR_S)],
        hosts=[Host("h1", 8, "healthy", START_S - DAY_S), Host("h2", 2, "unhealthy", START_S - DAY_S)],
        shares=[Share("c/a", 2, START_S - DAY_S), Share("c/b", 1, START_S - DAY_S)],
        accounts=["c", "c/a", "c/b", "c/c"],
    )


def test_every_table_of_a_day_of_work(database: Database) -> None:
    facts = day_of_work()
    database.put(facts)
    database.book(facts, "2024-03")
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert result.success, why(result)
    assert materialised(result) == set(TABLES)

    buckets = {(r["bucket_at"], r["account"]): r["gpu_ms"] for r in database.table("usage_bucket")}
    ten = START_S + 10 * HOUR_S
    assert [buckets.get((ten + n * 900, "c/a")) for n in range(2)] == [4000 * 300, 4000 * 900]
    assert buckets[NOON_S + 1800, "c/a"] == 4000 * 600
    assert (NOON_S + 2700, "c/a") not in buckets
    assert sum(buckets.values()) == 4000 * 9000 + 2 * GPU_HOUR

    owed = {(r["hour_at"], r["account"]): r for r in database.table("owed_hour")}
    noon = owed[NOON_S, "c/c"]
    # Of 8 healthy GPUs, c has 1 share of 4 (a has 2, b has 1, c has 1 because nobody set it).
    assert noon["entitlement_gpu_ms"] == 2 * GPU_HOUR
    assert (noon["demand_gpu_ms"], noon["owed_gpu_ms"], noon["delivered_gpu_ms"]) == (
        3 * GPU_HOUR,
        2 * GPU_HOUR,
        0,
    )
    at_noon_a = owed[NOON_S, "c/a"]
    assert at_noon_a["owed_gpu_ms"] == at_noon_a["delivered_gpu_ms"] == 4000 * 2400
    assert owed[NOON_S, "c/b"]["demand_gpu_ms"] == 0  # unallocated work is nobody's due

    (day,) = database.table("layer_metrics_day")
    assert day["day"] == DAY
    assert day["installed_gpu_ms"] == 240 * GPU_HOUR
    assert day["unhealthy_gpu_ms"] == 48 * GPU_HOUR
    assert day["allocated_gpu_ms"] == 10 * GPU_HOUR
    assert day["unallocated_gpu_ms"] == 2 * GPU_HOUR
    assert day["free_gpu_ms"] == (240 - 48 - 12) * GPU_HOUR
    assert day["residual_gpu_ms"] == 0
    assert day["reason"] is None
    assert len(database.table("layer_metrics_hour")) == 24


def test_budget_versus_actual_says_why(database: Database) -> None:
    facts = day_of_work()
    database.put(facts)
    database.book(facts, "2024-03")
    database.post(
        [
            ("c", "gpu_ms_weighted", "c/a", "2024-03", "budget", "grant", 100 * GPU_HOUR * 1000),
            ("c", "gpu_ms_weighted", "c/a", "2024-03", "budget", "transfer", -10 * GPU_HOUR * 1000),
            ("c", "gpu_ms_weighted", "c/a", "2024-03", "budget", "charge", -10 * GPU_HOUR * 1000),
            ("c", "gpu_ms_weighted", "~", "2024-03", "issue", "grant", -100 * GPU_HOUR * 1000),
        ]
    )
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert result.success, why(result)
    lines = {r["account"]: r for r in database.table("budget_vs_actual")}
    assert set(lines) == {"c/a", "c/b", "c/c"}
    a = lines["c/a"]
    assert (a["budget_gpu_ms"], a["transferred_gpu_ms"]) == (100 * GPU_HOUR, -10 * GPU_HOUR)
    assert a["charged_gpu_ms"] == a["delivered_gpu_ms"] == 10 * GPU_HOUR
    assert a["available_gpu_ms"] == 80 * GPU_HOUR
    assert a["entitlement_gpu_ms"] == 4 * 24 * GPU_HOUR
    assert a["variance_transfer_gpu_ms"] == 10 * GPU_HOUR
    assert a["variance_capacity_gpu_ms"] == (90 - 96) * GPU_HOUR
    assert a["variance_demand_gpu_ms"] == (96 - 10) * GPU_HOUR
    assert a["variance_scheduler_gpu_ms"] == 0
    assert sum(a[name] for name in a if name.startswith("variance_")) == 90 * GPU_HOUR
    assert lines["c/b"]["unallocated_gpu_ms"] == 2 * GPU_HOUR
    assert lines["c/c"]["variance_scheduler_gpu_ms"] == 2 * GPU_HOUR


def test_doing_it_twice_changes_nothing(database: Database) -> None:
    facts = day_of_work()
    database.put(facts)
    database.book(facts, "2024-03")
    assert roll_up(database.url, DAY, DAY, now_s=LATER_S).success
    before = {table: database.table(table) for table in TABLES}
    assert roll_up(database.url, DAY, DAY, now_s=LATER_S).success
    assert {table: database.table(table) for table in TABLES} == before


def test_day_by_day_is_the_range_at_once(database: Database) -> None:
    facts = Facts(
        segments=[Segment("c/a", 3000, START_S + 5 * HOUR_S + 7, START_S + DAY_S + 11)],
        hosts=[Host("h", 4, "healthy", START_S)],
        accounts=["c/a"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    days = [DAY + dt.timedelta(days=n) for n in range(2)]
    for day in days:
        result = roll_up(database.url, day, day, now_s=LATER_S, single=True)
        assert result.success, why(result)
    one_by_one = {table: database.table(table) for table in TABLES}
    result = roll_up(database.url, days[0], days[-1], now_s=LATER_S)
    assert result.success, why(result)
    assert {table: database.table(table) for table in TABLES} == one_by_one


def test_a_range_is_one_run_with_a_step_per_table(database: Database) -> None:
    facts = Facts(segments=[Segment("c/a", 1000, START_S, START_S + 60 * DAY_S)], accounts=["c/a"])
    database.put(facts)
    database.book(facts, "2024-03")
    result = roll_up(database.url, DAY, DAY + dt.timedelta(days=59), now_s=LATER_S)
    assert result.success, why(result)
    assert len(result.get_step_success_events()) == len(TABLES)
    assert sum(r["gpu_ms"] for r in database.table("usage_hour")) == 1000 * 60 * DAY_S


def test_only_the_days_asked_for_are_restated(database: Database) -> None:
    facts = Facts(segments=[Segment("c/a", 1000, START_S, START_S + 3 * DAY_S)], accounts=["c/a"])
    database.put(facts)
    database.book(facts, "2024-03")
    assert roll_up(database.url, DAY, DAY + dt.timedelta(days=2), now_s=LATER_S).success
    database.execute("UPDATE warehouse.usage_bucket SET used_gpu_ms = 0, sampled_gpu_ms = 7")  # a mark
    assert roll_up(
        database.url, DAY + dt.timedelta(days=1), DAY + dt.timedelta(days=1), now_s=LATER_S
    ).success
    marked = {r["bucket_at"] // DAY_S for r in database.table("usage_bucket") if r["sampled_gpu_ms"] == 7}
    assert marked == {START_S // DAY_S, START_S // DAY_S + 2}


def test_without_inventory_capacity_is_missing_with_a_reason(database: Database) -> None:
    facts = Facts(segments=[Segment("c/a", 1000, NOON_S, NOON_S + HOUR_S)], accounts=["c/a"])
    database.put(facts)
    database.book(facts, "2024-03")
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert result.success, why(result)
    (hour,) = database.table("layer_metrics_hour")
    assert hour["installed_gpu_ms"] is hour["free_gpu_ms"] is hour["owed_gpu_ms"] is None
    assert hour["allocated_gpu_ms"] == hour["delivered_gpu_ms"] == GPU_HOUR
    assert hour["reason"] == "no inventory for cluster c, gpuledger budget apply declares its GPUs"
    (owed,) = database.table("owed_hour")
    assert (owed["entitlement_gpu_ms"], owed["owed_gpu_ms"], owed["demand_gpu_ms"]) == (None, None, GPU_HOUR)
    (line,) = database.table("budget_vs_actual")
    assert line["entitlement_gpu_ms"] is line["variance_capacity_gpu_ms"] is None
    assert line["delivered_gpu_ms"] == GPU_HOUR


def test_before_the_inventory_begins_capacity_is_missing_too(database: Database) -> None:
    facts = Facts(
        segments=[Segment("c/a", 1000, NOON_S - HOUR_S, NOON_S + 2 * HOUR_S)],
        hosts=[Host("h", 4, "healthy", NOON_S)],
        accounts=["c/a"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert result.success, why(result)
    hours = {r["hour_at"]: r for r in database.table("layer_metrics_hour")}
    assert hours[NOON_S - HOUR_S]["reason"].startswith(
        "no inventory for cluster c before 2024-03-01 12:00 UTC"
    )
    assert hours[NOON_S]["reason"] is None
    (day,) = database.table("layer_metrics_day")
    assert day["reason"] is not None


def test_one_bad_gpu_of_a_host_of_which_parts_may_be_used_costs_one_gpu(database: Database) -> None:
    facts = Facts(
        segments=[
            Segment("c/a", 6000, NOON_S, NOON_S + HOUR_S, hosts=("h1",)),
            Segment("c/a", 8000, NOON_S + HOUR_S, NOON_S + 2 * HOUR_S, hosts=("h1",)),
        ],
        hosts=[Host("h1", 7, "healthy", START_S), Host("h1", 1, "unhealthy", START_S)],
        accounts=["c/a"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert result.success, why(result)
    of = {row["hour_at"]: row for row in database.table("layer_metrics_hour")}
    names = ("installed", "unhealthy", "unhealthy_occupied", "allocated", "free")
    figures = [[of[at_s][f"{name}_gpu_ms"] // HOUR_S for name in names] for at_s in (NOON_S, NOON_S + HOUR_S)]
    assert figures == [[8000, 1000, 0, 6000, 1000], [8000, 0, 1000, 8000, 0]]
    owed = {row["hour_at"]: row["entitlement_gpu_ms"] for row in database.table("owed_hour")}
    assert owed[NOON_S] == owed[NOON_S + HOUR_S] == 7000 * HOUR_S


def test_a_run_on_an_unhealthy_host_is_occupied_and_not_available(database: Database) -> None:
    facts = Facts(
        segments=[Segment("c/a", 3000, NOON_S, NOON_S + HOUR_S, hosts=("h1", "h2"))],
        hosts=[
            Host("h1", 4, "unhealthy", START_S),
            Host("h2", 4, "draining", START_S),
            Host("h3", 4, "healthy", START_S),
        ],
        accounts=["c/a"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert result.success, why(result)
    hour = next(r for r in database.table("layer_metrics_hour") if r["hour_at"] == NOON_S)
    assert hour["unhealthy_occupied_gpu_ms"] == 1500 * HOUR_S
    assert hour["unhealthy_gpu_ms"] == 2500 * HOUR_S
    assert hour["maintenance_gpu_ms"] == 2500 * HOUR_S
    assert hour["free_gpu_ms"] == 4000 * HOUR_S
    owed = next(r for r in database.table("owed_hour") if r["hour_at"] == NOON_S)
    assert owed["entitlement_gpu_ms"] == (4000 + 1500) * HOUR_S  # I - U - M


def test_two_clusters_do_not_touch_each_other(database: Database) -> None:
    one, two = day_of_work(), Facts(segments=[Segment("d/x", 1000, NOON_S, NOON_S + HOUR_S)], cluster="d")
    for facts in (one, two):
        database.put(facts)
        database.book(facts, "2024-03")
    assert roll_up(database.url, DAY, DAY, now_s=LATER_S).success
    before = database.table("usage_bucket")
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S, cluster="d")
    assert result.success, why(result)
    after = database.table("usage_bucket")
    assert [r for r in after if r["cluster"] == "c"] == before
    assert sum(r["gpu_ms"] for r in after if r["cluster"] == "d") == GPU_HOUR


def test_a_cluster_with_quotes_and_braces_in_its_name(database: Database) -> None:
    name = "it's {a}:b%"
    facts = Facts(segments=[Segment("x", 1000, NOON_S, NOON_S + HOUR_S)], cluster=name)
    database.put(facts)
    database.book(facts, "2024-03")
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S, cluster=name)
    assert result.success, why(result)


def test_more_occupied_than_installed_stops_the_layers_and_names_the_quarter(database: Database) -> None:
    facts = Facts(
        segments=[Segment("c/a", 5000, NOON_S, NOON_S + HOUR_S)],
        hosts=[Host("h", 4, "healthy", START_S)],
        accounts=["c/a"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert not result.success
    (evaluation,) = failed_gates(result).values()
    assert evaluation.asset_key.path[-1] == "gpu_bucket"
    told = str(evaluation.metadata["no more is occupied than is installed"].value)
    assert "2024-03-01 12:00:00" in told
    assert "4500000" in told  # a quarter of five GPU-hours
    assert {"gpu_hour", "layer_metrics_hour", "layer_metrics_day"}.isdisjoint(materialised(result))
    bucket = next(r for r in database.table("gpu_bucket") if r["bucket_at"] == NOON_S)
    assert bucket["free_gpu_ms"] == -GPU_HOUR // 4  # nothing is clamped


@pytest.mark.parametrize("klass", ["allocated", "unallocated"])
def test_a_wrong_row_stops_what_depends_on_it(database: Database, klass: str) -> None:
    """A trigger falsifies one bucket while it is written: the gate finds it, and nothing downstream runs."""
    facts = Facts(segments=[Segment("c/a", 1000, NOON_S, NOON_S + HOUR_S, klass=klass)], accounts=["c/a"])
    database.put(facts)
    database.book(facts, "2024-03")
    database.execute(
        "CREATE FUNCTION warehouse.falsify() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN NEW.gpu_ms := NEW.gpu_ms + 1; RETURN NEW; END $$"
    )
    database.execute(
        "CREATE TRIGGER falsify BEFORE INSERT ON warehouse.usage_bucket FOR EACH ROW"
        f" WHEN (NEW.bucket_at = to_timestamp({NOON_S})) EXECUTE FUNCTION warehouse.falsify()"
    )
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert not result.success
    (evaluation,) = failed_gates(result).values()
    assert evaluation.asset_key.path[-1] == "usage_bucket"
    told = str(evaluation.metadata["buckets sum to the segments of the ledger"].value)
    assert "c/a" in told
    assert str(GPU_HOUR + 1) in told
    assert materialised(result) == {"usage_bucket", "queue_wait_day"}


def test_a_ledger_that_moved_on_is_a_warning_not_a_stop(database: Database) -> None:
    """Facts that arrive between a table and its gate prove nothing against the table."""
    facts = Facts(segments=[Segment("c/a", 1000, NOON_S, NOON_S + HOUR_S)], accounts=["c/a"])
    database.put(facts)
    database.book(facts, "2024-03")
    database.execute(
        "CREATE FUNCTION warehouse.late_fact() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " UPDATE ledger.segments SET gpus_milli = 2000; UPDATE ledger.books SET last_seq = 2; RETURN NULL; END $$"
    )
    database.execute(
        "CREATE TRIGGER late_fact AFTER INSERT ON warehouse.usage_bucket FOR EACH STATEMENT"
        " EXECUTE FUNCTION warehouse.late_fact()"
    )
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    warned = failed_gates(result)["usage_bucket"]
    assert "run again" in str(warned.description)
    assert "usage_hour" in materialised(result)
