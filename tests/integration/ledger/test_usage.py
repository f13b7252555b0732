"""``usage``: by every key, cut at the right edges, as known at a time, what is open set apart."""

import datetime as dt
from decimal import Decimal

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    at,
    ended,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import writing
from gpuledger.events.budget import AccountCreated
from gpuledger.events.envelope import Event
from gpuledger.events.telemetry import GpuSample, Sampled
from gpuledger.events.workload import ClassChanged, Resized, Updated
from gpuledger.ingest import telemetry
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.usage import By, key_of

OCTOBER_31 = at("2017-10-31T22:30:00Z")
NOVEMBER_1 = at("2017-11-01T03:15:00Z")


@pytest.fixture
def busy(ledger: Ledger) -> Ledger:
    """Two teams, two classes, two hosts, two models, one hour each, on one cluster; ten minutes on another."""
    ledger.append(
        *run_of(0, HOUR, "w1", gpu_model="H100"),
        *run_of(
            0,
            HOUR,
            "w2",
            account="org/speech",
            klass="unallocated",
            hosts=["h1", "h2", "h3"],
            gpus_milli=1000,
        ),
        *run_of(0, HOUR, "w3", hosts=[], user="grace"),
    )
    beta = [submitted(cluster="beta"), started(cluster="beta"), ended(cluster="beta")]
    ledger.append(*(told(second, fact) for second, fact in zip((0, 0, 600), beta, strict=True)))
    return ledger


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("account", {"org/vision": 16 * GPU_HOUR + 4_800_000, "org/speech": GPU_HOUR}),
        ("class", {"allocated": 16 * GPU_HOUR + 4_800_000, "unallocated": GPU_HOUR}),
        ("cluster", {"alpha": 17 * GPU_HOUR, "beta": 4_800_000}),
        ("month", {"1970-01": 17 * GPU_HOUR + 4_800_000}),
        ("day", {"1970-01-01": 17 * GPU_HOUR + 4_800_000}),
        ("model", {"H100": 8 * GPU_HOUR, "unknown": 9 * GPU_HOUR + 4_800_000}),
        # h1 has w1 whole, a third of w2 and all of beta's run; w3 says no host.
        (
            "host",
            {
                "h1": 8 * GPU_HOUR + GPU_HOUR // 3 + 4_800_000,
                "h2": GPU_HOUR // 3,
                "h3": GPU_HOUR // 3,
                "unknown": 8 * GPU_HOUR,
            },
        ),
    ],
)
def test_use_is_keyed_as_asked(busy: Ledger, by: str, expected: dict[str, int]) -> None:
    report = busy.usage(by)
    assert {row.key: row.gpu_ms for row in report.rows} == expected
    assert [row.key for row in report.rows] == sorted(expected)
    assert report.total_gpu_ms == sum(expected.values())


def test_use_by_user_is_keyed_by_tokens_not_names(busy: Ledger) -> None:
    tokens = dict(busy.rows("SELECT name, token FROM side.user_keys"))
    assert busy.used("user") == {tokens["ada"]: 9 * GPU_HOUR + 4_800_000, tokens["grace"]: 8 * GPU_HOUR}


def test_hosts_share_a_run_to_the_last_unit(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 100, gpus_milli=1, hosts=["c", "a", "b"]))
    assert ledger.used("host") == {"a": 34, "b": 33, "c": 33}


def test_hosts_have_what_was_told_that_each_gives(ledger: Ledger) -> None:
    uneven = {"h1": 5000, "h2": 2000, "h3": 1000}
    ledger.append(*run_of(0, HOUR, hosts=["h1", "h2", "h3"], host_gpus_milli=uneven))
    assert ledger.used("host") == {"h1": 5 * GPU_HOUR, "h2": 2 * GPU_HOUR, "h3": GPU_HOUR}


def test_a_resize_tells_what_each_host_gives_from_then_on_though_the_size_stays(ledger: Ledger) -> None:
    moved = Resized(
        cluster=CLUSTER, workload="w1", run="r1", gpus_milli=8000, hosts=["h1", "h2"],
        host_gpus_milli={"h1": 1000, "h2": 7000},
    )  # fmt: skip
    ledger.append(*run_of(0, 2 * HOUR, hosts=["h1", "h2"]), told(HOUR, moved))
    assert ledger.used("host") == {"h1": 5 * GPU_HOUR, "h2": 11 * GPU_HOUR}


@pytest.mark.parametrize("wrong", [{"h1": 8000}, {"h1": 8000, "h2": 0, "h9": 0}, {"h1": 4000, "h2": 3000}])
def test_amounts_that_say_nothing_leave_a_run_evenly_on_its_hosts(
    ledger: Ledger, wrong: dict[str, int]
) -> None:
    ledger.append(*run_of(0, HOUR, hosts=["h1", "h2"], host_gpus_milli=wrong))
    assert ledger.used("host") == {"h1": 4 * GPU_HOUR, "h2": 4 * GPU_HOUR}


def labelled(start_s: int, name: str, labels: dict[str, str] | None) -> list[Event]:
    return [
        told(start_s, submitted(name, labels=labels)),
        told(start_s, started(name, gpus_milli=1000)),
        told(start_s + HOUR, ended(name)),
    ]


def test_use_by_a_label_is_keyed_by_its_values(ledger: Ledger) -> None:
    ledger.append(
        *labelled(0, "w1", {"job": "train", "team:x": "a b"}),
        *labelled(0, "w2", {"job": "eval"}),
        *labelled(0, "w3", {"other": "train"}),
        *labelled(0, "w4", None),
        *labelled(0, "w5", {"job": ""}),
        told(0, started("w6", gpus_milli=1000)),
        told(HOUR, ended("w6")),
    )
    assert ledger.used("label:job") == {"train": GPU_HOUR, "eval": GPU_HOUR, "unknown": 4 * GPU_HOUR}
    assert ledger.used("label:team:x") == {"a b": GPU_HOUR, "unknown": 5 * GPU_HOUR}
    assert ledger.used("label:nobody") == {"unknown": 6 * GPU_HOUR}


def test_a_label_that_is_changed_in_a_run_counts_from_then_on(ledger: Ledger) -> None:
    changed = Updated(cluster=CLUSTER, workload="w1", labels={"job": "eval"})
    ledger.append(*labelled(0, "w1", {"job": "train", "team": "a"}))
    ledger.clock.at = NOON + dt.timedelta(hours=1)
    ledger.append(told(HOUR // 4, changed))
    assert ledger.used("label:job") == {"train": GPU_HOUR // 4, "eval": 3 * GPU_HOUR // 4}
    assert ledger.used("label:job", from_s=HOUR // 2) == {"eval": GPU_HOUR // 2}
    assert ledger.used("label:team") == {"a": GPU_HOUR}
    before = NOON + dt.timedelta(minutes=30)
    assert ledger.used("label:job", as_of=before) == {"train": GPU_HOUR}


@pytest.mark.parametrize("by", ["label:", "label", "labels:job", "team"])
def test_what_is_no_key_is_refused_with_those_there_are(by: str) -> None:
    with pytest.raises(Refused, match="is not a key") as refused:
        key_of(by)
    assert "label:NAME" in str(refused.value.hint)


def test_one_cluster_can_be_asked_for(busy: Ledger) -> None:
    assert busy.used("account", cluster="beta") == {"org/vision": 4_800_000}
    assert busy.used("account", cluster="nowhere") == {}


def test_an_account_and_what_is_below_it_can_be_asked_for(busy: Ledger) -> None:
    for by in ("account", "class", "cluster", "month", "day", "model", "host"):
        parts = [busy.usage(by, account=account) for account in ("org/vision", "org/speech")]
        assert sum(part.total_gpu_ms for part in parts) == busy.usage(by).total_gpu_ms
    assert busy.used("account", account="org/speech") == {"org/speech": GPU_HOUR}
    assert busy.used("account", account="org") == busy.used("account")
    assert busy.used("account", account="org/vis") == {}
    assert busy.used("cluster", account="org/speech") == {"alpha": GPU_HOUR}


def test_what_an_inner_account_owns_itself_is_below_it(ledger: Ledger) -> None:
    ledger.append(*(told(0, AccountCreated(account=name)) for name in ("org", "org/vision")))
    ledger.append(*run_of(0, HOUR, "w1", account="org"), *run_of(0, HOUR, "w2", account="org/vision"))
    own, rest = 8 * GPU_HOUR, 8 * GPU_HOUR
    assert ledger.used("account", account="org") == {"org/~own": own, "org/vision": rest}
    assert ledger.used("account", account="org/~own") == {"org/~own": own}


@pytest.mark.parametrize(
    ("zone", "by", "expected"),
    [
        ("UTC", "month", {"2017-10": 43_200_000, "2017-11": 93_600_000}),
        ("America/Los_Angeles", "month", {"2017-10": 136_800_000}),
        ("Asia/Kathmandu", "day", {"2017-11-01": 136_800_000}),
        ("Europe/Berlin", "day", {"2017-10-31": 8_000 * 1_800, "2017-11-01": 8_000 * 15_300}),
    ],
)
def test_months_and_days_are_cut_in_the_organisations_zone(
    ledger: Ledger, zone: str, by: str, expected: dict[str, int]
) -> None:
    ledger.calendar = Calendar(zone)
    ledger.append(*run_of(OCTOBER_31, NOVEMBER_1))
    assert ledger.used(by) == expected


@pytest.mark.parametrize("by", list(By))
def test_from_and_to_clip_whatever_the_key(ledger: Ledger, by: str) -> None:
    ledger.append(*run_of(0, 10 * HOUR))
    assert sum(ledger.used(by, from_s=2 * HOUR, to_s=5 * HOUR).values()) == 3 * 8 * GPU_HOUR
    assert sum(ledger.used(by, from_s=9 * HOUR, to_s=50 * HOUR).values()) == 8 * GPU_HOUR
    assert sum(ledger.used(by, from_s=-5, to_s=HOUR).values()) == 8 * GPU_HOUR
    assert ledger.used(by, from_s=10 * HOUR) == {}


@pytest.mark.parametrize("by", list(By))
def test_a_window_that_ends_before_it_begins_holds_nothing(ledger: Ledger, by: str) -> None:
    ledger.append(*run_of(0, 10 * HOUR), told(0, submitted("w2")), told(0, started("w2")))
    report = ledger.usage(by, from_s=5 * HOUR, to_s=2 * HOUR)
    assert (report.rows, report.total_gpu_ms, report.provisional_gpu_ms) == ((), 0, 0)
    beyond = ledger.usage(by, now="1970-01-01T06:00:00Z", from_s=8 * HOUR)
    assert (beyond.rows, beyond.total_gpu_ms) == ((), 0)


def test_an_empty_ledger_reports_nothing(ledger: Ledger) -> None:
    assert ledger.usage("month").as_json() == {
        "rows": [],
        "total_gpu_ms": 0,
        "total_gpu_hours": "0.000",
        "provisional_gpu_ms": 0,
        "estimated_gpu_ms": 0,
        "as_of": "2026-12-01T12:00:00Z",
    }


def test_the_open_remainder_counts_up_to_now_and_is_provisional_only(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR), told(0, submitted("w2")), told(HOUR, started("w2", gpus_milli=1000)))
    report = ledger.usage(now="1970-01-01T03:00:00Z")
    assert (report.total_gpu_ms, report.provisional_gpu_ms) == (8 * GPU_HOUR, 2 * GPU_HOUR)
    assert [(row.gpu_ms, row.provisional_gpu_ms) for row in report.rows] == [(8 * GPU_HOUR, 2 * GPU_HOUR)]


@pytest.mark.parametrize(
    ("query", "provisional"),
    [
        ({"to_s": 2 * HOUR}, 8 * GPU_HOUR),
        ({"from_s": 2 * HOUR}, 16 * GPU_HOUR),
        ({"to_s": 100 * HOUR}, 24 * GPU_HOUR),
        ({"to_s": HOUR}, 0),
    ],
)
def test_an_open_run_is_clipped_to_the_window_and_to_now(
    ledger: Ledger, query: dict[str, int], provisional: int
) -> None:
    ledger.append(told(0, submitted()), told(HOUR, started()))
    assert ledger.usage("day", now="1970-01-01T04:00:00Z", **query).provisional_gpu_ms == provisional


def test_a_run_that_ends_in_the_future_counts_up_to_now(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 10 * HOUR))
    assert ledger.used(now="1970-01-01T01:00:00Z") == {"org/vision": 8 * GPU_HOUR}


def test_time_whose_end_is_an_estimate_is_shown_beside(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR), told(0, started("w2")), told(HOUR, ended("w2", estimated=True)))
    report = ledger.usage()
    assert (report.total_gpu_ms, report.estimated_gpu_ms) == (16 * GPU_HOUR, 8 * GPU_HOUR)
    ledger.append(told(HOUR, ended("w2"), source="reconcile/x"))
    assert ledger.usage().estimated_gpu_ms == 0


def test_a_report_as_of_an_earlier_time_says_what_the_book_said_then(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 2 * HOUR))
    ledger.clock.at = NOON + dt.timedelta(hours=1)
    ledger.append(told(HOUR, ended(), source="reconcile/late"))
    ledger.append(
        told(0, submitted("w2")), told(0, started("w2", account="org/speech")), told(HOUR, ended("w2"))
    )
    ten_minutes = dt.timedelta(minutes=10)
    assert ledger.used(as_of=NOON - ten_minutes) == {}
    assert ledger.used(as_of=NOON + ten_minutes) == {"org/vision": 16 * GPU_HOUR}
    assert ledger.used(as_of=NOON + 7 * ten_minutes) == {
        "org/vision": 8 * GPU_HOUR,
        "org/speech": 8 * GPU_HOUR,
    }
    assert ledger.used() == ledger.used(as_of=NOON + 7 * ten_minutes)


def test_as_of_an_instant_an_open_run_counts_up_to_that_instant_and_no_second_more(ledger: Ledger) -> None:
    start_s = int(NOON.timestamp()) - 100
    ledger.append(told(start_s, submitted()), told(start_s, started(gpus_milli=1000)))
    later = NOON + dt.timedelta(seconds=60)
    assert ledger.usage(now="2026-12-01T13:00:00Z", as_of=later).provisional_gpu_ms == 160 * 1000
    floored = later + dt.timedelta(milliseconds=900)
    assert ledger.usage(now="2026-12-01T13:00:00Z", as_of=floored).provisional_gpu_ms == 160 * 1000


def test_a_resize_and_a_class_change_leave_the_total_of_the_parts(ledger: Ledger) -> None:
    resized = Resized(cluster=CLUSTER, workload="w1", run="r1", gpus_milli=2000, hosts=["h1"])
    changed = ClassChanged(cluster=CLUSTER, workload="w1", run="r1", klass="unallocated", reason="policy")
    ledger.append(*run_of(0, 3 * HOUR), told(HOUR, resized), told(2 * HOUR, changed))
    assert ledger.used("class") == {"allocated": (8 + 2) * GPU_HOUR, "unallocated": 2 * GPU_HOUR}


def sample(ledger: Ledger, start_s: int, percent: str | None, seconds: int = 300, run: str = "w1/r1") -> None:
    gpu = GpuSample(uuid="h1/0", run=run, gpu_util=None if percent is None else Decimal(percent))
    fact = Sampled(cluster=CLUSTER, host="h1", interval_s=seconds, gpus=[gpu])
    with writing(ledger.engine) as writer:
        telemetry.count(writer, CLUSTER, [told(start_s, fact)])


def test_what_was_not_sampled_is_unknown_not_zero(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR, gpus_milli=1000))
    (row,) = ledger.usage().rows
    assert (row.used_gpu_ms, row.coverage) == (None, None)


@pytest.mark.parametrize("by", ["account", "month", "day", "user", "class", "cluster", "host", "model"])
def test_used_time_and_coverage_come_from_the_samples_of_the_run(ledger: Ledger, by: str) -> None:
    ledger.append(*run_of(0, HOUR, gpus_milli=1000))
    sample(ledger, 0, "50")
    sample(ledger, 300, "0")
    sample(ledger, 600, None)
    sample(ledger, 900, "100", run="")  # nobody held the GPU: no assigned time
    (row,) = ledger.usage(by).rows
    assert (row.used_gpu_ms, row.coverage) == (150_000, Decimal("0.1667"))


def test_samples_of_a_label_count_by_what_it_said_last_before_their_end(ledger: Ledger) -> None:
    changed = Updated(cluster=CLUSTER, workload="w1", labels={"job": "eval"})
    ledger.append(*labelled(0, "w1", {"job": "train"}), told(600, changed))
    sample(ledger, 0, "50")
    sample(ledger, 300, "50")
    sample(ledger, 600, "100")
    assert {row.key: (row.used_gpu_ms, row.coverage) for row in ledger.usage("label:job").rows} == {
        "train": (300_000, Decimal("1.0000")),
        "eval": (300_000, Decimal("0.1000")),
    }


def test_coverage_of_an_open_run_is_of_its_time_so_far(ledger: Ledger) -> None:
    ledger.append(told(0, submitted()), told(0, started(gpus_milli=1000)))
    sample(ledger, 0, "50")
    (row,) = ledger.usage(now="1970-01-01T00:10:00Z").rows
    assert (row.gpu_ms, row.provisional_gpu_ms, row.coverage) == (0, 600_000, Decimal("0.5000"))


def test_samples_outside_the_window_do_not_count(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR, gpus_milli=1000))
    sample(ledger, 0, "100")
    sample(ledger, 1800, "50")
    (row,) = ledger.usage(from_s=1800).rows
    assert (row.used_gpu_ms, row.coverage) == (150_000, Decimal("0.1667"))
