from pathlib import Path

import pytest
import yaml

from gpuledger.sources.slurm.settings import refusal

COLUMNS = ["Cluster", "Account", "User", "ParentName", "Share"]


def hint(*rows: tuple[str, str, str, str, str]) -> str:
    said = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    return refusal(Path("f"), COLUMNS, said).hint or ""


def shares(*rows: tuple[str, str, str, str, str]) -> dict[str, int]:
    """Return what the hint would put into a budget file."""
    written = yaml.safe_load(hint(*rows).partition("apply: ")[2])
    return {path: said["share"] for path, said in written["accounts"].items()}


def test_the_share_of_an_account_is_its_part_of_the_whole_tree() -> None:
    told = shares(
        ("c", "root", "", "", "1"),
        ("c", "root", "root", "", "1"),
        ("c", "a", "", "root", "60"),
        ("c", "a1", "", "a", "30"),
        ("c", "a1", "ada", "", "1"),
        ("c", "a2", "", "a", "10"),
        ("c", "B", "", "root", "40"),
    )
    assert told == {"c/a1": 450_000, "c/a2": 150_000, "c/b": 400_000}


def test_parts_that_do_not_divide_evenly_sum_to_the_whole() -> None:
    told = shares(*(("c", name, "", "root", "1") for name in ("x", "y", "z")))
    assert told == {"c/x": 333_334, "c/y": 333_333, "c/z": 333_333}


@pytest.mark.parametrize("share", ["parent", "", "-1", "1.5"])
def test_what_is_no_number_counts_as_one(share: str) -> None:
    assert shares(("c", "x", "", "root", share), ("c", "y", "", "root", "3")) == {
        "c/x": 250_000,
        "c/y": 750_000,
    }


def test_shares_of_zero_are_zero() -> None:
    assert shares(("c", "x", "", "root", "0"), ("c", "y", "", "root", "0")) == {"c/x": 0, "c/y": 0}


def test_a_tree_that_bites_its_tail_or_is_endless_is_told_too() -> None:
    assert shares(("c", "a", "", "root", "1"), ("c", "b", "", "a", "1"), ("c", "a", "", "b", "1")) == {
        "c/b": 1_000_000
    }
    chain = [("c", f"a{n}", "", f"a{n - 1}" if n else "root", "1") for n in range(3000)]
    assert list(shares(*chain).values()) == [1_000_000]


def test_of_many_accounts_the_first_are_told() -> None:
    assert "and 5 more" in hint(*(("c", f"a{n}", "", "root", "1") for n in range(25)))
