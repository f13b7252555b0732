"""One expression, two engines, and an oracle of plain Python: equal to the unit."""

import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import FORM

from gpuledger.kernel.errors import Unavailable
from gpuledger_pipelines.archive.contents import TELEMETRY, USAGE
from gpuledger_pipelines.archive.engines import Connected
from gpuledger_pipelines.archive.expression import usage_hour
from gpuledger_pipelines.archive.rolling import Amounts, Key, Rows, by_key

DAY_S, HOUR_S, QUARTER_S = 86_400, 3_600, 900
FIRST_S = 20_000 * DAY_S
MOST_UPMS = 2**63 - 1
"""What a sum of one quarter can be: that of ten million GPUs."""

Held = tuple[str, str, int, int, int]
"""Account, class, milli-GPU, from, to."""
Sampled = tuple[str | None, str, int, int, int]
"""Account, rung, start, gpu_ms, gpu_ms x ppm."""

accounts = st.sampled_from(["c/a", "c/ü", "C/a"])


@st.composite
def held(draw: st.DrawFn) -> Held:
    day_s = FIRST_S + DAY_S * draw(st.integers(0, 1))
    edges = st.one_of(st.integers(0, DAY_S), st.sampled_from([0, 1, 899, 900, 901, DAY_S - 1, DAY_S]))
    from_s, to_s = sorted(draw(st.lists(edges, min_size=2, max_size=2, unique=True)))
    kind = draw(st.sampled_from(["allocated", "unallocated"]))
    return draw(accounts), kind, draw(st.integers(1, 10**6)), day_s + from_s, day_s + to_s


@st.composite
def sampled(draw: st.DrawFn) -> Sampled:
    used = st.one_of(
        st.integers(0, 3 * 10**11), st.sampled_from([0, 499_999, 500_000, 500_001, 1_500_000, 2_500_000])
    )
    return (
        draw(st.one_of(accounts, st.none())),
        draw(st.sampled_from(["gpu_util", "gpu_util", "sm_active"])),
        FIRST_S + 300 * draw(st.integers(0, 575)),
        draw(st.integers(0, 300_000)),
        draw(used),
    )


def oracle(runs: list[Held], samples: list[Sampled], rung: str = "gpu_util") -> Rows:
    """Quarter by quarter, second by second where it matters."""
    quarters: dict[tuple[int, str, str], list[int]] = {}
    for account, kind, milli, from_s, to_s in runs:
        for start_s in range(from_s - from_s % QUARTER_S, to_s, QUARTER_S):
            sums = quarters.setdefault((start_s, account, kind), [0, 0, 0])
            sums[0] += milli * (min(to_s, start_s + QUARTER_S) - max(from_s, start_s))
    for account, name, at_s, seen, used in samples:
        if account is not None and name == rung:
            sums = quarters.setdefault((at_s - at_s % QUARTER_S, account, "allocated"), [0, 0, 0])
            sums[1] += seen
            sums[2] += used
    hours: dict[Key, Amounts] = {}
    for (start_s, account, kind), (gpu_ms, seen, used) in quarters.items():
        key = Key(start_s - start_s % HOUR_S, account, kind)
        more = (gpu_ms, seen, round(Fraction(used, 10**6)))
        hours[key] = Amounts(*map(sum, zip(hours.get(key, (0, 0, 0)), more, strict=True)))
    return hours


def files(folder: Path, runs: list[Held], samples: list[Sampled]) -> tuple[Path, Path]:
    whose = {"workload": "w", "run": "r"}
    usage = [
        {**whose, "account": account, "class": kind, "user_token": "", "gpus_milli": milli, "hosts": [],
         "from_s": from_s, "to_s": to_s}
        for account, kind, milli, from_s, to_s in runs
    ]  # fmt: skip
    telemetry = [
        {**whose, "gpu": "g", "rung": rung, "bucket_s": at_s, "account": account,
         "class": None if account is None else "allocated", "sampled_gpu_ms": seen, "used_gpu_upms": used}
        for account, rung, at_s, seen, used in samples
    ]  # fmt: skip
    paths = folder / "usage.parquet", folder / "telemetry.parquet"
    for path, rows, dataset in zip(paths, (usage, telemetry), (USAGE, TELEMETRY), strict=True):
        pq.write_table(pa.Table.from_pylist(rows, schema=dataset.schema), path)
    return paths


def computed(engine: Connected, paths: tuple[Path, Path], rung: str = "gpu_util") -> Rows:
    usage, telemetry = (engine.table([path]) for path in paths)
    return by_key(engine.run(usage_hour(usage, telemetry, rung)))


@settings(
    max_examples={"short": 20, "full": 200}[FORM], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(runs=st.lists(held(), max_size=30), samples=st.lists(sampled(), max_size=30))
def test_duckdb_says_what_the_oracle_says(
    duckdb: Connected, tmp_path: Path, runs: list[Held], samples: list[Sampled]
) -> None:
    paths = files(tmp_path, runs, samples)
    assert computed(duckdb, paths) == oracle(runs, samples)


def drawn(seed: int) -> tuple[list[Held], list[Sampled]]:
    """Three hundred runs and as many samples, as the strategies make them."""
    chance = random.Random(seed)
    edges = [0, 1, 899, 900, 901, 3_600, DAY_S - 1, DAY_S]
    runs = []
    for _ in range(300):
        day_s = FIRST_S + DAY_S * chance.randrange(2)
        places = {chance.choice(edges), chance.randrange(DAY_S + 1), chance.randrange(DAY_S + 1)}
        from_s, *_, to_s = sorted({*places, DAY_S - len(places)})
        kind = chance.choice(["allocated", "unallocated"])
        runs.append((chance.choice("abc"), kind, chance.randrange(1, 10**6), day_s + from_s, day_s + to_s))
    samples = [
        (
            chance.choice(["a", "b", None]),
            chance.choice(["gpu_util", "sm_active"]),
            FIRST_S + 300 * chance.randrange(576),
            chance.randrange(300_001),
            chance.choice([500_000, 1_500_000, chance.randrange(3 * 10**11)]),
        )
        for _ in range(300)
    ]
    return runs, samples


@pytest.mark.parametrize("rung", ["gpu_util", "sm_active"])
def test_spark_says_what_duckdb_and_the_oracle_say(
    spark: Connected, duckdb: Connected, tmp_path: Path, rung: str
) -> None:
    runs, samples = drawn(7)
    paths = files(tmp_path, runs, samples)
    ours, theirs = computed(duckdb, paths, rung), computed(spark, paths, rung)
    assert list(ours.items()) == list(theirs.items())
    assert ours == oracle(runs, samples, rung)
    assert Counter(len(key) for key in ours)[3] > 40


HALVES = [
    (1, 0), (499_999, 0), (500_000, 0), (500_001, 1), (1_500_000, 2), (2_500_000, 2), (2_500_001, 3),
    (MOST_UPMS, 9_223_372_036_855), (MOST_UPMS - 275_807, 9_223_372_036_854), (9 * 10**18 + 500_000, 9 * 10**12),
]  # fmt: skip
"""Millionths -> to the nearest whole, half to even; also where a float would not do."""


def test_both_round_half_to_even_up_to_the_largest_number(
    spark: Connected, duckdb: Connected, tmp_path: Path
) -> None:
    samples: list[Sampled] = [
        ("a", "gpu_util", FIRST_S + HOUR_S * n, 1, used) for n, (used, _) in enumerate(HALVES)
    ]
    paths = files(tmp_path, [], samples)
    for engine in (duckdb, spark):
        found = computed(engine, paths)
        assert [amounts.used_gpu_ms for amounts in found.values()] == [whole for _, whole in HALVES]


def test_a_sum_beyond_64_bits_is_an_error_and_no_number(
    spark: Connected, duckdb: Connected, tmp_path: Path
) -> None:
    paths = files(tmp_path, [], [("a", "gpu_util", FIRST_S, MOST_UPMS, 1), ("a", "gpu_util", FIRST_S, 1, 1)])
    for engine in (duckdb, spark):
        with pytest.raises(Unavailable, match="cannot compute the roll-up"):
            computed(engine, paths)
