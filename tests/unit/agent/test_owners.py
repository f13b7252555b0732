"""Who holds a device, as the scheduler's traces on the host tell."""

from pathlib import Path

import pytest
from tests.unit.agent.recorded import GPU_1, GPU_2

from gpuledger.agent.owners import Kubelet, Nobody, Slurm

V1 = "11:devices:/slurm/uid_1000/job_4711/step_0/task_0\n4:memory:/slurm/uid_1000/job_4711/step_0\n"
V2 = "0::/system.slice/slurmstepd.scope/job_4712/step_batch/user/task_0\n"
OTHER = "0::/user.slice/user-1000.slice/session-3.scope\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for pid, text in ((1, V1), (2, V2), (3, OTHER), (4, V1)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cgroup").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("pids", "handle"),
    [
        ([1], "job/4711"),
        ([2], "job/4712"),
        ([1, 4], "job/4711"),
        ([3, 1], "job/4711"),
        ([3], None),
        ([], None),
        ([999], None),
    ],
)
def test_the_cgroup_of_a_process_names_its_job(proc: Path, pids: list[int], handle: str | None) -> None:
    owners = Slurm(proc=proc)
    owners.look()
    assert owners.handle(GPU_1, pids) == handle


def test_a_device_that_two_jobs_share_belongs_to_neither(proc: Path) -> None:
    assert Slurm(proc=proc).handle(GPU_1, [1, 2]) is None


def test_a_device_that_jobs_share_by_the_map_belongs_to_none_of_them(proc: Path, tmp_path: Path) -> None:
    """A line for each; whichever of them has a process there is not alone."""
    folder = tmp_path / "map"
    folder.mkdir()
    (folder / "0").write_text("17\n18\n")
    (folder / "GPU-2").write_text("\n18\n 18\n")
    owners = Slurm(folder, proc)
    owners.look()
    assert [owners.handle(device, [1]) for device in (GPU_1, GPU_2)] == [None, "job/18"]


def test_the_map_of_the_prolog_shows_jobs_without_processes(proc: Path, tmp_path: Path) -> None:
    folder = tmp_path / "map"
    owners = Slurm(folder, proc)
    owners.look()
    assert owners.handle(GPU_1, [2]) == "job/4712"
    folder.mkdir()
    (folder / "0").write_text("17\n")
    (folder / "GPU-2").write_text("18")
    (folder / "2").write_text("")
    assert owners.handle(GPU_1, []) is None
    owners.look()
    assert [owners.handle(device, []) for device in (GPU_1, GPU_2)] == ["job/17", "job/18"]


@pytest.mark.parametrize("ids", ['{"-1":["GPU-1"]}', '["GPU-1"]'])
def test_the_kubelet_remembers_which_pod_was_given_a_device(tmp_path: Path, ids: str) -> None:
    path = tmp_path / "kubelet_internal_checkpoint"
    owners = Kubelet(path)
    owners.look()
    assert owners.handle(GPU_1, []) is None
    entries = ",".join(
        f'{{"PodUID":"6f1c","ContainerName":"m","ResourceName":"{resource}","DeviceIDs":{devices}}}'
        for resource, devices in (("nvidia.com/gpu", ids), ("example.com/nic", '["GPU-2"]'))
    )
    path.write_text(f'{{"Data":{{"PodDeviceEntries":[{entries}],"RegisteredDevices":{{}}}},"Checksum":1}}')
    owners.look()
    assert [owners.handle(device, [1]) for device in (GPU_1, GPU_2)] == ["pod/6f1c", None]


@pytest.mark.parametrize("text", ["", "{", '{"Data":{}}', '{"Data":{"PodDeviceEntries":null}}', '{"Data":7}'])
def test_a_checkpoint_that_says_nothing_names_nobody(tmp_path: Path, text: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(text)
    owners = Kubelet(path)
    owners.look()
    assert owners.handle(GPU_1, []) is None


def test_without_a_scheduler_nobody_holds_anything() -> None:
    Nobody().look()
    assert Nobody().handle(GPU_1, [1]) is None
