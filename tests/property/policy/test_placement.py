"""Gangs on hosts, against a search that tries every choice of hosts."""

from itertools import combinations
from math import ceil

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.policy.placement import HostState, Room

Host = tuple[str, int, int]
"""Model, GPUs, and milli-GPU of them that are taken."""

hosts = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from([2, 4]), st.sampled_from([0, 500, 1000, 1500, 2000])),
    max_size=6,
)
asks = st.sampled_from([250, 500, 1000, 2000, 3000, 4000, 5000, 6000, 8000, 10_000])
models = st.sampled_from([None, "a", "b"])


def room(drawn: list[Host]) -> Room:
    states = [
        HostState(host=f"h{n}", gpus_milli=gpus * 1000, gpu_model=model)
        for n, (model, gpus, _) in enumerate(drawn)
    ]
    return Room(states, [{f"h{n}": taken} for n, (_, _, taken) in enumerate(drawn) if taken])


def placements(drawn: list[Host], ask: int, model: str | None) -> list[dict[str, int]]:
    """Every way to place a gang: all of k hosts of one kind, and what is left on one more."""
    found = []
    for kind in sorted({(m, gpus) for m, gpus, _ in drawn if model in (None, m)}):
        size = kind[1] * 1000
        alike = {f"h{n}": size - taken for n, (m, gpus, taken) in enumerate(drawn) if (m, gpus) == kind}
        wholes, rest = ask // size, ask % size
        for chosen in combinations([name for name, free in alike.items() if free == size], wholes):
            base = dict.fromkeys(chosen, size)
            if not rest:
                found.append(base)
            for name in alike.keys() - base.keys() if rest else ():
                usable = alike[name] if ask % 1000 else alike[name] // 1000 * 1000
                if usable >= rest:
                    found.append(base | {name: rest})
    return found


@settings(deadline=None)
@given(hosts, asks, models)
def test_a_gang_fits_whenever_a_search_of_everything_finds_a_place(
    drawn: list[Host], ask: int, model: str | None
) -> None:
    placed, possible = room(drawn).fit(ask, model), placements(drawn, ask, model)
    assert (placed is None) == (not possible)
    if placed is not None:
        assert dict(placed) in possible
        assert len(placed) == min(map(len, (p for p in possible if kind(drawn, p) == kind(drawn, placed))))


@settings(deadline=None)
@given(hosts, asks.filter(lambda ask: ask < 4000), models)
def test_the_rest_goes_where_it_leaves_the_smallest_gap(
    drawn: list[Host], ask: int, model: str | None
) -> None:
    placed = room(drawn).fit(ask, model)
    if placed is not None and len(placed) == 1:
        (host,) = placed
        gap = {name: gpus * 1000 - taken for name, (_, gpus, taken) in named(drawn).items()}
        rivals = [p for p in placements(drawn, ask, model) if kind(drawn, p) == kind(drawn, placed)]
        assert gap[host] == min(gap[name] for p in rivals for name in p)


@settings(deadline=None)
@given(hosts, st.lists(asks, max_size=6))
def test_what_is_taken_and_given_back_leaves_no_trace(drawn: list[Host], wanted: list[int]) -> None:
    tried, untouched = room(drawn), room(drawn)
    placed = []
    for ask in wanted:
        placement = tried.fit(ask)
        if placement is not None:
            tried.take(placement)
            placed.append(placement)
    assert tried.free_milli == untouched.free_milli - sum(sum(p.values()) for p in placed)
    copied = tried.copy()
    for placement in reversed(placed):
        tried.give(placement)
    for ask in (1000, 2000, 4000, 8000):
        assert tried.fit(ask) == untouched.fit(ask)
    assert copied.free_milli == untouched.free_milli - sum(sum(p.values()) for p in placed)


@settings(deadline=None)
@given(hosts, asks, models)
def test_no_more_hosts_than_the_gang_needs(drawn: list[Host], ask: int, model: str | None) -> None:
    placed = room(drawn).fit(ask, model)
    if placed is not None:
        size = named(drawn)[next(iter(placed))][1] * 1000
        assert len(placed) == ceil(ask / size)
        assert sum(placed.values()) == ask


def named(drawn: list[Host]) -> dict[str, Host]:
    return {f"h{n}": host for n, host in enumerate(drawn)}


def kind(drawn: list[Host], placement: object) -> tuple[str, int]:
    assert isinstance(placement, dict)
    return named(drawn)[next(iter(placement))][:2]


@settings(deadline=None)
@given(hosts, st.lists(st.integers(-2000, 4000), max_size=6), asks, models)
def test_whether_a_gang_would_fit_is_what_a_room_with_other_gpus_free_says(
    drawn: list[Host], others: list[int], ask: int, model: str | None
) -> None:
    found = room(drawn)
    sizes = {f"h{n}": gpus * 1000 for n, (_, gpus, _) in enumerate(drawn)}
    changed = {host: min(milli, size) for (host, size), milli in zip(sizes.items(), others, strict=False)}
    as_it_is = {f"h{n}": gpus * 1000 - taken for n, (_, gpus, taken) in enumerate(drawn)}
    fits = found.with_free({**as_it_is, **changed}).fit(ask, model) is not None
    assert found.would_fit(changed, ask, model) is fits
