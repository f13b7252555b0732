"""The OpenAPI document describes our errors, and keeps the nulls of its examples."""

from gpuledger.api.app import create_app
from gpuledger.api.examples import EXAMPLES
from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import SystemClock


def test_examples_keep_their_nulls_and_errors_are_ours() -> None:
    app = create_app(make_engine("postgresql+psycopg://nobody@127.0.0.1:1/nothing"), SystemClock())
    document = app.openapi()
    usage = document["paths"]["/v1/usage"]["get"]["responses"]
    assert usage["200"]["content"]["application/json"]["example"]["rows"][0]["coverage"] is None
    assert usage["422"]["content"].keys() == {"application/problem+json"}
    assert "HTTPValidationError" not in document["components"]["schemas"]
    assert app.openapi() is document


def test_there_is_no_example_without_an_operation() -> None:
    app = create_app(make_engine("postgresql+psycopg://nobody@127.0.0.1:1/nothing"), SystemClock())
    paths = app.openapi()["paths"]
    # Files have columns, and no keys that an example would show.
    operations = [op for path in paths if "/exports/" not in path for op in paths[path].values()]
    assert EXAMPLES.keys() == {op["operationId"] for op in operations} - {"getMetrics"}
