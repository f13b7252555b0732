"""A refusal is one line of JSON that says who, from where, what and why."""

import datetime as dt
import json
import logging

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient

from gpuledger.api import refusals
from gpuledger.identity.caller import Caller
from gpuledger.identity.roles import Role


@pytest.mark.parametrize("caller", [None, Caller("lin", Role.LEAD, token="0123456789ab")])
def test_one_line_each(caplog: pytest.LogCaptureFixture, caller: Caller | None) -> None:
    app = FastAPI()

    @app.get("/it")
    def it(request: Request) -> None:
        if caller is not None:
            request.state.caller = caller
        refusals.log(request, 'because\n"so"')

    with caplog.at_level(logging.WARNING, logger=refusals.LOG.name), TestClient(app) as client:
        client.get("/it?token=secret", headers={"Authorization": "Bearer secret"})
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert "secret" not in record.getMessage()
    told = json.loads(record.getMessage())
    assert dt.datetime.fromisoformat(told.pop("at")).tzinfo is not None
    assert told == {
        "event": "refused", "method": "GET", "path": "/it", "from": "testclient", "why": 'because\n"so"',
        "name": caller and "lin", "role": caller and "lead", "token": caller and "0123456789ab",
    }  # fmt: skip
