from tests.integration.pipelines.rows import (
    DAY,
    DAY_S,
    HOUR_S,
    START_S,
    Database,
    Facts,
    Host,
    Segment,
)  # fmt: skip
from tests.integration.pipelines.running import roll_up, why

NOON_S = START_S + 12 * HOUR_S
LATER_S = START_S + 400 * DAY_S
GPU_HOUR = 1000 * HOUR_S


def test_an_open_run_counts_up_to_the_runs_present(database: Database) -> None:
    facts = Facts(
        segments=[Segment("c/a", 1000, NOON_S, None), Segment("c/a", 1000, NOON_S, NOON_S + 10 * HOUR_S)],
        hosts=[Host("h", 4, "healthy", START_S)],
        accounts=["c/a"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    result = roll_up(database.url, DAY, DAY, now_s=NOON_S + 1000)
    assert result.success, why(result)
    assert sum(r["gpu_ms"] for r in database.table("usage_bucket")) == 2 * 1000 * 1000
    (day,) = database.table("layer_metrics_day")
    assert day["installed_gpu_ms"] == 4000 * (12 * HOUR_S + 1000)
    ((seq, as_of),) = database.query("SELECT ledger_seq, as_of_at FROM warehouse.watermark")
    assert (seq, int(as_of.timestamp())) == (1, NOON_S + 1000)


def test_used_is_what_the_samples_say_to_the_nearest_unit(database: Database) -> None:
    facts = Facts(
        segments=[
            Segment("c/a", 1000, NOON_S, NOON_S + 600),
            Segment("c/a", 1000, NOON_S + 600, NOON_S + 900, klass="unallocated"),
        ],
        accounts=["c/a"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    # Of the third the host knew a handle of the run alone.
    database.execute("INSERT INTO telemetry.handles VALUES ('c', 'job/7', 'w1', 'r1')")
    rows = [
        ("w0", "r1", 0, 300_000, 1_500_000),
        ("w0", "r1", 300, 300_000, 1_000_001),
        ("", "job/7", 600, 300_000, 500_000),
    ]
    database.execute(
        "INSERT INTO telemetry.buckets (book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms)"
        " VALUES ('c', to_timestamp(:at), 'g', :w, :run, :rung, :sampled, :used)",
        [
            {"at": NOON_S + offset, "w": w, "run": run, "rung": rung, "sampled": sampled, "used": used}
            for w, run, offset, sampled, used in rows
            for rung in ("gpu_util", "sm_active")
        ],
    )
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert result.success, why(result)
    found = {r["class"]: (r["sampled_gpu_ms"], r["used_gpu_ms"]) for r in database.table("usage_bucket")}
    # 2.500001 rounds up; 0.5 rounds to the even neighbour.
    assert found == {"allocated": (600_000, 3), "unallocated": (300_000, 0)}
