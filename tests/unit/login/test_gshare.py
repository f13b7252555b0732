"""``gshare`` at the terminal."""

import json
from typing import Any

import pytest
from tests.unit.login import scripted

from gpuledger.login.gshare import main

ANSWERS: dict[str, Any] = {
    "/v1/clusters": scripted.clusters("alpha"),
    "/v1/accounts": {
        "accounts": [scripted.account("org", 1), scripted.account("org/a", 3), scripted.account("org/b", 1)],
        "next": None,
        "as_of": scripted.AS_OF,
    },
    "/v1/allocations/current": {
        "cluster": "alpha", "cursor": 7, "cycle": "c1", "supply_gpus": 16, "decisions": [], "as_of": scripted.AS_OF,
        "allocations": [
            scripted.allocation("org", 1_000_000, 100, 200, "0.500000"),
            scripted.allocation("org/a", 750_000, 90, 150, "0.600000"),
            scripted.allocation("org/b", 250_000, 10, 50, "0.200000"),
        ],
    },
    "/v1/usage": lambda request: scripted.usage(scripted.used(f"who uses {request.url.params['account']}", 2)),
}  # fmt: skip


def test_people_see_a_tree(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    scripted.answer_with(monkeypatch, ANSWERS)
    assert main([]) == 0
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == [
        "Account",
        "User",
        "RawShares",
        "NormShares",
        "RawUsage",
        "EffectvUsage",
        "FairShare",
    ]
    assert [row.split() for row in rows] == [
        ["org", "1", "1.000000", "360000", "1.000000"],
        ["a", "3", "0.750000", "324000", "0.900000", "0.500000"],
        ["b", "1", "0.250000", "36000", "0.100000", "1.000000"],
    ]
    assert rows[1].startswith(" a")


def test_programs_get_whole_paths(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.answer_with(monkeypatch, ANSWERS)
    assert main(["-nP", "-A", "org/b", "-o", "account,fairshare,levelfs"]) == 0
    assert capsys.readouterr().out == "org/b|1.000000|5.000000\n"


def test_people_of_leaves_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen = scripted.answer_with(monkeypatch, ANSWERS)
    assert main(["-U", "-nP", "-o", "Account,User,RawShares,RawUsage"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "org/a|who uses org/a|parent|7200",
        "org/b|who uses org/b|parent|7200",
    ]
    windows = {(r.url.params["from"], r.url.params["to"]) for r in seen if r.url.path == "/v1/usage"}
    assert windows == {("2026-12-01T09:00:00Z", "2026-12-08T09:00:00Z")}


def test_json_is_exact(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    scripted.answer_with(monkeypatch, ANSWERS)
    assert main(["--json", "-A", "org/a"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["cluster"], document["cycle"]) == ("alpha", "c1")
    (row,) = document["shares"]
    assert row["used_gpu_ms"] == 90 * scripted.HOUR
    assert (row["raw_shares"], row["norm_shares"], row["ratio"]) == (3, "0.750000", "0.600000")


def test_several_clusters_have_to_be_told_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.answer_with(monkeypatch, {**ANSWERS, "/v1/clusters": scripted.clusters("alpha", "beta")})
    assert main([]) == 2
    assert capsys.readouterr().err == "gshare: there are 2 clusters\n  hint: name one with -M: alpha, beta\n"
    assert main(["-M", "alpha"]) == 0


def test_fields_are_explained_without_asking(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not scripted.answer_with(monkeypatch, {})
    assert main(["-e"]) == 0
    assert "FairShare" in capsys.readouterr().out
