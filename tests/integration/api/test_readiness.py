"""Ready means: the database answers, and is at the revision that this version ships."""

from fastapi.testclient import TestClient
from tests.integration.api.conftest import NOW

from gpuledger.api.app import create_app
from gpuledger.api.readiness import shipped_revision
from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import FixedClock


def test_a_migrated_database_is_ready(api: TestClient) -> None:
    assert api.get("/readyz").json() == {"status": "ready", "revision": shipped_revision()}


def test_an_unmigrated_database_is_named(database_url: str) -> None:
    engine = make_engine(database_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA warehouse CASCADE")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    with TestClient(create_app(engine, FixedClock(NOW)), raise_server_exceptions=False) as client:
        for path in ("/readyz", "/v1/clusters"):
            answer = client.get(path)
            assert answer.status_code == 503
            assert answer.json()["hint"] == "gpuledger db upgrade"
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE alembic_version")
        assert "revision none" in client.get("/readyz").json()["detail"]
    engine.dispose()
