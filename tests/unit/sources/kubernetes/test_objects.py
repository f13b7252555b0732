from gpuledger.sources.kubernetes.objects import LevelValues, Meta


def test_labels_that_are_empty_are_none() -> None:
    meta = Meta(labels={"a": "", "b": "c"}, annotations={"d": "e"})
    assert [meta.label("a"), meta.label("b"), meta.annotation("d"), meta.annotation("x")] == [
        None,
        "c",
        "e",
        None,
    ]


def test_domains_are_written_out() -> None:
    assert LevelValues(prefix="n-", suffix="x", roots=["1", "2"]).values() == ["n-1x", "n-2x"]
    assert LevelValues(universal_value="all").values() == ["all"]
