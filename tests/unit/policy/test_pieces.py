"""Pieces say for ever what they said when they were written: literal ones of every form.

A sentence that comes out otherwise here calls for a new form, beside this one (docs/decisions/0042).
"""

import json
from typing import Any

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.policy.pieces import FORM, read, read_all

SENTENCES = b'[[1,{"workload":"b","action":"wait","reason":"Waits."}],[0,{"workload":"a","action":"start"}]]'

PIECE: dict[str, Any] = {
    "form": 2,
    "blocking": [["held", 60]],
    "heads": [
        ["first", "org/b/c", 6500, [["org", 900000, False], ["org/b", None, True], ["org/b/c", 0, True]]]
    ],
    "rows": [
        [1, "own", "org/b/c", [4000, 1500, None, 0], 7, 2000000, True],
        [2, "other", "org/a", [4000, 1500, None, 0], 1250000, 1250000, False],
        [3, "new", "org/a/~own", [1000, 1500, None, 0], None, None, False],
        [4, "beside", "org/a", [1000, 5000, 0, 0], 500000, None, False],
        [5, "free", "z", [2500, 500, None, None], None, None, False],
        [6, "apart", "z", [1000, 6000, None, None], None, None, False],
    ],
    "whole": [[0, {"workload": "starts", "action": "start", "numbers": {}, "hosts": {"h0": 8000}}]],
}

BEHIND = "first of account org/b/c is ahead, for which 6.500 GPUs are missing"

SAID = [
    (
        f"Waits at place 2: {BEHIND}; both are of account org/b/c (ratio 2.000000, running below its floor), where"
        " priority and then submit time decide."
    ),
    (
        f"Waits at place 3: {BEHIND}; org/b (no entitlement yet, running below its floor) comes before org/a"
        " (ratio 1.250000)."
    ),
    (
        f"Waits at place 4: {BEHIND}; org/b (no entitlement yet, running below its floor) comes before org/a"
        " (no entitlement yet)."
    ),
    (
        "Waits at place 5: its 1 GPU would fit, but are reserved for held from 1970-01-01T00:01:00Z on, and its minimum"
        " runtime would end later."
    ),
    (
        "Waits at place 6 for free GPUs, as unallocated work of account z: of the 2.500 GPUs asked for, 2 GPUs are"
        " missing."
    ),
    (
        "Waits at place 7 for free GPUs, as unallocated work of account z: of the 1 GPU asked for, the 6 free are"
        " reserved or on hosts that cannot hold them together."
    ),
]

FIGURES = [
    {"position": 2, "gpus_milli": 4000, "free_milli": 1500, "missing_milli": 2500, "ratio_ppm": 7,
     "head_missing_milli": 6500},
    {"position": 3, "gpus_milli": 4000, "free_milli": 1500, "missing_milli": 2500, "ratio_ppm": 1250000,
     "head_missing_milli": 6500},
    {"position": 4, "gpus_milli": 1000, "free_milli": 1500, "missing_milli": 0, "head_missing_milli": 6500},
    {"position": 5, "gpus_milli": 1000, "free_milli": 5000, "missing_milli": 0, "ratio_ppm": 500000,
     "reserved_at_s": 60},
    {"position": 6, "gpus_milli": 2500, "free_milli": 500, "missing_milli": 2000},
    {"position": 7, "gpus_milli": 1000, "free_milli": 6000, "missing_milli": 0},
]  # fmt: skip


def piece(**changed: object) -> bytes:
    return json.dumps({**PIECE, **changed}).encode()


def test_what_was_written_in_this_form_says_what_it_said() -> None:
    whole, *waiting = read_all([piece()])
    assert whole == {"workload": "starts", "action": "start", "numbers": {}, "hosts": {"h0": 8000}}
    assert [one["workload"] for one in waiting] == ["own", "other", "new", "beside", "free", "apart"]
    assert {one["action"] for one in waiting} == {"wait"}
    assert [one["reason"] for one in waiting] == SAID
    assert [list(one["numbers"].items()) for one in waiting] == [list(one.items()) for one in FIGURES]


def test_pieces_of_earlier_releases_hold_their_sentences() -> None:
    assert read_all([SENTENCES]) == [
        {"workload": "a", "action": "start"},
        {"workload": "b", "action": "wait", "reason": "Waits."},
    ]
    assert list(read(SENTENCES, "b")) == [(1, {"workload": "b", "action": "wait", "reason": "Waits."})]


@pytest.mark.parametrize(("workload", "places"), [("starts", [0]), ("free", [5]), ("nobody", [])])
def test_those_of_one_workload_are_read_alone(workload: str, places: list[int]) -> None:
    assert [place for place, _ in read(piece(), workload)] == places


def test_what_a_later_release_wrote_is_refused() -> None:
    with pytest.raises(Refused, match=f"in form {FORM + 1}"):
        list(read(piece(form=FORM + 1)))
