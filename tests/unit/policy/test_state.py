"""What a cycle may be told, and what is refused before it can mislead one."""

import dataclasses
from typing import Any

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.kernel.knobs import KNOBS
from gpuledger.policy.state import (
    AccountState,
    ClusterState,
    PendingWorkload,
    PolicyConfig,
    Reservation,
    ReservationKind,
    RunningRun,
)


def run(**changes: Any) -> RunningRun:  # noqa: ANN401 - any field
    fields: dict[str, Any] = {
        "workload": "w", "run": "1", "account": "c/a", "gpus_milli": 1000, "started_at_s": 0, "protected_until_s": 100,
    }  # fmt: skip
    return RunningRun(**{**fields, **changes})


def pending(**changes: Any) -> PendingWorkload:  # noqa: ANN401 - any field
    fields: dict[str, Any] = {
        "workload": "w", "account": "c/a", "gpus_milli": 1000, "submitted_at_s": 0, "eligible_at_s": 0,
        "minimum_runtime_s": 0,
    }  # fmt: skip
    return PendingWorkload(**{**fields, **changes})


@pytest.mark.parametrize(
    "field", ["share", "used_gpu_ms", "entitled_gpu_ms", "demand_milli", "unallocated_gpu_ms", "held_gpu_ms"]
)
def test_a_negative_amount_of_an_account_is_refused_by_name(field: str) -> None:
    amounts: dict[str, int] = {"share": 1, field: -1}
    with pytest.raises(Refused, match=f"account 'c/a' has {field} = -1"):
        AccountState(account="c/a", **amounts)


def test_holds_are_a_part_of_the_use() -> None:
    assert AccountState(account="c/a", share=1, used_gpu_ms=5, held_gpu_ms=5).held_gpu_ms == 5
    with pytest.raises(Refused, match="holds 6 gpu_ms but used only 5"):
        AccountState(account="c/a", share=1, used_gpu_ms=5, held_gpu_ms=6)


def test_a_funded_start_holds_its_gpus_for_its_minimum_runtime_up_to_the_cap_and_an_unallocated_one_nothing() -> (
    None
):
    gang = pending(minimum_runtime_s=6000, priority=3, weight_permille=500)
    config = PolicyConfig(protection_cap_s=4000)
    begun, held = gang.begun("1", 50, klass="allocated", placement={"h": 1000}, config=config)
    assert begun == run(started_at_s=50, protected_until_s=4050, priority=3, placement={"h": 1000})
    assert held == 1000 * 4000 // 2
    begun, held = gang.begun("1", 50, klass="unallocated", placement={}, config=config)
    assert begun == run(started_at_s=50, protected_until_s=50, priority=3, klass="unallocated")
    assert held == 0


@pytest.mark.parametrize("path", ["", "c//a", "c/A", "c/a "])
def test_an_account_that_is_no_path_is_refused_wherever_it_stands(path: str) -> None:
    with pytest.raises(Refused):
        AccountState(account=path, share=1)
    with pytest.raises(Refused):
        run(account=path)
    with pytest.raises(Refused):
        pending(account=path)


def test_a_run_is_protected_until_its_instant_and_no_longer() -> None:
    assert not run(protected_until_s=100).is_preemptible(99)
    assert run(protected_until_s=100).is_preemptible(100)


def test_unallocated_work_is_never_protected() -> None:
    assert run(klass="unallocated", protected_until_s=100).is_preemptible(0)


def test_negative_gpus_and_runtimes_are_refused() -> None:
    with pytest.raises(Refused, match="run '1' has gpus_milli = -1"):
        run(gpus_milli=-1)
    with pytest.raises(Refused, match="workload 'w' has gpus_milli = -1"):
        pending(gpus_milli=-1)
    with pytest.raises(Refused, match="minimum_runtime_s = -1"):
        pending(minimum_runtime_s=-1)


def test_a_workload_waits_once() -> None:
    with pytest.raises(Refused, match="'w' is pending twice on 'c'"):
        ClusterState(
            cluster="c", at_s=0, healthy_milli=0, capacity_window_gpu_ms=0, pending=(pending(), pending())
        )


@pytest.mark.parametrize(("healthy", "window"), [(-1, 0), (0, -1)])
def test_negative_capacity_is_refused(healthy: int, window: int) -> None:
    with pytest.raises(Refused, match="cluster 'c' has"):
        ClusterState(cluster="c", at_s=0, healthy_milli=healthy, capacity_window_gpu_ms=window)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window_s", 0),
        ("protection_cap_s", 0),
        ("horizon_s", -1),
        ("quantum_s", 0),
        ("floor_alpha_permille", -1),
        ("floor_alpha_permille", 1001),
        ("issue_kappa_permille", 0),
        ("issue_kappa_permille", 1001),
        ("hysteresis_permille", -1),
        ("hysteresis_permille", 1001),
        ("notice_s", -1),
        ("grace_s", -1),
    ],
)
def test_a_setting_outside_its_range_is_refused_by_name(name: str, value: int) -> None:
    changes: dict[str, int] = {name: value}
    with pytest.raises(Refused, match=f"policy setting {name} is {value}"):
        PolicyConfig(**changes)


def test_the_ends_of_the_ranges_are_taken() -> None:
    config = PolicyConfig(
        floor_alpha_permille=0, issue_kappa_permille=1, hysteresis_permille=0, notice_s=0, grace_s=0
    )
    assert (config.floor_alpha_permille, config.issue_kappa_permille, config.grace_s) == (0, 1, 0)
    assert PolicyConfig(floor_alpha_permille=1000, issue_kappa_permille=1000).issue_kappa_permille == 1000


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(PolicyConfig)])
def test_every_setting_is_part_of_the_version(field: str) -> None:
    value, words = getattr(PolicyConfig(), field), KNOBS[field].words
    change: dict[str, Any] = {field: next(word for word in words if word != value) if words else value + 1}
    changed = dataclasses.replace(PolicyConfig(), **change)
    assert changed.version != PolicyConfig().version
    assert changed.version == dataclasses.replace(PolicyConfig(), **change).version


@pytest.mark.parametrize("name", ["quantum_s", "notice_s"])
def test_neither_quantum_nor_notice_exceeds_the_protection_cap(name: str) -> None:
    changes: dict[str, int] = {name: 1000}
    assert PolicyConfig(protection_cap_s=1000, **changes)
    with pytest.raises(Refused, match="exceeds the protection cap of 999 s"):
        PolicyConfig(protection_cap_s=999, **changes)


def test_other_accounts_take_nothing_within_protection_and_quantum() -> None:
    assert run(started_at_s=50, protected_until_s=100).safe_until_s(900) == 950
    assert run(started_at_s=50, protected_until_s=5000).safe_until_s(900) == 5000
    assert run(started_at_s=50, protected_until_s=5000, klass="unallocated").safe_until_s(900) == 50


def test_lost_is_what_was_done_since_the_start_or_the_checkpoint() -> None:
    assert run(started_at_s=50).lost_gpu_ms(80) == 30_000
    assert run(started_at_s=50, checkpointed_at_s=70).lost_gpu_ms(80) == 10_000
    assert run(started_at_s=50, checkpointed_at_s=20).lost_gpu_ms(80) == 30_000
    assert run(started_at_s=90).lost_gpu_ms(80) == 0


def test_a_placement_says_where_all_of_a_run_is() -> None:
    assert run(placement={"h0": 400, "h1": 600}).placement == {"h0": 400, "h1": 600}
    with pytest.raises(Refused, match="run '1' of 1000 milli-GPU holds 900"):
        run(placement={"h0": 900})


def test_a_run_and_a_reservation_stand_once() -> None:
    kept = Reservation(workload="w", placement={"h0": 1}, at_s=0, kind=ReservationKind.BOUND)
    for twice, said in (
        ({"running": (run(), run())}, "run 'w/1' is"),
        ({"reservations": (kept, kept)}, "'w' has"),
    ):
        with pytest.raises(Refused, match=said):
            ClusterState(
                cluster="c",
                at_s=0,
                healthy_milli=0,
                capacity_window_gpu_ms=0,
                **twice,  # type: ignore[arg-type]
            )
    other = run(workload="v")
    assert ClusterState(
        cluster="c", at_s=0, healthy_milli=0, capacity_window_gpu_ms=0, running=(run(), other)
    ).running == (run(), other)
