"""Trees written by hand: units, defaults, and faults with their place."""

from pathlib import Path

import pytest

from gpuledger.cli.fairshare_file import Question, read
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.policy.state import AccountState

DAY_S = 1_767_225_600
"""2026-01-01T00:00:00Z."""


def question(tmp_path: Path, content: str) -> Question:
    path = tmp_path / "tree.yaml"
    path.write_text(content)
    return read(path)


def test_amounts_become_the_ledgers_integers(tmp_path: Path) -> None:
    asked = question(
        tmp_path,
        """
        supply: 45.5
        window_gpu_hours: 0.5
        accounts:
          org/a: {share: 3, demand: 32.55, limit: 40, used_gpu_hours: 1.25, created: 5}
        """,
    )
    assert (asked.supply_milli, asked.window_gpu_ms) == (45_500, 1_800_000)
    assert asked.accounts == (
        AccountState(account="org", share=1),
        AccountState(
            account="org/a",
            share=3,
            demand_milli=32_550,
            limit_milli=40_000,
            used_gpu_ms=4_500_000,
            created_s=5,
        ),
    )


def test_what_is_left_out(tmp_path: Path) -> None:
    asked = question(tmp_path, "{supply: 1, accounts: {a: {}}}")
    assert asked == Question((AccountState(account="a", share=1),), 1000)


def test_fair_trees_share_of_the_parent(tmp_path: Path) -> None:
    asked = question(tmp_path, "{supply: 1, mode: fair-tree, accounts: {a: {share: parent}, b: {}}}")
    assert (asked.fair_tree, asked.transparent) == (True, {"a"})
    assert [account.share for account in asked.accounts] == [0, 1]


def test_shares_with_decimals_keep_their_proportions(tmp_path: Path) -> None:
    """Also to the inner nodes that nobody listed, which have share 1."""
    asked = question(
        tmp_path, "{supply: 1, accounts: {a/x: {share: 0.5}, b: {share: 0.75}, c: {share: 1.0}}}"
    )
    assert {account.account: account.share for account in asked.accounts} == {
        "a": 4,
        "a/x": 2,
        "b": 3,
        "c": 4,
    }


@pytest.mark.parametrize(
    ("written", "created_s"),
    [
        ("2026-01-01", DAY_S),
        ("2026-01-01T01:00:00", DAY_S + 3600),
        ("2026-01-01T01:00:00+01:00", DAY_S),
        ("'2026-01-01T00:00:00.900Z'", DAY_S),
        ("1767225600", DAY_S),
    ],
)
def test_an_account_came_to_be_on_a_day_or_at_a_time(tmp_path: Path, written: str, created_s: int) -> None:
    asked = question(tmp_path, f"{{supply: 1, accounts: {{a: {{created: {written}}}}}}}")
    assert asked.accounts[0].created_s == created_s


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{supply: 1}", "accounts: Field required"),
        ("{accounts: {}}", "supply: Field required"),
        ("{supply: -1, accounts: {}}", "supply: .*greater than or equal to 0"),
        ("{supply: 0.0005, accounts: {}}", "supply: .*3 decimal places"),
        ("{supply: .nan, accounts: {}}", "supply: .*finite"),
        ("{supply: 1, accounts: {a: {demand: -1}}}", "accounts.a.demand"),
        ("{supply: 1, accounts: {a: {weight: 1}}}", "accounts.a.weight"),
        ("{supply: 1, mode: lottery, accounts: {}}", "mode: .*'window', 'fair-tree' or 'credits'"),
        ("{supply: 1, accounts: {a: {share: parent}}}", "accounts.a.share: parent is a share of Slurm"),
        ("{supply: 1, accounts: {A: {}}}", "'A' is not well formed"),
        ("{supply: 1, accounts: {a: {used_gpu_hours: 0.000001}}}", "accounts.a.used_gpu_hours: .*gpu_ms"),
        ("{supply: 1, window_gpu_hours: 0.000001, accounts: {}}", "window_gpu_hours: .*gpu_ms"),
        ("{supply: 1, accounts: {a: {}, a: {}}}", "stands twice"),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path: Path, content: str, expected: str) -> None:
    with pytest.raises(Refused, match=expected) as caught:
        question(tmp_path, content)
    assert str(tmp_path / "tree.yaml") in caught.value.message


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        read(tmp_path / "none.yaml")
