"""Errors are told to people in lines and to programs as JSON, with their exit status."""

import json

import pytest

from gpuledger.cli.failure import report, report_usage
from gpuledger.kernel.errors import Corrupt, NotFound, Refused


def test_people_read_the_message_and_the_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(NotFound("no such thing", hint="look there"), as_json=False) == 4
    assert capsys.readouterr() == ("", "gpuledger: no such thing\n  hint: look there\n")


def test_an_error_without_a_hint_has_no_empty_line(capsys: pytest.CaptureFixture[str]) -> None:
    report(Refused("wrong"), as_json=False)
    assert capsys.readouterr().err == "gpuledger: wrong\n"


def test_programs_read_json(capsys: pytest.CaptureFixture[str]) -> None:
    report(Corrupt('a "quoted"\nline', hint="stop"), as_json=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert json.loads(err) == {"error": 'a "quoted"\nline', "hint": "stop", "exit": 1}


class _Fault:
    exit_code = 2

    def format_message(self) -> str:
        return "no such option"

    def show(self) -> None:
        print("usage")


def test_a_usage_fault_is_shown_or_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_usage(_Fault(), as_json=False) == 2
    assert capsys.readouterr() == ("usage\n", "")
    assert report_usage(_Fault(), as_json=True) == 2
    assert json.loads(capsys.readouterr().err)["error"] == "no such option"
