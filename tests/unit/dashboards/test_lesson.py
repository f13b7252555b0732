"""The lesson: its rounds, and its page in both languages."""

import dataclasses
import re
from fractions import Fraction
from typing import Any

import pytest
from tests.unit.dashboards.pages import LESSON, FakeClient, run_page, text_of

from gpuledger_dashboards import charts, lesson
from gpuledger_dashboards.lesson_texts import CHINESE, ENGLISH, LANGUAGES, Texts


def test_priorities_inflate_until_all_are_high_and_mean_nothing() -> None:
    rounds = lesson.old_world()
    assert [now.high for now in rounds] == [(), ("A",), ("A", "B"), ("A", "B", "C"), ("A", "B", "C", "D")]
    shown = [[lesson.whole(now.gpus[team]) for team in lesson.TEAMS] for now in rounds]
    assert shown == [
        ["25", "25", "25", "25"], ["60", "13⅓", "13⅓", "13⅓"], ["50", "50", "0", "0"],
        ["33⅓", "33⅓", "33⅓", "0"], ["25", "25", "25", "25"],
    ]  # fmt: skip
    assert rounds[0].gpus == rounds[-1].gpus
    assert all(sum(now.gpus.values()) == lesson.SUPPLY for now in rounds)


def test_nobody_is_given_more_than_they_want() -> None:
    assert [set(now.gpus.values()) for now in lesson.old_world(wanted=10)] == [{Fraction(10)}] * 5


def test_gpus_for_people() -> None:
    assert [lesson.whole(Fraction(n, 6)) for n in (12, 8, 9, 1)] == ["2", "1⅓", "1½", "0.2"]


def test_the_trees_that_are_divided() -> None:
    shares, wanted = dict(zip("ABCD", lesson.BUDGETS, strict=True)), dict.fromkeys("ABCD", 60)
    flat, tree = lesson.flat_tree(shares, wanted), lesson.program_tree(shares, wanted)
    assert [(node.account, node.share) for node in flat.accounts] == [
        ("a", 40),
        ("b", 30),
        ("c", 20),
        ("d", 10),
    ]
    assert [node.account for node in tree.accounts] == ["north/a", "north/b", "south/c", "south/d"]
    assert {node.demand_milli for node in tree.accounts} == {60_000}
    assert (flat.supply_milli, tree.supply_milli) == (100_000, 100_000)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_in_each_language(client: FakeClient, lang: str) -> None:
    texts = LANGUAGES[lang]
    app = run_page(LESSON, lang=lang)
    text = text_of(app)
    assert app.title[0].value == texts.title
    assert texts.round_first.format(gpus=25) in text
    for heading in (texts.old_title, texts.budget_title, texts.decides_title, texts.check_title):
        assert heading in text
    app.select_slider(key="round").set_value(5).run()
    assert texts.round_last.format(n=5, team="D", gpus=25) in text_of(app)
    app.select_slider(key="round").set_value(3).run()
    assert texts.round_next.format(n=3, team="B", gpus=50, others="A, C, D") in text_of(app)
    assert not app.exception
    assert len(client.trees) == 2, "another round asks for nothing"


def test_a_preset_sets_every_number_and_asks_the_policy(client: FakeClient) -> None:
    app = run_page(LESSON, begin="surplus")
    assert ENGLISH.preset_says["surplus"] in text_of(app)
    assert [node.demand_milli for node in client.trees[0].accounts] == [10_000, 60_000, 60_000, 60_000]
    app.selectbox(key="begin").set_value("zero").run()
    assert [node.share for node in client.trees[-1].accounts] == [0, 30, 20, 10]
    app.number_input(key="share B zero").set_value(45).run()
    assert [node.share for node in client.trees[-1].accounts] == [0, 45, 20, 10]


def test_the_self_check_says_why(client: FakeClient) -> None:
    app = run_page(LESSON)
    assert len(app.radio) == len(ENGLISH.questions)
    for radio, (_, answers, right, why) in zip(app.radio, ENGLISH.questions, strict=True):
        radio.set_value(answers[right]).run()
        assert any(why in shown.value.replace("\\", "") for shown in app.success)
    app.radio[0].set_value(ENGLISH.questions[0][1][0]).run()
    assert ENGLISH.wrong in app.warning[0].value


def test_both_languages_say_the_same_things() -> None:
    for field in dataclasses.fields(Texts):
        one, other = getattr(ENGLISH, field.name), getattr(CHINESE, field.name)
        assert _places(one) == _places(other), field.name
        assert _shape(one) == _shape(other), field.name
    assert [question[2] for question in ENGLISH.questions] == [question[2] for question in CHINESE.questions]
    assert {preset.key for preset in lesson.PRESETS} == ENGLISH.presets.keys() == ENGLISH.preset_says.keys()


def _places(text: Any) -> list[str]:  # noqa: ANN401 - a text, or texts in tuples and dictionaries
    return sorted(re.findall(r"\{(\w+)\}", str(text))) if isinstance(text, str) else []


def _shape(text: Any) -> Any:  # noqa: ANN401
    match text:
        case dict():
            return {key: _shape(value) for key, value in text.items()}
        case tuple():
            return [_shape(value) for value in text]
        case _:
            return type(text)


def test_bars_are_told_apart_by_kind() -> None:
    bars = lesson.round_bars(lesson.old_world()[1], "HIGH", "NORMAL")
    assert [(bar.team, bar.kind) for bar in bars] == [
        ("A", "HIGH"), ("B", "NORMAL"), ("C", "NORMAL"), ("D", "NORMAL"),
    ]  # fmt: skip
    drawn = charts.teams(bars, {"NORMAL": "#a9b4c0", "HIGH": "#d55e00"}, most=50).to_dict()
    assert drawn["encoding"]["x"]["scale"]["domain"] == [0, 60]
    assert "yOffset" not in drawn["encoding"]
    assert drawn["encoding"]["color"]["scale"]["domain"] == ["NORMAL", "HIGH"]
