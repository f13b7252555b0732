"""A run's name follows from what a sampler sees of it."""

from gpuledger.sources.owners import pod_run, pod_uid_run, slurm_run


def test_a_run_is_named_as_workload_and_run() -> None:
    assert slurm_run("4711") == "4711/1"
    assert pod_run("vision", "train-0") == "vision/train-0/1"
    assert pod_uid_run("6f1c") == "6f1c/1"
