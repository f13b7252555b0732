"""Small demands and outages, drawn."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.simulating import T0, Listed, job, outages

from gpuledger.simulator import engine
from gpuledger.simulator.jobs import Job

HOSTS = (4, 2.5, 4)
_FEW = st.integers(0, 12)
_JOB = st.fixed_dictionaries(
    {
        "gpus": st.sampled_from([0.5, 1, 2, 3, 4, 6, 10]),
        "work_s": st.integers(0, 40),
        "startup_s": _FEW,
        "idle_s": _FEW,
        "checkpoint_s": st.none() | st.integers(1, 9),
        "time_limit_s": st.none() | st.integers(1, 50),
        "patience_s": st.none() | st.integers(0, 40),
        "resumable": st.booleans(),
    }
)
ROWS = st.lists(st.tuples(st.integers(0, 15), _JOB, st.none() | _JOB), max_size=9)
"""Gaps, jobs, and what follows some of them."""
OUTAGES = st.lists(
    st.tuples(
        st.sampled_from(["faults", "wishes"]),
        st.integers(0, len(HOSTS) - 1),
        st.integers(1, 90),
        st.integers(1, 30),
    ),
    max_size=6,
    unique_by=lambda row: row[2],
)
"""What breaks and what is to be repaired: which host, when, for how long; no two in one instant."""


def demand(rows: Sequence[tuple[int, dict[str, Any], dict[str, Any] | None]]) -> Listed:
    """Jobs j0, j1, ... ; j0 is followed by j0+ where something follows it."""
    jobs: list[Job] = []
    following: dict[str, dict[str, Any]] = {}
    at_s = 0
    for number, (gap_s, asked, then) in enumerate(rows):
        at_s += gap_s
        jobs.append(job(f"j{number}", at_s=at_s, **asked))
        if then is not None:
            following[f"j{number}"] = then

    def after(last: Job, at_s: int) -> list[Job]:
        then = following.get(last.job)
        if then is None:
            return []
        think_s = then["startup_s"]
        return [job(f"{last.job}+", **then, at_s=at_s + think_s - T0)]

    return Listed(jobs, after)


def break_hosts(patch: pytest.MonkeyPatch, rows: Sequence[tuple[str, int, int, int]]) -> None:
    """Let hosts break as drawn in place of what the engine draws."""
    for kind in ("faults", "wishes"):
        table = {
            f"h{host}": sorted(
                (at_s, lasts_s) for what, on, at_s, lasts_s in rows if (what, on) == (kind, host)
            )
            for host in range(len(HOSTS))
        }
        patch.setattr(
            engine, kind, lambda _, host, *, seed, start_s, table=table: iter(outages(*table[host]))
        )
