import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.kubernetes.objects import Container, PodSpec, Resources
from gpuledger.sources.kubernetes.quantities import (
    asked_milli,
    fraction_milli,
    gpus_milli,
    milli,
    slices,
    whole,
    whole_mib,
)


def container(gpus: int, restart_policy: str | None = None) -> Container:
    return Container(resources=Resources(limits={"nvidia.com/gpu": str(gpus)}), restart_policy=restart_policy)


@pytest.mark.parametrize(
    ("text", "count"), [("8", 8), (8, 8), ("1k", 1000), ("2Ki", 2048), ("1M", 1_000_000)]
)
def test_a_quantity_is_a_whole_number_however_the_api_writes_it(text: str | int, count: int) -> None:
    assert whole("f", text) == count


@pytest.mark.parametrize("text", ["", "-1", "0.5", "500m", "1e3", "8 ", "٣", "9" * 16])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(BadRecord) as refused:
        whole("f", text)
    assert refused.value.code == "not-a-number"


def test_more_gpus_than_any_cluster_has_are_refused() -> None:
    with pytest.raises(BadRecord, match="limit of 1000000"):
        whole("f", "2M")


@pytest.mark.parametrize(
    ("profile", "count", "expected"),
    [
        ("1g.10gb", 1, 142),
        ("1g.10gb", 6, 857),
        ("1g.10gb", 7, 1000),
        ("1g.10gb", 8, 1142),
        ("1g.10gb.me", 1, 142),
        ("1g.5gb+me", 1, 142),
        ("2g.20gb", 1, 285),
        ("3g.40gb", 1, 428),
        ("4g.40gb", 1, 571),
        ("7g.80gb", 1, 1000),
        ("1g.6gb", 1, 250),
        ("4g.24gb", 1, 1000),
    ],
)
def test_slices_are_parts_of_the_device_that_they_are_cut_from(
    profile: str, count: int, expected: int
) -> None:
    assert slices(profile, count) == expected


@pytest.mark.parametrize("profile", ["1g.24gb", "8g.1gb", "", "1g"])
def test_a_profile_that_is_not_known_is_not_guessed(profile: str) -> None:
    with pytest.raises(BadRecord) as refused:
        slices(profile)
    assert refused.value.code == "unknown-profile"


def test_a_profile_of_several_models_is_a_part_of_the_model_that_is_told() -> None:
    assert slices("1g.24gb", model="NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition") == 250
    assert slices("1g.24gb", model="NVIDIA-GH200-480GB") == 142


def test_all_resources_of_a_list_count_and_others_do_not() -> None:
    assert (
        gpus_milli({"nvidia.com/gpu": "2", "nvidia.com/mig-3g.40gb": "1", "cpu": "8", "memory": "1Gi"})
        == 2428
    )
    assert gpus_milli({"amd.com/gpu": "4"}) == 4000
    assert gpus_milli({"nvidia.com/gpu": "2"}, 500) == 1000
    assert gpus_milli({}) == 0


def test_a_part_whose_size_is_not_said_is_refused() -> None:
    for resources in ({"nvidia.com/gpu.shared": "1"}, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}):
        with pytest.raises(BadRecord) as refused:
            gpus_milli(resources)
        assert refused.value.code == "unknown-share"
    assert gpus_milli({"nvidia.com/gpu.shared": "2"}, 250) == 500
    assert gpus_milli({"nvidia.com/gpu": "3", "nvidia.com/total-gpucores": "120"}) == 1200


def test_partitions_of_amds_gpus_are_parts_by_their_mode_and_as_many_as_a_model_has_dies_are_not_guessed() -> (
    None
):
    assert gpus_milli({"amd.com/gpu": "2", "amd.com/spx_nps1": "1", "amd.com/cpx_nps4": "0"}) == 3000
    assert gpus_milli({"amd.com/dpx_nps2": "3", "amd.com/qpx_nps4": "1"}) == 1750
    assert gpus_milli({"amd.com/tpx_nps1": "2", "amd.com/vcn": "1"}) == 666
    with pytest.raises(BadRecord, match="cpx_nps4: how large") as refused:
        gpus_milli({"amd.com/cpx_nps4": "8"})
    assert refused.value.code == "unknown-share"


def test_containers_add_up_and_init_containers_come_before() -> None:
    assert asked_milli(PodSpec(containers=[container(1), container(2), Container()])) == 3000
    assert asked_milli(PodSpec(containers=[container(1)], init_containers=[container(4)])) == 4000
    beside = [container(1, "Always"), container(2)]
    assert asked_milli(PodSpec(containers=[container(1)], init_containers=beside)) == 3000
    assert asked_milli(PodSpec(containers=[container(4)], init_containers=beside)) == 5000


@pytest.mark.parametrize(("text", "expected"), [("0.5", 500), (".25", 250), ("1", 1000), ("0.3337", 333)])
def test_a_fraction_is_floored_to_a_thousandth(text: str, expected: int) -> None:
    assert fraction_milli("gpu-fraction", text) == expected


@pytest.mark.parametrize("text", ["0", "1.1", "-0.5", "half", "1e-1", "nan", ""])
def test_what_is_no_part_of_a_gpu_is_refused(text: str) -> None:
    with pytest.raises(BadRecord, match="no part of a GPU"):
        fraction_milli("gpu-fraction", text)


@pytest.mark.parametrize(
    ("text", "expected"), [("500m", 500), ("1250m", 1250), ("0.5", 500), (2, 2000), ("1k", 1_000_000)]
)
def test_a_sum_of_parts_may_be_written_in_thousandths(text: str | int, expected: int) -> None:
    assert milli("f", text) == expected


def test_memory_is_a_number_of_mib() -> None:
    assert whole_mib("f", "81559") == 81_559
    with pytest.raises(BadRecord):
        whole_mib("f", "80Gi")
