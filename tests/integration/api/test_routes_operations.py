"""Health, readiness, metrics, and pages about errors."""

import pytest
from fastapi.testclient import TestClient

from gpuledger.api.problems import KINDS


def test_the_process_is_alive_and_ready(api: TestClient) -> None:
    assert api.get("/healthz").json()["status"] == "ok"
    assert api.get("/readyz").json()["status"] == "ready"


def test_metrics_say_where_the_books_stand(api: TestClient) -> None:
    text = api.get("/metrics").text
    assert 'gpuledger_journal_rows{book="alpha"} 1200.0' in text
    assert 'gpuledger_book_head_age_seconds{book="alpha"} 21600.0' in text
    assert 'gpuledger_book_writers_waiting{book="alpha"} 0.0' in text
    assert 'gpuledger_book_collisions_total{book="alpha"} 0.0' in text
    assert "gpuledger_dead_letters 1.0" in text
    assert "gpuledger_database_up 1.0" in text
    assert "gpuledger_build_info{" in text


def test_requests_are_counted_under_the_route_never_the_path(api: TestClient) -> None:
    api.get("/v1/balances/alpha/robotics")
    api.get("/v1/nowhere")
    text = api.get("/metrics").text
    assert 'route="/v1/balances/{account}",status="200"' in text
    assert 'route="unmatched",status="404"' in text
    assert "robotics" not in text
    assert "nowhere" not in text


def test_metrics_say_how_far_and_how_late_each_stream_is(api: TestClient) -> None:
    text = api.get("/metrics").text
    of = 'consumer="ledger",partition="0",stream="gpu.scheduler.events"'
    for name, value in (
        ("position", 1200),
        ("records_total", 1200),
        ("takeovers_total", 3),
        ("waiting_records", 34),
        ("newest_record_age_seconds", 21600),
    ):
        assert f"gpuledger_stream_{name}{{{of}}} {float(value)}" in text


def test_metrics_say_who_leads_and_what_the_newest_cycle_came_to(api: TestClient) -> None:
    text = api.get("/metrics").text
    for name, labels, value in (
        ("leader", "", 0),
        ("cycles_total", "", 1),
        ("cycle_age_seconds", "", 21600),
        ("cycle_duration_seconds", "", 1.5),
        ("waiting_workloads", ',gpus="2-8"', 3),
        ("owed_gpu_seconds", "", 7),
        ("over_service_gpu_seconds", "", 5),
    ):
        assert f'gpuledger_policy_{name}{{cluster="alpha"{labels}}} {float(value)}' in text
    assert 'gpuledger_policy_orders{action="start",cluster="alpha"} 2.0' in text
    assert 'gpuledger_policy_cycle_age_seconds{cluster="beta"}' not in text


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_problem_type_opens_a_page(api: TestClient, kind: object) -> None:
    page = api.get(getattr(kind, "path"))  # noqa: B009 - the fixture's type is only known to pytest
    assert page.status_code == 200
    assert getattr(kind, "title") in page.text  # noqa: B009


def test_a_problem_nobody_knows_is_not_found(api: TestClient) -> None:
    assert api.get("/problems/nope").status_code == 404


def test_the_reference_needs_nothing_from_elsewhere(api: TestClient) -> None:
    page = api.get("/docs").text
    assert "GET /v1/layers" in page
    assert "<script" not in page
    assert "//cdn" not in page
