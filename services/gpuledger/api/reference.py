"""The reference as one HTML page, made from the OpenAPI document; it loads nothing from anywhere."""

import html
import json
from typing import Any

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; overflow-wrap: anywhere; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
pre { overflow-x: auto; padding: .8rem; border: 1px solid #8885; border-radius: .4rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; }
tr > * { border-bottom: 1px solid #8885; }
"""


def page(document: dict[str, Any], base_url: str) -> str:
    """Return the page.

    Args:
        document: The OpenAPI document.
        base_url: Where this API answers, for the examples.
    """
    info = document["info"]
    sections = [
        _operation(path, method, operation, base_url)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    title = html.escape(f"{info['title']} {info['version']}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body><main>'
        f"<h1>{title}</h1><p>{html.escape(info['description'])}</p>"
        '<p>Machines read <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p>'
        f"{''.join(sections)}</main></body></html>"
    )


def _operation(path: str, method: str, operation: dict[str, Any], base_url: str) -> str:
    name = html.escape(f"{method.upper()} {path}")
    parameters = operation.get("parameters", [])
    example = _example(operation)
    answer = f"<pre>{html.escape(json.dumps(example, indent=2))}</pre>" if example is not None else ""
    return (
        f'<section id="{html.escape(operation["operationId"])}"><h2><code>{name}</code></h2>'
        f"<p>{html.escape(operation['summary'])}. {html.escape(operation.get('description', ''))}</p>"
        f"{_parameters(parameters)}"
        f"<pre>curl '{html.escape(_url(base_url, path, parameters))}'</pre>{answer}</section>"
    )


def _parameters(parameters: list[dict[str, Any]]) -> str:
    if not parameters:
        return ""
    rows = "".join(
        f"<tr><th scope='row'><code>{html.escape(p['name'])}</code></th>"
        f"<td>{'required' if p.get('required') else 'optional'}</td>"
        f"<td>{html.escape(p.get('description', ''))}</td></tr>"
        for p in parameters
    )
    return f"<table>{rows}</table>"


def _example(operation: dict[str, Any]) -> object:
    answer = operation.get("responses", {}).get("200", {})
    example: object = answer.get("content", {}).get("application/json", {}).get("example")
    return example


def _url(base_url: str, path: str, parameters: list[dict[str, Any]]) -> str:
    for parameter in parameters:
        if parameter["in"] == "path":
            examples = parameter["schema"].get("examples", ["…"])
            path = path.replace("{" + parameter["name"] + "}", str(examples[0]))
    query = "&".join(f"{p['name']}=…" for p in parameters if p["in"] == "query" and p.get("required"))
    return f"{base_url}{path}" + (f"?{query}" if query else "")
