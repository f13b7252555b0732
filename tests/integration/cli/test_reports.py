"""``usage``, ``balance`` and ``layers`` on the bundled traces."""

import itertools
import json
from collections.abc import Sequence

import pytest
from tests.commands.fixtures import Ledger

USAGE_KEYS = {
    "rows",
    "total_gpu_ms",
    "total_gpu_hours",
    "provisional_gpu_ms",
    "estimated_gpu_ms",
    "as_of",
}
ROW_KEYS = {"key", "gpu_ms", "gpu_hours", "provisional_gpu_ms", "used_gpu_ms", "coverage"}
BALANCE_KEYS = {
    "account",
    "cluster",
    "period",
    "granted_gpu_ms",
    "transferred_gpu_ms",
    "charged_gpu_ms",
    "held_gpu_ms",
    "credited_gpu_ms",
    "expired_gpu_ms",
    "available_gpu_ms",
    "unallocated_gpu_ms",
    "binding_account",
}
LAYER_KEYS = {
    "key",
    "installed_gpu_ms",
    "availability",
    "occupancy",
    "occupancy_with_overhead",
    "impact",
    "utilisation",
    "residual_gpu_ms",
}

ALEX_GPU_MS = 14_328_134_000


@pytest.mark.parametrize(
    ("by", "keys", "first"),
    [
        ("account", 23, "alex/proj001"),
        ("month", 1, "2023-02"),
        ("day", 4, "2023-02-07"),
        ("user", 41, None),
        ("class", 1, "allocated"),
        ("cluster", 1, "alex"),
        ("model", 3, "a100"),
        ("host", 35, "node001"),
    ],
)
def test_usage_by_each_key_has_the_same_total(traces: Ledger, by: str, keys: int, first: str | None) -> None:
    report = traces.usage(by, "--cluster", "alex")

    assert report.keys() == USAGE_KEYS
    assert all(row.keys() == ROW_KEYS for row in report["rows"])
    with_time = [row for row in report["rows"] if row["gpu_ms"]]
    assert len(with_time) == keys
    assert [row["key"] for row in report["rows"]] == sorted(row["key"] for row in report["rows"])
    if first is not None:
        assert with_time[0]["key"] == first
    assert sum(row["gpu_ms"] for row in report["rows"]) == report["total_gpu_ms"] == ALEX_GPU_MS
    assert report["provisional_gpu_ms"] == report["estimated_gpu_ms"] == 0
    assert report["total_gpu_hours"] == "3980.037"


def test_users_are_tokens_never_names(traces: Ledger) -> None:
    users = [row["key"] for row in traces.usage("user", "--cluster", "alex")["rows"]]
    assert not [user for user in users if user.startswith("user")]


def test_usage_of_all_clusters_by_day_does_not_try_every_day_between_them(traces: Ledger) -> None:
    """openb counts from 1970, alex ran in 2023; this once took minutes."""
    report = traces.usage("day")
    keys = [row["key"] for row in report["rows"]]
    assert keys[0] == "1970-01-01"
    assert keys[-1] == "2023-02-10"
    assert report["total_gpu_hours"] == "1033529.184", "978,078.473 and 51,470.674 and 3,980.037"


WINDOWS: Sequence[tuple[str, str]] = [
    ("2023-02-08", "2023-02-09"),
    ("2023-02-08T00:00:00Z", "2023-02-09T00:00:00Z"),
    ("2023-02-08T01:00:00+01:00", "2023-02-08T23:00:00-01:00"),
    ("1675814400", "1675900800"),
]


@pytest.mark.parametrize(("from_", "to"), WINDOWS)
def test_a_window_can_be_written_in_several_ways(traces: Ledger, from_: str, to: str) -> None:
    report = traces.usage("cluster", "--cluster", "alex", "--from", from_, "--to", to)
    assert report["total_gpu_ms"] == 10_739_457_000


def test_windows_next_to_each_other_add_up(traces: Ledger) -> None:
    edges = ["1675700000", "1675850001", "1675850002", "1676100000"]
    parts = [
        traces.usage("cluster", "--cluster", "alex", "--from", a, "--to", b)["total_gpu_ms"]
        for a, b in itertools.pairwise(edges)
    ]
    assert sum(parts) == ALEX_GPU_MS
    assert all(parts)


def test_before_anything_was_recorded_there_was_nothing(traces: Ledger) -> None:
    report = traces.usage("cluster", "--as-of", "2001-01-01T00:00:00Z")
    assert (report["rows"], report["total_gpu_ms"], report["as_of"]) == ([], 0, "2001-01-01T00:00:00Z")


def test_as_of_shows_the_book_between_two_imports(traces: Ledger) -> None:
    (recorded,) = traces.rows("SELECT max(recorded_at) FROM ledger.journal WHERE book = 'philly'")[0]
    report = traces.usage("cluster", "--as-of", recorded.isoformat())
    assert [row["key"] for row in report["rows"] if row["gpu_ms"]] == ["philly"]
    assert report["total_gpu_hours"] == "978078.473"


def test_usage_for_people(traces: Ledger) -> None:
    ran = traces("usage", "--cluster", "alex", "--by", "day")
    assert ran.status == 0
    assert ran.err == ""
    assert ["2023-02-08", "2,983.182", "2,162.210", "100.0%"] in [
        line.split() for line in ran.out.splitlines()
    ]
    assert "total 3,980.037 GPU-hours, as of " in ran.out
    assert "\x1b" not in ran.out


BAD_USAGE = {
    "usage --by team": "--by: 'team' is not a key",
    "usage --from yesterday": "--from: 'yesterday' is not a time",
    "usage --from 2017-10-01T00:00:00": "has no zone",
    "usage --to 99999999999999": "--to: '99999999999999' is not a time",
    "usage --as-of 2017-10-01": "has no zone",
    "layers --by week": "--by: 'week' is not a key",
    "cycle --cluster alex --at noon": "--at: 'noon' is not a time",
    "ingest --topic news": "--topic: 'news' is not an event topic",
}


@pytest.mark.parametrize("line", BAD_USAGE)
def test_bad_values_are_refused_with_a_remedy(traces: Ledger, line: str) -> None:
    ran = traces(*line.split())
    assert ran.status == 2
    assert ran.out == ""
    assert BAD_USAGE[line] in ran.err
    assert "hint: " in ran.err


def test_balance_of_a_leaf(traces: Ledger) -> None:
    document = traces.done("balance", "philly/ee9e8c", "--period", "2017-10")

    assert document.keys() >= BALANCE_KEYS
    assert (document["account"], document["cluster"], document["period"]) == (
        "philly/ee9e8c",
        "philly",
        "2017-10",
    )
    assert document["available_gpu_ms"] == (
        document["granted_gpu_ms"]
        + document["transferred_gpu_ms"]
        + document["credited_gpu_ms"]
        - document["expired_gpu_ms"]
        - document["charged_gpu_ms"]
        - document["held_gpu_ms"]
    )
    # 64 of 356 shares of 2,490 GPUs for the 744 hours of October.
    assert abs(document["granted_gpu_ms"] - 2490 * 744 * 3_600_000 * 64 / 356) < 1
    assert all(isinstance(value, int) for key, value in document.items() if key.endswith("_gpu_ms"))


def test_an_inner_account_is_the_sum_of_its_leaves(traces: Ledger) -> None:
    whole = traces.done("balance", "philly", "--period", "2017-10")
    assert whole["granted_gpu_ms"] == 2490 * 744 * 3_600_000
    assert whole["charged_gpu_hours"] == "442067.613"


def test_without_a_period_the_newest_is_shown(traces: Ledger) -> None:
    assert traces.done("balance", "philly")["period"] == "2017-12"


def test_a_balance_as_of_now_is_the_balance(traces: Ledger) -> None:
    now = traces.done("balance", "philly", "--period", "2017-10")
    assert traces.done("balance", "philly", "--period", "2017-10", "--as-of", "2999-01-01T00:00:00Z") == now


def test_a_balance_as_of_the_last_fact_has_no_grants_yet(traces: Ledger) -> None:
    ((before,),) = traces.rows(
        "SELECT max(recorded_at) FROM ledger.journal WHERE book = 'philly' AND type <> 'period.opened'"
    )
    document = traces.done("balance", "philly", "--period", "2017-10", "--as-of", before.isoformat())
    assert document["granted_gpu_ms"] == 0, "periods opened after the last fact"
    assert document["charged_gpu_hours"] == "442067.613"
    assert traces("balance", "philly", "--as-of", "2001-01-01T00:00:00Z").status == 4


def test_balance_for_people(traces: Ledger) -> None:
    ran = traces("balance", "philly", "--period", "2017-10")
    assert ran.status == 0
    assert "philly on philly, 2017-10" in ran.out
    assert "charged         442,067.613" in ran.out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["philly/ee9e8"], "account 'philly/ee9e8' does not exist"),
        (["philly", "--cluster", "alex"], "account 'philly' has no balance on cluster 'alex'"),
        (["philly", "--period", "2016-01"], "account 'philly' has no balance on cluster 'philly' in 2016-01"),
    ],
)
def test_what_does_not_exist_is_not_found(traces: Ledger, arguments: list[str], expected: str) -> None:
    ran = traces("balance", *arguments, "--json")
    assert ran.status == 4
    assert ran.out == ""
    assert ran.problem["error"] == expected
    assert ran.problem["exit"] == 4


def test_a_near_name_is_suggested(traces: Ledger) -> None:
    assert "did you mean philly/ee9e8c" in traces("balance", "philly/ee9e8x").err


def test_layers_before_any_roll_up_say_that_they_are_empty(traces: Ledger) -> None:
    ran = traces("layers", "--json")
    assert ran.status == 0, ran.err
    document = json.loads(ran.out)
    assert isinstance(document["rows"], list)
    assert all(row.keys() >= LAYER_KEYS for row in document["rows"])


def test_a_window_chooses_the_period_of_a_balance(traces: Ledger) -> None:
    assert traces.done("balance", "philly", "--to", "2017-11-01")["period"] == "2017-10"
    assert (
        traces.done("balance", "philly", "--from", "2017-08-01", "--to", "2017-09-15")["period"] == "2017-09"
    )
    assert traces("balance", "philly", "--from", "2018-06-01").status == 4


READING = [
    ["usage"],
    ["balance", "philly"],
    ["layers"],
    ["audit", "verify"],
    ["dlq", "list"],
]


@pytest.mark.parametrize("command", READING)
def test_every_reading_command_takes_the_same_options(traces: Ledger, command: list[str]) -> None:
    """The window and the time are wide enough for all that there is."""
    wide = ["--cluster", "philly", "--from", "2000-01-01", "--to", "2999-01-01"]
    ran = traces(*command, *wide, "--as-of", "2999-01-01T00:00:00Z", "--json")
    assert ran.status == 0, ran.err
    assert isinstance(json.loads(ran.out), dict)


@pytest.mark.parametrize("command", READING[:-1])
def test_a_cluster_without_a_book_is_not_found(traces: Ledger, command: list[str]) -> None:
    ran = traces(*command, "--cluster", "phily", "--json")
    assert (ran.status, ran.out) == (4, "")
    assert ran.problem["error"] == "cluster 'phily' does not exist"
    assert "alex, fritz, openb, philly" in ran.problem["hint"]
