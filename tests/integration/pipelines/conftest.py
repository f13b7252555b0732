import pytest
from tests.integration.pipelines.rows import Database


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", database_url)
    return Database(database_url)
