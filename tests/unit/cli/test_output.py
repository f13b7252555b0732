"""Documents, tables and progress, as they come out."""

import io
import json

import pytest

from gpuledger.cli.output import counted, note, print_json, print_table, progress


def test_a_document_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "München", "text": "two\nlines"})
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    assert "München" in out
    assert json.loads(out) == {"name": "München", "text": "two\nlines"}


def test_a_table_has_numbers_to_the_right_and_whole_rows(capsys: pytest.CaptureFixture[str]) -> None:
    wide = "a" * 120
    print_table(["name", ">amount"], [(wide, "1.0"), ("b", "1,000.0")], title="All of it")
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "All of it"
    assert any(line.endswith(f"{wide}       1.0") for line in lines)
    assert any(line.strip().startswith("b ") and line.endswith("1,000.0") for line in lines)


def test_markup_in_data_is_data(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["place"], [("gpu.telemetry[0]@5",), ("[red]x[/red]",)])
    out = capsys.readouterr().out
    assert "gpu.telemetry[0]@5" in out
    assert "[red]x[/red]" in out
    assert "\x1b" not in out


def test_a_note_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    note("for people")
    assert capsys.readouterr() == ("", "for people\n")


def test_progress_without_a_terminal_is_a_line_per_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("import", 1000) as advance:
        for done in (0, 10, 99, 100, 350, 1000, 2000):
            advance(done)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["import: 0 %", "import: 10 %", "import: 30 %", "import: 100 %"]


def test_progress_of_nothing_does_not_divide_by_zero(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("import", 0) as advance:
        advance(0)
    assert capsys.readouterr().err == "import: 0 %\n"


def test_progress_on_a_terminal_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with progress("import philly", 100) as advance:
        advance(50)
    assert "import philly" in screen.getvalue()
    assert "100 %" in screen.getvalue()


def test_one_thing_is_not_told_as_several() -> None:
    assert [counted(number, "change") for number in (0, 1, 2)] == ["0 changes", "1 change", "2 changes"]
