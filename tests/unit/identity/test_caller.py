"""How far a caller reaches: against the parts of a path, compared one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.identity.caller import Caller, Scope, check_scope
from gpuledger.identity.roles import Right, Role
from gpuledger.kernel.errors import Forbidden, Refused

parts = st.text(alphabet="ab.~-", min_size=1, max_size=3)
paths = st.lists(parts, min_size=1, max_size=4).map("/".join)


def caller(role: Role = Role.MANAGER, subtree: str | None = "org/vision", *clusters: str) -> Caller:
    return Caller("lin", role, Scope(subtree, clusters))


@given(subtree=paths, account=paths)
def test_a_scope_holds_what_begins_with_the_same_parts(subtree: str, account: str) -> None:
    above, below = subtree.split("/"), account.split("/")
    scope = Scope(subtree)
    assert scope.holds(account) == (below[: len(above)] == above)
    is_own = below[len(above) : len(above) + 1] == ["~own"]
    assert scope.is_below(account) == (
        below[: len(above)] == above and len(below) > len(above) and not is_own
    )


@pytest.mark.parametrize("account", ["org/vision/~own", "org/vision/~own/~own", "org/vision/~own/x"])
def test_what_a_node_owns_itself_is_seen_and_does_not_lie_below_it(account: str) -> None:
    caller().require_account(account)
    with pytest.raises(Forbidden):
        caller().require_below(account)
    caller(Role.MANAGER, "org").require_below(account)


@given(account=paths)
def test_no_subtree_holds_everything(account: str) -> None:
    assert Scope().holds(account)
    assert Scope().is_below(account)


@pytest.mark.parametrize(
    "account",
    [
        "org",
        "org/visionary",
        "ORG/vision",
        "org/vision/../speech/x",
        "/org/vision",
        "org//vision",
        "org/speech",
        "",
    ],
)
def test_what_only_looks_like_it_is_outside_or_no_account(account: str) -> None:
    found = caller()
    if (
        account == "org/vision/../speech/x"
    ):  # below it by its parts; there is no such account, for none is resolved
        found.require_account(account)
        return
    with pytest.raises(Forbidden):
        found.require_account(account)


def test_without_an_account_the_own_subtree_is_meant() -> None:
    assert caller().account(None) == "org/vision"
    assert caller().account("org/vision/video") == "org/vision/video"
    assert caller(Role.ADMIN, None).account(None) is None
    with pytest.raises(Forbidden, match="org/speech"):
        caller().account("org/speech")


def test_nobody_grants_to_themselves() -> None:
    caller().require_below("org/vision/video")
    with pytest.raises(Forbidden, match="below org/vision"):
        caller().require_below("org/vision")


def test_clusters() -> None:
    one, two, every = (
        caller(Role.VIEWER, None, "a"),
        caller(Role.VIEWER, None, "a", "b"),
        caller(Role.ADMIN, None),
    )
    assert (one.cluster(None), one.cluster("a"), two.cluster("b"), every.cluster(None)) == (
        "a",
        "a",
        "b",
        None,
    )
    assert every.cluster("z") == "z"
    assert (one.reaches("a"), one.reaches("b"), every.reaches("b")) == (True, False, True)
    with pytest.raises(Forbidden, match="'b'"):
        one.cluster("b")
    with pytest.raises(Refused, match="2 clusters") as asked:
        two.cluster(None)
    assert not isinstance(asked.value, Forbidden)


def test_rows_are_cut_to_the_subtree() -> None:
    rows = [
        {"account": "org"},
        {"account": "org/vision"},
        {"account": "org/vision/~own"},
        {"account": "org/v"},
    ]
    assert caller().visible(rows) == rows[1:3]
    assert caller(Role.ADMIN, None).visible(rows) == rows


def test_a_right_that_is_missing_names_who_has_it() -> None:
    caller().require(Right.CHANGE_BUDGETS)
    with pytest.raises(Forbidden, match="a manager, whom admit") as refused:
        caller().require(Right.ADMIT)
    assert "admin, scheduler" in refused.value.hint


@pytest.mark.parametrize(
    ("role", "scope", "says"),
    [
        (Role.MANAGER, Scope(), "needs a subtree"),
        (Role.RESEARCHER, Scope(clusters=("a",)), "needs a subtree"),
        (Role.SCHEDULER, Scope(), "needs a cluster"),
        (Role.SCHEDULER, Scope("org", ("a",)), "has no subtree"),
        (Role.VIEWER, Scope("Org"), "not well formed"),
    ],
)
def test_scopes_that_a_role_is_not_safe_with(role: Role, scope: Scope, says: str) -> None:
    with pytest.raises(Refused, match=says):
        check_scope(role, scope)


def test_scopes_that_it_is() -> None:
    check_scope(Role.ADMIN, Scope())
    check_scope(Role.SCHEDULER, Scope(clusters=("a", "b")))
    check_scope(Role.LEAD, Scope("org/vision", ("a",)))
