"""Who the API takes the caller for."""

from collections.abc import Callable

from fastapi.testclient import TestClient

from gpuledger.identity.roles import Role


def test_a_token_is_told_what_it_is(
    guarded: TestClient, shown: Callable[[Role], dict[str, str]], tokens: dict[Role, str]
) -> None:
    told = guarded.get("/v1/me", headers=shown(Role.LEAD)).json()
    assert told == {
        "name": "the lead", "role": "lead", "subtree": "org/vision", "clusters": ["alpha"],
        "rights": [
            "change-budgets", "propose", "read-accounts", "read-clusters", "read-proposals", "read-work",
        ],
        "token": tokens[Role.LEAD].split("_")[1],
    }  # fmt: skip


def test_without_one_an_open_api_says_whom_it_serves(api: TestClient) -> None:
    told = api.get("/v1/me").json()
    assert (told["name"], told["role"], told["token"]) == ("anyone", "auditor", None)
