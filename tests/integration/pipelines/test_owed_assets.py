from tests.integration.pipelines.rows import (
    DAY,
    DAY_S,
    HOUR_S,
    START_S,
    Database,
    Facts,
    Host,
    Segment,
    Share,
    Wait,
)  # fmt: skip
from tests.integration.pipelines.running import restate, roll_up, why

from gpuledger_pipelines.partitions import Span

NOON_S = START_S + 12 * HOUR_S
LATER_S = START_S + 400 * DAY_S
GPU_HOUR = 1000 * HOUR_S


def test_a_request_larger_than_the_cluster_is_no_demand(database: Database) -> None:
    facts = Facts(
        waits=[Wait("c/a", 5000, NOON_S, NOON_S + HOUR_S), Wait("c/a", 4000, NOON_S, NOON_S + HOUR_S)],
        segments=[Segment("c/b", 1000, NOON_S, NOON_S + HOUR_S)],
        hosts=[Host("h", 4, "healthy", START_S)],
        accounts=["c/a", "c/b"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    assert roll_up(database.url, DAY, DAY, now_s=LATER_S).success
    owed = {(r["hour_at"], r["account"]): r["demand_gpu_ms"] for r in database.table("owed_hour")}
    assert owed[NOON_S, "c/a"] == 4 * GPU_HOUR


def test_a_request_for_a_model_that_is_not_there_is_no_demand(database: Database) -> None:
    """Nor is one for more of a model than there ever were of it at once, though there are more GPUs of all kinds."""
    hour = (NOON_S, NOON_S + HOUR_S)
    facts = Facts(
        waits=[
            Wait("c/absent", 1000, *hour, gpu_model="X9"),
            Wait("c/many", 4000, *hour, gpu_model="B200"),
            Wait("c/some", 2000, *hour, gpu_model="b200"),
            Wait("c/any", 6000, *hour),
        ],
        hosts=[
            Host("h", 4, "healthy", START_S, gpu_model="H100"),
            Host("i", 2, "healthy", START_S, gpu_model="B200"),
            Host("j", 3, "healthy", START_S - 9 * DAY_S, START_S, gpu_model="B200"),
        ],
        accounts=["c/absent", "c/many", "c/some", "c/any"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    assert roll_up(database.url, DAY, DAY, now_s=LATER_S).success
    owed = {(r["hour_at"], r["account"]): r["demand_gpu_ms"] for r in database.table("owed_hour")}
    assert {account: owed[NOON_S, account] // GPU_HOUR for account in facts.accounts} == {
        "c/absent": 0, "c/many": 0, "c/some": 2, "c/any": 6,
    }  # fmt: skip


def test_a_share_that_changes_inside_an_hour_counts_from_that_second_on(database: Database) -> None:
    """x has a quarter of 3 GPUs for 20 minutes, then two thirds; rounded, the two sum to the capacity."""
    change_s = NOON_S + 1200
    facts = Facts(
        segments=[Segment("c/x", 1000, NOON_S, NOON_S + HOUR_S)],
        hosts=[Host("h", 3, "healthy", START_S)],
        shares=[Share("c/y", 3, START_S), Share("c/x", 6, change_s)],
        accounts=["c/x", "c/y"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert result.success, why(result)
    owed = {(r["hour_at"], r["account"]): r["entitlement_gpu_ms"] for r in database.table("owed_hour")}
    assert owed[NOON_S, "c/x"] == 3000 * 1200 // 4 + 3000 * 2400 * 2 // 3
    assert owed[NOON_S, "c/x"] + owed[NOON_S, "c/y"] == 3 * GPU_HOUR


def test_work_of_an_inner_node_is_delivered_and_not_owed(database: Database) -> None:
    """Its virtual child has share 0 unless somebody sets one."""
    facts = Facts(
        segments=[Segment("c/x", 1000, NOON_S, NOON_S + HOUR_S)],
        hosts=[Host("h", 4, "healthy", START_S)],
        accounts=["c/x", "c/x/p"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert result.success, why(result)
    rows = {(r["hour_at"], r["account"]): r for r in database.table("owed_hour")}
    row = rows[NOON_S, "c/x"]
    assert (row["entitlement_gpu_ms"], row["owed_gpu_ms"], row["delivered_gpu_ms"]) == (0, 0, GPU_HOUR)
    assert rows[NOON_S, "c/x/p"]["entitlement_gpu_ms"] == 4 * GPU_HOUR


def test_demand_and_entitlement_are_read_by_their_own_names(database: Database) -> None:
    """a is entitled to 2 of 4 GPUs; 1 ran, and 3 more were asked for."""
    facts = Facts(
        segments=[Segment("c/a", 1000, NOON_S, NOON_S + HOUR_S)],
        waits=[Wait("c/a", 3000, NOON_S, NOON_S + HOUR_S)],
        hosts=[Host("h", 4, "healthy", START_S)],
        accounts=["c/a", "c/b"],
    )
    database.put(facts)
    restate(database.url, Span("c", START_S, START_S + DAY_S, LATER_S))
    (demand,) = database.table("demand_hour")
    assert demand == {
        "cluster": "c", "hour_at": NOON_S, "account": "c/a", "demand_gpu_ms": 4 * GPU_HOUR,
        "running_gpu_ms": GPU_HOUR, "waiting_gpu_ms": 3 * GPU_HOUR, "beyond_entitlement_gpu_ms": 2 * GPU_HOUR,
    }  # fmt: skip
    entitled = database.table("entitlement_hour")
    assert len(entitled) == 2 * 24
    assert {row["entitlement_gpu_ms"] for row in entitled} == {2 * GPU_HOUR}


def test_without_inventory_nobody_is_entitled_and_nothing_is_beyond(database: Database) -> None:
    facts = Facts(waits=[Wait("c/a", 1000, NOON_S, NOON_S + HOUR_S)], accounts=["c/a"])
    database.put(facts)
    restate(database.url, Span("c", START_S, START_S + DAY_S, LATER_S))
    (demand,) = database.table("demand_hour")
    assert demand["beyond_entitlement_gpu_ms"] is None
    assert database.table("entitlement_hour") == []
