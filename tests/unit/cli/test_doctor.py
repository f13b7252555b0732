"""``gpuledger doctor`` says what is broken, and ends with 3 where something is."""

import json
from collections.abc import Iterator

import pytest
import typer

from gpuledger.cli.doctor import doctor
from gpuledger.doctor import examining
from gpuledger.doctor.findings import Finding, Level, fine
from gpuledger.kernel.errors import Refused

WRONG = Finding("schema", Level.WRONG, "is old", command="gpuledger db upgrade", remedy="do it soon")
NOTE = Finding("policy", Level.NOTE, "nobody leads", cluster="alpha")


def found(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    def examine(*_: object) -> Iterator[Finding]:
        yield from findings

    monkeypatch.setattr(examining, "examine", examine)


def test_what_is_broken_is_shown_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, fine("disk", "room"), WRONG, NOTE)
    with pytest.raises(typer.Exit) as end:
        doctor()
    assert end.value.exit_code == 3
    assert capsys.readouterr().out.splitlines() == [
        "WRONG  schema: is old",
        "       do it soon",
        "       $ gpuledger db upgrade",
        "note   policy (alpha): nobody leads",
        "3 links looked at, 1 broken; begin with the first: schema",
    ]


def test_what_is_fine_is_shown_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, fine("disk", "room"))
    doctor(everything=True)
    assert capsys.readouterr().out == "ok     disk: room\n1 link looked at: nothing is broken\n"


def test_programs_get_one_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, NOTE, WRONG)
    with pytest.raises(typer.Exit):
        doctor(as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["ok"], document["first_broken"]["link"], len(document["findings"])) == (
        False,
        "schema",
        2,
    )


def test_a_link_alone_may_be_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, fine("disk", "room"), WRONG, NOTE)
    doctor(only=["policy", "disk"])
    assert capsys.readouterr().out.splitlines() == [
        "note   policy (alpha): nobody leads",
        "2 links looked at: nothing is broken",
    ]
    with pytest.raises(Refused, match="no such link was looked at: nowhere"):
        doctor(only=["nowhere"])
