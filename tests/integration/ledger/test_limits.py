"""Limits of inner accounts: the tightest room on the path binds, and the answer names whose it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, HOUR, Ledger, run_of, told

from gpuledger.database.engine import reading
from gpuledger.events.budget import AccountCreated, Granted
from gpuledger.ledger.balances import BalanceQuery, balances
from gpuledger.ledger.limits import Binding, Limit, binding, limits, spent_below

PERIOD = "1970-01"
LATER = "1970-01-20T00:00:00Z"


def granted(account: str, gpu_hours: int, *, limit: bool = False, period: str = PERIOD) -> Granted:
    return Granted(
        account=account,
        cluster=CLUSTER,
        period=period,
        gpu_ms=gpu_hours * GPU_HOUR,
        reason="t",
        by="t",
        limit=limit,
    )


@pytest.fixture
def tree(ledger: Ledger) -> Ledger:
    """``org/p/a`` has 800 GPU-hours of which it used 8, ``org/p/b`` 100; the program ``org/p`` is limited to 208."""
    names = ("org", "org/p", "org/p/a", "org/p/b")
    ledger.append(*(told(0, AccountCreated(account=name)) for name in names))
    ledger.append(*run_of(0, HOUR, account="org/p/a"))
    ledger.append(
        told(0, granted("org/p/a", 800)),
        told(0, granted("org/p/b", 100)),
        told(0, granted("org/p", 200, limit=True)),
        told(0, granted("org/p", 8, limit=True)),
    )
    return ledger


@pytest.mark.parametrize(
    ("account", "available", "own", "binding_account"),
    [
        ("org/p/a", 200, 792, "org/p"),
        ("org/p/b", 100, 100, "org/p/b"),
        ("org/p", 200, 892, "org/p"),
        ("org", 892, 892, "org"),
    ],
)
def test_you_have_792_gpu_hours_and_your_program_has_200_left(
    tree: Ledger, account: str, available: int, own: int, binding_account: str
) -> None:
    found = tree.balance(account, now=LATER)
    assert (found.available_gpu_ms, found.own_available_gpu_ms) == (available * GPU_HOUR, own * GPU_HOUR)
    assert found.binding_account == binding_account


def test_a_limit_is_no_gpu_time_of_its_own(tree: Ledger) -> None:
    assert tree.balance("org/p", now=LATER).granted_gpu_ms == 900 * GPU_HOUR
    assert tree.value("SELECT count(*) FROM ledger.postings WHERE debit_account = 'org/p'") == 0


def test_a_list_names_what_binds_each_leaf(tree: Ledger) -> None:
    with reading(tree.engine) as reader:
        found = balances(reader, BalanceQuery(CLUSTER, PERIOD), 20 * 24 * HOUR)
    assert {b.account: b.binding_account for b in found} == {"org/p/a": "org/p", "org/p/b": "org/p/b"}


def test_a_limit_holds_in_its_period_and_from_when_it_was_recorded(tree: Ledger) -> None:
    before = tree.value("SELECT min(recorded_at) FROM ledger.journal WHERE type = 'budget.granted'")
    tree.append(told(0, granted("org/p", 1, limit=True, period="1970-02")))
    with reading(tree.engine) as reader:
        assert limits(reader) == {
            Limit(CLUSTER, PERIOD, "org/p"): 208 * GPU_HOUR,
            Limit(CLUSTER, "1970-02", "org/p"): GPU_HOUR,
        }
        query = BalanceQuery(CLUSTER, PERIOD, as_of=before)
        then = {b.account: b.binding_account for b in balances(reader, query, 20 * 24 * HOUR)}
    assert then == {"org/p/a": "org/p/a"}


A = Limit("alpha", PERIOD, "org/p/a")
amounts = st.integers(-1000, 1000)


@given(
    own=amounts,
    caps=st.dictionaries(st.sampled_from(["org", "org/p", "org/p/a"]), amounts),
    leaves=st.dictionaries(st.sampled_from(["org/p/a", "org/p/b", "org/q/c"]), amounts),
)
def test_the_binding_room_is_the_smallest_on_the_path(
    own: int, caps: dict[str, int], leaves: dict[str, int]
) -> None:
    """Against the sentence of DESIGN section 7, written out."""
    spent = spent_below((A._replace(account=name), amount) for name, amount in leaves.items())
    rooms = {
        node: cap
        - sum(amount for name, amount in leaves.items() if name == node or name.startswith(node + "/"))
        for node, cap in caps.items()
    }
    smallest = min([own, *rooms.values()])

    found = binding(own, A, {A._replace(account=node): cap for node, cap in caps.items()}, spent)

    assert found.available_gpu_ms == smallest
    assert found == Binding(own, "org/p/a") if own == smallest else rooms[found.account] == smallest


def test_another_period_or_cluster_does_not_bind() -> None:
    caps = {A._replace(period="1970-02", account="org"): 1, A._replace(cluster="beta", account="org"): 1}
    assert binding(5, A, caps, {}) == Binding(5, "org/p/a")
