"""What other schedulers get wrong and their users told about, as cycles with names and numbers."""

from fractions import Fraction

from tests.unit.policy.forests import AT_S, HOUR_S, WEEK_S, account, cluster, hosts, pending, run

from gpuledger.policy.cycle import AccountState, Action, Cycle, PolicyConfig, RunningRun, run_cycle

CONFIG = PolicyConfig()
HOSTS = hosts(*[8] * 12)
GPUS = 96


def full(*owners: str, klass: str = "allocated") -> list[RunningRun]:
    """A run of 8 GPUs on every host, past its protection, of the owners in turn."""
    return [
        run(owners[n % len(owners)], gpus=8, name=f"run{n:02}", hosts={f"h{n}": 8}, klass=klass)
        for n in range(len(HOSTS))
    ]


def victims(result: Cycle) -> list[str]:
    return [decision.workload for decision in result.decisions if decision.action is Action.PREEMPT]


def young(share: int) -> AccountState:
    """An account one minute old: the time before counts at par, as if it had used what it was entitled to."""
    past = 9600 * (WEEK_S - 60)
    return AccountState(
        account="new", share=share, used_gpu_ms=past, entitled_gpu_ms=past + 9600 * 60, demand_milli=4000
    )


def test_an_account_one_minute_old_starts_a_debug_gang_at_once_where_unallocated_work_runs() -> None:
    running = full("old")
    running[5] = run("old", gpus=8, name="free-of-charge", hosts={"h5": 8}, klass="unallocated")
    state = cluster([account("old", share=90, used=GPUS * 150), young(10)], [pending("debug", "new", gpus=4)],
                    running, on=HOSTS)  # fmt: skip
    result = run_cycle(state, CONFIG)
    assert victims(result) == ["free-of-charge"]
    assert [(kept.workload, kept.at_s) for kept in result.reservations] == [("debug", AT_S + CONFIG.grace_s)]


def test_an_account_one_minute_old_waits_a_notice_at_most_where_only_runs_past_their_protection_are() -> None:
    state = cluster([account("old", share=90, used=GPUS * 150), young(10)], [pending("debug", "new", gpus=4)],
                    full("old"), on=HOSTS)  # fmt: skip
    result = run_cycle(state, CONFIG)
    assert victims(result) == []
    assert [(kept.kind.value, kept.at_s) for kept in result.reservations] == [
        ("bound", AT_S + CONFIG.notice_s)
    ]


def test_an_account_idle_for_a_week_catches_up_without_pushing_the_other_below_its_floor() -> None:
    queue = [pending(f"w{n:02}", "idle", gpus=8) for n in range(12)]
    accounts = [account("idle", demand=GPUS), account("busy", used=GPUS * 168, demand=GPUS)]
    result = run_cycle(cluster(accounts, queue, full("busy"), on=HOSTS), CONFIG)
    # busy is entitled to 48 GPUs and keeps half of them: 3 of its 12 hosts.
    assert len(victims(result)) == 9
    assert [kept.kind.value for kept in result.reservations] == ["promise"] * 9 + ["bound"]
    again = run_cycle(
        cluster(accounts, queue, full("busy"), on=HOSTS, reservations=result.reservations), CONFIG
    )
    assert victims(again) == victims(result)


def test_a_project_over_its_share_takes_nothing_from_a_better_behaved_program() -> None:
    """Project q/z is further over its share than p/x, but its program used less than p: programs are compared."""
    accounts = [
        account("p/x", used=GPUS * 84, demand=8),
        account("p/y"),
        account("q/z", used=GPUS * 60, demand=GPUS),
        account("q/u"),
        account("q/v"),
        account("q/w"),
    ]
    state = cluster(accounts, [pending("w", "p/x", gpus=8)], full("q/z"), on=HOSTS)
    result = run_cycle(state, CONFIG)
    ratio = {row.account: Fraction(row.ratio_num, row.ratio_den) for row in result.allocations}
    assert ratio["q"] < ratio["p"] < 1 < ratio["p/x"] < ratio["q/z"]
    assert victims(result) == []


def test_within_a_program_that_exceeds_the_worst_project_gives_first() -> None:
    accounts = [
        account("p", demand=8),
        account("q/mild", used=GPUS * 42, demand=GPUS),
        account("q/worst", used=GPUS * 84, demand=GPUS),
    ]
    state = cluster(accounts, [pending("w", "p", gpus=8)], full("q/mild", "q/worst"), on=HOSTS)
    (victim,) = victims(run_cycle(state, CONFIG))
    assert int(victim.removeprefix("run")) % 2 == 1


def test_a_share_of_which_all_is_protected_waits_for_the_earliest_end_of_protection() -> None:
    running = [
        run(
            "busy",
            gpus=8,
            name=f"run{n:02}",
            hosts={f"h{n}": 8},
            protected_until_s=AT_S + (9 - n % 8) * HOUR_S // 2,
        )
        for n in range(len(HOSTS))
    ]
    accounts = [account("idle", demand=GPUS), account("busy", used=GPUS * 168)]
    state = cluster(accounts, [pending("w", "idle", gpus=8)], running, on=HOSTS)
    (kept,) = run_cycle(state, CONFIG).reservations
    assert (dict(kept.placement), kept.at_s) == ({"h7": 8000}, AT_S + HOUR_S)
