"""``token``: shown once, listed without its secret, replaced and ended."""

from typing import Any

from tests.commands.fixtures import Ledger

SCOPED = ("--role", "scheduler", "--cluster", "alpha", "--cluster", "beta", "--json")


def listed(ledger: Ledger) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ledger("token", "list", "--json").json["tokens"]
    return found


def test_a_token_is_shown_once(ledger: Ledger) -> None:
    made = ledger("token", "create", "slurm", *SCOPED).json
    text = made.pop("token")
    assert text.startswith(f"gpl_{made['id']}_")
    assert (made["role"], made["clusters"], made["subtree"]) == ("scheduler", ["alpha", "beta"], None)
    assert listed(ledger) == [{**made, "good": True}]
    plain = ledger("token", "create", "boss", "--role", "admin", "--days", "1")
    assert plain.out.strip().startswith("gpl_")
    assert "it is not shown again" in plain.err
    secrets = [shown.rpartition("_")[2] for shown in (text, plain.out.strip())]
    table = ledger("token", "list")
    assert "every account" in table.out
    assert not any(secret in table.out + plain.err for secret in secrets)


def test_a_new_one_beside_the_old_one_and_an_end(ledger: Ledger) -> None:
    old = ledger("token", "create", "slurm", *SCOPED).json
    new = ledger("token", "rotate", old["id"], "--overlap-hours", "0", "--json").json
    assert (new["replaces"], new["name"], new["clusters"]) == (old["id"], "slurm", ["alpha", "beta"])
    assert {token["id"]: token["good"] for token in listed(ledger)} == {old["id"]: False, new["id"]: True}
    assert ledger("token", "revoke", new["id"], "--yes").out.strip() == f"{new['id']} is revoked"
    assert "revoked" in ledger("token", "list").out


def test_what_cannot_be_is_refused(ledger: Ledger) -> None:
    for arguments in (
        ("slurm", "--role", "scheduler"),
        ("lin", "--role", "manager"),
        ("lin", "--role", "boss"),
        ("", "--role", "admin"),
    ):
        refused = ledger("token", "create", *arguments)
        assert (refused.status, refused.out) == (2, "")
    assert ledger("token", "revoke", "nobody", "--yes").status == 4
    assert ledger("token", "rotate", "nobody").status == 4
    assert listed(ledger) == []
