"""Mail in words and in HTML: nothing of a notice is markup, and nothing of it is a header."""

import datetime as dt

from gpuledger.notify.notices import Kind, Notice
from gpuledger.notify.payloads import CheckFailed, CloseFailed, Finding
from gpuledger.notify.rendering import one_line, render

AT = dt.datetime(2026, 12, 1, 4, 30, tzinfo=dt.UTC)
EVIL = "<script>alert(1)</script>&\"'"


def failed(cell: str = "org/a", expectation: str = "residual is 0") -> bytes:
    finding = Finding(expectation=expectation, rows_count=2, rows=[{"account": cell, "residual": "1"}] * 2)
    data = CheckFailed(
        cluster="alpha", table="gpu_hour", from_day="2026-12-01", to_day="2026-12-02", findings=[finding]
    )
    return Notice(Kind.CHECK_FAILED, ("x",), data).body(AT)


def test_text_and_html_name_the_rows() -> None:
    mail = render(failed())
    assert mail.subject == "alpha: a check of warehouse.gpu_hour failed"
    assert mail.text.count("account=org/a, residual=1\n") == 2
    assert mail.html.count('<td style="padding: 0.2rem 0.8rem 0.2rem 0">org/a</td>') == 2
    assert "2026-12-01 04:30 UTC" in mail.text
    assert "2026-12-01 04:30 UTC" in mail.html


def test_text_has_its_lines() -> None:
    lines = render(failed()).text.splitlines()
    assert "Cluster: alpha" in lines
    assert "residual is 0" in lines
    assert "--" in lines


def test_nothing_of_a_notice_is_markup() -> None:
    html = render(failed(EVIL, EVIL)).html
    assert "<script" not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#34;&#39;") == 3
    assert EVIL in render(failed(EVIL)).text  # which is no HTML


def test_a_subject_is_one_line() -> None:
    data = CloseFailed(
        cluster="a\r\nBcc: x@example.org", period="2026-12", step="s", message="m", findings=[]
    )
    subject = render(Notice(Kind.CLOSE_FAILED, ("x",), data).body(AT)).subject
    assert subject == "The close of 2026-12 of a Bcc: x@example.org stopped"


def test_a_line_is_printable_and_not_endless() -> None:
    assert one_line("a\0b\u2028c\td") == "a b c d"
    assert len(one_line("x" * 500)) == 200
    assert one_line("x" * 200) == "x" * 200
