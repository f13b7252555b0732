"""The file that says what may be changed is read strictly."""

import re
from pathlib import Path

import pytest

from gpuledger.enforce.config import EnforceFile, read_config
from gpuledger.kernel.errors import NotFound, Refused


def test_an_empty_file_allows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "enforce.yaml"
    path.write_text("")
    config = read_config(path)
    assert config == EnforceFile()
    assert (config.slurm.managed, config.slurm.order, config.slurm.budgets, config.slurm.preempt) == (
        (), None, None, False
    )  # fmt: skip


def test_parts_are_switched_on_by_naming_them(tmp_path: Path) -> None:
    path = tmp_path / "enforce.yaml"
    path.write_text(
        'slurm: {managed: ["p-*"], order: {}, budgets: {slack_gpu_minutes: 5}, unallocated: {}}\n'
    )
    slurm = read_config(path).slurm
    assert slurm.order is not None
    assert slurm.order.jobs == 200
    assert slurm.budgets is not None
    assert slurm.budgets.slack_gpu_minutes == 5
    assert slurm.unallocated is not None
    assert slurm.unallocated.qos == "unallocated"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("slurm: {manged: [a]}", "slurm.manged is no key; did you mean managed?"),
        ("slrm: {}", "slrm is no key; did you mean slurm?"),
        ("slurm: {order: {job: 1}}", "slurm.order.job is no key; did you mean jobs?"),
        ("slurm: {budgets: {x: 1}}", "slurm.budgets.x is no key; there are slack_gpu_minutes"),
        ("slurm: {order: {jobs: 0}}", "slurm.order.jobs"),
        ("kai: {min_runtime_s: -1}", "kai.min_runtime_s"),
        ("kueue: {names: {a: ''}}", "kueue.names.a"),
    ],
)
def test_an_unknown_key_or_a_value_that_does_not_fit_is_refused_with_its_place(
    text: str, place: str, tmp_path: Path
) -> None:
    path = tmp_path / "enforce.yaml"
    path.write_text(text)
    with pytest.raises(Refused, match=re.escape(place)):
        read_config(path)


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        read_config(tmp_path / "enforce.yaml")
