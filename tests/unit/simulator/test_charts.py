"""Charts are well-formed pictures with a title, a description and escaped names."""

from xml.etree import ElementTree as ET

from gpuledger.simulator.charts import Bar, legend, length_bars, lines, part_dots

SVG = "{http://www.w3.org/2000/svg}"
ODD = '<script>alert("&")</script>'


def read(svg: str) -> ET.Element:
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert [node.tag for node in root[:2]] == [f"{SVG}title", f"{SVG}desc"]
    assert all(node.text for node in root[:2])
    return root


def test_bars_end_where_their_lengths_say_on_a_logarithmic_scale() -> None:
    rows = {"debug": [Bar(9, 99, 200)], "large": [Bar(99, 999, 999)]}
    root = read(length_bars(rows, ["old"], title="t", told="d"))
    widths = [float(node.get("width", "")) for node in root.iter(f"{SVG}rect")]
    outer_debug, inner_debug, outer_large, inner_large = widths
    assert outer_debug == inner_large
    assert [round(width / inner_debug, 2) for width in (outer_debug, outer_large)] == [
        2,
        3,
    ]  # log 100, log 1000


def test_a_bar_that_was_not_reached_goes_as_far_as_anything_was_seen_and_says_more() -> None:
    root = read(length_bars({"all": [Bar(5, None, 86_400)]}, ["old"], title="t", told="d"))
    assert "more" in [node.text for node in root.iter(f"{SVG}text")]
    (said,) = [node.text for node in root.iter(f"{SVG}title") if node is not root[0]]
    assert said == "all, old: half within 5 s, nine in ten within more than was seen"


def test_no_job_is_no_bar() -> None:
    root = read(length_bars({"all": [Bar(None, None, None)]}, ["old"], title="t", told="d"))
    assert not list(root.iter(f"{SVG}rect"))
    assert "no job" in [node.text for node in root.iter(f"{SVG}text")]


def test_names_are_escaped_everywhere() -> None:
    pictures = [
        length_bars({ODD: [Bar(1, 2, 3)]}, [ODD], title=ODD, told=ODD),
        part_dots({ODD: [0.5]}, [ODD], title=ODD, told=ODD, mark=0.95),
        lines({ODD: [0.5, None, 0.25]}, step_s=21_600, title=ODD, told=ODD, percent=True),
    ]
    for picture in [*pictures, legend([ODD])]:
        assert "<script" not in picture
    assert all(read(picture)[0].text == ODD for picture in pictures)


def test_a_gap_breaks_the_line() -> None:
    root = read(lines({"a": [0.5, None, 0.25, 0.75]}, step_s=21_600, title="t", told="d", percent=True))
    (path,) = root.iter(f"{SVG}path")
    assert (path.get("d") or "").count("M") == 2


def test_a_scale_holds_the_largest_value() -> None:
    root = read(lines({"a": [900.0] * 8}, step_s=21_600, title="t", told="d", percent=False))
    assert "1024" in [node.text for node in root.iter(f"{SVG}text")]


def test_a_scale_of_parts_begins_where_all_of_them_fit() -> None:
    for values, first in (([0.97, 0.81], "80 %"), ([0.97, 0.79], "60 %"), ([0.97, 0.2], "0 %"), ([], "0 %")):
        root = read(lines({"a": values}, step_s=21_600, title="t", told="d", percent=True))
        texts = [node.text for node in root.iter(f"{SVG}text")]
        assert texts[0] == first
        assert texts[4] == "100 %"


def test_series_of_dots_have_forms_of_their_own() -> None:
    root = read(
        part_dots({"org/a": [0.1, 0.2, 0.3, 0.4, None]}, list("abcde"), title="t", told="d", mark=0.95)
    )
    assert legend(list("ab"), marks=True).count("<circle") == 1
    tags = [node[1].tag for node in root.iter(f"{SVG}g")]
    assert tags == [f"{SVG}circle", f"{SVG}rect", f"{SVG}path", f"{SVG}path"]
