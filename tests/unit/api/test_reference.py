"""The reference is made from the document and escapes what it shows."""

from gpuledger.api import reference

DOCUMENT = {
    "info": {"title": "t", "version": "1", "description": "<d>"},
    "paths": {
        "/v1/x/{account}": {
            "get": {
                "operationId": "getX",
                "summary": "X",
                "parameters": [
                    {"name": "account", "in": "path", "required": True, "schema": {"examples": ["a/b"]}},
                    {"name": "cluster", "in": "query", "required": True, "description": "<c>", "schema": {}},
                ],
                "responses": {"200": {"content": {"application/json": {"example": {"a": None}}}}},
            }
        },
        "/plain": {"get": {"operationId": "getPlain", "summary": "P", "responses": {"200": {}}}},
    },
}


def test_every_operation_has_a_call_and_an_answer() -> None:
    page = reference.page(DOCUMENT, "http://127.0.0.1:8080")
    assert (
        "curl &#x27;http://127.0.0.1:8080/v1/x/a/b?cluster=…&#x27;" in page or "/v1/x/a/b?cluster=…" in page
    )
    assert "&quot;a&quot;: null" in page
    assert 'id="getPlain"' in page


def test_what_it_shows_is_escaped() -> None:
    page = reference.page(DOCUMENT, "http://x")
    assert "&lt;c&gt;" in page
    assert "<c>" not in page
    assert "<d>" not in page
