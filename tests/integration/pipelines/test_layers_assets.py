from tests.integration.pipelines.rows import DAY_S, HOUR_S, START_S, Database, Facts, Host, Segment, Wait
from tests.integration.pipelines.running import restate

from gpuledger_pipelines.partitions import Span

NOON_S = START_S + 12 * HOUR_S
SPAN = Span("c", START_S, START_S + DAY_S, START_S + 9 * DAY_S)
NAMES = ("installed", "allocated", "unallocated", "unhealthy", "maintenance", "reserved", "free", "residual")


def states(database: Database, table: str, at: str, at_s: int) -> list[int | None]:
    row = next(row for row in database.table(table) if row[at] == at_s)
    return [row[f"{name}_gpu_ms"] for name in NAMES]


def test_every_gpu_is_in_one_state_by_the_quarter_and_by_the_hour(database: Database) -> None:
    """Of 8 GPUs 2 are reserved, 1 is being drained and 1 is broken; a run of 3 comes for ten minutes."""
    facts = Facts(
        segments=[Segment("c/a", 3000, NOON_S + 600, NOON_S + 1200, hosts=("h1",))],
        hosts=[
            Host("h1", 4, "healthy", START_S),
            Host("h2", 2, "reserved", START_S),
            Host("h3", 1, "draining", START_S),
            Host("h4", 1, "unhealthy", START_S),
        ],
        accounts=["c/a"],
    )
    database.put(facts)
    restate(database.url, SPAN)
    quarter = 900
    first = [8000 * quarter, 3000 * 300, 0, 1000 * quarter, 1000 * quarter, 2000 * quarter]
    assert states(database, "gpu_bucket", "bucket_at", NOON_S) == [*first, 4000 * quarter - 3000 * 300, 0]
    assert states(database, "gpu_bucket", "bucket_at", NOON_S + quarter) == [
        *first,
        4000 * quarter - 3000 * 300,
        0,
    ]
    assert states(database, "gpu_hour", "hour_at", NOON_S) == [
        8000 * HOUR_S, 3000 * 600, 0, 1000 * HOUR_S, 1000 * HOUR_S, 2000 * HOUR_S, 4000 * HOUR_S - 3000 * 600, 0,
    ]  # fmt: skip
    assert len(database.table("gpu_bucket")) == 96
    assert len(database.table("gpu_hour")) == 24


def test_where_the_inventory_begins_inside_an_hour_its_later_quarters_are_known(database: Database) -> None:
    facts = Facts(
        segments=[Segment("c/a", 1000, NOON_S, NOON_S + 2 * HOUR_S)],
        hosts=[Host("h", 4, "healthy", NOON_S + 1000)],
        accounts=["c/a"],
    )
    database.put(facts)
    restate(database.url, SPAN)
    known = {row["bucket_at"] - NOON_S: row["installed_gpu_ms"] for row in database.table("gpu_bucket")}
    assert [known[offset] for offset in (0, 900, 1800, 2700, 3600)] == [None, None, *[4000 * 900] * 3]
    hours = {row["hour_at"]: row for row in database.table("gpu_hour")}
    assert hours[NOON_S]["installed_gpu_ms"] is hours[NOON_S]["free_gpu_ms"] is None
    assert hours[NOON_S]["allocated_gpu_ms"] == 1000 * HOUR_S
    assert "no inventory for cluster c before 2024-03-01 12:16 UTC" in hours[NOON_S]["reason"]
    assert hours[NOON_S + HOUR_S]["free_gpu_ms"] == 3000 * HOUR_S


def test_an_hour_in_which_somebody_waits_for_what_is_not_there_any_more_has_layers(
    database: Database,
) -> None:
    facts = Facts(
        waits=[Wait("c/a", 1000, NOON_S, NOON_S + HOUR_S)],
        hosts=[Host("h", 4, "healthy", START_S, START_S + HOUR_S)],
        accounts=["c/a"],
    )
    database.put(facts)
    restate(database.url, SPAN)
    assert [row["hour_at"] for row in database.table("gpu_hour")] == [START_S]
    assert states(database, "layer_metrics_hour", "hour_at", NOON_S) == [0] * len(NAMES)
