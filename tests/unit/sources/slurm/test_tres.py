"""GPUs of TRES and GRES: counted once, in milli-GPU, parts by a table or not at all."""

import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.slurm.tres import Gpus, Tres


def text(value: str, **fractions: int) -> Gpus | None:
    return Tres({name.replace("__", ":"): milli for name, milli in fractions.items()}).text(
        "AllocTRES", value
    )


@pytest.mark.parametrize(
    ("value", "milli", "model"),
    [
        ("billing=8,cpu=8,gres/gpu:h100=2,gres/gpu=2,mem=8G,node=1", 2000, "h100"),
        ("gres/gpu=8,gres/gpu:h100=8", 8000, "h100"),
        ("cpu=4,gres/gpu=8", 8000, None),
        ("gres/gpu:rtx8000=1", 1000, "rtx8000"),
        ("gres/gpu=0,node=1", 0, None),
        ("gres/gpu=4,gres/gpu:a100=2", 4000, None),
        ("gres/gpu=1,gres/gpumem=80G,gres/gpuutil=100", 1000, None),
        ("gres/gpu=2048,node=256", 2_048_000, None),
        ("gres/gpu:h100=0,gres/gpu:a100=3,gres/gpu=3", 3000, "a100"),
    ],
)
def test_gpus_are_counted_once(value: str, milli: int, model: str | None) -> None:
    assert text(value) == Gpus(milli, model)


@pytest.mark.parametrize(
    "value", ["", "cpu=4,mem=8G,node=1,billing=96", "gres/gpumem=80G", "gres/nic=2", "gpu=8"]
)
def test_what_names_no_gpu_is_not_none_of_them(value: str) -> None:
    assert text(value) is None


def test_types_side_by_side_are_one_sum_and_each_is_told() -> None:
    assert text("gres/gpu=8,gres/gpu:a100=4,gres/gpu:h100=4") == Gpus(8000, "a100:4000,h100:4000")
    assert text("gres/gpu:h100=1,gres/gpu:1g.10gb=1") == Gpus(1142, "1g.10gb:142,h100:1000")


def test_more_by_type_than_in_all_is_odd_and_the_total_is_booked() -> None:
    found = text("gres/gpu=4,gres/gpu:h100=8")
    assert found is not None
    assert (found.milli, [code for code, _ in found.oddities]) == (4000, ["gpu-types-differ"])


@pytest.mark.parametrize(
    ("value", "milli"),
    [
        ("gres/gpu:1g.10gb=1,gres/gpu=1", 142),
        ("gres/gpu:1g.10gb=7,gres/gpu=7", 1000),
        ("gres/gpu:nvidia_a100_3g.20gb=2,gres/gpu=2", 857),
        ("gres/gpu:a100_1g.5gb+me=1", 142),
        ("gres/gpu:1g.6gb=3", 750),
        ("gres/gpu:nvidia_rtx_pro_6000_blackwell_1g.24gb=1", 250),
        ("gres/gpu:gh200_1g.24gb=1", 142),
        ("gres/gpu:1c.3g.40gb=1", 142),
        ("gres/gpu:h100_1c.3g.40gb=3", 428),
        ("gres/gpu=3,gres/gpu:h100=2,gres/gpu:1g.10gb=1", 2142),
        ("gres/mps=50", 500),
    ],
)
def test_a_part_of_a_gpu_is_what_the_table_says(value: str, milli: int) -> None:
    found = text(value)
    assert found is not None
    assert found.milli == milli


@pytest.mark.parametrize(
    "value", ["gres/shard=20", "gres/gpu:1g.24gb=1", "gres/gpu:9g.999gb=1", "gres/gpu:1g.5gb+x=1"]
)
def test_a_part_of_unknown_size_is_refused(value: str) -> None:
    with pytest.raises(BadRecord) as refused:
        text(value)
    assert refused.value.code == "unknown-fraction"


def test_what_the_import_says_of_a_part_goes_before_the_table() -> None:
    assert text("gres/shard=20", shard=125) == Gpus(2500)
    assert text("gres/shard:h100=4", shard=125) == Gpus(500)
    assert text("gres/gpu:1g.24gb=2", **{"gpu__1g.24gb": 142}) == Gpus(284, "1g.24gb")
    assert text("gres/gpu:1g.10gb=7", **{"gpu__1g.10gb": 100}) == Gpus(700, "1g.10gb")


@pytest.mark.parametrize(
    "value", ["gres/gpu=-2", "gres/gpu=1.5", "gres/gpu=", "gres/gpu=8G", "gres/gpu=1000001"]
)
def test_a_count_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(BadRecord, match="AllocTRES: gpu"):
        text(value)


def test_the_items_of_a_list_are_the_same_gpus() -> None:
    tres = Tres()
    assert tres.items("t", [("gpu", 7), ("gpu:h100", 7)]) == tres.text("t", "gres/gpu=7,gres/gpu:h100=7")
    assert tres.items("t", [("gpu:rtx8000", 1)]) == Gpus(1000, "rtx8000")
    assert tres.items("t", []) is None


@pytest.mark.parametrize(
    ("listed", "milli", "model"),
    [
        (["gpu:h100:4(IDX:0-3)", "gpu:h100:4(IDX:0-3)"], 8000, "h100"),
        (["gpu:2(IDX:0,3)"], 2000, None),
        (["gpu:h100:4(IDX:0-2,5)", "gpu:2(IDX:0-1)"], 6000, None),
        (["gpu:a100:1(IDX:0),nic:2(IDX:0-1)"], 1000, "a100"),
    ],
)
def test_what_each_host_holds_is_added(listed: list[str], milli: int, model: str | None) -> None:
    found = Tres().details("gres_detail", listed)
    assert found is not None
    assert (found.milli, found.model) == (milli, model)


def test_no_detail_is_no_gpu_named() -> None:
    assert Tres().details("gres_detail", []) is None


@pytest.mark.parametrize(
    ("hosts", "listed", "held", "each"),
    [
        (("a", "b"), ("gpu:8(IDX:0-7)", "gpu:4(IDX:0-3)"), 12_000, {"a": 8000, "b": 4000}),
        (("a", "b"), ("gpu:4(IDX:0-3)", "gpu:4(IDX:4-7)"), 8000, None),
        (("a", "b"), ("gpu:8(IDX:0-7)", "gpu:4(IDX:0-3)"), 16_000, None),
        (("a", "b"), ("gpu:8(IDX:0-7)", "(null)"), 8000, None),
        (("a", "b", "c"), ("gpu:8(IDX:0-7)", "gpu:4(IDX:0-3)"), 12_000, None),
        (("a",), ("gpu:8(IDX:0-7)",), 8000, None),
        ((), (), 8000, None),
    ],
    ids=[
        "uneven",
        "even",
        "adds up to something else",
        "a host without",
        "a host untold",
        "one host",
        "none",
    ],
)
def test_what_hosts_hold_is_told_host_by_host_where_they_differ(
    hosts: tuple[str, ...], listed: tuple[str, ...], held: int, each: dict[str, int] | None
) -> None:
    assert Tres().uneven("gres_detail", hosts, listed, Gpus(held)) == each
    assert Tres().uneven("gres_detail", hosts, listed, None) is None


def test_reading_again_gives_the_same() -> None:
    tres = Tres()
    assert tres.text("t", "gres/gpu=2") is tres.text("t", "gres/gpu=2")
    assert tres.text("t", "cpu=1") is None
    assert tres.text("t", "cpu=1") is None
