"""The statement on paper: all that is presented, on as many pages as it takes, the same bytes each time."""

import base64
import re
import subprocess
import sys
import zlib

from tests.unit.close.close_said import document, line

from gpuledger.close import pdf_page
from gpuledger.close.presenting import present

AGAIN = """
import hashlib
from tests.unit.close.close_said import document
from gpuledger.close.pdf_page import statement
print(hashlib.sha256(statement(document())).hexdigest())
"""


def texts(content: bytes) -> str:
    """Return what the pages print."""
    streams = re.findall(rb"stream\r?\n(.*?)endstream", content, re.DOTALL)
    printed = b""
    for stream in streams:
        try:
            printed += zlib.decompress(base64.a85decode(stream.strip(), adobe=False))
        except (ValueError, zlib.error):
            printed += zlib.decompress(base64.a85decode(stream.strip().removesuffix(b"~>")))
    found = re.findall(rb"\(((?:[^()\\]|\\.)*)\)", printed)
    return " ".join(re.sub(rb"\\(\d{3}|.)", _unescaped, each).decode("cp1252") for each in found)


def _unescaped(match: "re.Match[bytes]") -> bytes:
    told = match.group(1)
    return bytes([int(told, 8)]) if told.isdigit() else told


def test_all_that_is_presented_is_printed() -> None:
    content = pdf_page.statement(document())
    assert content.startswith(b"%PDF-")
    printed = texts(content)
    told = present(document())
    wanted = [told.title, told.foot, *(value for _, value in told.headline)]
    wanted += [cell for table in told.tables for row in (*table.rows, table.total) for cell in row]
    squeezed = re.sub(r"\s", "", printed)
    assert [text for text in wanted if re.sub(r"\s", "", text) not in squeezed] == []


def test_a_long_statement_goes_on_with_its_heading_on_every_page() -> None:
    many = [line(f"org/team-{number:03d}") for number in range(120)]
    content = pdf_page.statement(document(*many))
    pages = len(re.findall(rb"/Type /Page\b", content))
    assert pages > 3
    printed = texts(content)
    assert printed.count("Brought in") >= pages - 1
    assert f"page {pages}" in printed


def test_it_holds_no_time_and_nothing_random_whichever_process_makes_it() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", AGAIN],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    assert b"D:2000" in pdf_page.statement(document()), "the library's fixed date"


def test_letters_that_no_reader_has_a_font_for_are_shown_as_such() -> None:
    printed = texts(pdf_page.statement(document(line("org/名前"), line("org/<b>"))))
    assert "org/??" in printed
    assert "org/<b>" in printed.replace(" ", "")
