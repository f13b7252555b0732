"""Rows become the lines that Slurm's commands would print."""

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.login.columns import Column, Style, chosen, lines

COLUMNS: dict[str, Column[tuple[str, int]]] = {
    "Name": Column("Name", 6, lambda row: row[0], is_left=True),
    "Amount": Column("Amount", 4, lambda row: str(row[1])),
}
ROWS = [("a", 1), ("a long name", 123456)]


def test_people_get_columns_as_wide_as_what_stands_in_them() -> None:
    found = list(lines(chosen(COLUMNS, "Name,Amount"), ROWS, Style.ALIGNED))
    assert found == ["Name        Amount", "----------- ------", "a                1", "a long name 123456"]


def test_a_width_that_was_asked_for_is_kept_and_what_is_longer_is_cut() -> None:
    found = list(lines(chosen(COLUMNS, "name%4,Amount%-8"), ROWS, Style.ALIGNED, with_header=False))
    assert found == ["   a 1", "a l+ 123456"]


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (Style.BARS, ["Amount|Name", "1|a", "123456|a long name"]),
        (Style.BARS_CLOSED, ["Amount|Name|", "1|a|", "123456|a long name|"]),
    ],
)
def test_programs_get_fields_between_bars(style: Style, expected: list[str]) -> None:
    assert list(lines(chosen(COLUMNS, "AMOUNT, name"), ROWS, style)) == expected


def test_a_name_cannot_move_the_cursor_begin_a_line_or_add_a_field() -> None:
    rows = [("\x1b[2Jx\ny|z", 1)]
    assert list(lines(chosen(COLUMNS, "Name"), rows, Style.BARS, with_header=False)) == ["?[2Jx?y?z"]
    assert list(lines(chosen(COLUMNS, "Name"), rows, Style.ALIGNED, with_header=False)) == ["?[2Jx?y|z"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Nmae", "no field 'Nmae'"),
        ("Name%x", "'x' is no width"),
        ("Name%0", "cannot be 0 wide"),
        (" , ", "names no field"),
    ],
)
def test_what_there_is_not_is_refused(asked: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        chosen(COLUMNS, asked)


def test_a_slip_of_the_pen_gets_a_suggestion() -> None:
    with pytest.raises(Refused) as refused:
        chosen(COLUMNS, "Nmae")
    assert refused.value.hint == "did you mean Name?"
