"""What stood earlier is held against what followed then, batch by batch."""

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.ledger.earlier import Unlike, Version, unlike


def test_one_version_a_batch_and_one_a_fact_say_the_same() -> None:
    followed = [Version("open", 2, 3), Version("ended", 3, 7), Version("corrected", 7, None)]
    stored = [Version("ended", 3, 7), Version("corrected", 7, None)]
    assert list(unlike(stored, followed, starts=[2, 4, 7])) == []


def test_a_version_that_is_gone_is_missing_at_the_end_of_its_batch() -> None:
    followed = [Version("open", 2, 3), Version("ended", 3, 7), Version("corrected", 7, None)]
    stored = [Version("corrected", 7, None)]
    assert list(unlike(stored, followed, starts=[2, 6, 7])) == [Unlike(5, is_missing=True, text="ended")]


def test_a_version_that_says_something_else_is_told_once_with_what_it_should_say() -> None:
    followed = [Version("a", 2, 9), Version("b", 9, None), Version("x", 4, None)]
    stored = [Version("forged", 2, 9), Version("b", 9, None), Version("x", 4, None)]
    assert list(unlike(stored, followed, starts=[2, 4, 9])) == [
        Unlike(2, is_missing=True, text="a"),
        Unlike(2, is_missing=False, text="forged"),
    ]


def test_a_version_that_stands_twice_is_one_too_many() -> None:
    followed = [Version("a", 2, 9), Version("b", 9, None)]
    stored = [*followed, Version("a", 2, 9)]
    assert list(unlike(stored, followed, starts=[])) == [Unlike(2, is_missing=False, text="a")]


def test_what_is_in_force_now_but_began_later_than_it_says_is_missing_before() -> None:
    assert list(unlike([Version("a", 8, None)], [Version("a", 2, None)], starts=[2, 3])) == [
        Unlike(2, is_missing=True, text="a")
    ]


def test_without_a_gap_between_batches_only_changes_are_looked_at() -> None:
    followed = [Version("open", 2, 3), Version("ended", 3, None)]
    assert list(unlike([Version("ended", 3, None)], followed, starts=[])) == []


@given(
    changes=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12),
    ends=st.sets(st.integers(1, 12)),
    spoilt=st.none() | st.tuples(st.integers(0, 30), st.sampled_from(["gone", "other", "later", "sooner"])),
)
def test_what_is_seen_after_any_batch_decides(
    changes: list[tuple[str, bool]], ends: set[int], spoilt: tuple[int, str] | None
) -> None:
    """Against a walk over the rows: what is there after each, and what is kept of it where a batch ends."""
    after: list[set[str]] = [set()]
    for text, is_there in changes:
        after.append(after[-1] | {text} if is_there else after[-1] - {text})
    last = len(changes)
    ends = {end for end in ends if end <= last} | {last}
    stored = _versions({row: after[row] for row in ends})
    if spoilt is not None and stored:
        place, how = spoilt[0] % len(stored), spoilt[1]
        old = stored.pop(place)
        if how == "other":
            stored.append(old._replace(text="z"))
        elif how != "gone":
            stored.append(old._replace(since=old.since + (1 if how == "later" else -1)))
    followed = _versions(dict(enumerate(after)))
    found = list(unlike(stored, followed, starts=sorted({1} | {end + 1 for end in ends})))
    newest = max((seq for v in (*stored, *followed) for seq in v[1:] if seq is not None), default=0)
    seen_unlike = any(_at(stored, row) != sorted(after[row]) for row in ends if row < newest)
    if seen_unlike:
        assert found
    if spoilt is None:
        assert found == []
    for unlike_ in found:
        truly, stands = (
            texts.count(unlike_.text) for texts in (sorted(after[unlike_.seq]), _at(stored, unlike_.seq))
        )
        assert (truly > stands) if unlike_.is_missing else (stands > truly)


def _versions(after: dict[int, set[str]]) -> list[Version]:
    """Return what stood, from what was there after each of some rows."""
    found, current = [], dict[str, int]()
    for row, texts in sorted(after.items()):
        found += [Version(text, since, row) for text, since in current.items() if text not in texts]
        current = {text: current.get(text, row) for text in texts}
    return found + [Version(text, since, None) for text, since in current.items()]


def _at(versions: list[Version], row: int) -> list[str]:
    return sorted(v.text for v in versions if v.since <= row and (v.until is None or v.until > row))
