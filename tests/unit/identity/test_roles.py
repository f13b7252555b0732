"""Who may do what: the table, said once more in full."""

from gpuledger.identity.roles import NEEDS_CLUSTER, NEEDS_SUBTREE, RIGHTS, Right, Role

READS = {"read-clusters", "read-accounts"}

PROPOSES = {"read-proposals", "propose"}

TOLD = {
    "admin": READS
    | PROPOSES
    | {"read-work", "read-orders", "read-books", "read-tokens", "post-events", "admit", "change-budgets"},
    "manager": READS | PROPOSES | {"read-work", "change-budgets"},
    "lead": READS | PROPOSES | {"read-work", "change-budgets"},
    "researcher": READS | PROPOSES | {"read-work"},
    "scheduler": READS | {"read-work", "read-orders", "post-events", "admit"},
    "auditor": READS | {"read-work", "read-proposals", "read-orders", "read-books"},
    "viewer": READS,
}


def test_each_role_has_what_the_page_says() -> None:
    assert {role.value: {right.value for right in rights} for role, rights in RIGHTS.items()} == TOLD


def test_an_admin_alone_may_do_everything_and_an_auditor_changes_nothing() -> None:
    assert [role for role, rights in RIGHTS.items() if rights == set(Right)] == [Role.ADMIN]
    changes = {Right.POST_EVENTS, Right.ADMIT, Right.CHANGE_BUDGETS}
    for role in (Role.AUDITOR, Role.VIEWER, Role.RESEARCHER):
        assert not RIGHTS[role] & changes
    assert not any(Right.PROPOSE in RIGHTS[role] for role in (Role.AUDITOR, Role.VIEWER, Role.SCHEDULER))


def test_whoever_changes_something_reaches_a_part_only_unless_an_admin() -> None:
    changes = {Right.POST_EVENTS, Right.ADMIT, Right.CHANGE_BUDGETS}
    changing = {role for role, rights in RIGHTS.items() if rights & changes} - {Role.ADMIN}
    assert changing <= NEEDS_SUBTREE | NEEDS_CLUSTER
