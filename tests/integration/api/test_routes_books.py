"""What there is to ask for."""

from fastapi.testclient import TestClient


def test_clusters_say_which_window_can_be_asked_for(api: TestClient) -> None:
    found = {c["cluster"]: c for c in api.get("/v1/clusters").json()["clusters"]}
    assert list(found) == ["alpha", "beta", "gamma"]
    assert found["alpha"]["rolled_up_from"] == "2026-01-10T00:00:00Z"
    assert found["alpha"]["rolled_up_to"] == "2026-03-11T00:00:00Z"
    assert found["alpha"]["periods"] == ["2026-01", "2026-02"]
    assert found["gamma"]["rolled_up_from"] is None
    assert "gpuledger rollup" in found["gamma"]["reason"]


def test_books_have_heads_and_dead_letters_are_counted(api: TestClient) -> None:
    answer = api.get("/v1/books").json()
    assert [(b["book"], b["rows"]) for b in answer["books"]] == [
        ("alpha", 1200),
        ("beta", 40),
        ("gamma", 2),
        ("~org", 9),
    ]
    assert answer["books"][0]["head"] == "05" * 32
    assert answer["dead_letters"] == 1
