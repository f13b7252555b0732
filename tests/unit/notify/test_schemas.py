"""The schemas beside the page are those of the code, and the page says the same."""

import datetime as dt
import json
import re
from pathlib import Path

import jsonschema
import pytest

from gpuledger.notify import schemas
from gpuledger.notify.notices import AUDIENCES, CLASSES, Kind, Notice
from gpuledger.notify.payloads import CheckFailed, Finding, Trial

AT = dt.datetime(2026, 12, 1, 4, 30, tzinfo=dt.UTC)


def test_the_files_are_the_codes(repository: Path) -> None:
    folder = repository / "docs/notices"
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert on_disk == schemas.documents(), "run: python -m gpuledger.notify.schemas docs/notices"


@pytest.mark.parametrize("kind", Kind)
def test_each_key_says_what_it_is(kind: Kind) -> None:
    schema = schemas.schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert all(each["description"] for each in schema["properties"]["data"]["properties"].values())


def test_a_payload_fits_its_schema_and_no_other() -> None:
    finding = Finding(expectation="x", rows_count=None, rows=[{"a": "1"}])
    data = CheckFailed(cluster="a", table="t", from_day="2026-12-01", to_day="2026-12-02", findings=[finding])
    payload = json.loads(Notice(Kind.CHECK_FAILED, (), data).body(AT))
    fits = [
        kind for kind in Kind if jsonschema.Draft202012Validator(schemas.schema_of(kind)).is_valid(payload)
    ]
    assert fits == [Kind.CHECK_FAILED]
    assert not jsonschema.Draft202012Validator(schemas.schema_of(Kind.TEST)).is_valid(
        {**json.loads(Notice(Kind.TEST, (), Trial(by="x")).body(AT)), "data": {}}
    )


def test_the_page_lists_each_kind_with_its_keys(repository: Path) -> None:
    page = (repository / "docs/notifications.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z.]+)` \| (`cluster`.*|`proposal`.*|`by`) \|$", page, re.MULTILINE))
    listed = {kind: re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", text)) for kind, text in rows.items()}
    assert listed == {kind.value: list(of.__struct_fields__) for kind, of in CLASSES.items()}
    told = re.findall(r"^\| `([a-z.]+)` \|(?: .+)? \|(?: .+)? \| .+ \|$", page, re.MULTILINE)
    assert [name for name in told if name in rows] == [kind.value for kind in AUDIENCES]


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert schemas.main([str(tmp_path / "deep")]) == 0
    assert len(list((tmp_path / "deep").iterdir())) == len(Kind)
    assert schemas.main([]) == 2
    assert "usage" in capsys.readouterr().err
