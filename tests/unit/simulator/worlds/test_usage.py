"""Use of late: who has used the least of what is theirs has the highest factor."""

from tests.simulating import T0, job

from gpuledger.kernel.accounts import escape_part
from gpuledger.simulator.scenario import AccountSpec
from gpuledger.simulator.worlds.usage import Usage

DAY_S = 86_400
ACCOUNTS = (AccountSpec(account="org/a", share=3), AccountSpec(account="org/b", share=1))
ANN = job("j", 1, account="org/a", user="ann")
BOB = job("k", 1, account="org/b", user="bob")
CAT = job("l", 2, account="org/b", user="Cat/x")


def test_a_user_is_a_leaf_of_the_account() -> None:
    usage = Usage(ACCOUNTS, DAY_S, T0)
    assert usage.leaf(ANN) == "org/a/~ann"
    assert usage.leaf(CAT) == "org/b/~" + escape_part("Cat/x")
    assert usage.leaf(job("m", account="elsewhere/c", user="dan")) == "elsewhere/c/~dan"


def test_users_whose_names_differ_by_case_are_two() -> None:
    usage = Usage(ACCOUNTS, 0, T0)
    other = job("o", 1, account="org/b", user="Bob")
    usage.holds(BOB, T0)
    usage.holds(other, T0 + 90)
    usage.gives_back(BOB, T0 + 100)
    assert usage.leaf(BOB) != usage.leaf(other)
    factors = usage.factors(T0 + 110, 2)
    assert (factors[usage.leaf(other)], factors[usage.leaf(BOB)]) == (2, 1)  # 20 after 100


def test_nobody_used_anything_and_all_are_equal() -> None:
    usage = Usage(ACCOUNTS, DAY_S, T0)
    leaves = [usage.leaf(each) for each in (ANN, BOB, CAT)]
    assert {usage.factors(T0, 900)[leaf] for leaf in leaves} == {900}


def test_equal_use_of_unequal_shares_and_of_users_below_them() -> None:
    """a has three times the share of b. Both used 200: a is first; in b who used less is."""
    usage = Usage(ACCOUNTS, 0, T0)
    for each, length_s in ((ANN, 200), (BOB, 100), (CAT, 50)):
        usage.holds(each, T0)
        usage.gives_back(each, T0 + length_s)
    usage.holds(BOB, T0 + 300)
    usage.gives_back(BOB, T0 + 301)
    factors = usage.factors(T0 + 400, 900)
    assert factors == {"org/a/~ann": 900, usage.leaf(CAT): 600, "org/b/~bob": 300}


def test_what_runs_counts_up_to_now() -> None:
    usage = Usage(ACCOUNTS, 0, T0)
    usage.holds(BOB, T0)
    usage.holds(CAT, T0 + 90)
    assert usage.factors(T0 + 100, 2)[usage.leaf(CAT)] == 2  # 20 after 100
    assert usage.factors(T0 + 300, 2)[usage.leaf(CAT)] == 1  # 420 after 300


def test_use_decays_each_time_factors_are_computed() -> None:
    """bob's 100 GPU-seconds of a day ago weigh 50, less than the 60 of now."""
    usage = Usage(ACCOUNTS, DAY_S, T0)
    usage.holds(BOB, T0)
    usage.gives_back(BOB, T0 + 100)
    usage.leaf(CAT)
    usage.factors(T0 + DAY_S, 1)
    usage.holds(CAT, T0 + DAY_S)
    usage.gives_back(CAT, T0 + DAY_S + 30)
    factors = usage.factors(T0 + DAY_S + 30, 2)
    assert (factors["org/b/~bob"], factors[usage.leaf(CAT)]) == (2, 1)
    undecayed = Usage(ACCOUNTS, 0, T0)
    for each, length_s in ((BOB, 100), (CAT, 30)):
        undecayed.holds(each, T0)
        undecayed.gives_back(each, T0 + length_s)
    factors = undecayed.factors(T0 + DAY_S, 2)
    assert (factors["org/b/~bob"], factors[undecayed.leaf(CAT)]) == (1, 2)
