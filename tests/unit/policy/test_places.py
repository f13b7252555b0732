"""Where runs are taken to be of which nobody said it."""

from tests.unit.policy.forests import hosts, run

from gpuledger.policy.places import place_runs


def test_runs_whose_hosts_nobody_said_are_where_they_would_fit_in_the_order_of_their_ids() -> None:
    runs = [
        run("a", gpus=4, name="c"),
        run("a", gpus=8, name="b"),
        run("a", gpus=7, name="d"),
        run("a", gpus=2, name="a", hosts={"h0": 2}),
    ]
    placed = {found.workload: where for found, where in place_runs(runs, hosts(8, 8, 8)).items()}
    assert placed == {"a": {"h0": 2000}, "b": {"h1": 8000}, "c": {"h0": 4000}, "d": {"h2": 7000}}
