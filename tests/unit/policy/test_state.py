"""What a cycle may be told, and what is refused before it can mislead one."""

import dataclasses
from typing import Any

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.policy.state import AccountState, ClusterState, PendingWorkload, PolicyConfig, RunningRun


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
    ],
)
def test_a_setting_outside_its_range_is_refused_by_name(name: str, value: int) -> None:
    changes: dict[str, int] = {name: value}
    with pytest.raises(Refused, match=f"policy setting {name} is {value}"):
        PolicyConfig(**changes)


def test_the_ends_of_the_ranges_are_taken() -> None:
    config = PolicyConfig(floor_alpha_permille=0, issue_kappa_permille=1)
    assert (config.floor_alpha_permille, config.issue_kappa_permille) == (0, 1)
    assert PolicyConfig(floor_alpha_permille=1000, issue_kappa_permille=1000).issue_kappa_permille == 1000


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(PolicyConfig)])
def test_every_setting_is_part_of_the_version(field: str) -> None:
    changed = dataclasses.replace(PolicyConfig(), **{field: 7})
    assert changed.version != PolicyConfig().version
    assert changed.version == dataclasses.replace(PolicyConfig(), **{field: 7}).version
