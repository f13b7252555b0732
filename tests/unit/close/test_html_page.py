"""The page: everything that is presented, escaped, readable without a network, the same each time."""

from html.parser import HTMLParser

from tests.unit.close.close_said import document, line

from gpuledger.close.html_page import page
from gpuledger.close.presenting import present


class Reader(HTMLParser):
    """Collects texts, and what the page would load."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.loads: list[str] = []
        self.open: list[str] = []
        self.feed(content.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [str(value) for name, value in attrs if name in ("src", "href")]
        if tag in ("script", "link", "img", "iframe"):
            self.loads.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_all_that_is_presented_is_on_it() -> None:
    told = present(document())
    texts = Reader(page(document())).texts
    wanted = [told.title, told.foot, *(value for _, value in (*told.facts, *told.headline))]
    wanted += [
        cell for table in told.tables for row in (table.columns, *table.rows, table.total) for cell in row
    ]
    assert set(wanted) <= set(texts)


def test_it_loads_nothing_and_every_element_ends() -> None:
    read = Reader(page(document()))
    assert read.loads == []
    assert read.open == []


def test_names_are_escaped() -> None:
    content = page(document(line("<script>alert('x')</script>")))
    assert b"<script" not in content
    assert "<script>alert('x')</script>" in Reader(content).texts


def test_it_is_the_same_each_time() -> None:
    assert page(document()) == page(document())


def test_amounts_below_nothing_are_marked() -> None:
    assert b'<td class="below">-10.0</td>' in page(document())
