from gpuledger.sources.kubernetes.seats import Layout, Seat, Seats


def test_a_run_is_somewhere_once_its_pods_add_up_to_it() -> None:
    seats = Seats()
    seats.take("a", Seat("n2", 4000, 10))
    assert seats.layout(8000, 0) is None
    seats.take("b", Seat("n1", 4000, 20))
    assert seats.layout(8000, 0) == Layout(["n1", "n2"], None, 20)
    assert seats.layout(8000, 0) is None, "no news"


def test_hosts_that_do_not_give_as_much_are_told_apart() -> None:
    seats = Seats()
    for uid, host in (("a", "n1"), ("b", "n1"), ("c", "n2")):
        seats.take(uid, Seat(host, 1000, 5))
    assert seats.layout(3000, 30) == Layout(["n1", "n2"], {"n1": 2000, "n2": 1000}, 30)


def test_a_pod_that_leaves_or_holds_nothing_is_nowhere() -> None:
    seats = Seats()
    seats.take("a", Seat("n1", 1000, 5))
    seats.take("cpu", Seat("n9", 0, 5))
    seats.take("unbound", Seat("", 1000, 5))
    assert seats.layout(1000, 0) == Layout(["n1"], None, 5)
    seats.leave("a")
    seats.leave("never seen")
    assert seats.layout(0, 0) is None


def test_what_was_told_is_told_again_after_the_run_was_told_to_be_nowhere() -> None:
    seats = Seats()
    seats.take("a", Seat("n1", 1000, 5))
    assert seats.layout(1000, 0) is not None
    seats.forget()
    assert seats.layout(1000, 40) == Layout(["n1"], None, 40)
