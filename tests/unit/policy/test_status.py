"""What a published cycle counts."""

from gpuledger.policy.status import figures


def decision(action: str) -> dict[str, object]:
    return {"workload": "w", "action": action, "numbers": {"gpus_milli": 1000}}


def allocation(account: str, used: int, entitled: int, demand: int = 1) -> dict[str, object]:
    return {"account": account, "used_gpu_ms": used, "entitled_gpu_ms": entitled, "demand_gpus": demand}


def test_waiting_work_is_counted_by_size_and_orders_by_kind() -> None:
    sizes = (500, 1000, 1001, 8000, 8001, 64_000, 64_001)
    record = {"allocations": [], "decisions": [decision("start"), decision("preempt")]}
    found = figures(record, dict.fromkeys(sizes, 1) | {8000: 3})
    assert found.waiting == {"1": 2, "2-8": 4, "9-64": 2, "65-": 1}
    assert found.orders == {"start": 1, "preempt": 1}


def test_owed_and_over_service_are_those_of_leaves_and_only_who_asks_is_owed() -> None:
    record = {
        "decisions": [],
        "allocations": [
            allocation("o", 100, 100), allocation("o/a", 70, 40), allocation("o/b", 10, 30),
            allocation("o/c", 0, 30, demand=0),
        ],
    }  # fmt: skip
    found = figures(record, {})
    assert (found.owed_gpu_ms, found.over_service_gpu_ms) == (20, 30)
