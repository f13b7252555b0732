"""Every question of the client asks what the API's document has, and nothing else."""

import inspect

import pytest

from gpuledger.api.app import create_app
from gpuledger.client import changes, plans, proposing, questions
from gpuledger.client.asking import Ask, Asked
from gpuledger.client.ledger import Ledger
from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import SystemClock

DESCRIBED = [
    function
    for module in (questions, changes, proposing)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__ and not name.startswith("_")
]
SAMPLE = {
    "order": changes.Order("a/b", 1, cluster="alpha", period="2026-12", reason="why"),
    "events": [b"{}"],
    "tree": plans.Tree(supply_milli=1000, accounts=()),
    "wish": plans.Wish(reason="why"),
    "step": plans.Step.APPROVE,
    "by": "account",
    "period": "2026-12",
}


def _asked(function: object) -> Ask[object]:
    assert callable(function)
    given = {
        name: SAMPLE.get(name, "x")
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    ask = function(**given)
    assert isinstance(ask, Ask)
    return ask


@pytest.fixture(scope="module")
def paths() -> dict[str, dict[str, object]]:
    app = create_app(make_engine("postgresql+psycopg://nobody@127.0.0.1:1/nothing"), SystemClock())
    found: dict[str, dict[str, object]] = app.openapi()["paths"]
    return found


@pytest.mark.parametrize("function", DESCRIBED, ids=lambda function: str(function.__name__))
def test_what_is_described_is_offered_and_exists(
    function: object, paths: dict[str, dict[str, object]]
) -> None:
    ask = _asked(function)
    offered = {method for method in vars(Ledger).values() if isinstance(method, Asked)}
    assert any(inspect.unwrap(method) is function for method in offered)
    matching = [path for path in paths if _matches(path, ask.path)]
    assert matching
    assert any(ask.method.lower() in paths[path] for path in matching)


def _matches(template: str, path: str) -> bool:
    wanted, given = template.split("/"), path.split("/")
    return len(wanted) == len(given) and all(
        w.startswith("{") or w == g for w, g in zip(wanted, given, strict=True)
    )
