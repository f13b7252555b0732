"""Tests that share a worker, and benches that run alone."""

import threading
import time
from pathlib import Path

import pytest
from tests.parallel import group_of, turn


@pytest.mark.parametrize(
    ("fixtures", "is_measured", "expected"),
    [
        (["tmp_path"], False, None),
        (["tmp_path", "traces"], False, "broker"),
        (["apache_kafka"], False, "broker"),
        (["seeded", "api"], False, "api"),
        (["apache_kafka"], True, "bench"),
    ],
)
def test_what_is_dear_is_shared(fixtures: list[str], is_measured: bool, expected: str | None) -> None:  # noqa: FBT001
    assert group_of(fixtures, is_measured=is_measured) == expected


def test_a_bench_waits_for_the_others_and_lets_nobody_in(tmp_path: Path) -> None:
    told: list[str] = []
    may_end = threading.Event()

    def test(name: str, *, alone: bool, until: threading.Event | None = None) -> threading.Thread:
        def run() -> None:
            with turn(tmp_path, alone=alone):
                told.append(f"{name} begins")
                if until is not None:
                    until.wait(30)
                told.append(f"{name} ends")

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def await_(count: int) -> None:
        deadline = time.monotonic() + 30
        while len(told) < count and time.monotonic() < deadline:
            time.sleep(0.01)

    threads = [test("first", alone=False, until=may_end)]
    await_(1)
    threads.append(test("second", alone=False))
    await_(3)
    threads.append(test("bench", alone=True))
    time.sleep(0.2)
    threads.append(test("late", alone=False))
    time.sleep(0.2)
    assert told == ["first begins", "second begins", "second ends"]
    may_end.set()
    for thread in threads:
        thread.join(30)
    assert told[3:] == ["first ends", "bench begins", "bench ends", "late begins", "late ends"]
