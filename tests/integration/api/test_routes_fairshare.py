"""A division over HTTP is the one of the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from gpuledger.api.examples import EXAMPLES
from gpuledger.cli.app import app


def divided(api: TestClient, supply: int, accounts: dict[str, dict[str, int]]) -> dict[str, Any]:
    body = {
        "supply_milli": supply,
        "accounts": [{"account": name, **node} for name, node in accounts.items()],
    }
    answer = api.post("/v1/fairshare", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


LESSON = {"a": 40, "b": 30, "c": 20, "d": 10}


@pytest.mark.parametrize(
    ("shares", "issued"),
    [
        (LESSON, ["40", "30", "20", "10"]),
        ({**LESSON, "a": 0}, ["0", "50", "33", "17"]),
        (dict.fromkeys("abcd", 1), ["25", "25", "25", "25"]),
        (dict.fromkeys("abcd", 0), ["0", "0", "0", "0"]),
    ],
)
def test_the_four_teams(api: TestClient, shares: dict[str, int], issued: list[str]) -> None:
    accounts = {name: {"share": share, "demand_milli": 60_000} for name, share in shares.items()}
    found = divided(api, 100_000, accounts)
    assert found.keys() == EXAMPLES["divide"].keys()
    assert [found["issued"][name] for name in "abcd"] == issued


def test_it_is_that_of_the_command_line(api: TestClient, tmp_path: Path) -> None:
    accounts = {
        "org/a": {"share": 3, "demand_milli": 40_000, "used_gpu_ms": 36_000_000},
        "org/b": {"share": 1, "demand_milli": 7_500, "limit_milli": 5_000},
        "lab": {"share": 1, "demand_milli": 90_000},
    }
    written = {
        name: {
            "share": node["share"],
            "demand": node["demand_milli"] / 1000,
            **({"limit": node["limit_milli"] / 1000} if "limit_milli" in node else {}),
            **({"used_gpu_hours": node["used_gpu_ms"] / 3_600_000} if "used_gpu_ms" in node else {}),
        }
        for name, node in accounts.items()
    }
    file = tmp_path / "tree.yaml"
    file.write_text(yaml.safe_dump({"supply": 64, "accounts": written}))
    ran = CliRunner().invoke(app, ["fairshare", str(file), "--json"])
    assert divided(api, 64_000, accounts) == json.loads(ran.stdout)


@pytest.mark.parametrize(
    "accounts",
    [
        [], [{"account": "a"}, {"account": "a"}], [{"account": "A b"}], [{"account": "a", "share": -1}],
        [{"account": "a", "demand_milli": 1.5}], [{"account": "a"}] * 501, [{"account": "a", "more": 1}],
    ],
)  # fmt: skip
def test_what_is_no_tree_is_refused(api: TestClient, accounts: list[dict[str, object]]) -> None:
    answer = api.post("/v1/fairshare", json={"supply_milli": 1000, "accounts": accounts})
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(
    ("accounts", "said"),
    [
        ([f"x{n}/" + "/".join("a" * 490) for n in range(60)], "deeper than 32"),
        (["/".join("a" * 33)], "deeper than 32"),
        ([f"x{n}/" + "/".join("abcdefghij") for n in range(200)], "more than 2000 nodes"),
    ],
    ids=["far down", "one further", "many"],
)
def test_few_names_do_not_make_a_tree_that_takes_long(
    api: TestClient, accounts: list[str], said: str
) -> None:
    body = {"supply_milli": 1000, "accounts": [{"account": name} for name in accounts]}
    answer = api.post("/v1/fairshare", json=body)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]


def test_a_tree_as_deep_as_it_may_be_is_divided(api: TestClient) -> None:
    deepest = "/".join("a" * 32)
    assert divided(api, 1000, {deepest: {"demand_milli": 1000}})["issued"][deepest] == "1"
